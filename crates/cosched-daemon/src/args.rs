//! The command line of coschedd.

use clap::Parser;
use std::path::PathBuf;

/// Run the cosched daemon of one node.
///
/// It keeps the jobs that `cosched run` registers, plans their time slots and switches them. `cosched` starts one for
/// you when none runs; an operator starts it by systemd (coschedd.socket).
#[derive(Clone, Debug, Parser)]
#[command(name = "coschedd", version, after_help = EXAMPLES)]
pub struct Args {
    /// Configuration file [default: /etc/cosched.toml, or ~/.config/cosched/cosched.toml for one user, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Unix socket to listen on [default: /run/cosched/coschedd.sock, or $XDG_RUNTIME_DIR/cosched/coschedd.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,

    /// The socket is standard input, already listening (systemd, or `cosched` when it starts a daemon)
    #[arg(long)]
    pub listen_stdin: bool,

    /// End when there has been no job for a while (embedded_exit_after)
    #[arg(long)]
    pub embedded: bool,

    /// Where the state is kept [default: /var/lib/cosched, or $XDG_STATE_HOME/cosched]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,

    /// Where the guard's files are kept [default: the socket's directory]
    #[arg(long, value_name = "DIR")]
    pub runtime_dir: Option<PathBuf>,

    /// Name of the cgroup under which the jobs' cgroups are made
    #[arg(long, value_name = "NAME", default_value = "cosched")]
    pub cgroup: String,

    /// Check the configuration, the store (may it be read and written?), the clock and who may read the password; say what
    /// this machine offers, and end. Nothing is changed
    #[arg(long)]
    pub check: bool,

    /// Look at the machine and print findings as JSON lines: what `cosched setup` shows
    #[arg(long, value_name = "fix", value_parser = ["fix", "look"], num_args = 0..=1, require_equals = true, default_missing_value = "look", hide = true)]
    pub setup: Option<String>,
}

const EXAMPLES: &str = "Examples:
  coschedd                          run in the foreground with the defaults
  coschedd --check                  what does this machine offer? is the configuration right?
  coschedd --config ./my.toml --socket /tmp/try/c.sock --state-dir /tmp/try/state --cgroup try

The log goes to standard error; COSCHED_LOG=debug logs more.

Exit codes: 0 ended in order; 1 could not start (the message says why); 2 wrong usage;
  3 no daemon can run here (no cgroups that it may write, and no signals instead).";
