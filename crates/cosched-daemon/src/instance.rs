//! The socket and the directories: one daemon per socket, and one per state directory.

use crate::args::Args;
use crate::config::Config;
use crate::journal::unless_gone;
use anyhow::{Context, bail};
use cosched_api::Warning;
use cosched_linux::{Tree, private};
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The paths of this daemon.
#[derive(Debug)]
pub(crate) struct Places {
    /// The socket.
    pub(crate) socket: PathBuf,
    /// The guard's files.
    pub(crate) runtime_dir: PathBuf,
    /// The journal.
    pub(crate) state_dir: PathBuf,
    /// Why the journal is not where it usually is.
    state_is_beside: Option<String>,
    /// The status file, if one is written.
    pub(crate) status_file: Option<PathBuf>,
}

impl Places {
    /// Derives the paths from the command line, the configuration and the conventions of the system or the user.
    pub(crate) fn new(args: &Args, config: &Config) -> Places {
        let socket = args.socket.clone().unwrap_or_else(cosched_api::default_socket);
        let runtime_dir = args.runtime_dir.clone().unwrap_or_else(|| match socket.parent() {
            Some(dir) if dir != Path::new("") => dir.to_owned(),
            _ => PathBuf::from("."),
        });
        // A daemon started on demand with a socket of the user's choice keeps its state beside it, apart from the usual daemon's.
        let apart = args.embedded && socket != cosched_api::default_socket();
        let named = args.state_dir.clone().or_else(|| config.state_dir.clone());
        let usual = default_state_dir();
        // So does one of a user without a home; a service, whose state must outlive the machine's next start, says what is wrong.
        let is_left = args.embedded && !apart && named.is_none();
        let state_is_beside = is_left.then(|| cosched_api::cannot_write(&usual)).flatten();
        let beside = || if apart || state_is_beside.is_some() { runtime_dir.join("state") } else { usual };
        let state_dir = named.unwrap_or_else(beside);
        let status_file = config.status_file.clone().unwrap_or_else(|| runtime_dir.join("status"));
        let status_file = Some(status_file).filter(|path| !path.as_os_str().is_empty());
        Places { socket, runtime_dir, state_dir, state_is_beside, status_file }
    }

    /// Warnings about the directories: of a runtime directory that users cannot reach because it is inside the private state directory, and of a
    /// state that may not last.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Warning> {
        let is_inside = is_root() && self.runtime_dir.starts_with(&self.state_dir);
        let unreachable = is_inside.then(|| Warning {
            what: "only root reaches the daemon".to_owned(),
            why: format!("{} is in the state directory, which only root may enter", self.runtime_dir.display()),
            hint: "Give the state a directory of its own (--state-dir, or `state_dir` in cosched.toml).".to_owned(),
        });
        let beside = self.state_is_beside.as_ref().map(|why| Warning {
            what: format!("{}{}", cosched_api::STATE_BESIDE, self.state_dir.display()),
            why: why.clone(),
            hint: "What is there may go with the container or the next start of the machine. To keep it, set \
                   XDG_STATE_HOME to a directory of your own."
                .to_owned(),
        });
        unreachable.into_iter().chain(beside)
    }
}

/// The configuration file that is read when none is named.
pub(crate) fn default_config() -> Option<PathBuf> {
    let path = if is_root() {
        PathBuf::from("/etc/cosched.toml")
    } else {
        cosched_api::user_directory("XDG_CONFIG_HOME", ".config").join("cosched.toml")
    };
    path.exists().then_some(path)
}

fn default_state_dir() -> PathBuf {
    if is_root() { PathBuf::from("/var/lib/cosched") } else { cosched_api::state_home() }
}

/// Whether the daemon serves the whole machine.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Listens on the socket: the one passed as standard input, or a new one.
pub(crate) fn listen(args: &Args, places: &Places) -> anyhow::Result<UnixListener> {
    let listener = if args.listen_stdin {
        let fd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).context("standard input is not open")?;
        let listener = UnixListener::from(fd);
        listener.local_addr().context(
            "standard input is not a Unix socket. --listen-stdin is for systemd and for cosched itself; leave it out",
        )?;
        listener
    } else {
        bind(&places.socket)?
    };
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Listens on the port that the operator opened for Prometheus.
pub(crate) fn listen_for_metrics(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).with_context(|| {
        format!("cannot listen on {address} for metrics. Choose another metrics_listen, or leave it out")
    })?;
    listener.set_nonblocking(true)?;
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "the metrics can be read from other machines; they carry no names of jobs or users");
    }
    Ok(listener)
}

/// Refuses a socket on which another daemon answers, before anything is changed.
pub(crate) fn check_free(args: &Args, places: &Places) -> anyhow::Result<()> {
    let path = &places.socket;
    if !args.listen_stdin && UnixStream::connect(path).is_ok() {
        bail!(
            "a daemon already listens on {}. Two cannot share a socket. Use it (`cosched status`), stop it first, or \
             give this one another --socket, --state-dir and --cgroup",
            path.display()
        );
    }
    Ok(())
}

