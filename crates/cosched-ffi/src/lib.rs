//! `libcosched`: cosched for programs in C and for every language that can call C.
//!
//! Handles are opaque and may be used by any thread. What can fail says so by its return value and, where the caller gave
//! a place for it, by a `cosched_error` with texts. Nothing that panics in here leaves it: the border is `border::guard`.
//! Texts are UTF-8. The header `bindings/c/include/cosched.h` is made from this crate (tests/header.rs).

// The names here are those of the header.
#![allow(non_camel_case_types)]

pub mod border;
pub mod error;
pub mod job;
pub mod pipeline;
pub mod version;
