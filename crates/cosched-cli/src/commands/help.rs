//! The texts after the options: examples and exit codes. The man pages carry them too.

pub(crate) const COSCHED: &str = "\
Examples:
  cosched run -- mpirun -n 2 ./a.out       run a parallel job
  cosched run -d --class batch ./long.sh   and one that nobody waits for
  cosched join --job 7 -- ./worker         one more process for a job that is there
  cosched ps                               what runs, and how much CPU each gets
  cosched status                           the matrix, the switches, what is wrong
  cosched top                              all of it on the terminal, with keys to steer
  cosched policy gang --slot 50ms          how jobs share the CPUs
  cosched demo                             see what it is for, on this machine
  cosched advise -- mpirun -n 2 ./a.out    which policy suits a program
  cosched bench slowdown -- ./a.out        what sharing costs it

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

A library that is loaded into the command (--wait) makes programs that poll for messages spin for a moment and then \
block (spin-block) or give way (spin-yield); the spin time is found for each process, or given in microseconds. \
`auto` does so under the policy auto, and lets them spin (busy) under the others. `cosched show` counts the waits.

Examples:
  cosched run -- mpirun -n 2 ./a.out
  cosched run --cpus 1 --class standby -- ./sweep.sh
  cosched run --policy local --mem 4G -- python train.py
  cosched run --policy local --wait spin-block:50us -- mpirun -n 4 ./a.out
  cosched run --strategy PB-SB -- mpirun -n 4 ./a.out
  cosched run -d --name night -- make -j2; cosched log -f night
  cosched run --nodes a:2,b:2 -- mpirun ./a.out        in a cluster: on these nodes, and mpirun hears of them
  cosched run --cpus 8 --queue night --on-node-loss requeue -d -- mpirun ./a.out

Environment of the command:
  COSCHED_JOB            the job's id. Ranks that mpirun (Open MPI) or mpiexec (MPICH) starts on other nodes get it too,
                         and join the job there; what is started by plain ssh needs `cosched join`
  COSCHED_JOB_SUBMITTED  when it was registered: a job of the same id at another daemon is not this one

Exit codes:
  the command's own; 128+N when signal N ended it
  125 cosched itself failed (also: wrong usage)   126 found, but not executable   127 not found";

pub(crate) const JOIN: &str = "\
The daemon is the one of this node. The command is executed in place of `cosched join`: it has its process id, and its \
descendants are in the job by birth. A process that runs already (--pid) enters with all its threads; children that it \
has stay where they are. A process enters a job of its own user only.

Ranks that mpirun or mpiexec starts on other nodes join by themselves (`cosched run --help`). This is for what does \
not carry the environment, as ssh, and for programs that the wait library cannot be loaded into.

Examples:
  ssh node2 cosched join --job $COSCHED_JOB -- ./worker
  cosched join --optional -- ./worker      in a script that also runs outside of jobs
  cosched join --job 7 --pid 4711

Exit codes:
  the command's own; 126 found, but not executable   127 not found
  2 wrong usage   3 no daemon reachable   4 no such job, or no such process   5 not your right, or not your process
  6 the job has ended, or the process is in another job
  With --optional the command is executed anyway, after a warning.";

pub(crate) const PS: &str = "\
TIME is CPU time, CPU% is in percent of one CPU over the last seconds, ROW is the job's home row of the matrix, \
SHARE the part of the time in which it owns its CPUs. In a cluster a node knows what a job uses there: a plus \
after TIME and MEM says that the job's other nodes have more of it, a dash that only others do.

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

pub(crate) const LIMITS: &str = "\
The limits are those of one user, as an administrator has set them ([limits] in /etc/cosched.toml): jobs that have not ended, of \
them those that wait, processes registered into jobs, memory that jobs declare, bytes of the jobs' records, connections, and bytes \
of requests and long answers that the daemon holds. In a cluster, jobs and memory are those of all nodes; the rest is of the \
daemon that is asked. Nothing is refused to administrators.

Examples:
  cosched limits
  cosched limits --json | jq '.limits[] | select(.name == \"jobs\")'

Exit codes:
  0 success   1 failure   3 no daemon reachable";

pub(crate) const METRICS: &str = "\
The same text is at GET /metrics on the daemon's socket and, where metrics_listen is configured, on that port \
(docs/monitoring.md has a scrape configuration). Times are in seconds. switch_skew is how late after the slot's boundary \
the last write of a switch was done, switch_latency how long the writes took; gang_cpu{where=\"outside\"} is CPU time that \
gangs used outside of their slots.

Examples:
  cosched metrics | grep switches_total
  curl -s --unix-socket /run/cosched/coschedd.sock http://localhost/metrics

Exit codes:
  0 success   1 failure   3 no daemon reachable   6 the daemon is older and has no metrics";

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
  auto   one of the others for each job, chosen and changed by what it is seen to do
  gang   all processes of a job run in the same time slots
  local  Linux schedules the job, with a share by its class
  pb     as local; every 1 to 2 ms a job that has a message waiting is raised (periodic boost)
  dcs    as local; the arrival of a message raises its job (demand-based coscheduling)

