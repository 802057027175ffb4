//! Jobs: register one, add processes, control it, read its usage (LLNL, "Gang Scheduler Design": the API).
//!
//! A function returns 0 or a negative `cosched_err`, and stores a message per thread. Places for results are written only
//! if it returns 0.

pub mod handle;
pub mod order;
pub mod query;
pub mod register;
pub mod result;
pub mod types;

/// Reports incompatible versions, for functions that need no daemon.
pub(crate) fn wrong_version(place: &str, why: &str) -> std::ffi::c_int {
    result::answer(place, || Err(result::Wrong::new(types::cosched_err::VERSION, why)))
}
