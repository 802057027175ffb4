//! The library's queues, compiled with loom.

#[path = "../../src/queue/bell.rs"]
pub(crate) mod bell;
#[path = "../../src/queue/gate.rs"]
pub(crate) mod gate;
#[path = "../../src/queue/ring.rs"]
pub(crate) mod ring;
mod sync;

pub(crate) use bell::Awake;
