//! The texts after the options: examples and exit codes. The man pages carry them too.

pub(crate) const COSCHED: &str = "\
Examples:
  cosched run -- mpirun -n 2 ./a.out       run a parallel job
  cosched run -d --class batch ./long.sh   run a detached (background) job
  cosched join --job 7 -- ./worker         run another process in an existing job
  cosched ps                               list jobs and their CPU usage
  cosched status                           show CPUs, matrix, switches and problems
  cosched top                              monitor and control jobs on the terminal
  cosched policy gang --slot 50ms          set how jobs share the CPUs
  cosched demo                             compare policies on this machine
  cosched advise -- mpirun -n 2 ./a.out    recommend a policy for a program
  cosched bench slowdown -- ./a.out        measure the slowdown of concurrent jobs

Environment:
  COSCHED_SOCKET   the daemon's socket, as --socket
  COSCHED_DAEMON   the daemon's executable, when `cosched run` has to start one
  NO_COLOR         no colours

Exit codes:
  0 success   1 failure   2 wrong usage   3 no daemon reachable   4 no such job
  5 permission denied   6 invalid request or conflicting state
  `run` returns the command's exit code: see `cosched run --help`";

pub(crate) const RUN: &str = "\
The command and all its descendants belong to the job from their first instruction. \
Standard input, output, signals and the exit code are passed through; the job ends when its last process does.

With --wait, a library is loaded into the command that makes programs which poll for messages spin for a moment and then \
block (spin-block) or yield the CPU (spin-yield); the spin time is learned for each process, or given in microseconds. \
`auto` does so under the policy auto; under the others processes busy wait (busy). `cosched show` has the counts of waits. \
`micro` is for programs with more threads than CPUs that do nothing but spin: while the job runs, the CPUs change threads every 0.25 ms.

Options may stand in the leading comments of a script, as in `#COSCHED --time 2h --cpus 2`; those of the command line take \
precedence.

