//! Files as the ends of pipelines and in their middle, against real files.

mod at;
mod copy;
mod failures;
mod support;
