//! Ports for C: through which a body accepts and conveys buffers.

use std::collections::HashSet;
use std::ffi::c_int;
use std::ptr::null_mut;

use ::cosched_pipeline::{Buffer, PathId, Port};

use super::buffer::cosched_pipeline_buffer;
use crate::border::caught;

/// Where a body accepts buffers and conveys them. Only for the thread that the body was called on.
pub struct cosched_pipeline_port {
    /// The library's port, without the lifetime, which C cannot express; `Incarnation::run` outlives all uses of it.
    port: *mut Port<'static>,
    /// The buffers that were accepted and not conveyed. Other pointers are not valid.
    held: HashSet<*mut cosched_pipeline_buffer>,
    misused: Option<String>,
}

impl cosched_pipeline_port {
    /// A port for the duration of one call of a body.
    pub(crate) fn new(port: &mut Port) -> cosched_pipeline_port {
        cosched_pipeline_port { port: (port as *mut Port).cast(), held: HashSet::new(), misused: None }
    }

    /// The first invalid action of the body, if there was one.
    pub(crate) fn misused(&mut self) -> Option<String> {
        self.misused.take()
    }

    fn port(&mut self) -> &mut Port<'static> {
        // SAFETY: it is the port that `new` got, which is borrowed by the owner of this value, and C calls from one thread.
        unsafe { &mut *self.port }
    }

    fn hold(&mut self, buffer: Option<Buffer>) -> *mut cosched_pipeline_buffer {
        let Some(buffer) = buffer else { return null_mut() };
        let pointer = cosched_pipeline_buffer::lend(Box::into_raw(Box::new(buffer)));
        self.held.insert(pointer);
        pointer
    }

    fn release(&mut self, pointer: *mut cosched_pipeline_buffer) -> Option<Buffer> {
        if self.held.remove(&pointer) {
            // SAFETY: `hold` created it, and it is removed from the set only once.
            return Some(*unsafe { Box::from_raw(cosched_pipeline_buffer::behind(pointer)) });
        }
        self.misused.get_or_insert("it conveyed a buffer that it had not accepted, or conveyed already".into());
        None
    }

    /// The path with a number from C, if the stage is on it.
    fn path(&mut self, number: c_int) -> Option<PathId> {
        let found = self.port().paths().iter().copied().find(|path| c_int::try_from(path.index()) == Ok(number));
        if found.is_none() {
            self.misused.get_or_insert(format!("it requested a buffer of path {number}, which it is not on"));
        }
        found
    }
}

impl Drop for cosched_pipeline_port {
    fn drop(&mut self) {
        for pointer in self.held.drain() {
            // SAFETY: `hold` created it, and it has not been released.
            drop(unsafe { Box::from_raw(cosched_pipeline_buffer::behind(pointer)) });
        }
    }
}

/// Calls `what` with a port.
///
/// # Safety
/// `port` is null or the port of the body that runs on this thread.
unsafe fn with<T>(
    port: *mut cosched_pipeline_port,
    otherwise: T,
    what: impl FnOnce(&mut cosched_pipeline_port) -> T,
) -> T {
    // SAFETY: guaranteed by the caller.
    let Some(own) = (unsafe { port.as_mut() }) else { return otherwise };
    caught(|| what(own)).unwrap_or_else(|panic| {
        own.misused.get_or_insert(panic);
        otherwise
    })
}

/// Waits for the next buffer of any path; a stage that only begins paths gets an empty one. NULL when all paths that come in
/// have ended, or when the pipeline stops. The buffer is the body's until it conveys it.
///
/// # Safety
/// `port` is NULL or the body's own, as for all functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_accept(port: *mut cosched_pipeline_port) -> *mut cosched_pipeline_buffer {
    // SAFETY: guaranteed by the caller.
    unsafe {
        with(port, null_mut(), |own| {
            let buffer = own.port().accept();
            own.hold(buffer)
        })
    }
}

/// Waits for the next buffer of one path; of one that this stage begins, for an empty one. NULL when the path has ended, or
/// when the pipeline stops.
///
/// # Safety
/// As for cosched_pipeline_accept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_accept_from(
    port: *mut cosched_pipeline_port,
    path: c_int,
) -> *mut cosched_pipeline_buffer {
    // SAFETY: guaranteed by the caller.
    unsafe {
        with(port, null_mut(), |own| {
            let buffer = own.path(path).and_then(|path| own.port().accept_from(path));
            own.hold(buffer)
        })
    }
}

/// As cosched_pipeline_accept, but NULL also when no buffer waits now.
///
/// # Safety
/// As for cosched_pipeline_accept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_try_accept(port: *mut cosched_pipeline_port) -> *mut cosched_pipeline_buffer {
    // SAFETY: guaranteed by the caller.
    unsafe {
        with(port, null_mut(), |own| {
            let buffer = own.port().try_accept();
            own.hold(buffer)
        })
    }
}

/// Hands a buffer to the successor on its path, or back to the pool behind the path's last stage. The pointer is not valid
/// afterwards. Returns 0, or -1 if this body does not hold such a buffer; the pipeline fails then when the body returns.
///
/// # Safety
/// As for cosched_pipeline_accept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_convey(
    port: *mut cosched_pipeline_port,
    buffer: *mut cosched_pipeline_buffer,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        with(port, -1, |own| match own.release(buffer) {
            Some(buffer) => {
                own.port().convey(buffer);
                0
            }
            None => -1,
        })
    }
}

/// Ends a path that this stage begins, behind its last block. To mark the last block does the same. Returns 0, or -1 when
/// the pipeline stops or the stage is not on this path.
///
/// # Safety
/// As for cosched_pipeline_accept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_end(port: *mut cosched_pipeline_port, path: c_int) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        with(port, -1, |own| match own.path(path).map(|path| own.port().end(path)) {
            Some(true) => 0,
            _ => -1,
        })
    }
}

/// How many buffers wait for this stage.
///
/// # Safety
/// As for cosched_pipeline_accept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_backlog(port: *mut cosched_pipeline_port) -> usize {
    // SAFETY: guaranteed by the caller.
    unsafe { with(port, 0, |own| own.port().backlog()) }
}

/// How many buffers wait behind this stage, before its successor on a path; for the path's last stage, in the pool.
///
/// # Safety
/// As for cosched_pipeline_accept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_output_backlog(port: *mut cosched_pipeline_port, path: c_int) -> usize {
    // SAFETY: guaranteed by the caller.
    unsafe { with(port, 0, |own| own.path(path).map_or(0, |path| own.port().output_backlog(path))) }
}

/// Whether the pipeline stops. A body that works long on one buffer may ask and return 0.
///
/// # Safety
/// As for cosched_pipeline_accept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stopping(port: *mut cosched_pipeline_port) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { with(port, false, |own| own.port().stopping()) }
}
