//! Chooses the socket: the one that was named, else the system's daemon if it is running, else the user's own.

use crate::client::Client;
use crate::error::ClientError;
use rustix::fs::Access;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The socket of the system's daemon.
pub const SYSTEM_SOCKET: &str = "/run/cosched/coschedd.sock";

/// Where to look for a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketChoice {
    /// Only this one: the user named it.
    Named(PathBuf),
    /// The system's daemon if it is listening, else the user's own.
    Usual {
        /// The system's socket.
        system: PathBuf,
        /// The user's own; for root it is the system's.
        own: PathBuf,
    },
}

impl SocketChoice {
    /// The choice from `--socket`, then `$COSCHED_SOCKET`, then the usual places.
    pub fn find(named: Option<PathBuf>) -> SocketChoice {
        let from_environment = || std::env::var_os("COSCHED_SOCKET").filter(|v| !v.is_empty()).map(PathBuf::from);
        match named.or_else(from_environment) {
            Some(path) => SocketChoice::Named(path),
            None => SocketChoice::Usual { system: SYSTEM_SOCKET.into(), own: default_socket() },
        }
    }

    /// Connects to a running daemon.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] for the socket on which one could be started ([`SocketChoice::to_start`]).
    pub fn connect(&self) -> Result<Client, ClientError> {
        let SocketChoice::Usual { system, own } = self else { return Client::connect(self.to_start()) };
        match Client::connect(system) {
            Err(ClientError::Unreachable { source, .. }) if own != system && is_absent(&source) => {
                check_directory(own).map_err(|source| ClientError::Unreachable { path: own.clone(), source })?;
                Client::connect(own)
            }
            other => other,
        }
    }

    /// The socket for a daemon that is started on demand.
    pub fn to_start(&self) -> &Path {
        match self {
            SocketChoice::Named(path) | SocketChoice::Usual { own: path, .. } => path,
        }
    }
}

/// Whether no daemon listens, in contrast to one that this user may not connect to.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// The socket of the user's own daemon: the system's for root, else `$XDG_RUNTIME_DIR/cosched/coschedd.sock`, else
/// `/tmp/cosched-<uid>/coschedd.sock`: the variable may be another user's (`su`), or name what is not there (a container).
pub fn default_socket() -> PathBuf {
    let uid = rustix::process::getuid();
    if uid.is_root() {
        return SYSTEM_SOCKET.into();
    }
    let is_own =
        |dir: &PathBuf| dir.is_absolute() && fs::metadata(dir).is_ok_and(|of| of.is_dir() && of.uid() == uid.as_raw());
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(is_own);
    let directory = runtime.map_or_else(|| format!("/tmp/cosched-{}", uid.as_raw()).into(), |dir| dir.join("cosched"));
    directory.join("coschedd.sock")
}

/// Cosched's directory in one of the places that the variable names, or that is below the home by default.
pub fn user_directory(variable: &str, below_home: &str) -> PathBuf {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Path::new(&std::env::var_os("HOME").unwrap_or_else(|| "/".into())).join(below_home);
    named.unwrap_or_else(home).join("cosched")
}

/// Where what a user makes is to stay: `$XDG_STATE_HOME/cosched`, by default `~/.local/state/cosched`.
pub fn state_home() -> PathBuf {
    user_directory("XDG_STATE_HOME", ".local/state")
}

/// Why this user cannot write there, nor make what is missing of it: in a container there may be no home. Changes nothing.
pub fn cannot_write(directory: &Path) -> Option<String> {
    let existing = directory.ancestors().find(|dir| dir.exists())?;
    let error = rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(format!("{} cannot be written: {}", directory.display(), io::Error::from(error)))
}

/// Creates the directory of a socket: mode 0700 for a user's own, 0755 for the system's (all users may connect to
/// that daemon). An existing directory must belong to this user and must not be writable by others.
///
/// # Errors
/// If it cannot be created, or if another user could put a socket into it.
pub fn prepare_directory(socket: &Path) -> io::Result<()> {
    let directory = parent(socket);
    let mode = if socket == Path::new(SYSTEM_SOCKET) { 0o755 } else { 0o700 };
    DirBuilder::new().recursive(true).mode(mode).create(directory)?;
    check_directory(socket)
}

/// Refuses a directory in which another user may have put a fake daemon; one that does not exist is acceptable.
fn check_directory(socket: &Path) -> io::Result<()> {
    let directory = parent(socket);
    // The owner of a symbolic link controls where it leads: one in /tmp may belong to any user, and be another name of one of root's.
    let link = match fs::symlink_metadata(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let meta = fs::metadata(directory)?;
    let uid = rustix::process::getuid().as_raw();
    if link.is_symlink() && link.uid() != uid {
        return Err(io::Error::other(format!(
            "{} is a link of another user's (uid {})",
            directory.display(),
            link.uid()
        )));
    }
    if meta.uid() != uid && meta.uid() != 0 {
        return Err(io::Error::other(format!("{} belongs to another user (uid {})", directory.display(), meta.uid())));
    }
    // A sticky directory (such as /tmp) lets others add files but not replace ours.
    if meta.permissions().mode() & 0o022 != 0 && meta.permissions().mode() & 0o1000 == 0 {
        return Err(io::Error::other(format!("{} is writable by other users", directory.display())));
    }
    Ok(())
}

fn parent(socket: &Path) -> &Path {
    match socket.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn takes_the_system_daemon_if_it_listens_else_the_users() {
        let dir = tempfile::tempdir().unwrap();
        let (system, own) = (dir.path().join("system"), dir.path().join("own"));
        let choice = SocketChoice::Usual { system: system.clone(), own: own.clone() };
        match choice.connect() {
            Err(ClientError::Unreachable { path, .. }) => assert_eq!(path, own),
            other => panic!("{other:?}"),
        }
        let _own = UnixListener::bind(&own).unwrap();
        assert_eq!(choice.connect().unwrap().path(), own);
        // A socket left by a dead daemon counts as absent.
        drop(UnixListener::bind(&system).unwrap());
        assert_eq!(choice.connect().unwrap().path(), own);
        fs::remove_file(&system).unwrap();
        let _system = UnixListener::bind(&system).unwrap();
        assert_eq!(choice.connect().unwrap().path(), system);
    }

    #[test]
    fn a_named_socket_is_the_only_one() {
        let choice = SocketChoice::find(Some("/nowhere/x.sock".into()));
        assert_eq!(choice, SocketChoice::Named("/nowhere/x.sock".into()));
        assert!(choice.connect().is_err());
    }

    #[test]
    fn directories_are_private_and_checked() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("a/b/coschedd.sock");
        prepare_directory(&socket).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&dir.path().join("a/b")), 0o700);
        fs::set_permissions(dir.path().join("a/b"), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(prepare_directory(&socket).unwrap_err().to_string().contains("writable by other users"));
        fs::set_permissions(dir.path().join("a/b"), fs::Permissions::from_mode(0o700)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path().join("a/b"), &link).unwrap();
        check_directory(&link.join("coschedd.sock")).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
            let refused = check_directory(&link.join("coschedd.sock")).unwrap_err().to_string();
            assert!(refused.contains("uid 65534"), "{refused}");
        }
    }

    #[test]
    fn what_cannot_be_made_is_told_and_nothing_is_made() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(cannot_write(&dir.path().join("a/b")), None);
        assert!(!dir.path().join("a").exists());

        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let why = cannot_write(&file.join("a")).unwrap();
        assert!(why.starts_with(&format!("{}/a cannot be written: ", file.display())), "{why}");
    }
}
