//! The workers' lists and rendezvous, compiled with loom.

#[path = "../../src/exec/worker/deque.rs"]
mod deque;
#[path = "../../src/exec/worker/idle.rs"]
mod idle;
#[path = "../../src/exec/worker/inlet.rs"]
mod inlet;
#[path = "../../src/exec/worker/padded.rs"]
mod padded;
#[path = "../../src/exec/worker/permits.rs"]
mod permits;
#[path = "../../src/exec/worker/slot.rs"]
mod slot;
mod sync;
#[path = "../../src/exec/worker/turnstile.rs"]
mod turnstile;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use self::deque::{Deque, Stolen};
use self::idle::Idle;
use self::inlet::Inlet;
use self::permits::Permits;
use self::turnstile::Turnstile;
use super::check;
use crate::buffer::Buffer;
use crate::queue::Awake;

/// Data that only one thread may use at a time. Loom reports if two do, or if one does not see the
/// effects of the previous one.
#[derive(Default)]
struct Alone(UnsafeCell<u64>);

// SAFETY: loom checks the accesses.
unsafe impl Sync for Alone {}

impl Alone {
    /// Increments the count; returns the previous value.
    fn count(&self) -> u64 {
        self.0.with_mut(|count| {
            // SAFETY: loom checks that no other thread uses it.
            let count = unsafe { &mut *count };
            *count += 1;
            *count - 1
        })
    }
}

/// Works as a stage with a turnstile, on this buffer and on all that it releases.
fn pass(turnstile: &Turnstile, stage: &Alone, buffer: Buffer) {
    let mut next = turnstile.arrive(buffer);
    while let Some(buffer) = next {
        let number = buffer.token().number;
        assert_eq!(stage.count(), number, "in order");
        next = turnstile.open(number + 1);
    }
}

#[test]
fn a_turnstile_lets_all_in_one_at_a_time_and_in_order() {
    check(3, || {
        let turnstile = Arc::new(Turnstile::new(3, false));
        let stage = Arc::new(Alone::default());
        let others: Vec<_> = [2, 1]
            .map(|number| {
                let (turnstile, stage) = (turnstile.clone(), stage.clone());
                thread::spawn(move || pass(&turnstile, &stage, Buffer::new(number)))
            })
            .into();
        pass(&turnstile, &stage, Buffer::new(0));
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(stage.count(), 3, "none is left behind");
    });
}

/// Works as a stage with one incarnation.
fn work(permits: &Permits, stage: &Alone, buffer: Buffer) {
    let mut next = permits.arrive(buffer);
    while let Some(buffer) = next {
        stage.count();
        next = permits.free(buffer.token().incarnation);
    }
}

#[test]
fn an_incarnation_is_one_buffer_s_and_none_waits_for_ever() {
    check(2, || {
        let permits = Arc::new(Permits::new(1));
        let stage = Arc::new(Alone::default());
        assert!(permits.recall(0).is_none());
        let others: Vec<_> = (1..3)
            .map(|number| {
                let (permits, stage) = (permits.clone(), stage.clone());
                thread::spawn(move || work(&permits, &stage, Buffer::new(number)))
            })
            .collect();
        work(&permits, &stage, Buffer::new(0));
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(stage.count(), 3, "none is left behind");
        assert_eq!(permits.waiting(), 0);
    });
}

#[test]
fn an_incarnation_is_taken_away_and_given_back_at_once_and_stays_one() {
    check(3, || {
        let permits = Arc::new(Permits::new(2));
        let wanted = Arc::new(AtomicUsize::new(1));
        // Both incarnations are at work, and one buffer waits.
        let held: Vec<Buffer> = (0..2)
            .map(|number| {
                assert!(permits.recall(number as u32).is_none());
                permits.arrive(Buffer::new(number)).unwrap()
            })
            .collect();
        assert!(permits.arrive(Buffer::new(2)).is_none());
        let (of_permits, of_wanted) = (permits.clone(), wanted.clone());
        let more = thread::spawn(move || {
            of_wanted.store(2, Ordering::Relaxed);
            of_permits.recall(1).is_some()
        });
        // The holder of the second incarnation releases it, because it is not wanted, while it becomes
        // wanted again.
        let second = held.iter().find(|buffer| buffer.token().incarnation == 1).unwrap();
        let found = if wanted.load(Ordering::Relaxed) <= 1 {
            permits.withdraw(second.token().incarnation, || wanted.load(Ordering::Relaxed) > 1)
        } else {
            permits.free(1)
        };
        let found_by_other = more.join().unwrap();
        assert!(found.is_some() != found_by_other, "the buffer that waits gets it once");
    });
}

