//! The texts after the options of `cosched record` and `cosched profile`.

pub(crate) const RECORD: &str = "\
A library is loaded into the command (LD_PRELOAD) that times each MPI call of each rank: computation and \
waits between the calls, and the receiver and size of each message. For Open MPI and MPICH, in C or a language that calls C. A \
program without MPI is observed from outside instead: totals of its threads, no messages. Standard input, output, signals and the \
exit code are passed through; the profile is also written if the program fails or is interrupted. The table of \
tasks goes to standard error. docs/record.md describes what is recorded, how exactly, and the overhead.

Examples:
  cosched record -o lu.profile.json -- mpirun -n 2 ./lu --n 1000
  cosched sim program --profile lu.profile.json --copies 1,2,4 --strategies GS,Local,SB,PB
  cosched record --limit 512M -- mpirun -n 16 ./solver     a long run
  cosched record --scratch /shared/tmp -- mpirun -x LD_PRELOAD -x COSCHED_RECORD_DIR -n 64 ./a.out
                                                           on several nodes, with Open MPI

Environment:
  COSCHED_RECORD_LIBRARY   another place of libcosched_record.so

Exit codes:
  the command's exit code; 128+N if signal N terminated it
  125 cosched itself failed (also: wrong usage)   126 found, but not executable   127 not found";

pub(crate) const PROFILE: &str = "\
Examples:
  cosched profile show lu.profile.json
  cosched profile program lu.profile.json > lu.prog

Exit codes:
  0 success   1 the profile cannot be read or used   2 wrong usage";

pub(crate) const PROFILE_SHOW: &str = "\
COMPUTE is CPU time outside MPI, IN MPI the time in its calls (ON CPU: the part of it on the CPU, mostly spinning), I/O \
the time off the CPU outside MPI, WAITED the time ready without a CPU. MESSAGES and BYTES are those sent point to \
point. LINES is the number of lines of the operations, with loops folded.

Examples:
  cosched profile show lu.profile.json
  cosched profile show --json lu.profile.json | jq .totals";

pub(crate) const PROFILE_PROGRAM: &str = "\
The text has the format of docs/simulator.md, chapter 4, and can be edited.

Examples:
  cosched profile program lu.profile.json > lu.prog
  cosched sim program lu.prog --tasks 2";