Without writable cgroups (a container, a user's plain shell) jobs are switched by signals; where that cannot be either, the command runs \
without a job, and its processes wait by spin-block unless --wait says otherwise; a line on standard error says so. Options that need a daemon, such as --policy gang, are an error there.

Examples:
  cosched run -- mpirun -n 2 ./a.out
  cosched run --cpus 1 --class standby -- ./sweep.sh
  cosched run --share 50% -- ./train                   half of the time, in whole slots
  cosched run --cpus 4 --exclusive-cores -- ./lu       one CPU of each of 4 cores; the others stay empty
  cosched run --policy local --mem-limit 4G -- python train.py
  cosched run --time 2h -d -o out-%j.txt -- mpirun -n 2 ./a.out
  cosched run -d --after 7:ok --begin 02:00 -- ./night.sh
  cosched run -d --array 1-20%4 -o out-%a.txt -- ./solve
  cosched run --policy local --wait spin-block:50us -- mpirun -n 4 ./a.out
  cosched run --strategy PB-SB -- mpirun -n 4 ./a.out
  cosched run -d --name night -- make -j2; cosched log -f night
  cosched run --nodes a:2,b:2 -- mpirun ./a.out        in a cluster: on these nodes; mpirun gets the list
  cosched run --cpus 8 --queue night --on-node-loss requeue -d -- mpirun ./a.out

Environment of the command:
  COSCHED_JOB            the job's id. Ranks that mpirun (Open MPI) or mpiexec (MPICH) starts on other nodes inherit it
                         and join the job there; programs started by plain ssh need `cosched join`
  COSCHED_JOB_SUBMITTED  when it was registered, to tell it from a job with the same id at another daemon
  COSCHED_ARRAY_INDEX    with --array: the job's index; COSCHED_ARRAY_COUNT how many there are, COSCHED_ARRAY_ID the first one's id
  COSCHED_NO_DAEMON      set where no daemon can run: this is no job, nor is a `cosched run` in it

Exit codes:
  the command's exit code; 128+N if signal N terminated it
  125 cosched itself failed (also: wrong usage)   126 found, but not executable   127 not found";

pub(crate) const ADOPT: &str = "\
What is adopted is not restarted. A cgroup stays where it is and keeps its limits (cpu.max, memory.max, cpuset); its own freezer stops \
it outside of its time slots. While it runs no other gang fills what it leaves idle, and it fills nothing itself. A process (--pid) that has no cgroup of its own is \
moved into the job with its descendants, and back by `cosched release`. The job ends when its last process does, or when its cgroup is removed; a unit or \
container that is started again has to be adopted again. Standard output is the job's id.

Users adopt what is theirs alone: all processes, and the cgroup itself. Nothing is adopted that holds cosched's daemon, the machine's first process, or \
another job. Whatever dies, cosched or its guard, what was adopted runs on, with the quota that its owner has set. This needs a daemon of root.

Examples:
  cosched adopt --unit llama@1.service --share 50%
  cosched adopt --unit web.service --share from-quota  its cpu.max becomes a share of whole slots, and is back afterwards
  cosched adopt --container web --class batch --name web
  cosched adopt --cgroup /system.slice/render.service --cpus 2
  cosched adopt --pid 4711
  cosched release llama@1                              it runs on as before

Exit codes:
  0 success   2 wrong usage   3 no daemon reachable   4 no such process   5 permission denied
  6 invalid request, or it cannot become a job";

pub(crate) const RELEASE: &str = "\
The processes of a released job run on, as before they were adopted: their cgroup is thawed, and processes that were moved are moved back. A suspended job runs \
then, too. For the job's owner and administrators.

Examples:
  cosched release 7
  cosched release llama@1

Exit codes:
  0 success   3 no daemon reachable   4 no such job   5 permission denied   6 it was not adopted";

pub(crate) const JOIN: &str = "\
Uses this node's daemon. The command replaces `cosched join`: it has the same process id, and its \
descendants belong to the job from the start. A running process (--pid) is moved with all its threads; its existing \
children are not. A process can only join a job of its own user.

Ranks that mpirun or mpiexec starts on other nodes join automatically (`cosched run --help`). Use this command for launchers \
that do not pass on the environment, such as ssh, and for programs into which the wait library cannot be loaded.

Examples:
  ssh node2 cosched join --job $COSCHED_JOB -- ./worker
  cosched join --optional -- ./worker      in a script that also runs outside jobs
  cosched join --job 7 --pid 4711

Exit codes:
  the command's exit code; 126 found, but not executable   127 not found
  2 wrong usage   3 no daemon reachable   4 no such job or process   5 permission denied: another user's job or process
  6 the job has ended, or the process is in another job
  With --optional the command is executed anyway, after a warning.";

pub(crate) const PS: &str = "\
TIME is CPU time, CPU% the usage over the last seconds in percent of one CPU, ELAPSED the time since the job started, ROW its home row of the matrix, \
SHARE the fraction of the time in which it owns its CPUs, and behind a slash the most that it may have. In a cluster, TIME and MEM are this node's: a plus \
means that the job also uses other nodes, a dash that it uses only other nodes. A job that waits shows the reason instead of its command, and when it \
starts at the latest, if it has a reservation and the jobs before it have time limits.

Examples:
  cosched ps
  cosched ps -u ann --state waiting,suspended
  cosched ps --format id,name,state,elapsed,cpu,reason,start --sort -cpu
  cosched ps --format help                                the columns
  cosched ps --all --json | jq '.jobs[] | select(.user == \"ann\") | .id'";

pub(crate) const HISTORY: &str = "\
The daemon keeps every job that has ended in accounting.log in its state directory, in eight files of 16 MiB (more than 100,000 jobs). ELAPSED is the time \
from start to end, CPUS x ELAPSED the time in which CPUs were the job's to use. In a cluster, a node knows what a job used there. Of other users' jobs you see \
what `cosched ps` shows.

Examples:
  cosched history --since 2026-11-01 --until 2026-12-01 --totals
  cosched history --since yesterday -u ann
  cosched history --since 2h --json | jq '.jobs[] | [.id, .cpu_time_ms]'";

pub(crate) const STEER: &str = "\
Jobs are given by id or unique name, or selected by user, name and state. A selection takes your own jobs unless --user names another user, and says which \
they are.

Examples:
  cosched suspend 7 night; cosched resume 7 night
  cosched suspend --name 'sweep-*'
  cosched resume --all --dry-run               say what would be resumed
  cosched suspend --user ann --state running   as an administrator

Exit codes:
  0 success   3 no daemon reachable   4 no such job, or nothing selected   5 permission denied   6 conflicting state
  With several jobs, that of the first failure.";

pub(crate) const SHOW_JOBS: &str = "\
Examples:
  cosched show 7
  cosched show --json render | jq .waiting

Exit codes:
  0 success   3 no daemon reachable   4 no such job   5 permission denied
  With several jobs, that of the first failure.";

pub(crate) const WAIT: &str = "\
Examples:
  cosched wait 7 && echo well
  cosched wait first second                until both have ended

Exit codes:
  the first job's exit code that is not 0 (128+N for signal N), else 0
  3 no daemon reachable   4 no such job   5 permission denied   6 conflicting state
  A job may end with 3 to 6, too: `--json` tells them apart, which prints a job only when it has ended.";

pub(crate) const STATUS: &str = "\
Latencies of switches are measured from the slot's boundary: until the slot thread ran (wake), and \
until the last write completed.

Examples:
  cosched status
  cosched status --watch
  cosched status --json | jq .switches.done.p99_us";

pub(crate) const EVENTS: &str = "\
The daemon remembers the last 8192 events, of this start. A job's events: registered, waits, began, suspended, resumed, asleep, awake, \
dropped, unknown, class, policy, share, resources, ended, lost. A plan event has the matrix and its cycle: with the clock it gives \
the row of any moment. Changes within 100 ms are reported together. `cosched log --events` has the history of one job.

Examples:
  cosched events
  cosched events --follow
  cosched events --follow --json | jq -r 'select(.job.what == \"ended\") | .job.name'

Exit codes:
  0 success   1 failure   3 no daemon reachable   6 invalid id";

pub(crate) const WEB: &str = "\
Prints an address with a random token, which a browser on this machine opens: the matrix as it turns, CPUs, jobs with what \
they were due and received, problems; and suspends, resumes, kills and changes jobs. It also predicts your jobs under other policies (`cosched sim \
whatif`) and compares strategies on a trace (`cosched sim compare`). The page acts with your rights at the daemon. \
Anyone with the address acts as you until the command ends, so keep it to yourself. Other users of this machine cannot use the port \
without the token; pages of other origins are refused. `systemctl --user enable --now cosched-web` runs it as a service.

For a team, root gives a reverse proxy (nginx) on the same machine a socket: the proxy has TLS, asks for passwords, and names the user in a header; \
each user's requests are answered by a process with that user's rights. Only the user that the proxy runs as can connect; root and system users have no page. \
docs/web.md has nginx's configuration, and `systemctl edit cosched-web-team` the unit's.

Examples:
  cosched web
  cosched web --listen 127.0.0.1:8080
  ssh -L 8080:127.0.0.1:8080 host cosched web --listen 127.0.0.1:8080     from another machine
  cosched web --listen /run/cosched-web/web.sock --origin https://cosched.example.org --proxy-user www-data

Exit codes:
  0 never: it runs until interrupted   1 the port or the socket is taken   2 wrong usage, also: not a loopback address
  3 no daemon reachable   5 for a team: not root";

pub(crate) const TRACE: &str = "\
Writes a trace in Chrome's JSON format to standard output; ui.perfetto.dev and chrome://tracing open it. It has a lane for each column of the \
matrix with its slots, a lane for each job with its states and events, a lane for each gang (runs, may run, stopped, suspended), and counters: switches, \
CPUs used, boosts, waits and the processes that spin or are blocked in them. Slots and gangs are computed from plan and clock; \
events of jobs are up to 100 ms late, counters are read every 250 ms.

Examples:
  cosched trace --for 10s > live.json
  cosched trace --for 2s | jq '[.traceEvents[] | select(.cat == \"slot\") | .dur] | add'

Exit codes:
  0 success   2 wrong usage, or too long   3 no daemon reachable";

pub(crate) const LIMITS: &str = "\
Limits per user, set by an administrator ([limits] in /etc/cosched.toml): jobs that have not ended, waiting jobs, \
registered processes, memory that jobs declare, bytes of the jobs' records, connections, and bytes of requests and \
long answers that the daemon holds. In a cluster, jobs and memory are counted on all nodes, the rest at the daemon \
that answers. Administrators have no limits.

Examples:
  cosched limits
  cosched limits --json | jq '.limits[] | select(.name == \"jobs\")'

Exit codes:
  0 success   1 failure   3 no daemon reachable";

pub(crate) const METRICS: &str = "\
The same text is available at GET /metrics on the daemon's socket and, if metrics_listen is configured, on that port \
(docs/monitoring.md has a scrape configuration). Times are in seconds. switch_skew is the delay from the slot's boundary \
to the last write of a switch, switch_latency the duration of the writes; gang_cpu{where=\"outside\"} is CPU time that \
gangs used outside their slots.

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
  cosched kill -9 night
  cosched kill --name 'sweep-*' --state waiting
  cosched kill --all --dry-run    say which of your jobs would be ended
  cosched kill --user ann         as an administrator: all jobs of a user

Jobs are given by id or unique name, or selected by user, name and state. A selection takes your own jobs unless --user names another user. \
Only an administrator can put off a KILL that was set.";

pub(crate) const CLASS: &str = "\
Users may lower the class of their jobs; only administrators may raise it or use express.

Examples:
  cosched class 7 standby
  cosched class 7 8 batch";

pub(crate) const SHARE: &str = "\
A job with a share has at most that part of the time, also when it is alone: whole time slots in which all its processes \
run, and between them slots in which all are stopped. So processes that wait for each other never wait for one that a \
quota has stopped. The share is a part of the job's CPUs' time: 50% on 4 CPUs is the time of 2. Other jobs get what it \
leaves. While it has a share, a job is a gang, whatever its policy. The least is one slot a second: 10% with slots of 100ms.

Owners change the share of their jobs; what an administrator has set only an administrator changes.

Examples:
  cosched run --share 50% -- ./train
  cosched share 7 30%
  cosched share 7 none

Exit codes:
  0 success   2 wrong usage   3 no daemon reachable   4 no such job   5 permission denied   6 conflicting state";

pub(crate) const POLICY: &str = "\
Changes apply to running jobs, too.
  auto   one of the others for each job, chosen and changed by how the job behaves
  gang   all processes of a job run in the same time slots
  local  Linux schedules the job, with a share by its class
  pb     as local; every 1 to 2 ms a job with a pending message is boosted (periodic boost)
  dcs    as local; the arrival of a message boosts its job (demand-based coscheduling)

Examples:
  cosched policy                       show the current policy
  cosched policy gang --sharing strict
  cosched policy --slot 50ms
  cosched policy --shares interactive=8,batch=2 --off-hours batch=16     in a cluster
  cosched policy local --job 7         only this job
  cosched policy default --job 7       follow the machine's policy again";

pub(crate) const RESOURCES: &str = "\
A waiting job keeps its position in its queue. A started job keeps its nodes, since processes cannot move; \
what it releases is free at once. If more is requested than is free, the command says what is missing and \
nothing changes. Memory for which an earlier job waits is not free. The CPUs of a job on \
several nodes are divided evenly, unless --nodes is given. For owners and administrators, on any node.

Examples:
  cosched resources 7 --cpus 4
  cosched resources 7 --mem 8G              keeps its CPUs
  cosched resources 7 --nodes a:4:2G,b:2:1G

Exit codes:
  0 success   2 wrong usage   3 no daemon reachable   4 no such job   5 permission denied
  6 refused: not available now, or more than the cluster has";

pub(crate) const QUEUES: &str = "\
Queues are served in this order. A job of an exclusive queue has its nodes to itself. STARTED \
counts the jobs that were admitted. Below the table: the cluster's other settings, which `cosched policy` changes.

Examples:
  cosched queues
  cosched queues --json | jq '.[] | select(.waiting > 0).name'
  cosched queues --toml > queues.toml      to edit, for `cosched queues set queues.toml`

Exit codes:
  0 success   3 no daemon reachable   5 permission denied   6 refused";

pub(crate) const QUEUES_SET: &str = "\
The file has a table [[queue]] for each queue, the most urgent first: name and, optionally, exclusive, memory_max, disk_max, time_max, \
users, groups, jobs_max_per_user and memory_max_per_user. They replace all queues of the cluster, on every node, while \
jobs run. A table [fair_share] is applied too; without one, fair share stays as it is. Everything else in the file is ignored. A job stays in the queue of the same name: a queue with jobs cannot be removed, and the error lists them. \
Limits on memory and disk apply to jobs submitted later, limits on time to all running jobs; `exclusive` applies to jobs \
that start later.

Examples:
  cosched queues set /etc/cosched.toml
  printf '[[queue]]\nname = \"short\"\ntime_max = \"10min\"\n[[queue]]\nname = \"default\"\n' | cosched queues set -

Exit codes:
  0 success   1 the file cannot be read   3 no daemon reachable   5 permission denied   6 refused, nothing was changed";

pub(crate) const CLUSTER: &str = "\
If keys below /cosched/ in etcd were deleted or damaged, no plans are made and no job is ended until they are repaired: running \
jobs continue. For administrators, on any node; docs/cluster.md has the procedures.

Examples:
  cosched cluster repair                   show what is wrong, and what would be done
  cosched cluster repair --yes             do it
  cosched cluster export /var/backups/hall-b.json
  cosched cluster import /var/backups/hall-b.json --yes

Exit codes:
  0 success   1 not done   3 no daemon reachable   5 permission denied   6 refused, nothing was changed";

pub(crate) const CLUSTER_REPAIR: &str = "\
The state is restored from what this node knows, names and numbers of nodes are rebuilt from each other, and keys that cannot be read are deleted. No \
job ends, and new job ids are higher than existing ones. If another node has newer state, the command refuses and names that node. \
--json prints the findings, and whether the repair was done.

Examples:
  cosched cluster repair
  cosched cluster repair --yes

Exit codes:
  0 done, or nothing is wrong   1 not done   3 no daemon reachable   5 permission denied   6 refused";

pub(crate) const CLUSTER_EXPORT: &str = "\
Writes settings, queues, names of nodes, and jobs, with the environments that requeue jobs need to restart. Only its \
owner can read the file. It can be written while jobs run.

Examples:
  cosched cluster export /var/backups/hall-b.json
  cosched cluster export - | gpg -e -r ops > hall-b.gpg

Exit codes:
  0 complete   1 not written, or some keys cannot be read   3 no daemon reachable   5 permission denied";

pub(crate) const CLUSTER_IMPORT: &str = "\
Restores the cluster as it was when the file was written. Jobs started since then continue, scheduled by Linux; `cosched kill` on \
their nodes ends them; jobs that have ended since are recorded as ended again. New job ids are higher than all that a running node knows.

Examples:
  cosched cluster import /var/backups/hall-b.json          show what would be done
  cosched cluster import /var/backups/hall-b.json --yes

Exit codes:
  0 success   1 the file cannot be read   3 no daemon reachable   5 permission denied   6 refused, nothing was changed";

pub(crate) const LOG: &str = "\
Logs are in $XDG_STATE_HOME/cosched/logs, by default ~/.local/state/cosched/logs, those of root in /var/log/cosched. \
They are kept after the job's end: users remove theirs; those of root are removed after 90 days if systemd-tmpfiles runs.

Examples:
  cosched log 7
  cosched log -f night
  cosched log --events 7";

pub(crate) const ATTACH: &str = "\
Shows what a detached job writes, until it has ended, and returns its exit code. SIGINT (Ctrl-C), SIGTERM, SIGUSR1 and SIGUSR2 are passed on to the job. \
Ctrl-\\ and a closed terminal detach: the job continues. A detached job has no standard input, or that of --input.

Examples:
  cosched attach 7
  cosched attach -n 0 night             only what is written from now on

Exit codes:
  the job's exit code, 128+N if signal N terminated it; 0 detached, 6 its output was not captured";

pub(crate) const SETUP: &str = "\
Looks at cgroups, switching, real-time priority, locked memory, clock, swap, MPI and the wait library. Nothing is changed without --fix, and then only \
kernel settings that the next restart of the machine takes back. `coschedd --check` checks the configuration and the store.

Examples:
  cosched setup
  sudo cosched setup --fix
  cosched setup --json | jq '.[] | select(.state != \"ok\")'

Exit codes:
  0 nothing is missing   1 failure   6 something is missing: jobs cannot be scheduled here";

pub(crate) const DEMO: &str = "\
Runs 1, 2 and 4 jobs with the same work each under plain Linux, cosched local and cosched gang, in turn. \
The machine's policy is changed for the runs and restored afterwards. Slowdown is t_j / t_1: the time of j concurrent \
jobs divided by that of one job alone under plain Linux; j is ideal.

Examples:
  cosched demo
  cosched demo --jobs 2 --policies linux,gang --seconds 5
  cosched demo --json | jq .sentence

Environment:
  COSCHED_PROGRAMS   the directory of barrier-mpi, barrier-omp and barrier-threads
  COSCHED_MPIRUN     the mpirun of the MPI that barrier-mpi was built with";

pub(crate) const SHIM: &str = "\
Writes small scripts named like the MPI launchers. With their directory first on PATH, each mpiexec that ctest, a test suite or a script \
calls by name is a job: parallel tests that run side by side share the CPUs as jobs do. Inside a job a script runs the launcher itself. \
The launcher is looked up on PATH at each call; one that is called by its full path is not affected.

Examples:
  cosched shim --dir ~/.cosched-shims
  PATH=~/.cosched-shims:$PATH ctest -j4
  cosched shim --dir shims mpiexec lmp -- --class batch
  COSCHED_SHIM=off make test                     # run the launchers themselves
  rm -r ~/.cosched-shims                         # remove them

Exit codes: 0 done, 1 a file cannot be written, 6 no launcher on PATH, wrong options of `cosched run`, or a file that it did not make.";

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
job lists are CSV with the header arrival_s,tasks,exec_s,type; Batsim's JSON is read, too. `-` is standard input.

Examples:
  cosched workload show KTH-SP2-1996-2.1-cln.swf.gz
  cosched workload generate --model WL3 --jobs 200 --load 0.8 > wl3.csv
  cosched workload convert trace.swf.gz jobs.csv --max-tasks 32 --limit 500";

pub(crate) const WORKLOAD_SHOW: &str = "\
A job is usable if its run time and its number of processors are above 0. Sums and fits are over usable jobs, counts over all \
records; processors are the allocated ones if known. KS is the Kolmogorov-Smirnov distance of a fit \
(0 is best, 1 worst); if it is large, three moments do not describe the body of the sample: see `cosched workload fit`.

Examples:
  cosched workload show trace.swf.gz
  cosched workload show --html trace.html trace.swf.gz
  cosched workload show --json trace.swf.gz | jq .hyper_erlang.all.runtime
  cosched workload show --from-s 0 --to-s 6764040 CTC-SP2-1996-3.1-cln.swf.gz

Exit codes:
  0 success   1 the file cannot be read, or ends early   2 wrong usage   6 not a workload, or no usable job";

pub(crate) const WORKLOAD_FIT: &str = "\
Hyper-Erlang distributions of common order for gaps and run times of each size class, by three moments (Jann et al. \
1997: exact load and burstiness) and by maximum likelihood (EM: closer to the body of the sample). The model \
contains the fits of --method.

Examples:
  cosched workload fit trace.swf.gz
  cosched workload fit --method moments --save model.json trace.swf.gz
  cosched workload fit --max-gap-s 86400 --json trace.swf.gz | jq .classes
  cosched workload generate --model model.json --jobs 1000 --nodes 64 > jobs.csv";

pub(crate) const WORKLOAD_GENERATE: &str = "\
Models:
  WL1 to WL8           the workloads of Zhang et al. 2000: the paper's form, with cosched's own values
  hyper-erlang         the same form, with the mix of --types
  ctc-1996-refit       hyper-Erlang classes fitted to the CTC SP2's log; not Jann's table
  FILE.json            a model that `cosched workload fit --save` wrote
  lublin               Lublin and Feitelson 2003, batch and interactive jobs; also lublin-batch,
                       lublin-interactive, lublin-no-types
The load is exactly Sum(tasks x time) / (nodes x last arrival). The same seed gives the same bytes on every machine.

Examples:
  cosched workload generate --model WL3 --jobs 200 --load 0.8 --nodes 32 > wl3.csv
  cosched workload generate --model WL7 --together --mean-exec-s 20 --output wl7.csv
  cosched workload generate --model lublin --nodes 128 --estimates-max-s 64800 -o lublin.swf";

pub(crate) const WORKLOAD_CONVERT: &str = "\
The input's format is detected by content, the output's by name: .csv is a job list, .swf a trace, .json Batsim's \
workload. Jobs that are left out are counted by reason. The first selected job arrives at 0.

Examples:
  cosched workload convert trace.swf.gz jobs.csv --nodes 32 --limit 500 --lengths 0.01 --load 0.8
  cosched workload convert trace.swf.gz jobs.csv --types WL8 --from-s 86400 --to-s 172800 --status 1
  cosched workload convert jobs.csv workload.json --nodes 64
  cosched workload convert jobs.csv work.json --nodes 64 --work-flops 1e9
  gzip -dc trace.gz | cosched workload convert - - --format csv";

pub(crate) const SIM_BACKFILL: &str = "\
Simulates a batch system. With space sharing: fcfs (first come, first served), easy (backfilling that never \
delays the first job), easy-sjbf (the same, shortest candidates first), conservative (backfilling that delays no job). \
With time sharing of rigid jobs: soft-gang, oversubscribe, round-robin; and malleable jobs. Nodes can fail. docs/workloads.md has the rules. \
Only jobs with known estimates are used, and run \
times are cut to them; jobs that are left out are counted. At each instant all ends come first, then all submissions, then \
one pass over the queue (--event-order all); with `one`, a pass follows every single event. The order alone changes \
mean bounded slowdowns by some per cent. Bounded slowdown is max(1, response time / max(run time, 10 s)).

Examples:
  cosched sim backfill --trace CTC-SP2-1996-3.1-cln.swf.gz --policy easy
  cosched sim backfill --trace trace.swf.gz --policy easy-sjbf --json | jq .avebsld
  cosched sim backfill --trace trace.swf.gz --policy easy --fair-share 7d,1d
  cosched sim backfill --trace trace.swf.gz --policy fcfs --procs 512 --jobs-csv jobs.csv
  cosched sim backfill --trace trace.swf.gz --policy soft-gang --rows 3 --slot 10ms --switch 100us
  cosched sim backfill --trace trace.swf.gz --policy malleable --sizes 0.5,2 --serial 0.01 --json
  cosched sim backfill --trace trace.swf.gz --policy easy --mtbf 90d --mttr 4h --node-procs 8 --checkpoint 1h,2min

Exit codes:
  0 success   1 the file cannot be read, or ends early   2 wrong usage   6 not a trace, no usable job, or the outages are not valid";

pub(crate) const NODES: &str = "\
LOAD is the one-minute average of threads that run or wait for a CPU, FREE the memory available to new programs; nodes \
report both when they change much. OTHERS is the number of those threads that do not belong to jobs, as the plan assumes it.
A drained node keeps its jobs and gets no new ones. A single machine is a node, too. The settings of a \
node are in its /etc/cosched.toml; see docs/cluster.md.

Examples:
  cosched nodes
  cosched nodes --drain b7        before maintenance; `cosched ps` shows its remaining jobs
  cosched nodes --undrain b7
  cosched nodes --dead b7         its machine is off: do not wait for its jobs

Exit codes:
  0 success   3 no daemon reachable   5 permission denied   6 refused";
