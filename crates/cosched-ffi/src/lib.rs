//! `libcosched`: cosched for programs in C and for every language that can call C.
//!
//! Handles are opaque and may be used by any thread. Functions that can fail report that by their return value and, if
//! the caller passes a place for it, by a `cosched_error` with texts. No panic leaves this library: the boundary is
//! `border::guard`. Texts are UTF-8. The header `bindings/c/include/cosched.h` is generated from this crate
//! (tests/header.rs).

// The names are those of the header.
#![allow(non_camel_case_types)]

pub mod border;
pub mod error;
pub mod job;
pub mod pipeline;
pub mod version;
