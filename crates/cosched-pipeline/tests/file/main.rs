//! File stages at the ends and in the middle of pipelines, with real files.

mod at;
mod copy;
mod failures;
mod support;
