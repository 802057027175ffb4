//! The texts after the options of `cosched pipeline`.

pub(super) const PIPELINE: &str = "\
A pipeline is a program of stages on recycled buffers, made with the library cosched-pipeline (Rust, C, C++ or Python). \
One that was started with its option `serve` can be looked at while it runs, by its user and by root; it needs no daemon.

Examples:
  cosched pipeline list
  cosched pipeline show columnsort --watch
  cosched pipeline report run.json --html run.html

Environment:
  COSCHED_PIPELINE_DIR   where the sockets are, instead of the user's own directory; also for the pipelines themselves";

pub(super) const LIST: &str = "\
BLOCKS have come out at the end, OF BEST is the speed as a part of the bound max(compute, communicate, I/O), LIMITS is the \
resource that the bound is of. Sockets that a killed process left behind are removed.

Examples:
  cosched pipeline list
  cosched pipeline list --json | jq -r '.pipelines[].pid'

Exit codes:
  0 success, also if none runs   1 failure";

pub(super) const SHOW: &str = "\
BUSY is time with a buffer, of which CPU is on a CPU and DELAY ready without one; WAIT IN is time without a buffer of \
the stage before, WAIT OUT without an empty buffer; all of them sums over the stage's threads. QUEUE is the mean number \
of buffers that wait before the stage. Changes of priority are listed below, with their reasons; also those that the \
system refused.

Examples:
  cosched pipeline show                    all that run
  cosched pipeline show 4711 --watch       until it ends
  cosched pipeline show columnsort --json | jq .report.bound

Exit codes:
  0 success   1 it runs, but does not answer   4 no such pipeline runs";

pub(super) const REPORT: &str = "\
FILE is what a program saved of a run's report as JSON, or a line of `cosched pipeline show --json`; `-` is standard \
input. The page is one file that opens from a disk, without a network. The trace is for chrome://tracing, Perfetto or \
speedscope; rounds are in it if the run had the option `trace`, queues and changes of priority always.

Examples:
  cosched pipeline report run.json
  cosched pipeline report run.json --html run.html --trace trace.json
  cosched pipeline show 4711 --json | cosched pipeline report - --html now.html

Exit codes:
  0 success   1 a file cannot be read or written   2 wrong usage   6 the file is no report of a pipeline";
