//! The simulator of the playground: in a browser as WebAssembly, in the page of the documentation; in `cosched web` for its page, which calls [`simulate`].
//!
//! The page (web/playground) writes a request of JSON a byte at a time, calls [`run`], and reads the answer where [`answer`] says it lies. Plain exports
//! and no generator of glue code: four functions, and the page needs no tool that is as old as the library.

mod picture;
mod request;

use request::{Answer, Request};
use std::sync::{Mutex, PoisonError};

/// The request that comes in, and the last answer.
struct Texts {
    request: Vec<u8>,
    answer: Vec<u8>,
}

static TEXTS: Mutex<Texts> = Mutex::new(Texts { request: Vec::new(), answer: Vec::new() });

/// A longer request is cut, and then no JSON.
const REQUEST_MAX: usize = 1 << 16;

fn texts<T>(work: impl FnOnce(&mut Texts) -> T) -> T {
    work(&mut TEXTS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The next byte of the request.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn push(byte: u8) {
    texts(|texts| {
        if texts.request.len() < REQUEST_MAX {
            texts.request.push(byte);
        }
    });
}

/// Simulates what was pushed; returns how many bytes the answer has.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn run() -> u32 {
    texts(|texts| {
        texts.answer = simulate(&std::mem::take(&mut texts.request));
        texts.answer.len() as u32
    })
}

/// Where the answer lies until the next run.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn answer() -> *const u8 {
    texts(|texts| texts.answer.as_ptr())
}

/// An answer of JSON to a request of JSON: a picture, or an error.
pub fn simulate(request: &[u8]) -> Vec<u8> {
    let answer = match serde_json::from_slice::<Request>(request) {
        Ok(request) => request.simulate().unwrap_or_else(Answer::Error),
        Err(error) => Answer::Error(format!("the page's request is not understood: {error}")),
    };
    serde_json::to_vec(&answer).unwrap_or_default()
}
