//! The text after the options of `cosched slurm`.

pub(super) const SLURM: &str = "\
Slurm queues jobs and allocates nodes; several jobs share a node's CPUs (OverSubscribe=FORCE:4), and cosched gang-schedules \
them. Slurm runs the hooks through the scripts in PREFIX/lib/cosched/slurm; docs/slurm.md has the \
lines for slurm.conf. The cosched job of Slurm's job 17 is named slurm-17 and belongs to the same user; if the nodes are in \
one cosched cluster, it spans all nodes of the job. A hook that fails \
logs the reason and does not fail the job (for the prolog, when_down = \"fail\" in the settings changes that).

Examples:
  cosched slurm check                      after a change of slurm.conf, on a node
  cosched ps | grep slurm-17
  scontrol show config | grep -i prolog

Exit codes:
  0 success   1 failure   2 wrong usage   3 no daemon reachable   6 not called by Slurm, or invalid settings
  `prolog`: 0 unless when_down is \"fail\". `task-prolog`, `epilog`: 0 if called by Slurm.
  `check`: 1 if something is wrong";
