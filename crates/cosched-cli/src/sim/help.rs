//! The texts after the options of `cosched sim`.

pub(crate) const SIM: &str = "\
Simulates a cluster of nodes with feedback queues and network interfaces, in whole nanoseconds: the same jobs and seed \
give the same bytes on every machine. docs/simulator.md has the semantics (D1 to D26).

Examples:
  cosched sim run --strategy PB --jobs jobs.csv
  cosched sim run --strategy GS --jobs jobs.csv --nodes 64 --mpl 4 --json";

pub(crate) const RUN: &str = "\
The list of jobs is CSV with the header arrival_s,tasks,exec_s,type; types are J1 to J6 of Zhang et al. 2000, Table 2. \
Further columns may follow: class (express, interactive, batch or standby), which counts with the strategy live; \
working_set_bytes, with --cache; memory_bytes_per_s, with --socket-bandwidth.
Strategies: GS, Local, SB, SY, DCS, PB, DCS-SB, PB-SB, DCS-SY, PB-SY; paired-gang, soft-gang, auto, FCS, COOP; FCFS, EASY; \
live: the planner and the schedulers that the daemons run.

Examples:
  cosched sim run --strategy PB --jobs jobs.csv
  cosched sim run --strategy GS --jobs jobs.csv --mpl 2 --quantum-ms 100 --cs-us 1000
  cosched sim run --strategy SB --jobs - --json < jobs.csv | jq .mean_response_s
  cosched sim run --strategy PB-SB --jobs jobs.csv --max-sim-s 60    the first minute only
  cosched sim run --strategy soft-gang --model linux --jobs jobs.csv  on fair schedulers
  cosched sim run --strategy FCS --quantum-ms 50 --jobs jobs.csv      gangs only where needed
  cosched sim run --strategy live --cpus-per-node 16 --quantum-ms 50 --sharing paired --jobs jobs.csv
  cosched sim run --strategy PB --jobs year.csv --sampled             jobs of hours, in minutes
  cosched sim run --strategy SB --jobs jobs.csv --platform grid.xml   on hosts and links of a file
  cosched sim run --strategy SB --jobs jobs.csv --watts 90,200,180,5  and its energy
  cosched sim run --strategy GS --jobs jobs.csv --cache 1MiB,8GB/s --socket-bandwidth 8,100GB/s

Exit codes:
  0 success   1 a file cannot be read or written, or a job does not fit   2 wrong usage
  6 the jobs or the platform are not valid";

pub(crate) const PROGRAM: &str = "\
All tasks of a program run the same lines: compute 1ms skew, hold 1ms, io 300us, send right 4KiB, recv left, barrier, \
alltoall, bcast, ring, exchange, random-pairs, repeat N { ... }, on 0 { ... }; docs/simulator.md has the format. \
The slowdown of j copies is their mean execution time over that of one alone.

With --profile the program is one recorded by `cosched record`: its tasks, computation and messages, on \
as many nodes as its tasks need, with the message costs of the recording unless --machine or --network is given.

Examples:
  cosched sim program barrier.prog --tasks 8 --nodes 8 --copies 1,2,4 --strategies GS,Local,SB,PB
  cosched sim program stencil.prog --tasks 16 --nodes 4 --cpus-per-node 4 --model linux
  cosched sim program --profile lu.profile.json --copies 1,2,4 --strategies GS,Local,SB,PB
  cosched sim program lu.prog --tasks 32 --nodes 16 --machine bunyip --strategies SB,GS --network-poll-us 0
  cosched sim program lu.prog --tasks 32 --nodes 16 --cpus-per-node 2 --network 20,0.085,7,0.035 --shared-memory 5,0.01
  cosched sim program halo.prog --tasks 16 --platform tree.toml --strategies GS,SB
  cosched sim program stencil.prog --tasks 4 --nodes 4 --cache 1MiB,8GB/s --working-set 512KiB
  cosched sim program stencil.prog --tasks 4 --nodes 4 --socket-bandwidth 4,20GB/s --memory-rate 8GB/s

Exit codes:
  0 success   1 a file cannot be read, or the program deadlocks   2 wrong usage
  6 the machine file or the platform is not valid";

pub(crate) const BATSIM: &str = "\
Profiles become programs: delays hold their processors, parallel tasks send, compute and receive, so messages overlap with the \
computation; compositions follow one after another. Other profiles (smpi, pfs, ...) are left out, and counted. Walltimes are estimates: \
no job is killed at its end. docs/platforms.md has the details.

