//! The queues under loom, which runs all interleavings of a few threads, with all values that the memory model allows
//! loads to return. Loom replaces `queue/sync.rs`; the rest of the queues is the library's own source.
//!
//! A lost wake-up becomes a deadlock, which loom reports; a race becomes an access that loom refuses.

mod buffer;
#[allow(dead_code)]
mod queue;
#[allow(dead_code)]
mod worker;

use std::sync::atomic::{AtomicUsize as Plain, Ordering::SeqCst};

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use queue::bell::{Awake, Bell, Topic};
use queue::gate::{Gate, Working};
use queue::ring::Ring;

/// Runs all interleavings with at most this number of preemptions (switches away from a thread that could continue).
fn check(switches: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(model);
}

/// A ring with its bell, as in an inbox.
struct Line {
    ring: Ring<Box<u32>>,
    bell: Arc<Bell>,
    awake: Arc<Awake>,
}

impl Line {
    fn new(room: usize, bell: &Arc<Bell>, awake: &Arc<Awake>) -> Line {
        Line { ring: Ring::new(room), bell: bell.clone(), awake: awake.clone() }
    }

    fn alone(room: usize) -> Arc<Line> {
        Arc::new(Line::new(room, &Arc::default(), &Arc::default()))
    }

    fn put(&self, value: u32, topic: Topic) {
        // SAFETY: each model has one thread that puts into a line.
        unsafe { self.ring.put(Box::new(value)) };
        self.bell.ring(topic, &self.awake);
    }

    fn take(&self) -> Option<u32> {
        // SAFETY: each model has one thread that takes from a line, or a lock around this.
        unsafe { self.ring.take() }.map(|value| *value)
    }
}

#[test]
fn a_ring_keeps_order_and_loses_nothing() {
    check(3, || {
        let line = Line::alone(2);
        let other = line.clone();
        let putter = thread::spawn(move || {
            // SAFETY: only this thread puts.
            (1..=2).for_each(|value| unsafe { other.ring.put(Box::new(value)) });
        });
        let mut got = Vec::new();
        for _ in 0..2 {
            got.extend(line.take());
            assert!(line.ring.len() <= 2);
        }
        putter.join().unwrap();
        // The rest is dropped with the ring; loom would report a leak.
        assert!(got.iter().copied().eq(1..=got.len() as u32), "{got:?}");
    });
}

#[test]
fn slots_are_used_again() {
    check(2, || {
        let line = Line::alone(1);
        let back = Line::alone(1);
        let (there, here) = (line.clone(), back.clone());
        // One buffer that circulates: each put finds the ring's only slot emptied by the other thread.
        let other = thread::spawn(move || {
            for _ in 0..2 {
                let value = there.bell.sleep(Topic::ANY, &there.awake, || there.take());
                here.put(value + 1, Topic::ANY);
            }
        });
        let mut value = 0;
        for _ in 0..2 {
            line.put(value, Topic::ANY);
            value = back.bell.sleep(Topic::ANY, &back.awake, || back.take());
        }
        other.join().unwrap();
        assert_eq!(value, 2);
    });
}

#[test]
fn a_slot_is_filled_again_only_when_it_was_emptied() {
    check(3, || {
        let line = Line::alone(1);
        let other = line.clone();
        let taker = thread::spawn(move || {
            while other.take().is_none() {
                thread::yield_now();
            }
        });
        line.put(1, Topic::ANY);
        // The putter learns from nothing but the taker's count.
        while line.ring.len() > 0 {
            thread::yield_now();
        }
        line.put(2, Topic::ANY);
        taker.join().unwrap();
    });
}

#[test]
fn who_sleeps_is_woken() {
    check(3, || {
        let line = Line::alone(2);
        line.awake.add();
        let other = line.clone();
        let putter = thread::spawn(move || (1..=2).for_each(|value| other.put(value, Topic::path(0))));
        for value in 1..=2 {
            assert_eq!(line.bell.sleep(Topic::ANY, &line.awake, || line.take()), value);
        }
        putter.join().unwrap();
        assert_eq!(line.awake.count(), 1, "awake as before");
    });
}

#[test]
fn who_said_that_it_stays_awake_may_sleep_all_the_same() {
    check(3, || {
        let line = Line::alone(2);
        let other = line.clone();
        let putter = thread::spawn(move || (1..=2).for_each(|value| other.put(value, Topic::path(0))));
        for value in 1..=2 {
            line.bell.stay_awake();
            assert_eq!(line.bell.sleep(Topic::ANY, &line.awake, || line.take()), value);
        }
        line.bell.stay_awake();
        putter.join().unwrap();
    });
}

#[test]
fn several_sleepers_share_what_comes() {
    check(2, || {
        let line = Line::alone(2);
        let lock = Arc::new(Mutex::new(()));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let (line, lock) = (line.clone(), lock.clone());
                thread::spawn(move || {
                    line.awake.add();
                    line.bell.sleep(Topic::ANY, &line.awake, || {
                        let _locked = lock.lock().unwrap();
                        line.take()
                    })
                })
            })
            .collect();
        (1..=2).for_each(|value| line.put(value, Topic::ANY));
        let sum: u32 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        assert_eq!(sum, 3);
        assert_eq!(line.awake.count(), 2);
    });
}

#[test]
fn who_waits_for_one_path_is_not_forgotten_when_it_turns_to_another() {
    check(2, || {
        let (bell, awake) = (Arc::default(), Arc::default());
        let lines = [Arc::new(Line::new(1, &bell, &awake)), Arc::new(Line::new(1, &bell, &awake))];
        let putters: Vec<_> = (0..2)
            .map(|path| {
                let line = lines[path].clone();
                thread::spawn(move || line.put(path as u32, Topic::path(path)))
            })
            .collect();
        for path in [1, 0] {
            assert_eq!(bell.sleep(Topic::path(path), &awake, || lines[path].take()), path as u32);
        }
        putters.into_iter().for_each(|putter| putter.join().unwrap());
    });
}

#[test]
fn all_wake_when_it_stops() {
    check(2, || {
        let line = Line::alone(1);
        let stop = Arc::new(AtomicBool::new(false));
        let sleepers: Vec<_> = (0..2)
            .map(|path| {
                let (line, stop) = (line.clone(), stop.clone());
                let ready = move || stop.load(Ordering::Acquire).then_some(());
                thread::spawn(move || line.bell.sleep(Topic::path(path), &line.awake, ready))
            })
            .collect();
        stop.store(true, Ordering::Release);
        line.bell.ring_all(&line.awake);
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    });
}

#[test]
fn nobody_passes_the_gate_before_all_have_come() {
    check(3, || {
        let gate = Arc::new(Gate::new(2));
        let come = Arc::new(Plain::new(0));
        let pass = move |gate: &Gate, come: &Plain| {
            come.fetch_add(1, SeqCst);
            gate.pass();
            assert_eq!(come.load(SeqCst), 2);
        };
        let (other_gate, other_come) = (gate.clone(), come.clone());
        let other = thread::spawn(move || pass(&other_gate, &other_come));
        pass(&gate, &come);
        other.join().unwrap();
    });
}

#[test]
fn an_incarnation_rests_until_it_is_to_work_or_all_is_over() {
    check(3, || {
        let working = Arc::new(Working::new(1));
        let (other, third) = (working.clone(), working.clone());
        let rests = thread::spawn(move || other.wait(2));
        // Both at once: setting the number must not undo the release.
        let sets = thread::spawn(move || third.set(2));
        working.release();
        sets.join().unwrap();
        rests.join().unwrap();
    });
}
