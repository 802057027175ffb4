//! Where the sockets are: one directory per user, without access for other users.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// The directory in which this process serves; created if it does not exist.
///
/// # Errors
/// If none of the candidates can be used; the message names the last one.
pub(super) fn own() -> io::Result<PathBuf> {
    let mut last = io::Error::other("there is no directory for sockets");
    for place in places(geteuid().as_raw()) {
        match make(&place) {
            Ok(()) => return Ok(place),
            Err(error) => last = io::Error::new(error.kind(), format!("{}: {error}", place.display())),
        }
    }
    Err(last)
}

/// The candidate directories of a user, in order of preference.
fn places(uid: u32) -> Vec<PathBuf> {
    if let Some(directory) = std::env::var_os(super::DIRECTORY_VARIABLE).filter(|value| !value.is_empty()) {
        return vec![directory.into()];
    }
    let mut places = Vec::new();
    match uid {
        0 => places.push("/run/cosched/pipelines".into()),
        _ => {
            let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
            places.extend(runtime.filter(|path| path.is_absolute()).map(|path| path.join("cosched/pipelines")));
        }
    }
    places.push(in_tmp(uid));
    places
}

fn in_tmp(uid: u32) -> PathBuf {
    format!("/tmp/cosched-pipelines-{uid}").into()
}

/// All directories that this user may read: its own and, for root, those of all users.
pub(super) fn readable() -> Vec<PathBuf> {
    let uid = geteuid().as_raw();
    let mut all = places(uid);
    if uid == 0 && std::env::var_os(super::DIRECTORY_VARIABLE).is_none_or(|value| value.is_empty()) {
        all.extend(entries("/run/user").map(|user| user.join("cosched/pipelines")));
        all.extend(entries("/tmp").filter(|path| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("cosched-pipelines-"))
        }));
    }
    all.sort();
    all.dedup();
    all
}

fn entries(directory: &str) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

/// Creates the directory and checks that only this user has access: in /tmp another user could have created it
/// first.
fn make(directory: &Path) -> io::Result<()> {
    // Those above it have other users: in /run/cosched is the daemon's socket.
    directory.parent().map_or(Ok(()), fs::create_dir_all)?;
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if is_private(directory, geteuid().as_raw())? {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user, or others may enter it"))
}

/// Whether it is a directory (not a link to one) of this user, without access for other users.
pub(super) fn is_private(directory: &Path, uid: u32) -> io::Result<bool> {
    let facts = fs::symlink_metadata(directory)?;
    Ok(facts.is_dir() && facts.uid() == uid && facts.mode() & 0o077 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_of_others_or_open_to_others_is_not_used() {
        let scratch = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
        let directory = scratch.path().join("a/pipelines");
        make(&directory).unwrap();
        make(&directory).unwrap();
        assert!(is_private(&directory, geteuid().as_raw()).unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().mode();
        fs::create_dir(scratch.path().join("usual")).unwrap();
        assert_eq!(mode(&scratch.path().join("a")), mode(&scratch.path().join("usual")));
        assert!(!is_private(&directory, geteuid().as_raw() + 1).unwrap());
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(make(&directory).is_err());
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(scratch.path().join("a"), &link).unwrap();
        assert!(make(&link).is_err(), "a link could be turned after it was looked at");
    }

    #[test]
    fn root_and_others_have_places_of_their_own() {
        if std::env::var_os(super::super::DIRECTORY_VARIABLE).is_none() {
            assert_eq!(places(0), [PathBuf::from("/run/cosched/pipelines"), "/tmp/cosched-pipelines-0".into()]);
            assert_eq!(places(1234).last(), Some(&"/tmp/cosched-pipelines-1234".into()));
        }
    }
}