Examples:
  cosched policy                       what is in force
  cosched policy gang --sharing strict
  cosched policy --slot 50ms
  cosched policy --shares interactive=8,batch=2 --off-hours batch=16     a cluster's
  cosched policy local --job 7         one job only
  cosched policy default --job 7       it follows the machine again";

pub(crate) const RESOURCES: &str = "\
A job that waits in its queue keeps its place there. One that has started keeps its nodes, since processes cannot move; \
what it gives back is free at once, and what it wants more it gets at once, or the command says what is lacking and \
nothing changes. It does not get memory for which a job waits that came before it. More or fewer CPUs of a job on \
several nodes are divided evenly, unless --nodes says otherwise. Owners and administrators only, on any node.

Examples:
  cosched resources 7 --cpus 4
  cosched resources 7 --mem 8G              and the same CPUs as before
  cosched resources 7 --nodes a:4:2G,b:2:1G

Exit codes:
  0 success   2 wrong usage   3 no daemon reachable   4 no such job   5 not your right   6 refused: no room, or it can never be";

pub(crate) const QUEUES: &str = "\
Jobs are served queue by queue, the first queue first. A job of an exclusive queue has its nodes for itself. STARTED \
jobs have their place. Below: what else the cluster keeps, which `cosched policy` changes.

Examples:
  cosched queues
  cosched queues --json | jq '.[] | select(.waiting > 0).name'
  cosched queues --toml > queues.toml      to edit, for `cosched queues set queues.toml`

Exit codes:
  0 success   3 no daemon reachable   5 not your right   6 refused, as without a cluster";

pub(crate) const QUEUES_SET: &str = "\
The file has a table [[queue]] for each queue, the most urgent first: name, and exclusive, memory_max, disk_max and \
time_max where wanted; what else is in it is not read. These are all queues of the cluster then, on every node, while \
jobs run. A job stays in the queue of its name: a queue that has jobs cannot be left out, and the refusal names them. \
Limits of memory and disk hold for jobs that come later, those of time for all that run; an exclusive queue's for jobs \
that start later.

Examples:
  cosched queues set /etc/cosched.toml
  printf '[[queue]]\nname = \"short\"\ntime_max = \"10min\"\n[[queue]]\nname = \"default\"\n' | cosched queues set -

Exit codes:
  0 success   1 the file cannot be read   3 no daemon reachable   5 not your right   6 refused, and nothing has changed";

pub(crate) const CLUSTER: &str = "\
When somebody has deleted or damaged keys below /cosched/ in etcd, nothing is planned and nothing ends until it is put right: \
jobs go on. For administrators, on any node; docs/cluster.md has the procedures.

Examples:
  cosched cluster repair                   say what is wrong, and what would be done
  cosched cluster repair --yes             do it
  cosched cluster export /var/backups/hall-b.json
  cosched cluster import /var/backups/hall-b.json --yes

Exit codes:
  0 success   1 not done   3 no daemon reachable   5 not your right   6 refused, and nothing has changed";

pub(crate) const CLUSTER_REPAIR: &str = "\
The state is put back as this node knows it, names and numbers come from each other, and what cannot be read is deleted. No \
job ends, and numbers of jobs rise. If another node knows more, the refusal names it. --json prints what is said, and whether \
it was done.

Examples:
  cosched cluster repair
  cosched cluster repair --yes

Exit codes:
  0 done, or nothing is wrong   1 not done   3 no daemon reachable   5 not your right   6 refused";

pub(crate) const CLUSTER_EXPORT: &str = "\
Settings, queues, names of nodes and jobs, with what jobs that are requeued need to begin again: their environments. Only its \
owner can read the file. It can be written while jobs run.

Examples:
  cosched cluster export /var/backups/hall-b.json
  cosched cluster export - | gpg -e -r ops > hall-b.gpg

Exit codes:
  0 all is in it   1 not written, or some keys cannot be read   3 no daemon reachable   5 not your right";

pub(crate) const CLUSTER_IMPORT: &str = "\
The cluster is then as it was when the file was written. Jobs that began since go on, scheduled by Linux, and are ended on \
their own nodes; jobs that have ended since end again. New numbers are higher than all that a living node knows.

Examples:
  cosched cluster import /var/backups/hall-b.json          say what would be done
  cosched cluster import /var/backups/hall-b.json --yes

Exit codes:
  0 success   1 the file cannot be read   3 no daemon reachable   5 not your right   6 refused, and nothing has changed";

pub(crate) const LOG: &str = "\
The files are in $XDG_STATE_HOME/cosched/logs, by default ~/.local/state/cosched/logs, root's in /var/log/cosched. \
They stay when their jobs have ended: a user removes his own; root's go after 90 days where systemd-tmpfiles runs.

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

pub(crate) const WORKLOAD: &str = "\
Traces are read in the Standard Workload Format (SWF), plain or gzip, from the Parallel Workloads Archive or your own; \
job lists are CSV with the header arrival_s,tasks,exec_s,type; Batsim's JSON is read too. `-` is standard input.

