//! Progress, on a line of the terminal that is rewritten repeatedly.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::size;

/// Prints progress until it is dropped.
pub(crate) struct Progress {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

const PERIOD: Duration = Duration::from_millis(200);

impl Progress {
    /// Shows `done_bytes` of `total_bytes`, if standard error is a terminal. `steps`: the names of the
    /// steps, which have equal shares of the bytes.
    pub(crate) fn start(
        quiet: bool,
        done_bytes: &Arc<AtomicU64>,
        total_bytes: u64,
        steps: Vec<&'static str>,
    ) -> Progress {
        let over = Arc::new(AtomicBool::new(false));
        if quiet || !std::io::stderr().is_terminal() {
            return Progress { over, thread: None };
        }
        let (done, watched) = (done_bytes.clone(), over.clone());
        let thread = std::thread::Builder::new().name("progress".into()).spawn(move || {
            let begin = Instant::now();
            while !watched.load(Relaxed) {
                std::thread::park_timeout(PERIOD);
                write_line(&line(done.load(Relaxed), total_bytes, &steps, begin.elapsed().as_secs_f64()));
            }
            write_line("");
        });
        Progress { over, thread: thread.ok() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn write_line(text: &str) {
    let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
}

/// The text of the line.
fn line(done: u64, total: u64, steps: &[&str], elapsed_s: f64) -> String {
    let share = if total == 0 { 1.0 } else { (done as f64 / total as f64).min(1.0) };
    let step = steps.get((share * steps.len() as f64) as usize).or(steps.last()).copied().unwrap_or_default();
    let rate = size::text((done as f64 / elapsed_s.max(1e-3)) as u64);
    let left = match share {
        share if share < 0.01 => String::new(),
        share => format!(", {:.0} s left", elapsed_s / share * (1.0 - share)),
    };
    format!("{step}: {:.0} % of all, {rate}/s{left}", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_step_share_rate_and_rest() {
        let steps = ["steps 1-2", "steps 3-4", "steps 5-8"];
        assert_eq!(line(1_500_000_000, 3_000_000_000, &steps, 3.0), "steps 3-4: 50 % of all, 500 MB/s, 3 s left");
        assert_eq!(line(0, 3000, &steps, 1.0), "steps 1-2: 0 % of all, 0 bytes/s");
        assert_eq!(line(10, 0, &["sort"], 1.0), "sort: 100 % of all, 10 bytes/s, 0 s left");
    }
}
