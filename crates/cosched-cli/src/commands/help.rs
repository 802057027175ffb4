//! The texts after the options: examples and exit codes. The man pages carry them too.

pub(crate) const COSCHED: &str = "\
Examples:
  cosched run -- mpirun -n 2 ./a.out       run a parallel job
  cosched run -d --class batch ./long.sh   and one that nobody waits for
  cosched ps                               what runs, and how much CPU each gets
  cosched status                           the matrix, the switches, what is wrong
  cosched policy gang --slot 50ms          how jobs share the CPUs
  cosched demo                             see what it is for, on this machine

Environment:
  COSCHED_SOCKET   the daemon's socket, as --socket
  COSCHED_DAEMON   the daemon's executable, when `cosched run` has to start one
  NO_COLOR         no colours

Exit codes:
  0 success   1 failure   2 wrong usage   3 no daemon reachable   4 no such job
  5 not your right   6 invalid, or refused in the present state
  `run` has the command's own codes: see `cosched run --help`";

pub(crate) const RUN: &str = "\
The command and all its descendants are in the job from their first instruction on. \
Standard input, output, signals and the exit code pass through; the job has ended when its last process has.

Examples:
  cosched run -- mpirun -n 2 ./a.out
  cosched run --cpus 1 --class standby -- ./sweep.sh
  cosched run --policy local --mem 4G -- python train.py
  cosched run -d --name night -- make -j2; cosched log -f night

Exit codes:
  the command's own; 128+N when signal N ended it
  125 cosched itself failed (also: wrong usage)   126 found, but not executable   127 not found";

pub(crate) const PS: &str = "\
TIME is CPU time, CPU% is in percent of one CPU over the last seconds, ROW is the job's home row of the matrix, \
SHARE the part of the time in which it owns its CPUs.

Examples:
  cosched ps
  cosched ps --all --json | jq '.jobs[] | select(.user == \"ann\") | .id'";

pub(crate) const JOBS: &str = "\
Examples:
  cosched show 7
  cosched suspend 7 night; cosched resume 7 night
  cosched wait 7 && echo well

Exit codes:
  0 success   3 no daemon reachable   4 no such job   5 not your right   6 refused in the present state
  With several jobs, the first failure's. `wait`: the job's own (128+N for signal N), the first that is not 0.";

pub(crate) const STATUS: &str = "\
Latencies of switches are from the slot's boundary: until the slot thread ran (wake), and \
until the last write was done.

Examples:
  cosched status
  cosched status --watch
  cosched status --json | jq .switches.done.p99_us";

pub(crate) const KILL: &str = "\
Examples:
  cosched kill 7                  TERM, and KILL after 5 s
  cosched kill --grace 30s 7 8
  cosched kill -s USR1 7          only that signal
  cosched kill -9 night";

pub(crate) const CLASS: &str = "\
Users may lower a class; raising one, and express, are for administrators.

Examples:
  cosched class 7 standby
  cosched class 7 8 batch";

pub(crate) const POLICY: &str = "\
Changes take effect while jobs run.

Examples:
  cosched policy                       what is in force
  cosched policy gang --sharing strict
  cosched policy --slot 50ms
  cosched policy local --job 7         one job only
  cosched policy default --job 7       it follows the machine again";

pub(crate) const LOG: &str = "\
Examples:
  cosched log 7
  cosched log -f night
  cosched log --events 7";

pub(crate) const DEMO: &str = "\
The same work is given to 1, 2 and 4 jobs under plain Linux, under cosched local and under cosched gang, in turn. \
The machine's policy is set for the runs and restored afterwards. Slowdown is t_j / t_1: the time of j jobs side by \
side against one job alone under plain Linux; j is ideal.

Examples:
  cosched demo
  cosched demo --jobs 2 --policies linux,gang --seconds 5
  cosched demo --json | jq .sentence

Environment:
  COSCHED_PROGRAMS   the directory of barrier-mpi and barrier-omp
  COSCHED_MPIRUN     the mpirun of the MPI that barrier-mpi was built with";

pub(crate) const MAN: &str = "\
Examples:
  cosched man | man -l -
  cosched man --dir /usr/local/share/man/man1";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  cosched completions bash > ~/.local/share/bash-completion/completions/cosched
  cosched completions zsh > ~/.zfunc/_cosched
  cosched completions fish > ~/.config/fish/completions/cosched.fish";
