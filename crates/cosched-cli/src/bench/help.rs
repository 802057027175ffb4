//! The texts after the options of `cosched bench`.

pub(crate) const BENCH: &str = "\
Examples:
  cosched bench slowdown -- mpirun -n 2 ./a.out
  cosched bench slowdown --jobs 1,2,4,8 --out result -- mpirun -n 2 ./a.out
  cosched bench compare result --profile a.profile.json --machine here.toml";

pub(crate) const COMPARE: &str = "\
A table with three slowdowns for each policy and number of jobs: measured, computed by the model, and simulated, \
with their differences. Model and simulator use the same profile \
of the program and the same machine file. If the program reports the time of its main phase (a line of JSON with \
main_phase_s), the slowdown of that phase is compared, else that of the whole job.

Examples:
  cosched record -o lu.profile.json -- mpirun -n 2 ./lu
  cosched model calibrate -o here.toml
  cosched bench slowdown --jobs 1,2,4 --policies linux,local,gang-strict --out runs -- mpirun -n 2 ./lu
  cosched bench compare runs --profile lu.profile.json --machine here.toml
  cosched bench compare runs --profile lu.profile.json --machine here.toml --working-set 512KiB

Exit codes:
  0 success   1 a file cannot be read, or the program cannot be simulated   2 wrong usage   6 a file is not valid";

pub(crate) const SLOWDOWN: &str = "\
Slowdown is s_j = t_j / t_1: the time until all of j equal jobs have ended, divided by that of one job alone. j is ideal \
for jobs that can use all CPUs; less is possible if jobs wait. Each repetition runs all policies and numbers of jobs \
in turn. Times are medians, ± is one standard error. Jobs that fail, time out or do not fit into memory are \
reported, and excluded from the averages.

Policies:
  linux                          no cosched
  gang, local, pb, dcs, auto     `cosched run --policy`, with the current sharing
  gang-strict, gang-soft, paired gang with this sharing, set only for these runs
  local+spin-block, gang+off, …  with this way to wait (`cosched run --wait`)
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
  cosched bench slowdown --jobs 1,2,4,8 --repeat 9 --out runs -- mpirun -n 2 ./lu
  cosched bench slowdown --policies gang,PB-SB --json -- ./a.out | jq .results
  cosched bench slowdown --mix evening.toml --policies linux,gang --csv
  cosched bench slowdown --resume lu

Exit codes:
  0 all runs completed   1 a run failed, or the command fails alone   2 wrong usage   3 no daemon
  6 refused, or invalid input   126 not executable   127 not found   130 interrupted; completed runs are reported";
