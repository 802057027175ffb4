//! Transfers of blocks: several at a time, each of any number of extents, delivered in the order in which they were requested.

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

/// Requests of less than a page would cost more than the transfer.
const CHUNK_BYTES_MIN: usize = 4096;

/// A block whose transfer has ended.
#[derive(Debug)]
pub struct Done<M> {
    /// The memory that was passed in, also after an error.
    pub memory: M,
    /// The number of bytes moved, which is all that were requested; or the error. After an error some may have been moved.
    pub result: Result<u64, FileError>,
}

/// The amounts moved so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoStats {
    /// Bypassing the page cache, in bytes.
    pub direct_bytes: u64,
    /// Through the page cache, in bytes.
    pub buffered_bytes: u64,
    /// Requests to the kernel.
    pub requests: u64,
}

/// A queue of blocks that are read and written. It never copies their bytes: the kernel gets their address.
pub struct Transfers<M: Memory> {
    drive: Box<dyn Drive>,
    chosen: Chosen,
    chunk: usize,
    jobs: VecDeque<Job<M>>,
    /// The number of the oldest transfer.
    oldest: u64,
    /// The requests in the kernel, by id; `None` where the id is free.
    requests: Vec<Option<(u64, Piece)>>,
    free: Vec<u64>,
    answers: Vec<Answer>,
    stats: IoStats,
}

struct Job<M> {
    held: Held<M>,
    file: Arc<BlockFile>,
    write: bool,
    /// The end of the last extent, in bytes.
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
    /// Starts the engine, on the thread that will use it: the engine's own threads inherit its scheduling.
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

    /// The engine in use.
    pub fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// The amounts moved so far.
    pub fn stats(&self) -> IoStats {
        self.stats
    }

    /// The number of blocks in transfer, or ready to be taken.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether one more block would be started at once: all requests of the others are in the kernel, and it takes more.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() && self.jobs.iter().all(|job| job.waiting.is_empty())
    }

    /// The kernel's ids of the engine's own threads. Their use is not included in the times of the calling thread.
    pub fn threads(&self) -> &[i32] {
        self.drive.threads()
    }

    /// True when there is no block in transfer, or ready to be taken.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Starts to fill `memory` from the file, extent by extent.
    pub fn read(&mut self, file: &Arc<BlockFile>, extents: &[Extent], memory: M) {
        self.add(file, extents, memory, false);
    }

    /// Starts to write `memory` to the file, extent by extent.
    pub fn write(&mut self, file: &Arc<BlockFile>, extents: &[Extent], memory: M) {
        self.add(file, extents, memory, true);
    }

    /// Waits for the oldest block and returns it; `None` if there is no block.
    pub fn wait(&mut self) -> Option<Done<M>> {
        while !self.jobs.front()?.is_done() {
            self.turn(true);
        }
        self.pop()
    }

    /// The oldest block, if its transfer has ended.
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

    /// Passes requests to the kernel, those of the oldest block first, and handles its answers.
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
                // `depth` ids. The piece is inside the memory: `Extent::wrong` has checked that.
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
    /// Waits for the requests in the kernel: their memory must live until then.
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
