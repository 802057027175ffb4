//! The texts after the options of `cosched bench`.

pub(crate) const BENCH: &str = "\
Examples:
  cosched bench slowdown -- mpirun -n 2 ./a.out
  cosched bench slowdown --jobs 1,2,4,8 --out result -- mpirun -n 2 ./a.out
  cosched bench compare result --profile a.profile.json --machine here.toml";

pub(crate) const COMPARE: &str = "\
One table with three numbers for each policy and number of jobs: the slowdown that was measured, the one that the model \
computes, and the one that the simulator finds, with their differences. Model and simulator are fed by the same profile \
of the program and the same machine file. Of programs that tell the time of their main phase (a line of JSON with \
main_phase_s) its slowdown is compared, else that of the whole job.

Examples:
  cosched record -o lu.profile.json -- mpirun -n 2 ./lu
  cosched model calibrate -o here.toml
  cosched bench slowdown --jobs 1,2,4 --policies linux,local,gang-strict --out lu -- mpirun -n 2 ./lu
  cosched bench compare lu --profile lu.profile.json --machine here.toml

Exit codes:
  0 success   1 a file cannot be read, or the program cannot be simulated   2 wrong usage   6 a file is not valid";

pub(crate) const SLOWDOWN: &str = "\
Slowdown is s_j = t_j / t_1: the time until all of j equal jobs have ended, against that of one job alone. j is ideal \
for jobs that could use all CPUs; less is possible where jobs wait. All policies and numbers of jobs take turns in every \
repetition. Times are medians, ± is one standard error. A job that fails, takes too long or does not fit into memory is \
reported, never averaged in.

Policies:
  linux                          no cosched
  gang, local, pb, dcs, auto     `cosched run --policy`; sharing as it is set
  gang-strict, gang-soft, paired gang with this sharing, set for its runs only
  local+spin-block, gang+off, …  with a way to wait (`cosched run --wait`)
  GS, Local, SB, SY, DCS, PB, …  `cosched run --strategy`
  slurm-gang                     the local Slurm's time slices

A list of different jobs (--mix):
  [[job]]
  name = \"lu\"
  command = [\"mpirun\", \"-n\", \"2\", \"./lu\"]
  count = 2
  [[job]]
  name = \"editor\"
  class = \"interactive\"
  start_s = 1.5
  command = [\"./edit\"]

Examples:
  cosched bench slowdown -- mpirun -n 2 ./a.out
  cosched bench slowdown --jobs 1,2,4,8 --repeat 9 --out lu -- mpirun -n 2 ./lu
  cosched bench slowdown --policies gang,PB-SB --json -- ./a.out | jq .results
  cosched bench slowdown --mix evening.toml --policies linux,gang --csv
  cosched bench slowdown --resume lu

Exit codes:
  0 all runs were done   1 a run was not, or the command fails alone   2 wrong usage   3 no daemon
  6 refused, or invalid input   126 not executable   127 not found   130 interrupted; what was measured is reported";