#[test]
fn what_is_on_a_list_is_taken_once() {
    check(3, || {
        let deque = Arc::new(Deque::new(4, false));
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let deque = deque.clone();
                thread::spawn(move || match deque.steal() {
                    Stolen::Buffer(buffer) => buffer.token().number,
                    Stolen::Nothing | Stolen::Lost => 0,
                })
            })
            .collect();
        deque.push(Buffer::new(1));
        deque.push(Buffer::new(10));
        let mut sum = 0;
        while let Some(buffer) = deque.pop() {
            sum += buffer.token().number;
        }
        sum += thieves.into_iter().map(|thief| thief.join().unwrap()).sum::<u64>();
        assert_eq!(sum, 11);
        assert!(deque.is_empty());
    });
}

#[test]
fn an_inlet_loses_nothing() {
    check(3, || {
        let inlet = Arc::new(Inlet::default());
        let putters: Vec<_> = [1, 10]
            .map(|number| {
                let inlet = inlet.clone();
                thread::spawn(move || inlet.put(Buffer::new(number)))
            })
            .into();
        let mut sum = 0;
        let mut take = || {
            let mut rest = 0;
            let oldest = inlet.take(|buffer| rest += buffer.token().number);
            sum += rest + oldest.map_or(0, |buffer| buffer.token().number);
        };
        take();
        putters.into_iter().for_each(|putter| putter.join().unwrap());
        take();
        assert_eq!(sum, 11);
        assert!(inlet.is_empty());
    });
}

/// Finds buffers as a worker does, until all workers together have found `all`, and sleeps in between.
fn find(idle: &Idle, awake: &Awake, inlet: &Inlet, worker: usize, count: &AtomicUsize, all: usize) {
    let over = || count.load(Ordering::Acquire) == all;
    idle.begin_search();
    loop {
        let mut more = 0;
        if inlet.take(|_| more += 1).is_some() && count.fetch_add(more + 1, Ordering::AcqRel) + more + 1 == all {
            idle.release();
        }
        if over() {
            return;
        }
        idle.lie_down(awake, worker);
        if over() || !inlet.is_empty() {
            idle.get_up(awake, worker);
        } else {
            idle.sleep(worker, None);
        }
    }
}

#[test]
fn who_adds_work_and_who_lies_down_see_each_other() {
    check(3, || {
        let state = Arc::new((Idle::new(1), Awake::default(), Inlet::default(), AtomicUsize::new(0)));
        let other = state.clone();
        let worker = thread::spawn(move || {
            let (idle, awake, inlet, count) = &*other;
            find(idle, awake, inlet, 0, count, 2);
        });
        let (idle, awake, inlet, _) = &*state;
        for number in 0..2 {
            inlet.put(Buffer::new(number));
            if number == 0 { idle.notify_if_all_sleep(awake) } else { idle.notify(awake) }
        }
        worker.join().unwrap();
    });
}

#[test]
fn two_workers_lie_down_and_both_go_on_in_the_end() {
    check(2, || {
        let state = Arc::new((Idle::new(2), Awake::default(), Inlet::default(), AtomicUsize::new(0)));
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                let other = state.clone();
                thread::spawn(move || {
                    let (idle, awake, inlet, count) = &*other;
                    find(idle, awake, inlet, worker, count, 1);
                })
            })
            .collect();
        let (idle, awake, inlet, _) = &*state;
        inlet.put(Buffer::new(0));
        idle.notify(awake);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}
