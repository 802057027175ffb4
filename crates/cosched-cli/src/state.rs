//! Where the command keeps what it makes for its user.

use std::path::{Path, PathBuf};

/// $XDG_STATE_HOME/cosched, by default ~/.local/state/cosched.
pub(crate) fn state_directory() -> PathBuf {
    or_beside(cosched_api::state_home())
}

/// This directory; where it cannot be (a container without a home) that of the socket of the user's own daemon, unless another user may change it.
pub(crate) fn or_beside(usual: PathBuf) -> PathBuf {
    if cosched_api::cannot_write(&usual).is_none() {
        return usual;
    }
    let socket = cosched_api::default_socket();
    let beside = socket.parent().map(Path::to_owned).filter(|_| cosched_api::prepare_directory(&socket).is_ok());
    beside.unwrap_or(usual)
}
