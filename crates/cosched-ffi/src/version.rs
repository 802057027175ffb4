//! Which library it is.

use std::ffi::{CStr, c_char, c_int};

/// As text, with the NUL of C.
const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The library's version, "MAJOR.MINOR.PATCH". Not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn cosched_version() -> *const c_char {
    CStr::from_bytes_with_nul(TEXT.as_bytes()).map_or(std::ptr::null(), CStr::as_ptr)
}

/// The library's version as a number: MAJOR * 1000000 + MINOR * 1000 + PATCH, as COSCHED_VERSION_NUMBER of the header that
/// a program was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn cosched_version_number() -> c_int {
    number(env!("CARGO_PKG_VERSION")).unwrap_or(0)
}

/// The number of "MAJOR.MINOR.PATCH".
fn number(version: &str) -> Option<c_int> {
    let mut parts = version.split('.').map(|part| part.parse::<c_int>().ok());
    Some(parts.next()?? * 1_000_000 + parts.next()?? * 1000 + parts.next()??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_become_numbers() {
        assert_eq!(number("2.13.4"), Some(2_013_004));
        assert_eq!(number("2.13"), None);
        assert_ne!(cosched_version_number(), 0);
    }
}
