//! Blocks on their way: several at once, each of any number of extents, delivered in the order in which they were asked for.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use rustix::io::Errno;

use super::engine::{Answer, Chosen, Drive, IoOptions, Request, start};
use super::error::{Cause, Doing, FileError};
use super::extent::{Extent, Piece, cut};
use super::held::{Held, Memory};
use super::open::BlockFile;

/// Requests below a page cost more than they move.
const CHUNK_BYTES_MIN: usize = 4096;

/// A block that has arrived, or has not.
#[derive(Debug)]
pub struct Done<M> {
    /// The memory that was given, also after an error.
    pub memory: M,
    /// How many bytes were moved: all that were asked for; or why not. After an error some may have been moved.
    pub result: Result<u64, FileError>,
}

/// What was moved so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoStats {
    /// Past the page cache, in bytes.
    pub direct_bytes: u64,
    /// Through the page cache, in bytes.
    pub buffered_bytes: u64,
    /// Requests to the kernel.
    pub requests: u64,
}

/// A queue of blocks that are read and written. It never copies a byte of theirs: the kernel gets their address.
pub struct Transfers<M: Memory> {
    drive: Box<dyn Drive>,
    chosen: Chosen,
    chunk: usize,
    jobs: VecDeque<Job<M>>,
    /// The number of the oldest job.
    oldest: u64,
    /// What is at the kernel, by the request's id; none where the id is free.
    requests: Vec<Option<(u64, Piece)>>,
    free: Vec<u64>,
    answers: Vec<Answer>,
    stats: IoStats,
}

struct Job<M> {
    held: Held<M>,
    file: Arc<BlockFile>,
    write: bool,
    /// Where the last extent ends, in bytes.
    end: u64,
    waiting: VecDeque<Piece>,
    at_kernel: usize,
    moved: u64,
    error: Option<FileError>,
}

impl<M> Job<M> {
    fn doing(&self) -> Doing {
        if self.write { Doing::Write } else { Doing::Read }
    }

    fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.at_kernel == 0
    }

    fn fail(&mut self, error: FileError) {
        self.waiting.clear();
        self.error.get_or_insert(error);
    }
}

impl<M: Memory> Transfers<M> {
    /// Starts the engine, on the thread that will use it: engines with threads of their own hand its scheduling on.
    pub fn start(options: &IoOptions) -> Transfers<M> {
        let (drive, chosen) = start(options);
        let depth = drive.depth();
        Transfers {
            drive,
            chosen,
            chunk: options.chunk_bytes.max(CHUNK_BYTES_MIN),
            jobs: VecDeque::new(),
            oldest: 0,
            requests: vec![None; depth],
            free: (0..depth as u64).collect(),
            answers: Vec::with_capacity(depth),
            stats: IoStats::default(),
        }
    }

    /// Which engine serves.
    pub fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// What was moved so far.
    pub fn stats(&self) -> IoStats {
        self.stats
    }

