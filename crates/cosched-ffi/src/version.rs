//! The version of the library.

use std::ffi::{CStr, c_char, c_int};

/// The version as text, terminated by NUL.
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

/// Whether this library is what a program was compiled for; COSCHED_CHECK_VERSION() calls it with the number of the header.
/// 0: it has the same MAJOR and is not older. COSCHED_ERR_VERSION: it is not; cosched_last_error then tells the two versions.
#[unsafe(no_mangle)]
pub extern "C" fn cosched_check_version(header_version_number: c_int) -> c_int {
    check(header_version_number, cosched_version_number())
}

fn check(header: c_int, library: c_int) -> c_int {
    if header >= 0 && header / 1_000_000 == library / 1_000_000 && header <= library {
        return 0;
    }
    let dotted = |number: c_int| format!("{}.{}.{}", number / 1_000_000, number / 1000 % 1000, number % 1000);
    let why = format!(
        "the program was compiled for libcosched {}, and this is {}: recompile it, or install that library",
        dotted(header),
        dotted(library)
    );
    crate::job::wrong_version("cosched_check_version", &why)
}

/// The number for "MAJOR.MINOR.PATCH".
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
        assert_eq!(cosched_check_version(cosched_version_number()), 0);
        assert_eq!([check(1_002_003, 1_002_003), check(1_001_999, 1_002_003), check(1_002_004, 1_002_003)], [0, 0, -7]);
        assert_eq!([check(2_000_000, 1_002_003), check(999_999, 1_002_003), check(-1, 1_002_003)], [-7; 3]);
    }
}
