//! The texts after the options of `cosched record` and `cosched profile`.

pub(crate) const RECORD: &str = "\
A library is loaded into the command (LD_PRELOAD) that times each MPI call of each rank: what a rank computes and \
waits for between them, to whom it sends and how much. Open MPI and MPICH, C and what calls C. A program without MPI \
is looked at from outside instead: the totals of its threads, no messages. Standard input, output, signals and the exit \
code pass through; what was recorded of a program that fails or is interrupted is written all the same. The table of \
tasks goes to standard error. docs/record.md says what is recorded, how exactly, and what it costs.

Examples:
  cosched record -o lu.profile.json -- mpirun -n 2 ./lu --n 1000
  cosched sim program --profile lu.profile.json --copies 1,2,4 --strategies GS,Local,SB,PB
  cosched record --limit 512M -- mpirun -n 16 ./solver     a long run
  cosched record --scratch /shared/tmp -- mpirun -x LD_PRELOAD -x COSCHED_RECORD_DIR -n 64 ./a.out
                                                           on several nodes, with Open MPI
Environment:
  COSCHED_RECORD_LIBRARY   another place of libcosched_record.so

Exit codes:
  the command's own; 128+N when signal N ended it
  125 cosched itself failed (also: wrong usage)   126 found, but not executable   127 not found";

pub(crate) const PROFILE: &str = "\
Examples:
  cosched profile show lu.profile.json
  cosched profile program lu.profile.json > lu.prog

Exit codes:
  0 success   1 the profile cannot be read or used   2 wrong usage";

pub(crate) const PROFILE_SHOW: &str = "\
COMPUTE is CPU time outside MPI, IN MPI the time in its calls (ON CPU: of that on the CPU, most of it spinning), I/O \
what was off the CPU outside MPI, WAITED what was ready without a CPU. MESSAGES and BYTES are those sent point to \
point. LINES is what the operations take, loops folded.

Examples:
  cosched profile show lu.profile.json
  cosched profile show --json lu.profile.json | jq .totals";

pub(crate) const PROFILE_PROGRAM: &str = "\
The text has the form that docs/simulator.md, chapter 4, describes, and can be changed by hand.

Examples:
  cosched profile program lu.profile.json > lu.prog
  cosched sim program lu.prog --tasks 2";
