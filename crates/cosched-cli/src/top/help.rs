//! The texts of `cosched top`: after its options, and on its own screen.

pub(crate) const TOP: &str = "\
Shows the CPUs (in a cluster: the nodes) with their load, the matrix with its current row, and the jobs. \
DUE is the fraction of the machine's CPU time that the plan gave a job over about the last ten seconds, GOT what it used. \
Keys: arrows select a job, Enter shows its page; c class, s suspend, r resume, k kill, each asks for confirmation; / filter, o sort order, O reverses it, \
h help, q quit. A click selects a job, another opens its page, the wheel scrolls. Errors appear in the last line.

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
    ("↑ ↓ PgUp PgDn Home End", "select a job"),
    ("Enter", "its page: its last hour, and what `cosched show` says"),
    ("click", "select a job; again: its page; right: back"),
    ("c", "change its class (users may only lower it)"),
    ("s", "suspend it: it keeps its memory"),
    ("r", "resume it; also returns a dropped job to gang scheduling"),
    ("k", "end it: TERM, and KILL after 5 s"),
    ("/", "show only jobs that contain a text; Esc shows all"),
    ("o O", "change the sort order; reverse it"),
    ("h ?", "this help"),
    ("q ^C", "quit"),
];
