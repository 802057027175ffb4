//! The statistics of the process, as one line of JSON at its end.

use crate::text::Text;
use crate::{config, shared, sys};
use core::ffi::CStr;
use core::fmt::Write;
use core::sync::atomic::Ordering::Relaxed;

unsafe extern "C" {
    static program_invocation_short_name: *const libc::c_char;
}

/// Appends the line to the file named by the environment, if the process has polled at all.
pub(crate) fn write() {
    let Some(path) = config::statistics() else { return };
    let slot = shared::slot();
    if slot.polls.load(Relaxed) == 0 {
        return;
    }
    let mut line = Text::<1024>::new();
    // SAFETY: the C library sets it before any constructor runs; it is null or ends with a zero.
    let name = unsafe { program_invocation_short_name };
    // SAFETY: as above.
    let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
    let _ = line.write_str("{\"program\":\"");
    name.to_bytes().iter().take(64).for_each(|byte| quote(&mut line, *byte));
    // SAFETY: no arguments, no effect.
    let _ = write!(line, "\",\"pid\":{}", unsafe { libc::getpid() });
    let names = ["polls", "waits", "spins", "blocks", "yields", "spin_ns", "block_ns", "timeouts"];
    for (name, counter) in names.iter().zip(shared::counters(slot)) {
        let _ = write!(line, ",\"{name}\":{}", counter.load(Relaxed));
    }
    let _ = writeln!(line, ",\"spin_us\":{}}}", slot.spin_us.load(Relaxed));
    append(path, line.bytes());
}

fn quote(line: &mut Text<1024>, byte: u8) {
    let plain = matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    let _ = if plain { line.write_char(byte as char) } else { write!(line, "\\u{byte:04x}") };
}

fn append(path: &CStr, line: &[u8]) {
    if path.to_bytes() == b"-" {
        return sys::write_all(2, line);
    }
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_NOCTTY;
    if let Some(file) = sys::File::open(path, flags) {
        sys::write_all(file.fd(), line);
        file.close();
    }
}