    /// How many blocks are on their way or wait to be taken.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether one more block would be begun at once: all requests of the others are at the kernel, and it takes more.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() && self.jobs.iter().all(|job| job.waiting.is_empty())
    }

    /// The engine's own threads, as the kernel numbers them. What they use is not in the times of the calling thread.
    pub fn threads(&self) -> &[i32] {
        self.drive.threads()
    }

    /// True when no block is on its way.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Begins to fill `memory` from the file, extent by extent.
    pub fn read(&mut self, file: &Arc<BlockFile>, extents: &[Extent], memory: M) {
        self.add(file, extents, memory, false);
    }

    /// Begins to write `memory` to the file, extent by extent.
    pub fn write(&mut self, file: &Arc<BlockFile>, extents: &[Extent], memory: M) {
        self.add(file, extents, memory, true);
    }

    /// The oldest block, once all of it has been moved; waits for it. None when there is none.
    pub fn wait(&mut self) -> Option<Done<M>> {
        while !self.jobs.front()?.is_done() {
            self.turn(true);
        }
        self.pop()
    }

    /// The oldest block, if all of it has been moved already.
    pub fn poll(&mut self) -> Option<Done<M>> {
        if !self.jobs.front()?.is_done() {
            self.turn(false);
        }
        if self.jobs.front()?.is_done() { self.pop() } else { None }
    }

    fn add(&mut self, file: &Arc<BlockFile>, extents: &[Extent], memory: M, write: bool) {
        let held = Held::new(memory);
        let end = extents.iter().map(|extent| extent.offset.saturating_add(extent.len() as u64)).max().unwrap_or(0);
        let mut job =
            Job { held, file: file.clone(), write, end, waiting: VecDeque::new(), at_kernel: 0, moved: 0, error: None };
        if let Some((extent, why)) = extents.iter().find_map(|e| e.wrong(job.held.len()).map(|why| (e, why))) {
            job.fail(FileError::new(job.doing(), file.path(), Cause::Invalid(why)).at(extent.offset));
        } else {
            let mut pieces = Vec::new();
            for extent in extents {
                cut(extent, job.held.at(0) as usize, file.alignment(), self.chunk, &mut pieces);
            }
            job.waiting = pieces.into();
        }
        self.jobs.push_back(job);
        self.turn(false);
    }

    /// Gives the kernel what it takes, the oldest block first, and looks at its answers.
    fn turn(&mut self, wait: bool) {
        for (number, job) in (self.oldest..).zip(&mut self.jobs) {
            while let Some(&piece) = job.waiting.front() {
                let Some(id) = self.free.pop() else { break };
                job.waiting.pop_front();
                job.at_kernel += 1;
                self.requests[id as usize] = Some((number, piece));
                self.stats.requests += 1;
                let Piece { offset, start, len, direct } = piece;
                let request = Request {
                    id,
                    fd: job.file.borrow(direct).as_raw_fd(),
                    write: job.write,
                    at: job.held.at(start),
                    len,
                    offset,
                };
                // SAFETY: the job keeps its memory and its file until each of its requests has an answer, and there are
                // `depth` ids. The piece is inside of the memory: `Extent::wrong` has looked.
                unsafe { self.drive.push(request) };
            }
        }
        let some_at_kernel = self.free.len() < self.requests.len();
        let mut answers = std::mem::take(&mut self.answers);
        self.drive.collect(wait && some_at_kernel, &mut answers);
        answers.drain(..).for_each(|answer| self.take(answer));
        self.answers = answers;
    }

    fn take(&mut self, answer: Answer) {
        let Some((number, piece)) = self.requests[answer.id as usize].take() else { return };
        self.free.push(answer.id);
        let job = &mut self.jobs[(number - self.oldest) as usize];
        job.at_kernel -= 1;
        match answer.result {
            Ok(0) if job.write => job.fail(job.file.refused(Doing::Write, piece, io::ErrorKind::WriteZero.into())),
            Ok(0) => job.fail(job.file.ended(piece.offset, job.end)),
            Ok(done) => {
                let done = done.min(piece.len);
                job.moved += done as u64;
                *(if piece.direct { &mut self.stats.direct_bytes } else { &mut self.stats.buffered_bytes }) +=
                    done as u64;
                if done < piece.len && job.error.is_none() {
                    job.waiting.push_front(piece.rest(done, job.file.alignment()));
                }
            }
            Err(error) => match Errno::from_io_error(&error) {
                _ if job.error.is_some() => {}
                Some(Errno::INTR | Errno::AGAIN) => job.waiting.push_front(piece),
                Some(Errno::INVAL) if piece.direct => {
                    job.file.refuse_direct();
                    job.waiting.push_front(Piece { direct: false, ..piece });
                }
                _ => job.fail(job.file.refused(job.doing(), piece, error)),
            },
        }
    }

    fn pop(&mut self) -> Option<Done<M>> {
        let job = self.jobs.pop_front()?;
        self.oldest += 1;
        let result = job.error.map_or(Ok(job.moved), Err);
        Some(Done { memory: job.held.release(), result })
    }
}

impl<M: Memory> Drop for Transfers<M> {
    /// Waits for what is at the kernel: its memory must not go before.
    fn drop(&mut self) {
        self.jobs.iter_mut().for_each(|job| job.waiting.clear());
        while self.jobs.iter().any(|job| job.at_kernel > 0) {
            self.turn(true);
            self.jobs.iter_mut().for_each(|job| job.waiting.clear());
        }
        while self.pop().is_some() {}
    }
}

impl<M: Memory> fmt::Debug for Transfers<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transfers").field("chosen", &self.chosen).field("len", &self.len()).finish_non_exhaustive()
    }
}
