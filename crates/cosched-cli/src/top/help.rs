//! The texts of `cosched top`: after its options, and on its own screen.

pub(crate) const TOP: &str = "\
Above the CPUs (of a cluster: the nodes) with their load, then the matrix with the row that runs now, then the jobs. \
DUE is the part of the machine's CPU time that the plan gave a job over the last ten seconds or so, GOT what it used. \
Keys: arrows choose a job; c class, s suspend, r resume, k kill, each asked again; / filter, o order, O turned around, \
h help, q quit. What the daemon refuses stands in the last line.

Examples:
  cosched top
  cosched top --interval 200ms --sort cpu
  cosched top --once --filter batch | less
  cosched top --once --json | jq '.jobs[] | {id, share_due, share_received}'
  cosched top --json --interval 5s >> log.jsonl

Environment:
  NO_COLOR   no colours
  COLUMNS    the width of --once when it writes to a pipe [default: 80]

Exit codes:
  0 success   1 failure   2 wrong usage, or no terminal   3 no daemon reachable";

pub(super) const KEYS: &[(&str, &str)] = &[
    ("↑ ↓ PgUp PgDn Home End", "choose a job"),
    ("c", "change its class (users only downwards)"),
    ("s", "suspend it: it keeps its memory"),
    ("r", "resume it; also gives a dropped one slots again"),
    ("k", "end it: TERM, and KILL after 5 s"),
    ("/", "show only jobs with a text in them; Esc shows all"),
    ("o O", "another order; turned around"),
    ("h ?", "this help"),
    ("q ^C", "quit"),
];