Examples:
  cosched sim batsim workload.json --platform grid.xml --csv jobs.csv
  cosched sim batsim workload.json --platform tree.toml --strategy GS --mpl 2 --quantum-ms 100
  cosched sim batsim workload.json --strategy FCFS --flops 1e9 --json | jq .mean_stretch

Exit codes:
  0 success   1 a file cannot be read or written   2 wrong usage   6 the workload or the platform is not valid";

pub(crate) const PHASES: &str = "\
Each iteration of a job is a phase on nodes of the first pool, then one on nodes of the second: rollouts and training in reinforcement \
learning. Nodes are provisioned on demand, and cost their price while a job holds them. Under `phases` (RollMux, 2025) jobs form groups in \
which one job's phase runs while another one's is in the other pool; a job joins a group if with the longest phases all keep their limits. Under \
`round-robin` whole jobs take turns (Gandiva). docs/workloads.md has the rules.

The jobs are CSV with the header name,arrival_s,iterations,first_nodes,first_s,second_nodes,second_s,memory_gb,slowdown_max: times are \
means in decimal seconds, memory is the state on each node, slowdown_max (1 to 100) limits the time to the end over that alone.

Examples:
  cosched sim phases --jobs 200 --seed 7
  cosched sim phases rl.csv --policy dedicated --policy phases --cv 0.2 --longest 1.5
  cosched sim phases rl.csv --prices 15,42 --memory-gb 1000 --switch 30s --cold 10min
  cosched sim phases --jobs 200 --json | jq '.policies[] | [.policy, .relative_cost]'

Exit codes:
  0 success   1 the file cannot be read   2 wrong usage   6 the jobs are not valid, or too large for a node";

pub(crate) const DECIDE: &str = "\
The scheduler is a process of its own, which binds a REP socket of ZeroMQ, as pybatsim and other schedulers for Batsim 2 to 4 do; it is \
told of submissions and ends as they happen in simulated time, and decides which job starts on which hosts. Jobs take as long as their \
profiles: communication takes no time. A job ends at its walltime. docs/platforms.md has the part of the protocol that is simulated.

Examples:
  pybatsim easyBackfill --socket-endpoint 'tcp://*:28000' & cosched sim decide workload.json
  cosched sim decide workload.json --scheduler ipc:///tmp/scheduler.sock --csv jobs.csv
  cosched sim decide workload.json --hosts 64 --flops 2e9 --json | jq .mean_stretch
  cosched workload convert trace.swf.gz w.json && cosched sim decide w.json

Exit codes:
  0 success   1 a file cannot be read or written; the scheduler cannot be reached, is gone or does not answer
  2 wrong usage   6 the workload is not valid, or what the scheduler sends is not";

pub(crate) const PIPELINE: &str = "\
Simulates the stages of a pipeline with its buffers, CPUs with run queues as in Linux, disks, and competing \
processes. All rules get the same random numbers. The model's time, which ignores the scheduler, is shown beside the simulated one. \
docs/pipeline-rules.md has the rules, the format and the simplifications.

A pipeline (times are means per round; kind is thread or worker; all other lines have defaults):
  rounds = 2000
  buffers = 8
  [machine]
  cpus = 2
  [[stage]]
  name = \"read\"
  resource = \"io\"       # compute, communicate or io
  cpu_us = 60
  wait_us = 900
  disk = \"sda\"
  [[stage]]
  name = \"sort\"
  resource = \"compute\"
  cpu_us = 400
  cv = 0.1               # standard deviation over mean
  replicable_to = 2
  [[disk]]
  name = \"sda\"
  parallel = 1
  [[hog]]
  count = 1

Rules: default, auto, adjust-once, adjust-up-down (Roysden 2004, section 4); nice-up-io, nice-down-io (its Table 3); \
raise-R, lower-rest-of-R, batch-rest-of-R, idle-rest-of-R, fifo-R for a resource R; short-slices, \
short-and-long-slices, short-slices-all, long-slices-all, batch-all.

Examples:
  cosched sim pipeline io.toml
  cosched sim pipeline io.toml --priorities default,nice-up-io,nice-down-io,auto --stages
  cosched sim pipeline io.toml --priorities default,auto --actions    the changes of autotune, and their reasons
  cosched sim pipeline io.toml --json | jq '.runs[] | [.priorities, .ratio]'

Exit codes:
  0 success   1 the file cannot be read or simulated   2 wrong usage";

