//! For the fuzzer: what is not public.

/// Reads an answer, as a client does.
pub fn answer(data: &[u8]) {
    let _ = crate::http::receive(&mut &*data);
}
