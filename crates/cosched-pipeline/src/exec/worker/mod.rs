//! The run-to-completion executor: workers carry buffers through the stages that compute.
//!
//! Problem: a thread per stage pays for a hand-off at each stage, and for a wake-up whenever a queue runs empty. Rule here
//! (as in TBB's and Taskflow's pipelines): a *worker* carries a buffer through as many stages as it can. At a stage with one
//! incarnation the buffers enter one at a time and in order ([`turnstile`]). A buffer that arrives before its turn is left
//! there, and the worker that finishes its predecessor carries it on. So no worker waits for another. A worker that finishes
//! a buffer at a stage may then have two to carry, its own and the stage's next one; it puts one of them on its list
//! ([`deque`]), from which workers without work steal, and carries the other.
//!
//! The beginning of a path is a stage like the others: the pool of empty buffers is what waits at its turnstile.
//!
//! The workers call `init` of the stages before the first buffer moves, each stage's on any one of them; the worker that
//! ends last calls `cleanup`. In between, a stage's code runs on the worker that has the buffer.

mod carry;
mod cell;
mod deque;
mod idle;
mod inlet;
mod life;
mod padded;
mod permits;
mod plan;
mod sampler;
mod slot;
mod station;
mod sync;
mod turnstile;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use self::deque::Deque;
use self::idle::Idle;
use self::inlet::Inlet;
use self::padded::Padded;
use self::plan::{Access, Plan, Room, plan};
use self::station::{Entry, Station};
use crate::buffer::Buffer;
use crate::graph::Graph;
use crate::monitor::Watch;
use crate::queue::Awake;

/// The number of buffers from outside that may wait while a worker is awake; more than that wake another one.
const INLET_MAX: usize = 4;

/// The part of a worker that the others may access.
#[repr(align(128))]
struct Desk {
    deque: Deque,
}

/// All workers of a running graph, and the stages that run on them.
pub(crate) struct Crew {
    rooms: Vec<Option<Room>>,
    stations: Vec<Station>,
    places: Vec<Vec<Option<u32>>>,
    desks: Box<[Desk]>,
    inlet: Padded<Inlet>,
    idle: Padded<Idle>,
    /// Whether the rounds are long enough for several workers to pay off.
    several: AtomicBool,
    /// The number of CPUs that the process may use.
    cpus: usize,
    /// The number of runs of paths through workers that have not ended.
    open: AtomicUsize,
    /// The next cell to initialise, of all stages.
    to_begin: AtomicUsize,
    /// The number of workers that have not ended.
    present: AtomicUsize,
    /// The wanted number of active incarnations, by stage, where that changes.
    wanted: Vec<AtomicU32>,
}

impl Crew {
    /// Plans which stages of a graph run on workers, and takes them out of it. At most `workers` workers; by default one per
    /// CPU that the process may use.
    pub(crate) fn new(graph: &mut Graph, workers: Option<usize>, watch: &Watch) -> Crew {
        let cpus = cosched_linux::thread::cpus_usable();
        let buffers: usize = graph.paths.iter().map(|path| path.buffers).sum();
        let at_once: usize =
            graph.stages.iter().filter(|stage| stage.on_workers()).map(|stage| stage.incarnations()).sum();
        // More of them could never work at once.
        let workers = workers.unwrap_or(cpus).min(buffers).min(at_once);
        let Plan { rooms, stations, places, runs } = plan(graph, workers, |stage| watch.counters(stage));
        let desk = |_| Desk { deque: Deque::new(buffers, workers == 1) };
        Crew {
            wanted: rooms
                .iter()
                .map(|room| AtomicU32::new(room.as_ref().map_or(0, |room| room.at_work as u32)))
                .collect(),
            rooms,
            stations,
            places,
            desks: (0..workers).map(desk).collect(),
            inlet: Padded::default(),
            idle: Padded(Idle::new(workers)),
            several: AtomicBool::new(false),
            cpus,
            open: AtomicUsize::new(runs),
            to_begin: AtomicUsize::new(0),
            present: AtomicUsize::new(workers),
        }
    }

