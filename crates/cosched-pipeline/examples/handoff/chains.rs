//! The same pipeline with queues from Rust crates between the stages, and from the last stage back to the
//! first.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::Cell;
use crate::work::work;

/// What the queues carry: a pointer, like a buffer.
type Token = Box<u64>;

type Send = Box<dyn FnMut(Token) + std::marker::Send>;
type Receive = Box<dyn FnMut() -> Token + std::marker::Send>;

/// The names of the queues.
pub(crate) const ENGINES: [&str; 8] =
    ["kanal", "kanal-unbounded", "crossbeam", "flume", "std-mpsc", "mutex-condvar", "spsc-yield", "spsc-spin"];

/// Runs the cell. None if there is no queue of that name.
pub(crate) fn run(engine: &str, cell: &Cell) -> Option<Duration> {
    let buffers = cell.buffers;
    let make: fn(usize) -> (Send, Receive) = match engine {
        "kanal" => kanal_bounded,
        "kanal-unbounded" => kanal_unbounded,
        "crossbeam" => crossbeam,
        "flume" => flume_bounded,
        "std-mpsc" => std_mpsc,
        "mutex-condvar" => mutex_condvar,
        "spsc-yield" => spsc_yield,
        "spsc-spin" => spsc_spin,
        _ => return None,
    };
    let (mut sends, mut receives): (Vec<Send>, Vec<Receive>) = (0..cell.stages).map(|_| make(buffers)).unzip();
    for _ in 0..buffers {
        sends[cell.stages - 1](Box::new(0));
    }
    // Queue i leads from stage i to stage i + 1, the last one back to the first stage.
    receives.rotate_right(1);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let stage = |(mut send, mut receive): (Send, Receive)| {
            scope.spawn(move || {
                for _ in 0..cell.rounds {
                    let token = receive();
                    work(cell.work_steps);
                    send(token);
                }
                // The buffers of the last rounds are in the pool: no queue may be dropped before all
                // threads have ended.
                (send, receive)
            })
        };
        let threads: Vec<_> = sends.into_iter().zip(receives).map(stage).collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("no stage panics")).collect();
        drop(ended);
    });
    Some(begin.elapsed())
}

fn kanal_bounded(room: usize) -> (Send, Receive) {
    let (send, receive) = kanal::bounded(room);
    (Box::new(move |token| send.send(token).expect("open")), Box::new(move || receive.recv().expect("open")))
}

fn kanal_unbounded(_: usize) -> (Send, Receive) {
    let (send, receive) = kanal::unbounded();
    (Box::new(move |token| send.send(token).expect("open")), Box::new(move || receive.recv().expect("open")))
}

fn crossbeam(room: usize) -> (Send, Receive) {
    let (send, receive) = crossbeam_channel::bounded(room);
    (Box::new(move |token| send.send(token).expect("open")), Box::new(move || receive.recv().expect("open")))
}

fn flume_bounded(room: usize) -> (Send, Receive) {
    let (send, receive) = flume::bounded(room);
    (Box::new(move |token| send.send(token).expect("open")), Box::new(move || receive.recv().expect("open")))
}

fn std_mpsc(room: usize) -> (Send, Receive) {
    let (send, receive) = mpsc::sync_channel(room);
    (Box::new(move |token| send.send(token).expect("open")), Box::new(move || receive.recv().expect("open")))
}

fn mutex_condvar(_: usize) -> (Send, Receive) {
    let queue = Arc::new((Mutex::new(VecDeque::new()), Condvar::new()));
    let other = queue.clone();
    let send = move |token| {
        queue.0.lock().expect("whole").push_back(token);
        queue.1.notify_one();
    };
    let receive = move || {
        let mut tokens = other.0.lock().expect("whole");
        loop {
            match tokens.pop_front() {
                Some(token) => return token,
                None => tokens = other.1.wait(tokens).expect("whole"),
            }
        }
    };
    (Box::new(send), Box::new(receive))
}

/// A simple hand-written ring: two counts, which neither side caches.
struct Hand {
    put: AtomicUsize,
    gap: [u64; 16],
    taken: AtomicUsize,
    slots: Box<[UnsafeCell<Option<Token>>]>,
}

// SAFETY: one thread puts and one takes, and the counts keep them at different slots.
unsafe impl Sync for Hand {}

fn spsc_yield(room: usize) -> (Send, Receive) {
    hand(room, std::thread::yield_now)
}

fn spsc_spin(room: usize) -> (Send, Receive) {
    hand(room, std::hint::spin_loop)
}

fn hand(room: usize, pause: fn()) -> (Send, Receive) {
    let slots = (0..room + 1).map(|_| UnsafeCell::new(None)).collect();
    let ring = Arc::new(Hand { put: AtomicUsize::new(0), gap: [0; 16], taken: AtomicUsize::new(0), slots });
    let other = ring.clone();
    let send = move |token| {
        let put = ring.put.load(Ordering::Relaxed);
        while put - ring.taken.load(Ordering::Acquire) == ring.slots.len() + ring.gap[0] as usize {
            pause();
        }
        // SAFETY: the taker has left the slot, and only this closure puts.
        unsafe { *ring.slots[put % ring.slots.len()].get() = Some(token) };
        ring.put.store(put + 1, Ordering::Release);
    };
    let receive = move || {
        let taken = other.taken.load(Ordering::Relaxed);
        while other.put.load(Ordering::Acquire) == taken {
            pause();
        }
        // SAFETY: the putter has left the slot, and only this closure takes.
        let token = unsafe { (*other.slots[taken % other.slots.len()].get()).take() };
        other.taken.store(taken + 1, Ordering::Release);
        token.expect("the counts say that it is full")
    };
    (Box::new(send), Box::new(receive))
}
