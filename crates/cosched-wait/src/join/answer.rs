//! The daemon's answer: a complete HTTP response, in a mapping of its own that is dropped with the answer.

use crate::sys::number;
use core::ffi::CStr;
use core::ptr::null_mut;

/// The longest answer: a job with its command line, which the kernel limits to 2 MiB by default.
const MAX: usize = 4 << 20;

/// The longest path, its zero included.
pub(super) const PATH_MAX: usize = 4096;

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    start: *mut u8,
    length: usize,
}

impl Answer {
    /// Reads it with `read` until that returns 0; `None` when that fails, or when there is no memory for it.
    pub(super) fn read(mut read: impl FnMut(&mut [u8]) -> Option<usize>) -> Option<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses; only what is written takes memory.
        let address = unsafe { libc::mmap(null_mut(), MAX, rights, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return None;
        }
        let mut answer = Self { start: address.cast(), length: 0 };
        while answer.length < MAX {
            // SAFETY: the mapping is MAX bytes long, is zero where nothing was written, and no other reference to it exists.
            let rest = unsafe { core::slice::from_raw_parts_mut(answer.start, MAX) };
            match read(&mut rest[answer.length..])? {
                0 => break,
                more => answer.length += more,
            }
        }
        Some(answer)
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: these bytes of the mapping were written, and `self` keeps it.
        unsafe { core::slice::from_raw_parts(self.start, self.length) }
    }

    /// The HTTP status.
    pub(super) fn status(&self) -> Option<u16> {
        let bytes = self.bytes();
        bytes.starts_with(b"HTTP/1.").then(|| number(bytes.get(9..12)?))?.map(|status| status as u16)
    }

    /// Whether the request succeeded.
    pub(super) fn is_good(&self) -> bool {
        matches!(self.status(), Some(200..=299))
    }

    /// When the job was registered, in ms since the Unix epoch.
    pub(super) fn submitted_unix_ms(&self) -> Option<u64> {
        let value = self.after(b"\"submitted_unix_ms\":")?;
        number(&value[..value.iter().position(|byte| !byte.is_ascii_digit())?])
    }

    /// The job's page on this node, written to `path`.
    pub(super) fn page<'a>(&self, path: &'a mut [u8; PATH_MAX]) -> Option<&'a CStr> {
        let value = self.after(b"\"page\":\"")?;
        let value = &value[..value.iter().position(|byte| *byte == b'"')?];
        // The value contains an escape: no daemon of ours makes such a path.
        if value.contains(&b'\\') || value.len() >= PATH_MAX {
            return None;
        }
        path[..value.len()].copy_from_slice(value);
        path[value.len()] = 0;
        CStr::from_bytes_until_nul(path).ok()
    }

    /// The text after a key. In a JSON string the quotation marks of the key would be escaped, so a match is a key.
    fn after(&self, key: &[u8]) -> Option<&[u8]> {
        let bytes = self.bytes();
        let at = bytes.windows(key.len()).position(|window| window == key)?;
        Some(&bytes[at + key.len()..])
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `read` and no reference into it is left.
        unsafe { libc::munmap(self.start.cast(), MAX) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Answer {
        let mut rest = text.as_bytes();
        Answer::read(|bytes| {
            // In pieces, like a socket.
            let length = rest.len().min(7).min(bytes.len());
            bytes[..length].copy_from_slice(&rest[..length]);
            rest = &rest[length..];
            Some(length)
        })
        .unwrap()
    }

    fn page(answer: &Answer) -> Option<String> {
        let mut path = [0; PATH_MAX];
        answer.page(&mut path).map(|path| path.to_str().unwrap().to_owned())
    }

    #[test]
    fn reads_the_words_that_it_needs() {
        let good = answer(
            "HTTP/1.1 200 OK\r\n\r\n{\"id\":7,\"command\":[\"x\",\"\\\"submitted_unix_ms\\\":5,\\\"page\\\":\\\"no\"],\
             \"submitted_unix_ms\":1700,\"waiting\":{\"page\":\"/run/p 1\",\"processes\":0}}",
        );
        assert_eq!((good.status(), good.submitted_unix_ms(), good.is_good()), (Some(200), Some(1700), true));
        assert_eq!(page(&good).as_deref(), Some("/run/p 1"));
        let refused = answer("HTTP/1.1 409 Conflict\r\n\r\n{\"code\":\"conflict\"}");
        assert_eq!((refused.status(), refused.is_good(), page(&refused)), (Some(409), false, None));
        for strange in ["", "HTTP/1.", "SSH-2.0-OpenSSH_9.2", "HTTP/1.1 200 OK\r\n\r\n{\"submitted_unix_ms\":12"] {
            let answer = answer(strange);
            assert_eq!((answer.submitted_unix_ms(), page(&answer)), (None, None), "{strange}");
        }
        assert_eq!(page(&answer("{\"page\":\"/a\\\"b\"}")), None);
    }

    #[test]
    fn what_fails_and_what_is_too_long() {
        assert!(Answer::read(|_| None).is_none());
        let endless = Answer::read(|bytes| Some(bytes.len().min(1 << 20))).unwrap();
        assert_eq!(endless.length, MAX);
    }
}