    /// The number of workers; 0 if all stages have threads of their own.
    pub(crate) fn len(&self) -> usize {
        self.desks.len()
    }

    /// The station of a place on a path, if that place is on workers.
    pub(crate) fn station_at(&self, path: usize, place: usize) -> Option<u32> {
        *self.places.get(path)?.get(place)?
    }

    /// Lets a buffer enter a station from outside: the initial ones of a pool, and those that threads convey. For each path
    /// called by one thread at a time, in the order of the buffers.
    pub(crate) fn enter(&self, awake: &Awake, station: u32, mut buffer: Buffer) {
        let here = &self.stations[station as usize];
        if here.begins {
            buffer.recycle();
        }
        here.number(station, &mut buffer);
        let Some(buffer) = self.admit(buffer) else { return };
        self.inlet.put(buffer);
        if self.several.load(Ordering::Relaxed) || self.inlet.len() > INLET_MAX {
            self.idle.notify(awake);
        } else {
            self.idle.notify_if_all_sleep(awake);
        }
    }

    /// A buffer arrives at its station. Returned if it may enter now; otherwise another worker carries it on later.
    #[inline]
    fn admit(&self, buffer: Buffer) -> Option<Buffer> {
        let station = &self.stations[buffer.token().station as usize];
        match &station.entry {
            Entry::Plain(plain) => plain.turnstile.arrive(buffer),
            Entry::Ordered(turnstile) => self.access(station, turnstile.arrive(buffer)?),
            Entry::Any => self.access(station, buffer),
        }
    }

    /// The same after the turnstile.
    fn access(&self, station: &Station, buffer: Buffer) -> Option<Buffer> {
        match self.room(station).map(|room| &room.access) {
            Some(Access::Free(permits)) => permits.arrive(buffer),
            _ => Some(buffer),
        }
    }

    fn room(&self, station: &Station) -> Option<&Room> {
        self.rooms[station.stage?].as_ref()
    }

    /// Whether no work is left for any worker.
    #[inline]
    fn ended(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    /// The last buffer of a path's run has left.
    fn close(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.idle.release();
        }
    }

    /// Wakes all workers, so that they see that the graph is stopping.
    pub(crate) fn release(&self) {
        self.idle.release();
    }

    /// Sets the number of active incarnations of a stage: at least one, at most as many as it has.
    pub(crate) fn set_incarnations(&self, awake: &Awake, stage: usize, count: usize) {
        let Some(Room { access: Access::Free(permits), cells, .. }) = &self.rooms[stage] else { return };
        let count = count.clamp(1, cells.len()) as u32;
        let before = self.wanted[stage].swap(count, Ordering::AcqRel);
        for number in before..count {
            if let Some(buffer) = permits.recall(number) {
                self.inlet.put(buffer);
                self.idle.notify(awake);
            }
        }
    }

    /// Whether any list has a buffer that may proceed.
    fn is_more(&self) -> bool {
        !self.inlet.is_empty() || self.desks.iter().any(|desk| !desk.deque.is_empty())
    }

    /// The number of buffers that wait at a station for their turn. None if it is the beginning of their path.
    pub(crate) fn waiting_at(&self, station: u32) -> Option<usize> {
        let station = &self.stations[station as usize];
        (!station.begins).then(|| station.waiting())
    }

    /// The number of buffers that wait for a stage, for their turn or for an incarnation.
    pub(crate) fn waiting(&self, stage: usize) -> usize {
        let stations = self.stations.iter().filter(|station| station.stage == Some(stage) && !station.begins);
        let before: usize = stations.map(Station::waiting).sum();
        match &self.rooms[stage] {
            Some(Room { access: Access::Free(permits), .. }) => before + permits.waiting(),
            _ => before,
        }
    }
}
