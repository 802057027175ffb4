//! Jobs: register one, put processes into it, steer it, read what it uses (LLNL, "Gang Scheduler Design": the API).
//!
//! A function returns 0 or a negative `cosched_err`, and leaves a text for people per thread. Places that get a result are
//! written only when it is 0.

pub mod handle;
pub mod order;
pub mod query;
pub mod register;
pub mod result;
pub mod types;

/// Says that versions do not go together, for what asks no daemon.
pub(crate) fn wrong_version(place: &str, why: &str) -> std::ffi::c_int {
    result::answer(place, || Err(result::Wrong::new(types::cosched_err::VERSION, why)))
}
