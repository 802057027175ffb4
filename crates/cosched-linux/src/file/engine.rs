//! The engines that move the bytes: three behind one interface, and the choice between them.

use std::fmt;
use std::io;

use super::open::Caching;
use super::threads::Threads;
use super::uring::Uring;

/// A way to read and write blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// io_uring: one thread keeps many requests in flight, bypassing the page cache where the file system allows it.
    Uring,
    /// pread and pwrite on threads, bypassing the page cache where the file system allows it.
    Direct,
    /// pread and pwrite on threads, through the page cache.
    Buffered,
}

impl Engine {
    /// All engines, the best one first.
    pub const ALL: [Engine; 3] = [Engine::Uring, Engine::Direct, Engine::Buffered];

    /// The name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Uring => "io_uring",
            Engine::Direct => "direct",
            Engine::Buffered => "buffered",
        }
    }

    /// How files for this engine are opened.
    pub const fn caching(self) -> Caching {
        match self {
            Engine::Uring | Engine::Direct => Caching::Direct,
            Engine::Buffered => Caching::Buffered,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Engine, String> {
        let known = Engine::ALL.into_iter().find(|engine| engine.name() == text);
        known.ok_or_else(|| format!("no engine is called {text:?}; valid are io_uring, direct and buffered"))
    }
}

/// Options of transfers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoOptions {
    /// The engine; `None`: the best one of this machine. If io_uring is refused, it is `direct`.
    pub engine: Option<Engine>,
    /// A block is moved in requests of at most this many bytes; at least 4096.
    pub chunk_bytes: usize,
    /// The limit on requests in the kernel at a time; at least 1, and with io_uring at most 1024.
    pub depth: usize,
    /// Threads, for the engines that use some; with 0 the caller moves each block itself, synchronously.
    pub threads: usize,
}

impl Default for IoOptions {
    fn default() -> IoOptions {
        IoOptions { engine: None, chunk_bytes: 1 << 20, depth: 16, threads: 4 }
    }
}

/// The engine in use, and why it is not a better one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The engine in use.
    pub engine: Engine,
    /// Why io_uring is not used, where it was requested.
    pub why_not_uring: Option<String>,
}

/// A request to the kernel: `len` bytes at `at` from or to `offset` of the file `fd`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) fd: i32,
    pub(super) write: bool,
    pub(super) at: *mut u8,
    pub(super) len: usize,
    pub(super) offset: u64,
}

// SAFETY: a request consists of numbers; the sender keeps the memory behind `at` alive and unused by others until it is done.
unsafe impl Send for Request {}

/// A request's answer: the number of bytes, or the kernel's error.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) id: u64,
    pub(super) result: io::Result<usize>,
}

/// An engine that carries out requests.
pub(super) trait Drive: Send {
    /// The number of requests that it takes at a time.
    fn depth(&self) -> usize;

    /// The kernel's ids of its threads.
    fn threads(&self) -> &[i32] {
        &[]
    }

    /// Takes a request; it starts at the next [`Drive::collect`] at the latest.
    ///
    /// # Safety
    /// Until its answer arrives, the memory must be valid and unused by others, and the descriptor open. Not more than [`Drive::depth`] requests may
    /// be without an answer.
    unsafe fn push(&mut self, request: Request);

    /// Starts the pushed requests, and adds the available answers; if `wait` is set, at least one. Then at least one pushed request must be
    /// unanswered.
    fn collect(&mut self, wait: bool, answers: &mut Vec<Answer>);
}

/// Starts the requested engine, or the next best one of this machine.
pub(super) fn start(options: &IoOptions) -> (Box<dyn Drive>, Chosen) {
    let wanted = options.engine.unwrap_or(Engine::Uring);
    let why_not_uring = match wanted {
        Engine::Uring => match Uring::start(options.depth) {
            Ok(uring) => return (Box::new(uring), Chosen { engine: Engine::Uring, why_not_uring: None }),
            Err(why) => Some(why),
        },
        _ => None,
    };
    let engine = if wanted == Engine::Uring { Engine::Direct } else { wanted };
    (Box::new(Threads::start(options.threads, options.depth)), Chosen { engine, why_not_uring })
}
