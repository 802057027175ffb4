//! Access to private functions for the fuzzer.

/// Parses an answer, as a client does.
pub fn answer(data: &[u8]) {
    let _ = crate::http::receive(&mut &*data);
}
