//! The library's settings from the environment, read once.

use crate::sys;
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};
use cosched_core::wait::page;

/// The longest spin time, in µs.
const SPIN_US_MAX: u64 = 60_000_000;

/// How to wait when no page sets it: as [`page::Head::mode`].
static MODE: AtomicU32 = AtomicU32::new(page::SPIN_BLOCK);
/// The spin time when no page sets it: as [`page::Head::spin_us`].
static SPIN_US: AtomicU32 = AtomicU32::new(page::ADAPTIVE);
/// The destination of the statistics: a path, "-", or null.
static STATISTICS: AtomicPtr<libc::c_char> = AtomicPtr::new(core::ptr::null_mut());

/// Reads the environment. A value that cannot be parsed is reported on standard error, and switches the library off.
pub(crate) fn read() {
    if let Some(text) = sys::variable(c"COSCHED_WAIT") {
        let (mode, spin_us) = parse(text.to_bytes()).unwrap_or_else(|| {
            complain(text.to_bytes());
            (page::BUSY, page::ADAPTIVE)
        });
        MODE.store(mode, Relaxed);
        SPIN_US.store(spin_us, Relaxed);
    }
    if let Some(path) = sys::variable(c"COSCHED_WAIT_STATS").filter(|path| !path.is_empty()) {
        STATISTICS.store(path.as_ptr().cast_mut(), Relaxed);
    }
}

/// How to wait when no page sets it.
pub(crate) fn mode() -> u32 {
    MODE.load(Relaxed)
}

/// The spin time when no page sets it.
pub(crate) fn spin_us() -> u32 {
    SPIN_US.load(Relaxed)
}

/// The destination of the statistics.
pub(crate) fn statistics() -> Option<&'static CStr> {
    let path = STATISTICS.load(Relaxed);
    // SAFETY: set once, from the environment at the start, which programs replace but do not write into.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
}

fn parse(text: &[u8]) -> Option<(u32, u32)> {
    let colon = text.iter().position(|byte| *byte == b':');
    let (name, time) = text.split_at(colon.unwrap_or(text.len()));
    let mode = match name {
        b"busy" => page::BUSY,
        b"spin-block" => page::SPIN_BLOCK,
        b"spin-yield" => page::SPIN_YIELD,
        _ => return None,
    };
    if time.is_empty() {
        return Some((mode, page::ADAPTIVE));
    }
    let spin_us = sys::number(time[1..].strip_suffix(b"us")?).filter(|us| *us <= SPIN_US_MAX && mode != page::BUSY)?;
    Some((mode, spin_us as u32))
}

fn complain(text: &[u8]) {
    let shown = &text[..text.len().min(64)];
    let words: [&[u8]; 3] = [
        b"cosched_wait: COSCHED_WAIT=",
        shown,
        b" is not understood; give busy, spin-block[:TIME] or spin-yield[:TIME], TIME from 0us to 60000000us. The library is off.\n",
    ];
    let mut line = [0; 256];
    let mut length = 0;
    for word in words {
        line[length..length + word.len()].copy_from_slice(word);
        length += word.len();
    }
    sys::write_all(2, &line[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_wait() {
        assert_eq!(parse(b"busy"), Some((page::BUSY, page::ADAPTIVE)));
        assert_eq!(parse(b"spin-block"), Some((page::SPIN_BLOCK, page::ADAPTIVE)));
        assert_eq!(parse(b"spin-block:0us"), Some((page::SPIN_BLOCK, 0)));
        assert_eq!(parse(b"spin-yield:60000000us"), Some((page::SPIN_YIELD, 60_000_000)));
        for bad in [
            "",
            "busy:1",
            "spin",
            "spin-block:",
            "spin-block:-1us",
            "spin-block:1ms",
            "spin-block:us",
            "spin-block:50",
            "spin-block:60000001us",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
        complain(&[b'x'; 1000]);
    }
}