Examples:
  cosched workload show KTH-SP2-1996-2.1-cln.swf.gz
  cosched workload generate --model WL3 --jobs 200 --load 0.8 > wl3.csv
  cosched workload convert trace.swf.gz jobs.csv --max-tasks 32 --limit 500";

pub(crate) const WORKLOAD_SHOW: &str = "\
A job is usable if its run time and its processors are above 0. Sums and fits are over usable jobs, counts over all \
records; processors are the allocated ones where they are known. KS is the Kolmogorov-Smirnov distance of a fit \
(0 fits, 1 does not); if it is large, three moments do not describe the body of the sample: see `cosched workload fit`.

Examples:
  cosched workload show trace.swf.gz
  cosched workload show --html trace.html trace.swf.gz
  cosched workload show --json trace.swf.gz | jq .hyper_erlang.all.runtime
  cosched workload show --from-s 0 --to-s 6764040 CTC-SP2-1996-3.1-cln.swf.gz

Exit codes:
  0 success   1 the file cannot be read, or ends early   2 wrong usage   6 no workload, or nothing in it is usable";

pub(crate) const WORKLOAD_FIT: &str = "\
Hyper-Erlang distributions of common order for gaps and run times of each size class, by three moments (Jann et al. \
1997: exact load and burstiness) and by maximum likelihood (EM: closer to the body of the sample). The model that is \
written has the fits of --method.

Examples:
  cosched workload fit trace.swf.gz
  cosched workload fit --method moments --save model.json trace.swf.gz
  cosched workload fit --max-gap-s 86400 --json trace.swf.gz | jq .classes
  cosched workload generate --model model.json --jobs 1000 --nodes 64 > jobs.csv";

pub(crate) const WORKLOAD_GENERATE: &str = "\
Models:
  WL1 to WL8           the workloads of Zhang et al. 2000: the paper's form, values of our own
  hyper-erlang         the same form, with the mix of --types
  ctc-1996-refit       hyper-Erlang classes fitted to the CTC SP2's log; not Jann's table
  FILE.json            a model that `cosched workload fit --save` wrote
  lublin               Lublin and Feitelson 2003, batch and interactive jobs; also lublin-batch,
                       lublin-interactive, lublin-no-types
The load is exactly Sum(tasks x time) / (nodes x last arrival). One seed gives the same bytes on every machine.

Examples:
  cosched workload generate --model WL3 --jobs 200 --load 0.8 --nodes 32 > wl3.csv
  cosched workload generate --model WL7 --together --mean-exec-s 20 --output wl7.csv
  cosched workload generate --model lublin --nodes 128 --estimates-max-s 64800 -o lublin.swf";

pub(crate) const WORKLOAD_CONVERT: &str = "\
Formats are told by content when reading and by name when writing: .csv is a job list, .swf a trace, .json Batsim's \
workload. What is left out is counted by reason. The first job that is taken arrives at 0.

Examples:
  cosched workload convert trace.swf.gz jobs.csv --nodes 32 --limit 500 --lengths 0.01 --load 0.8
  cosched workload convert trace.swf.gz jobs.csv --types WL8 --from-s 86400 --to-s 172800 --status 1
  cosched workload convert jobs.csv workload.json --nodes 64
  gzip -dc trace.gz | cosched workload convert - - --format csv";

pub(crate) const SIM_BACKFILL: &str = "\
Space sharing of a trace, as a batch system does it: fcfs (first come, first served), easy (backfilling that never \
delays the first job), easy-sjbf (the same, shortest candidates first). Jobs are taken with known estimates only, run \
times are cut to them; what is left out is counted. At each instant all ends come first, then all submissions, then \
one pass over the queue (--event-order all); with `one`, a pass follows every single event. The order alone moves \
mean bounded slowdowns by per cents. Bounded slowdown is max(1, flow / max(run time, 10 s)).

Examples:
  cosched sim backfill --trace CTC-SP2-1996-3.1-cln.swf.gz --policy easy
  cosched sim backfill --trace trace.swf.gz --policy easy-sjbf --json | jq .avebsld
  cosched sim backfill --trace trace.swf.gz --policy easy --fair-share 7d,1d
  cosched sim backfill --trace trace.swf.gz --policy fcfs --procs 512 --jobs-csv jobs.csv

Exit codes:
  0 success   1 the file cannot be read, or ends early   2 wrong usage   6 no trace, or nothing in it is usable";

pub(crate) const NODES: &str = "\
LOAD is the mean over a minute of threads that run or wait for a CPU, FREE the memory that new programs could have; a node tells \
anew when they have changed much. OTHERS is the number of those threads that are no jobs', as the plan counts on it.
A node that is drained keeps its jobs and gets no new ones. One machine that has queues is a node, too. Settings that hold for a \
node: /etc/cosched.toml there; see docs/cluster.md.

Examples:
  cosched nodes
  cosched nodes --drain b7        before maintenance; `cosched ps` shows when it is empty
  cosched nodes --undrain b7
  cosched nodes --dead b7         its machine is off for good: its jobs are not waited for

Exit codes:
  0 success   3 no daemon reachable   5 not your right   6 refused, as without a cluster and without queues";
