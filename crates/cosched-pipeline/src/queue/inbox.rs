//! The buffers that wait for a stage. A pool is an inbox of its path's source.
//!
//! No queue has a limit of its own: the size of a path's pool limits all of them. A stage that works on single buffers
//! has one queue for all its paths, in the order of arrival; one that chooses among its paths has a queue for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{Awake, Bell, End, Ring, Topic};
use crate::buffer::Buffer;
use crate::graph::PathId;

/// Which of a stage's queues to take from.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    /// Any. From a single queue, the oldest buffer; from several, each queue in turn.
    Any,
    /// The queue of one path.
    Path(PathId),
}

impl Which {
    /// The topic by which a thread that waits for this has to be woken.
    pub(crate) fn topic(self) -> Topic {
        match self {
            Which::Any => Topic::ANY,
            Which::Path(path) => Topic::path(path.0),
        }
    }
}

/// A path that leads into an inbox.
struct Door {
    /// Whether it will still bring buffers.
    open: AtomicBool,
    /// Its own queue, if each path has one.
    ring: Option<Ring<Buffer>>,
}

/// The buffers that wait for a stage.
pub(crate) struct Inbox {
    /// The common queue of all paths, unless each path has its own.
    ring: Option<Ring<Buffer>>,
    doors: Vec<Door>,
    /// By path, its place in `doors`.
    places: Vec<usize>,
    open: AtomicUsize,
    put: End,
    take: End,
    /// Where the next search among several queues starts.
    turn: AtomicUsize,
    bell: Arc<Bell>,
    awake: Arc<Awake>,
}

/// The properties of a new inbox.
pub(crate) struct Plan {
    /// The paths that lead into it, each with its number of buffers.
    pub(crate) paths: Vec<(PathId, usize)>,
    /// Whether each path has a queue of its own.
    pub(crate) by_path: bool,
    /// Which threads put, and which take.
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
        let buffers = plan.paths.iter().map(|(_, buffers)| *buffers);
        let door = |buffers| Door { open: AtomicBool::new(true), ring: plan.by_path.then(|| Ring::new(buffers)) };
        Inbox {
            open: AtomicUsize::new(plan.paths.len()),
            ring: (!plan.by_path).then(|| Ring::new(buffers.clone().sum())),
            doors: buffers.map(door).collect(),
            places,
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

    /// Adds a buffer, and wakes a thread that waits for it.
    #[inline(always)]
    pub(crate) fn put(&self, buffer: Buffer) {
        let path = buffer.path();
        self.put_quietly(buffer);
        self.bell.ring(Topic::path(path.0), &self.awake);
    }

    /// Adds a buffer without waking a thread: [`Inbox::announce`] follows.
    #[inline(always)]
    pub(crate) fn put_quietly(&self, buffer: Buffer) {
        let ring = self.ring(buffer.path());
        let _entered = self.put.enter();
        // SAFETY: one user at a time, ensured by `put`.
        unsafe { ring.put(buffer) };
    }

    /// The queue into which a path leads.
    #[inline(always)]
    fn ring(&self, path: PathId) -> &Ring<Buffer> {
        let own = || self.door(path).and_then(|door| door.ring.as_ref()).expect("the path leads to this stage");
        self.ring.as_ref().unwrap_or_else(own)
    }

    /// Wakes threads for this number of buffers of a path that were put quietly.
    pub(crate) fn announce(&self, path: PathId, buffers: usize) {
        for _ in 0..buffers {
            self.bell.ring(Topic::path(path.0), &self.awake);
        }
    }

    /// Adds a buffer before the graph runs.
    pub(crate) fn fill(&mut self, buffer: Buffer) {
        let ring = self.ring(buffer.path());
        // SAFETY: no other thread has access to the inbox yet.
        unsafe { ring.put(buffer) };
    }

    /// The next buffer of a path that is open, if one waits.
    #[inline(always)]
    pub(crate) fn try_take(&self, which: Which) -> Option<Buffer> {
        match (which, &self.ring) {
            (Which::Any, Some(ring)) => self.next(ring),
            (Which::Any, None) => self.search(),
            (Which::Path(path), _) => {
                let door = self.door(path).filter(|door| door.open.load(Ordering::Relaxed))?;
                self.pop(door.ring.as_ref().expect("a stage that chooses among paths has a queue for each"))
            }
        }
    }

    #[inline(always)]
    fn pop(&self, ring: &Ring<Buffer>) -> Option<Buffer> {
        let _entered = self.take.enter();
        // SAFETY: one user at a time, ensured by `take`.
        unsafe { ring.take() }
    }

    /// Takes from the common queue. The empty buffers of a path that has ended return to its pool and are dropped here.
    #[inline(always)]
    fn next(&self, ring: &Ring<Buffer>) -> Option<Buffer> {
        while self.open.load(Ordering::Relaxed) > 0 {
            let buffer = self.pop(ring)?;
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
            let waiting = door.ring.as_ref().filter(|ring| door.open.load(Ordering::Relaxed) && ring.len() > 0);
            if let Some(buffer) = waiting.and_then(|ring| self.pop(ring)) {
                self.turn.store(place + 1, Ordering::Relaxed);
                return Some(buffer);
            }
        }
        None
    }

    /// Nothing more will be taken from this path.
    pub(crate) fn close(&self, path: PathId) {
        if self.door(path).is_some_and(|door| door.open.swap(false, Ordering::Relaxed)) {
            // A thread that sees that no path is open ends; the Acquire/Release pair makes all that was done until then
            // visible to it.
            if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.bell.ring_all(&self.awake);
            }
        }
    }

    /// Whether any path will still bring buffers.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    /// Whether this path will still bring buffers.
    pub(crate) fn is_open_for(&self, path: PathId) -> bool {
        self.door(path).is_some_and(|door| door.open.load(Ordering::Relaxed))
    }

    /// Whether no more buffers will come from these queues.
    #[inline]
    pub(crate) fn is_over(&self, which: Which) -> bool {
        match which {
            Which::Any => !self.is_open(),
            Which::Path(path) => !self.is_open_for(path),
        }
    }

    /// The number of buffers that wait. Takes no lock.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let all = || self.doors.iter().filter_map(|door| door.ring.as_ref()).map(Ring::len).sum();
        self.ring.as_ref().map_or_else(all, Ring::len)
    }

    /// The number of buffers of a path that wait; if all paths have a common queue, the number of all buffers in it.
    pub(crate) fn len_of(&self, path: PathId) -> usize {
        self.door(path).map_or(0, |_| self.ring(path).len())
    }

    /// Where its takers sleep.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }
}
