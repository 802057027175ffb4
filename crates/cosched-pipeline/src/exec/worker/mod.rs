//! The executor that runs to completion: workers carry buffers through stages that compute.
//!
//! Problem: a thread per stage pays a hand-off at each stage, and a wake-up whenever a queue runs empty. Rule here (as TBB's
//! and Taskflow's pipelines do): a *worker* carries a buffer through as many stages as it can. At a stage with one
//! incarnation the buffers go in one at a time and in order ([`turnstile`]). A buffer that comes before its turn is left
//! there, and whoever finishes its predecessor carries it on. So no worker waits for another. Whoever finishes a buffer at
//! a stage may find two to carry then, its own and the next one of the stage; it puts one of them on its list ([`deque`]),
//! from which workers without work steal, and carries the other.
//!
//! The beginning of a path is a stage like the others: the pool of empty buffers is what waits at its turnstile.
//!
//! `init` of the stages is called by the workers before the first buffer moves, each by any one of them; `cleanup` by the
//! worker that ends last. Between, a stage's code runs on whichever worker has the buffer.

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
use super::shared::Shared;
use crate::buffer::Buffer;
use crate::graph::Graph;
use crate::monitor::Watch;
use crate::queue::Awake;

/// Buffers from outside that may wait while a worker is awake; more than that wake another one.
const INLET_MAX: usize = 4;

/// What one worker shows to the others.
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
    /// Whether the stages are long enough for several workers.
    several: AtomicBool,
    /// CPUs that the process may use.
    cpus: usize,
    /// Runs of paths through workers that have not ended.
    open: AtomicUsize,
    /// The next stage to begin, of all of them.
    to_begin: AtomicUsize,
    /// Workers that have not ended.
    present: AtomicUsize,
    /// How many incarnations of a stage may work, by stage, where that changes.
    wanted: Vec<AtomicU32>,
}

impl Crew {
    /// Plans what of a graph runs on workers, and takes that out of it. At most so many workers; one per CPU that the
    /// process may use unless told otherwise.
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

    /// How many workers there are; none if all stages have threads of their own.
    pub(crate) fn len(&self) -> usize {
        self.desks.len()
    }

    /// The station of a place on a path, if that place is on workers.
    pub(crate) fn station_at(&self, path: usize, place: usize) -> Option<u32> {
        *self.places.get(path)?.get(place)?
    }

    /// A buffer comes to a station from outside: the first ones of a pool, and what threads convey. For each path one at a
    /// time, in their order.
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

    /// A buffer comes to its station. It is returned if it may go in now; else somebody else carries it on later.
    #[inline]
    fn admit(&self, buffer: Buffer) -> Option<Buffer> {
        let station = &self.stations[buffer.token().station as usize];
        match &station.entry {
            Entry::Plain(plain) => plain.turnstile.arrive(buffer),
            Entry::Ordered(turnstile) => self.access(station, turnstile.arrive(buffer)?),
            Entry::Any => self.access(station, buffer),
        }
    }

    /// The same behind the turnstile.
    fn access(&self, station: &Station, buffer: Buffer) -> Option<Buffer> {
        match self.room(station).map(|room| &room.access) {
            Some(Access::Free(permits)) => permits.arrive(buffer),
            _ => Some(buffer),
        }
    }

    fn room(&self, station: &Station) -> Option<&Room> {
        self.rooms[station.stage?].as_ref()
    }

    /// Whether there is nothing left to do for any worker.
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

    /// All workers go on, to see that the graph stops.
    pub(crate) fn release(&self) {
        self.idle.release();
    }

    /// So many incarnations of a stage may work from now on: at least one, at most as many as it has.
    pub(crate) fn set_incarnations(&self, shared: &Shared, stage: usize, count: usize) {
        let Some(Room { access: Access::Free(permits), cells, .. }) = &self.rooms[stage] else { return };
        let count = count.clamp(1, cells.len()) as u32;
        let before = self.wanted[stage].swap(count, Ordering::AcqRel);
        for number in before..count {
            if let Some(buffer) = permits.recall(number) {
                self.inlet.put(buffer);
                self.idle.notify(&shared.awake);
            }
        }
    }

    /// Whether anything may go on.
    fn is_more(&self) -> bool {
        !self.inlet.is_empty() || self.desks.iter().any(|desk| !desk.deque.is_empty())
    }

    /// How many buffers wait at a station for their turn. None where it is the beginning of their path.
    pub(crate) fn waiting_at(&self, station: u32) -> Option<usize> {
        let station = &self.stations[station as usize];
        (!station.begins).then(|| station.waiting())
    }

    /// How many buffers wait before a stage, for their turn or for an incarnation.
    pub(crate) fn waiting(&self, stage: usize) -> usize {
        let stations = self.stations.iter().filter(|station| station.stage == Some(stage) && !station.begins);
        let before: usize = stations.map(Station::waiting).sum();
        match &self.rooms[stage] {
            Some(Room { access: Access::Free(permits), .. }) => before + permits.waiting(),
            _ => before,
        }
    }
}
