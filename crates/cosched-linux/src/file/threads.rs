//! The engine that works everywhere: pread and pwrite, on threads of its own or synchronously on the caller's.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use super::engine::{Answer, Drive, Request};

pub(super) struct Threads {
    depth: usize,
    requests: Arc<Requests>,
    answers: Receiver<Answer>,
    /// For answers of requests that the caller carries out itself, where there are no threads.
    sender: Sender<Answer>,
    threads: Vec<JoinHandle<()>>,
    ids: Vec<i32>,
}

#[derive(Default)]
struct Requests {
    queue: Mutex<Queue>,
    came: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Request>,
    closed: bool,
}

impl Requests {
    /// A thread that panics does not hold the lock: the queue is always consistent.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn next(&self) -> Option<Request> {
        let mut queue = self.lock();
        loop {
            if let Some(request) = queue.waiting.pop_front() {
                return Some(request);
            }
            if queue.closed {
                return None;
            }
            queue = self.came.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

impl Threads {
    /// Starts `count` threads; fewer if the system refuses more. They inherit the scheduling of the calling thread.
    pub(super) fn start(count: usize, depth: usize) -> Threads {
        let requests = Arc::new(Requests::default());
        let (sender, answers) = channel();
        let (tell, told) = channel();
        let start = |_| {
            let (requests, sender, tell) = (requests.clone(), sender.clone(), tell.clone());
            let life = move || {
                // The receiver waits for one from each thread, so it is not lost.
                let _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get());
                serve(&requests, &sender);
            };
            std::thread::Builder::new().name("cosched-file".into()).spawn(life).ok()
        };
        let threads: Vec<_> = (0..count.min(depth)).map_while(start).collect();
        let ids = told.iter().take(threads.len()).collect();
        Threads { depth: depth.max(1), requests, answers, sender, threads, ids }
    }
}

impl Drive for Threads {
    fn depth(&self) -> usize {
        self.depth
    }

    fn threads(&self) -> &[i32] {
        &self.ids
    }

    unsafe fn push(&mut self, request: Request) {
        if self.threads.is_empty() {
            // The receiver is ours, so it exists.
            let _ = self.sender.send(carry_out(request));
            return;
        }
        self.requests.lock().waiting.push_back(request);
        self.requests.came.notify_one();
    }

    fn collect(&mut self, wait: bool, answers: &mut Vec<Answer>) {
        if wait {
            answers.extend(self.answers.recv());
        }
        answers.extend(self.answers.try_iter());
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.requests.lock().closed = true;
        self.requests.came.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn serve(requests: &Requests, answers: &Sender<Answer>) {
    while let Some(request) = requests.next() {
        if answers.send(carry_out(request)).is_err() {
            return;
        }
    }
}

fn carry_out(request: Request) -> Answer {
    let Request { id, fd, write, at, len, offset } = request;
    let moved = if write {
        // SAFETY: the caller of `push` keeps the memory and the descriptor until the answer.
        unsafe { libc::pwrite64(fd, at.cast(), len, offset as i64) }
    } else {
        // SAFETY: as above.
        unsafe { libc::pread64(fd, at.cast(), len, offset as i64) }
    };
    Answer { id, result: usize::try_from(moved).map_err(|_| io::Error::last_os_error()) }
}
