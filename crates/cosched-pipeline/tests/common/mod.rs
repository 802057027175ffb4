//! Shared helpers of the tests of running pipelines.

#![allow(dead_code)]

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use cosched_pipeline::{Buffer, Flow, Resource, Stage};

/// A pipeline that hangs fails its test; it does not block the whole suite.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs a test's body within the time limit.
pub(crate) fn bounded<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    let thread = std::thread::spawn(move || {
        // The receiver may have given up.
        let _ = tell.send(());
        let result = body();
        let _ = tell.send(());
        result
    });
    told.recv().unwrap();
    if let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = told.recv_timeout(LIMIT) {
        panic!("the pipeline hangs");
    }
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// A source of `n` blocks of 8 bytes.
pub(crate) fn numbers(name: &str, n: u64) -> Stage {
    let mut next = 0;
    Stage::source(name, Resource::Io, move |buffer: &mut Buffer| {
        if next == n {
            return Ok(Flow::End);
        }
        buffer.set_tag(next);
        buffer.set_len(8);
        next += 1;
        Ok(Flow::Continue)
    })
}

/// Computes for this time.
pub(crate) fn spin(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}
