//! The connection to a daemon, as a handle that any thread, and any child after a fork, may use.
//!
//! The connection is kept between calls, and taken out for each: two threads never wait for each other, because the second
//! one opens a connection of its own. The kernel tells the daemon which process and user opened a connection, so a child
//! process, or a program that has changed its user, opens another one.

use std::ffi::{c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cosched_api::{Client, SocketChoice};

use super::result::{Wrong, answer};
use crate::border::text_or_empty;

/// The first word of every open handle.
const OPEN: u64 = 0x636f_7363_6865_6431;

/// A connection to a daemon. Opaque. Any thread may use it, and so may the children of the process that opened it.
pub struct cosched_t(());

/// The data of a handle.
#[repr(C)]
pub(super) struct Connection {
    mark: u64,
    socket: PathBuf,
    kept: Mutex<Option<Kept>>,
}

/// Checks at compile time that any thread may use a handle.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Connection>()
};

/// A connection, and the process and user that opened it.
struct Kept {
    opener: Opener,
    client: Client,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Opener {
    pid: u32,
    uid: u32,
}

impl Opener {
    fn now() -> Opener {
        Opener { pid: std::process::id(), uid: rustix::process::geteuid().as_raw() }
    }
}

impl Connection {
    /// Sends a request to the daemon.
    pub(super) fn ask<T>(
        &self,
        question: impl FnOnce(&mut Client) -> Result<T, cosched_api::ClientError>,
    ) -> Result<T, Wrong> {
        let opener = Opener::now();
        // try_lock, because after a fork the lock may be held by a thread that does not exist in this process.
        let kept = self.kept.try_lock().ok().and_then(|mut kept| kept.take());
        let mut client = match kept {
            Some(kept) if kept.opener == opener => kept.client,
            _ => Client::connect(&self.socket)?,
        };
        let answer = question(&mut client);
        if let Ok(mut kept) = self.kept.try_lock() {
            *kept = Some(Kept { opener, client });
        }
        Ok(answer?)
    }
}

/// The connection of a handle from C.
///
/// # Safety
/// `handle` is NULL or points to readable memory; a handle is not closed while it is used.
unsafe fn of<'a>(handle: *const cosched_t) -> Result<&'a Connection, Wrong> {
    let handle = handle.cast::<Connection>();
    if handle.is_null() {
        return Err(Wrong::invalid("the handle is NULL"));
    }
    // SAFETY: guaranteed by the caller; the mark is the first field (repr(C)).
    if !handle.is_aligned() || unsafe { handle.cast::<u64>().read_volatile() } != OPEN {
        return Err(Wrong::invalid("this is not a handle, or it was closed"));
    }
    // SAFETY: only cosched_open writes the mark, and cosched_close erases it.
    Ok(unsafe { &*handle })
}

/// Runs the C function `place` with a handle.
///
/// # Safety
/// As for [`of`].
pub(super) unsafe fn with(
    place: &str,
    handle: *const cosched_t,
    work: impl FnOnce(&Connection) -> Result<(), Wrong>,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(place, || work(unsafe { of(handle) }?))
}

fn open(socket: Option<&str>) -> Result<Connection, Wrong> {
    let mut client = SocketChoice::find(socket.map(PathBuf::from)).connect()?;
    // A daemon that is too old does not know this path; the request detects that.
    client.version()?;
    let socket = std::path::absolute(client.path()).unwrap_or_else(|_| Path::to_owned(client.path()));
    Ok(Connection { mark: OPEN, socket, kept: Mutex::new(Some(Kept { opener: Opener::now(), client })) })
}

/// Connects to the daemon and puts a handle into `*handle`, for all other functions. Close it with cosched_close.
///
/// `socket` is the path of the daemon's socket. NULL or "": that of the environment variable COSCHED_SOCKET, else the
/// system's daemon if it runs, else the user's own. No daemon is started.
///
/// A child after fork(2) may keep using the handle: it gets a connection of its own. So does a program that has become
/// another user: each call is made with the rights of the effective user of that moment.
///
/// Errors: COSCHED_ERR_NO_DAEMON when no daemon answers; COSCHED_ERR_VERSION when the daemon is older than this library;
/// COSCHED_ERR_FORBIDDEN when this user may not open the socket; COSCHED_ERR_INVALID when `handle` is NULL.
///
/// # Safety
/// `socket` is NULL or a text, `handle` is NULL or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_open(socket: *const c_char, handle: *mut *mut cosched_t) -> c_int {
    answer("cosched_open", || {
        if handle.is_null() {
            return Err(Wrong::invalid("the place for the handle is NULL"));
        }
        // SAFETY: guaranteed by the caller.
        let named = unsafe { text_or_empty(socket, "the socket") }.map_err(Wrong::invalid)?;
        let opened = open(Some(named).filter(|path| !path.is_empty()))?;
        // SAFETY: guaranteed by the caller.
        unsafe { handle.write(Box::into_raw(Box::new(opened)).cast()) };
        Ok(())
    })
}

/// Closes a handle. The jobs that were registered through it keep running. NULL is fine. No other thread may be using the handle.
///
/// Errors: COSCHED_ERR_INVALID when it is no handle; nothing is done then.
///
/// # Safety
/// `handle` is NULL or a handle that is not used concurrently or afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_close(handle: *mut cosched_t) -> c_int {
    answer("cosched_close", || {
        if handle.is_null() {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        unsafe { of(handle) }?;
        // SAFETY: it is a valid handle: it came from cosched_open. Later uses of the pointer find no mark.
        unsafe {
            handle.cast::<u64>().write_volatile(0);
            drop(Box::from_raw(handle.cast::<Connection>()));
        }
        Ok(())
    })
}
