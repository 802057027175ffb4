//! The text after the options of `cosched slurm`.

pub(super) const SLURM: &str = "\
Slurm queues jobs and gives them nodes; several jobs share a node's CPUs (OverSubscribe=FORCE:4), and cosched lets their \
processes take turns together. Slurm calls the hooks as the scripts in PREFIX/lib/cosched/slurm do; docs/slurm.md has the \
lines of slurm.conf. The cosched job of Slurm's job 17 is named slurm-17 and belongs to the same user; where the nodes are in \
one cosched cluster it spans all nodes of the job. A hook that fails \
does not fail the job (when_down = \"fail\" in the settings changes that for the prolog) and says why in the log.

Examples:
  cosched slurm check                      after a change of slurm.conf, on a node
  cosched ps | grep slurm-17
  scontrol show config | grep -i prolog

Exit codes:
  0 success   1 failure   2 wrong usage   3 no daemon reachable   6 not called by Slurm, or the settings cannot be used
  `prolog`: 0 unless when_down is \"fail\". `task-prolog`, `epilog`: 0 when Slurm called them.
  `check`: 1 when something is wrong";