pub(crate) const COMPARE: &str = "\
All strategies get the same jobs and the same random numbers, so they are compared in pairs: RATIO is the mean response time \
divided by that of the first strategy, and its 95 % interval is that of the pairs. Intervals are over the seeds (Student's t), so one \
seed has none. WL1 to WL8 are another list for each seed; a file is one list, of which the seeds vary the draws alone.

Examples:
  cosched sim compare --strategies GS,PB,SB --jobs jobs.csv
  cosched sim compare --jobs WL7 --load 0.6 --seeds 20 --html twenty.html
  cosched sim compare --strategies GS,SB --jobs WL3 --precision 5%    as many seeds as that takes
  cosched sim compare --jobs WL7 --model linux --cpus-per-node 4 --finer tick-in-switch
  cosched sim compare --strategies EASY,GS,PB --jobs KTH-SP2.swf.gz --nodes 100 --count 500
  cosched sim compare --jobs WL5 --skew 1.5 --json | jq -r '.[] | [.strategy, .mean_response_s] | @tsv'

Exit codes:
  0 success   1 a file cannot be read or written, or a run gave no result   2 wrong usage
  6 the jobs are not valid";

pub(crate) const SWEEP: &str = "\
Every combination is a cell; cells run on all CPUs, the largest first. A finished cell is written to the journal at \
once: an interrupted sweep resumes, and after a change of the description only new cells are computed. The table has \
the same bytes for any number of threads.

A description (each line is optional but workloads; paths are relative to the file):
  strategies = [\"paper\"]          # names, \"paper\" or \"all\"; ratios are to the first
  workloads  = [\"WL3\", \"my.csv\"]  # WL1 to WL8, job lists, traces
  load       = [0.5, 0.7]         # arrivals are scaled to exactly this
  nodes      = [32]
  mpl        = [2, 5]
  skew       = [0.2, 1.5]
  grain      = [1]                # coarser iterations
  cs_us      = [200, 100]         # strategies without a matrix
  intr_us    = [50]               # where anything raises interrupts
  gang_cs_us = [2000, 1000]       # gangs; with quantum_ms
  seeds      = 20                 # 1 to 20; or [7, 8]
  precision  = 0.05               # more seeds until intervals are ±5 %; with seeds_max = 200
  jobs       = 100                # to generate; with mean_exec_s = 10
  max_sim_s  = 3600               # cut longer runs
  sampled    = true               # jump through long jobs

Examples:
  cosched sim sweep load.toml --html load.html
  cosched sim sweep load.toml --dry-run
  cosched sim sweep load.toml --precision 5% --seeds-max 400
  cosched sim sweep --strategies GS,PB --workloads WL4,WL5 --mpl 2,5,16 --csv mpl.csv

Exit codes:
  0 success   1 a file cannot be read or written, or a cell gave no result   2 wrong usage
  6 the jobs are not valid";

pub(crate) const REPORT: &str = "\
Nothing is simulated: the results in the journal are shown, even while the sweep is running.

Examples:
  cosched sim report load.toml --html load.html
  cosched sim report load.toml --csv - | column -ts,

Exit codes:
  0 success   1 a file cannot be read or written, or the journal has no such cells   2 wrong usage";

pub(crate) const WHATIF: &str = "\
The jobs of the running daemon are looked at for some seconds: CPU time, waits for messages, threads, class, share, policy. Each becomes a \
program of the simulator, and the shipped scheduler is simulated with them, as it is set now and under other policies. A recording of the \
same command (--profile) tells how much there is to do, and so the end. CPU TIME is what a job will use; SLOWDOWN is relative to the same \
work on the machine alone. Jobs that wait, are suspended, or have parts on other nodes are left out. docs/whatif.md says what can be trusted.

Predictions are kept in $XDG_STATE_HOME/cosched/whatif.jsonl (~/.local/state). --check compares those whose time has passed with what \
the daemon's samples of the last hour say; --stay waits and compares the counters themselves, which is more exact.

Examples:
  cosched sim whatif
  cosched sim whatif --for 5min --policies gang-strict,local+spin-block
  cosched sim whatif --profile lu.profile.json --stay
  cosched sim whatif --check --html calibration.html
  cosched sim whatif --json | jq '.jobs[] | [.name, .predicted.now.slowdown, .predicted.linux.slowdown]'

Exit codes:
  0 success   1 a file cannot be read or written   2 wrong usage   3 no daemon   4 no job runs
  6 nothing was observed, or there is nothing to check";
