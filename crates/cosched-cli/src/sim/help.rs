//! The texts after the options of `cosched sim`.

pub(crate) const SIM: &str = "\
Simulated is a cluster of nodes with feedback queues and network interfaces, in whole nanoseconds: the same jobs and seed \
give the same bytes on every machine. docs/simulator.md has the semantics (D1 to D26).

Examples:
  cosched sim run --strategy PB --jobs jobs.csv
  cosched sim run --strategy GS --jobs jobs.csv --nodes 64 --mpl 4 --json";

pub(crate) const RUN: &str = "\
The list of jobs is CSV with the header arrival_s,tasks,exec_s,type; types are J1 to J6 of Zhang et al. 2000, Table 2. \
Strategies: GS, Local, SB, SY, DCS, PB, DCS-SB, PB-SB, DCS-SY, PB-SY; paired-gang, soft-gang; FCFS, EASY.

Examples:
  cosched sim run --strategy PB --jobs jobs.csv
  cosched sim run --strategy GS --jobs jobs.csv --mpl 2 --quantum-ms 100 --cs-us 1000
  cosched sim run --strategy SB --jobs - --json < jobs.csv | jq .mean_response_s
  cosched sim run --strategy PB-SB --jobs jobs.csv --max-sim-s 60    the first minute only

Exit codes:
  0 success   1 a file cannot be read or written, or a job fits nowhere   2 wrong usage";
