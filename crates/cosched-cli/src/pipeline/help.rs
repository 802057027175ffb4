//! The texts after the options of `cosched pipeline`.

pub(super) const PIPELINE: &str = "\
A pipeline is a program of stages that reuse buffers, built with the library cosched-pipeline (Rust, C, C++ or Python). \
A pipeline started with the option `serve` can be inspected while it runs, by its user and by root; no daemon is needed.

Examples:
  cosched pipeline list
  cosched pipeline show 4711 --watch
  cosched pipeline report run.json --html run.html

Environment:
  COSCHED_PIPELINE_DIR   directory of the sockets, instead of the user's own; pipelines use it, too";

pub(super) const LIST: &str = "\
BLOCKS is the number of finished blocks, OF BEST the speed as a fraction of the bound max(compute, communicate, I/O), LIMITS the \
limiting resource. Sockets that killed processes left behind are removed.

Examples:
  cosched pipeline list
  cosched pipeline list --json | jq -r '.pipelines[].pid'

Exit codes:
  0 success, even if none is running   1 failure";

pub(super) const SHOW: &str = "\
BUSY is the time with a buffer: CPU the part of it on a CPU, DELAY the part ready without one; WAIT IN is the time spent waiting for a \
buffer of the previous stage, WAIT OUT for an empty buffer; all are sums over the stage's threads. QUEUE is the mean number \
of buffers waiting before the stage. Changes of priority are listed below with their reasons, including those that the \
system refused.

Examples:
  cosched pipeline show                    all running pipelines
  cosched pipeline show 4711 --watch       until it ends
  cosched pipeline show 4711 --json | jq .report.bound

Exit codes:
  0 success   1 it is running, but does not answer   4 no such pipeline is running";

pub(super) const REPORT: &str = "\
FILE is a report that a program saved as JSON, or a line of `cosched pipeline show --json`; `-` is standard \
input. The page is a single file that opens without a network. The trace is for chrome://tracing, Perfetto or \
speedscope; it contains rounds if the run had the option `trace`, and always queues and changes of priority.

Examples:
  cosched pipeline report run.json
  cosched pipeline report run.json --html run.html --trace trace.json
  cosched pipeline show 4711 --json | cosched pipeline report - --html now.html

Exit codes:
  0 success   1 a file cannot be read or written   2 wrong usage   6 the file is not a report of a pipeline";
