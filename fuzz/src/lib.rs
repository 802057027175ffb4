//! The fuzz targets as plain functions of bytes; their bodies also run in `cargo test`.

pub mod simulator;
pub mod strangers;