fn bind(path: &Path) -> anyhow::Result<UnixListener> {
    if let Some(dir) = path.parent().filter(|d| *d != Path::new("")) {
        make_dir(dir)?;
    }
    // No daemon answers: the socket is left over from a daemon that was killed.
    unless_gone(std::fs::remove_file(path))
        .with_context(|| format!("a stale socket at {} cannot be removed", path.display()))?;
    // Removes the sign that the last daemon here was one on demand.
    let _ = std::fs::remove_file(cosched_api::lock_of(path));
    let listener = UnixListener::bind(path)
        .with_context(|| format!("cannot listen on {}. Choose another place with --socket", path.display()))?;
    // Every user may connect; the peer's uid decides what the peer may do.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// Makes the directory of the socket and of the guard's files, which users may enter.
pub(crate) fn make_dir(dir: &Path) -> anyhow::Result<PathBuf> {
    let mode = if is_root() { 0o755 } else { 0o700 };
    private::make_directory(dir, mode).with_context(|| {
        format!(
            "the directory {} cannot be used: another user who can change its path could redirect the daemon. Choose \
             one that is root's below directories that are, such as /run/cosched (--socket, --runtime-dir)",
            dir.display()
        )
    })
}

/// Identifies machine and state directory: the lock of the directory ensures that no other running daemon has the same.
pub(crate) fn home(state_dir: &Path) -> String {
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_else(|_| cosched_linux::observe::hostname());
    let dir = state_dir.canonicalize().unwrap_or_else(|_| state_dir.to_owned());
    format!("{}:{}", machine.trim(), dir.display())
}

/// Locks the subtree: two daemons on one subtree would switch each other's jobs.
pub(crate) fn lock_tree(tree: &Tree) -> anyhow::Result<File> {
    let dir = tree.v2_dir().display();
    tree.lock().map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => anyhow::anyhow!(
            "another daemon has its jobs in the cgroup {dir}. Use that one (`cosched status`), or give this one another \
             --cgroup, --socket and --state-dir"
        ),
        _ => anyhow::anyhow!("the cgroup {dir} cannot be locked: {e}. The cgroup has to be the daemon's own user's"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn args(words: &[&str]) -> Args {
        Args::parse_from([&["coschedd"], words].concat())
    }

    fn places(words: &[&str], config: &str) -> Places {
        Places::new(&args(words), &Config::parse(config).unwrap())
    }

    #[test]
    fn what_is_not_said_lies_beside_the_socket_and_the_state_apart_from_it() {
        let usual = places(&["--socket", "/run/a/sock"], "");
        assert_eq!((usual.runtime_dir, usual.state_dir), ("/run/a".into(), default_state_dir()));
        assert_eq!(usual.status_file, Some("/run/a/status".into()));
        let here = places(&["--socket", "sock"], "");
        assert_eq!(here.runtime_dir, PathBuf::from("."));
        let said =
            places(&["--socket", "/run/a/sock", "--runtime-dir", "/run/b", "--state-dir", "/c"], "state_dir = \"/d\"");
        assert_eq!((said.runtime_dir, said.state_dir), ("/run/b".into(), "/c".into()));
        assert_eq!(places(&[], "state_dir = \"/d\"").state_dir, PathBuf::from("/d"));
        assert_eq!(places(&[], "status_file = \"\"").status_file, None);
    }

    #[test]
    fn a_daemon_on_demand_at_another_place_has_a_state_of_its_own() {
        let apart = places(&["--socket", "/tmp/x/sock", "--embedded"], "");
        assert_eq!(apart.state_dir, PathBuf::from("/tmp/x/state"));
        assert_eq!(places(&["--embedded"], "").state_dir, default_state_dir());
        assert_eq!(
            places(&["--socket", "/tmp/x/sock", "--embedded"], "state_dir = \"/d\"").state_dir,
            PathBuf::from("/d")
        );
    }

    #[test]
    fn the_socket_is_not_to_lie_where_nobody_may_go() {
        let inside = places(&["--socket", "/var/x/run/sock", "--state-dir", "/var/x"], "");
        assert_eq!(inside.warnings().count(), usize::from(is_root()));
        assert_eq!(places(&["--socket", "/run/x/sock", "--state-dir", "/var/x"], "").warnings().count(), 0);
    }

    #[test]
    fn a_socket_on_which_somebody_answers_is_refused_and_a_stale_one_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        let args = args(&["--socket", path.to_str().unwrap()]);
        let places = Places::new(&args, &Config::default());
        std::fs::write(cosched_api::lock_of(&path), "").unwrap();
        let first = listen(&args, &places).unwrap();
        assert!(!cosched_api::lock_of(&path).exists(), "a daemon on demand has left it");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666, "anybody may connect");
        let refused = check_free(&args, &places).unwrap_err().to_string();
        assert!(refused.contains("a daemon already listens"), "{refused}");
        drop(first);
        check_free(&args, &places).unwrap();
        let _second = listen(&args, &places).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
    }

    #[test]
    fn what_lies_in_the_sockets_place_and_cannot_go_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        std::fs::create_dir(&path).unwrap();
        let e = bind(&path).unwrap_err().to_string();
        assert!(e.contains("a stale socket") && e.contains("cannot be removed"), "{e}");
    }

    #[test]
    fn a_port_that_is_in_use_is_told() {
        let taken = listen_for_metrics("127.0.0.1:0".parse().unwrap()).unwrap();
        let e = listen_for_metrics(taken.local_addr().unwrap()).unwrap_err().to_string();
        assert!(e.contains("Choose another metrics_listen"), "{e}");
    }

    #[test]
    fn a_state_has_one_home_by_whatever_path() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(home(&real), home(&link));
        assert_ne!(home(&real), home(dir.path()));
    }
}
