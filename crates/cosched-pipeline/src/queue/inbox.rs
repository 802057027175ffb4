//! The buffers that wait for a stage. A pool is the inbox of its path's source.
//!
//! No queue has a bound of its own: a path's pool bounds them all. A stage that works on single buffers has one queue for
//! all its paths, in the order of arrival; one that chooses among its paths has a queue for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{Awake, Bell, End, Ring, Topic};
use crate::buffer::Buffer;
use crate::graph::PathId;

/// Which of a stage's queues to look into.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    /// Any. Of one queue the oldest; of several, each in turn.
    Any,
    /// That of one path.
    Path(PathId),
}

impl Which {
    /// What a thread that waits for this wants to be woken by.
    pub(crate) fn topic(self) -> Topic {
        match self {
            Which::Any => Topic::ANY,
            Which::Path(path) => Topic::path(path.0),
        }
    }
}

/// A path that leads into an inbox.
struct Door {
    /// Whether it will still bring something.
    open: AtomicBool,
    /// Its queue, by place in `rings`.
    ring: usize,
}

/// What waits before a stage.
pub(crate) struct Inbox {
    doors: Vec<Door>,
    /// By path, its place in `doors`.
    places: Vec<usize>,
    open: AtomicUsize,
    rings: Vec<Ring<Buffer>>,
    put: End,
    take: End,
    /// Where a search among several queues goes on.
    turn: AtomicUsize,
    bell: Arc<Bell>,
    awake: Arc<Awake>,
}

/// What an inbox is to be like.
pub(crate) struct Plan {
    /// The paths that lead into it, each with the number of its buffers.
    pub(crate) paths: Vec<(PathId, usize)>,
    /// A queue for each path.
    pub(crate) by_path: bool,
    /// Who puts, and who takes.
    pub(crate) put: End,
    pub(crate) take: End,
    /// Where its takers sleep.
    pub(crate) bell: Arc<Bell>,
    pub(crate) awake: Arc<Awake>,
}

impl Inbox {
    pub(crate) fn new(plan: Plan) -> Inbox {
        let mut places = Vec::new();
        for (place, (path, _)) in plan.paths.iter().enumerate() {
            places.resize(places.len().max(path.0 + 1), usize::MAX);
            places[path.0] = place;
        }
        let rings = if plan.by_path {
            plan.paths.iter().map(|(_, buffers)| Ring::new(*buffers)).collect()
        } else {
            vec![Ring::new(plan.paths.iter().map(|(_, buffers)| buffers).sum())]
        };
        let door = |place| Door { open: AtomicBool::new(true), ring: if plan.by_path { place } else { 0 } };
        Inbox {
            open: AtomicUsize::new(plan.paths.len()),
            doors: (0..plan.paths.len()).map(door).collect(),
            places,
            rings,
            put: plan.put,
            take: plan.take,
            turn: AtomicUsize::new(0),
            bell: plan.bell,
            awake: plan.awake,
        }
    }

    fn door(&self, path: PathId) -> Option<&Door> {
        self.doors.get(*self.places.get(path.0)?)
    }

    /// A buffer arrives, and wakes who waits for it.
    #[inline]
    pub(crate) fn put(&self, buffer: Buffer) {
        let path = buffer.path();
        self.put_quietly(buffer);
        self.bell.ring(Topic::path(path.0), &self.awake);
    }

    /// A buffer arrives, and nobody is told yet: [`Inbox::announce`] follows.
    #[inline]
    pub(crate) fn put_quietly(&self, buffer: Buffer) {
        let door = self.door(buffer.path()).expect("a buffer comes on a path that leads here");
        let _entered = self.put.enter();
        // SAFETY: one user at a time, as `put` has it.
        unsafe { self.rings[door.ring].put(buffer) };
    }

    /// So many buffers of a path were put.
    pub(crate) fn announce(&self, path: PathId, buffers: usize) {
        for _ in 0..buffers {
            self.bell.ring(Topic::path(path.0), &self.awake);
        }
    }

    /// Puts a buffer in before the graph runs.
    pub(crate) fn fill(&mut self, buffer: Buffer) {
        let door = self.door(buffer.path()).expect("a pool is filled with buffers of its path");
        // SAFETY: nobody else has it yet.
        unsafe { self.rings[door.ring].put(buffer) };
    }

    /// The next buffer of a path that is open, if one waits.
    #[inline]
    pub(crate) fn try_take(&self, which: Which) -> Option<Buffer> {
        match which {
            Which::Path(path) => {
                let door = self.door(path)?;
                // One queue for all paths is for those who take whatever comes.
                debug_assert!(
                    self.rings.len() == self.doors.len(),
                    "a stage without a queue for each path chooses one"
                );
                if door.open.load(Ordering::Relaxed) { self.pop(door.ring) } else { None }
            }
            Which::Any if self.rings.len() == 1 => self.next(),
            Which::Any => self.search(),
        }
    }

    #[inline]
    fn pop(&self, ring: usize) -> Option<Buffer> {
        let _entered = self.take.enter();
        // SAFETY: one user at a time, as `take` has it.
        unsafe { self.rings[ring].take() }
    }

    /// From the one queue. The empty buffers of a path that has ended come back to its pool and end there.
    #[inline]
    fn next(&self) -> Option<Buffer> {
        while self.open.load(Ordering::Relaxed) > 0 {
            let buffer = self.pop(0)?;
            if self.doors.len() == 1 || self.is_open_for(buffer.path()) {
                return Some(buffer);
            }
        }
        None
    }

    fn search(&self) -> Option<Buffer> {
        let begin = self.turn.load(Ordering::Relaxed);
        for step in 0..self.doors.len() {
            let place = (begin + step) % self.doors.len();
            let door = &self.doors[place];
            if door.open.load(Ordering::Relaxed) && self.rings[door.ring].len() > 0 {
                if let Some(buffer) = self.pop(door.ring) {
                    self.turn.store(place + 1, Ordering::Relaxed);
                    return Some(buffer);
                }
            }
        }
        None
    }

    /// Nothing more will be taken from this path.
    pub(crate) fn close(&self, path: PathId) {
        if self.door(path).is_some_and(|door| door.open.swap(false, Ordering::Relaxed)) {
            // Whoever sees that no path is open ends; what was done until then has happened before.
            if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.bell.ring_all(&self.awake);
            }
        }
    }

    /// Whether any path will still bring something.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    /// Whether this path will still bring something.
    pub(crate) fn is_open_for(&self, path: PathId) -> bool {
        self.door(path).is_some_and(|door| door.open.load(Ordering::Relaxed))
    }

    /// Whether nothing of this will come any more.
    #[inline]
    pub(crate) fn is_over(&self, which: Which) -> bool {
        match which {
            Which::Any => !self.is_open(),
            Which::Path(path) => !self.is_open_for(path),
        }
    }

    /// How many buffers wait. Costs no lock.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.rings.iter().map(Ring::len).sum()
    }

    /// How many buffers of a path wait; where all paths have one queue, how many of all.
    pub(crate) fn len_of(&self, path: PathId) -> usize {
        self.door(path).map_or(0, |door| self.rings[door.ring].len())
    }

    /// Where its takers sleep.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }
}
