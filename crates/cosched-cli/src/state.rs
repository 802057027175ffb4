//! Where the command keeps what it makes for its user.

use std::path::{Path, PathBuf};

/// $XDG_STATE_HOME/cosched, by default ~/.local/state/cosched.
pub(crate) fn state_directory() -> PathBuf {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Path::new(&std::env::var_os("HOME").unwrap_or_else(|| "/".into())).join(".local/state");
    state.unwrap_or_else(home).join("cosched")
}
