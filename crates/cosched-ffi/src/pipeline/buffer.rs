//! Buffers for C: pointers that are valid during a round, or between accept and convey.

use std::ffi::{c_int, c_void};

use ::cosched_pipeline::Buffer;

/// A buffer of a path's pool: page-aligned memory that goes from stage to stage without a copy. Stages get pointers to it and
/// free none. One thread at a time.
pub struct cosched_pipeline_buffer {
    _opaque: [u8; 0],
}

impl cosched_pipeline_buffer {
    /// Converts a pointer to C's type.
    pub(crate) fn lend(buffer: *mut Buffer) -> *mut cosched_pipeline_buffer {
        buffer.cast()
    }

    /// Converts a pointer from C to the library's type.
    pub(crate) fn behind(pointer: *mut cosched_pipeline_buffer) -> *mut Buffer {
        pointer.cast()
    }
}

/// Calls `what` with a buffer; returns `otherwise` if the pointer is null.
///
/// # Safety
/// `buffer` is null or valid; see the type.
unsafe fn look<T>(buffer: *const cosched_pipeline_buffer, otherwise: T, what: impl FnOnce(&Buffer) -> T) -> T {
    // SAFETY: guaranteed by the caller.
    unsafe { buffer.cast::<Buffer>().as_ref() }.map_or(otherwise, what)
}

/// The beginning of its memory, cosched_pipeline_buffer_capacity bytes, whatever its length is. NULL of NULL.
///
/// # Safety
/// `buffer` is NULL or valid, as for all functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_buffer_data(buffer: *mut cosched_pipeline_buffer) -> *mut c_void {
    // SAFETY: guaranteed by the caller.
    unsafe { cosched_pipeline_buffer::behind(buffer).as_mut() }
        .map_or(std::ptr::null_mut(), |buffer| buffer.storage_mut().as_mut_ptr().cast())
}

/// How many bytes it can hold.
///
/// # Safety
/// As for cosched_pipeline_buffer_data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_buffer_capacity(buffer: *const cosched_pipeline_buffer) -> usize {
    // SAFETY: guaranteed by the caller.
    unsafe { look(buffer, 0, Buffer::capacity) }
}

/// How many bytes it holds.
///
/// # Safety
/// As for cosched_pipeline_buffer_data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_buffer_length(buffer: *const cosched_pipeline_buffer) -> usize {
    // SAFETY: guaranteed by the caller.
    unsafe { look(buffer, 0, Buffer::len) }
}

/// Says how many bytes it holds. Returns 0, or -1 if that is more than its capacity; it stays as it was then.
///
/// # Safety
/// As for cosched_pipeline_buffer_data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_buffer_set_length(
    buffer: *mut cosched_pipeline_buffer,
    length: usize,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    match unsafe { cosched_pipeline_buffer::behind(buffer).as_mut() } {
        Some(buffer) if length <= buffer.capacity() => {
            buffer.set_len(length);
            0
        }
        _ => -1,
    }
}

/// The number of its round on its path, from 0: how many buffers the beginning of the path had conveyed before it. It is
/// known behind the stage that begins the path.
///
/// # Safety
/// As for cosched_pipeline_buffer_data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_buffer_round(buffer: *const cosched_pipeline_buffer) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { look(buffer, 0, Buffer::round) }
}

/// The number of the path whose pool it belongs to, as cosched_pipeline_path returned it; -1 of NULL.
///
/// # Safety
/// As for cosched_pipeline_buffer_data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_buffer_path(buffer: *const cosched_pipeline_buffer) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { look(buffer, -1, |buffer| c_int::try_from(buffer.path().index()).unwrap_or(-1)) }
}

/// Whether it is its path's last one (the caboose).
///
/// # Safety
/// As for cosched_pipeline_buffer_data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_buffer_is_last(buffer: *const cosched_pipeline_buffer) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { look(buffer, false, Buffer::is_last) }
}

/// Says that it is its path's last one: for a body that begins the path, before it conveys it.
///
/// # Safety
/// As for cosched_pipeline_buffer_data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_buffer_mark_last(buffer: *mut cosched_pipeline_buffer) {
    // SAFETY: guaranteed by the caller.
    if let Some(buffer) = unsafe { cosched_pipeline_buffer::behind(buffer).as_mut() } {
        buffer.mark_last();
    }
}

/// Whether it carries a block. The last buffer does not where the end was found only behind the last block; only bodies see
/// such a buffer.
///
/// # Safety
/// As for cosched_pipeline_buffer_data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_buffer_carries_block(buffer: *const cosched_pipeline_buffer) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { look(buffer, false, Buffer::carries_block) }
}

/// A number of the program's own that goes with the buffer; 0 at the beginning of a path.
///
/// # Safety
/// As for cosched_pipeline_buffer_data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_buffer_tag(buffer: *const cosched_pipeline_buffer) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { look(buffer, 0, Buffer::tag) }
}

/// Sets the program's number.
///
/// # Safety
/// As for cosched_pipeline_buffer_data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_buffer_set_tag(buffer: *mut cosched_pipeline_buffer, tag: u64) {
    // SAFETY: guaranteed by the caller.
    if let Some(buffer) = unsafe { cosched_pipeline_buffer::behind(buffer).as_mut() } {
        buffer.set_tag(tag);
    }
}
