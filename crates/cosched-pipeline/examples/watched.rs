//! A pipeline that can be watched: while it runs, with `cosched pipeline show watched --watch`; after that,
//! with `cosched pipeline report FILE --html page.html --trace trace.json`.
//!
//! Usage: watched FILE [PRIORITIES] [BLOCKS]. PRIORITIES is a name such as auto, adjust-once or nice-up-io.

use std::time::{Duration, Instant};

use cosched_pipeline::{BoxError, Buffer, Flow, Options, Pipeline, Resource, Stage};

/// Computes for a while, as a sort would.
fn compute(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Computes a little, then waits for its device (sleeps).
fn device(name: &str, time: Duration) -> Stage {
    Stage::blocking(name, Resource::Io, move |_| {
        compute(Duration::from_micros(200));
        std::thread::sleep(time);
        Ok(())
    })
}

fn main() -> Result<(), BoxError> {
    let mut words = std::env::args().skip(1);
    let file = words.next().ok_or("usage: watched FILE [PRIORITIES] [BLOCKS]")?;
    let mut options = Options::default();
    options.priorities = words.next().as_deref().unwrap_or("default").parse()?;
    (options.serve, options.trace) = (true, true);
    let blocks: u64 = words.next().as_deref().unwrap_or("500").parse()?;
    let mut next = 0;
    let read = Stage::source("read", Resource::Io, move |buffer: &mut Buffer| {
        buffer.set_len(1 << 16);
        std::thread::sleep(Duration::from_millis(1));
        next += 1;
        Ok(if next == blocks { Flow::Last } else { Flow::Continue })
    });
    let sort = Stage::replicated("sort", 1, Resource::Compute, |_| {
        |_: &mut Buffer| -> Result<Flow, BoxError> {
            compute(Duration::from_millis(3));
            Ok(Flow::Continue)
        }
    });
    let line = Pipeline::new("watched").buffers(8, 1 << 16).stage(read).stage(sort.replicable(2));
    let report = line.stage(device("write", Duration::from_millis(1))).run(&options)?;
    report.save(std::path::Path::new(&file))?;
    print!("{}", report.text());
    Ok(())
}
