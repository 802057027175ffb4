//! What moves the bytes: three engines behind one interface, and the choice between them.

use std::fmt;
use std::io;

use super::open::Caching;
use super::threads::Threads;
use super::uring::Uring;

/// A way to read and write blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// io_uring: one thread keeps many requests in flight, past the page cache where the file system allows it.
    Uring,
    /// pread and pwrite on threads, past the page cache where the file system allows it.
    Direct,
    /// pread and pwrite on threads, through the page cache.
    Buffered,
}

impl Engine {
    /// All of them, the best one first.
    pub const ALL: [Engine; 3] = [Engine::Uring, Engine::Direct, Engine::Buffered];

    /// The name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Uring => "io_uring",
            Engine::Direct => "direct",
            Engine::Buffered => "buffered",
        }
    }

    /// How files for it are opened.
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
        known.ok_or_else(|| format!("no engine is called {text:?}; there are io_uring, direct and buffered"))
    }
}

/// How blocks are moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoOptions {
    /// The engine, or none for the best one that this machine has. io_uring that is refused becomes `direct`.
    pub engine: Option<Engine>,
    /// A block is moved in requests of at most this many bytes; at least 4096.
    pub chunk_bytes: usize,
    /// At most this many requests are at the kernel at once; at least 1, and with io_uring at most 1024.
    pub depth: usize,
    /// Threads of the engines that have some; with 0 the caller moves each block itself, at once.
    pub threads: usize,
}

impl Default for IoOptions {
    fn default() -> IoOptions {
        IoOptions { engine: None, chunk_bytes: 1 << 20, depth: 16, threads: 4 }
    }
}

/// Which engine serves, and why not a better one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The one that serves.
    pub engine: Engine,
    /// Why io_uring does not, where it was wanted.
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

// SAFETY: a request is a number of values; who sends one keeps the memory behind `at` alive and to itself until it is done.
unsafe impl Send for Request {}

/// A request's answer: how many bytes, or the kernel's error.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) id: u64,
    pub(super) result: io::Result<usize>,
}

/// Something that carries out requests.
pub(super) trait Drive: Send {
    /// How many requests it takes at once.
    fn depth(&self) -> usize;

    /// The kernel's numbers of its threads.
    fn threads(&self) -> &[i32] {
        &[]
    }

    /// Takes a request; it starts at the next [`Drive::collect`] at the latest.
    ///
    /// # Safety
    /// Until its answer came, the memory must be valid and used by nobody else, and the descriptor open. Not more than
    /// [`Drive::depth`] requests may be without an answer.
    unsafe fn push(&mut self, request: Request);

    /// Starts what was pushed, and adds the answers that are there; where `wait` is set, at least one. None must be waited for
    /// that was not pushed.
    fn collect(&mut self, wait: bool, answers: &mut Vec<Answer>);
}

/// Starts the engine that was asked for, or the next one that this machine has.
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
