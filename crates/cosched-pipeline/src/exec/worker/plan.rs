//! From a graph to stations: which stages run on workers, and the routes of their buffers.

use std::sync::Arc;

use super::cell::Cell;
use super::permits::Permits;
use super::station::{Entry, Onward, Renumber, Station};
use super::turnstile::Turnstile;
use crate::counters::{Counters, Counts};
use crate::graph::{Each, Graph, PathId, Stage, Work};

/// Which incarnation works on a buffer at a stage.
pub(super) enum Access {
    /// The only one; the station's turnstile lets in one buffer at a time.
    Alone,
    /// Each worker has an incarnation of its own.
    Own,
    /// Any one that is free.
    Free(Box<Permits>),
}

/// A stage that runs on workers.
pub(super) struct Room {
    pub(super) cells: Box<[Arc<Cell>]>,
    /// How many of them are active at the beginning.
    pub(super) at_work: usize,
    pub(super) access: Access,
}

impl Room {
    fn new(graph: &Graph, index: usize, all: Vec<Box<dyn Each>>, workers: usize) -> Room {
        let stage = &graph.stages[index];
        let paths = graph.paths.iter().filter(|path| path.stages.iter().any(|id| id.0 == index)).count();
        let at_work = all.len() - stage.reserve;
        let access = match () {
            () if all.len() == 1 && paths == 1 => Access::Alone,
            () if stage.reserve == 0 && at_work >= workers => Access::Own,
            () => Access::Free(Box::new(Permits::new(all.len()))),
        };
        if let Access::Free(permits) = &access {
            (0..at_work as u32).for_each(|number| {
                let waiting = permits.recall(number);
                debug_assert!(waiting.is_none());
            });
        }
        Room { cells: all.into_iter().map(|each| Arc::new(Cell::new(each))).collect(), at_work, access }
    }
}

/// The stages that run on workers, and their stations by path and by place on the path.
pub(super) struct Plan {
    /// By stage; None for stages with threads of their own.
    pub(super) rooms: Vec<Option<Room>>,
    pub(super) stations: Vec<Station>,
    /// By path and by place on the path.
    pub(super) places: Vec<Vec<Option<u32>>>,
    /// The number of runs: sequences of stages of a path on workers. Each run ends with its path's
    /// last buffer.
    pub(super) runs: usize,
}

/// Plans what runs on workers, and takes these stages' work out of the graph.
pub(super) fn plan(graph: &mut Graph, workers: usize, counters: impl Fn(usize) -> Arc<Counters>) -> Plan {
    let mut plan = Plan { rooms: Vec::new(), stations: Vec::new(), places: Vec::new(), runs: 0 };
    for (index, path) in graph.paths.iter().enumerate() {
        plan.places.push(vec![None; path.stages.len()]);
        let mut place = 0;
        while place < path.stages.len() {
            let run = path.stages[place..].iter().take_while(|id| graph.stages[id.0].on_workers()).count();
            if run > 0 {
                plan.add_run(graph, PathId(index), place..place + run, workers == 1);
            }
            place += run + 1;
        }
    }
    for index in 0..graph.stages.len() {
        let room = match &mut graph.stages[index] {
            stage if !stage.on_workers() => None,
            Stage { work: Work::Each(all), .. } => Some(std::mem::take(all)),
            Stage { work: Work::Body(_), .. } => None,
        };
        let room = room.map(|all| Room::new(graph, index, all, workers));
        if let Some(room) = &room {
            counters(index)
                .count_by_incarnation(room.cells.iter().map(|cell| cell.clone() as Arc<dyn Counts>).collect());
        }
        plan.rooms.push(room);
    }
    for station in &mut plan.stations {
        let room = station.stage.and_then(|stage| plan.rooms[stage].as_ref());
        if let Some(Room { access: Access::Alone, cells, .. }) = room {
            station.make_plain(&cells[0]);
        }
    }
    plan
}

impl Plan {
    /// Adds the stages of a path from one place to another, all of which run on workers.
    fn add_run(&mut self, graph: &Graph, id: PathId, run: std::ops::Range<usize>, one_worker: bool) {
        self.runs += 1;
        let path = &graph.paths[id.0];
        let first = self.stations.len() as u32;
        // Whether all buffers leave the current station in the order of their numbers.
        let mut in_order = true;
        for place in run.clone() {
            let index = path.stages[place].0;
            let stage = &graph.stages[index];
            let serial = stage.incarnations() == 1;
            let here = self.stations.len() as u32;
            // At the beginning of a run the buffers may come from threads.
            let before = if place > 0 { place } else { path.stages.len() } - 1;
            let is_alone = one_worker && graph.stages[path.stages[before].0].on_workers();
            let entry = if serial { Entry::Ordered(Turnstile::new(path.buffers, is_alone)) } else { Entry::Any };
            let mut station = Station::new(Some(index), entry, Onward::Station(here + 1));
            station.begins = place == 0;
            station.renumber = (!serial && !stage.ordered).then(|| Box::new(Renumber::new()));
            in_order = serial;
            self.places[id.0][place] = Some(here);
            self.stations.push(station);
        }
        let onward = match path.stages.get(run.end) {
            Some(next) => Onward::Thread(next.0),
            None if graph.stages[path.stages[0].0].on_workers() => {
                // The path's first stage has its station already, or is in this run.
                Onward::Around(self.places[id.0][0].unwrap_or(first), path.buffers as u64)
            }
            None => Onward::Pool(path.stages[0].0),
        };
        if let (Onward::Thread(_), false) = (onward, in_order) {
            self.stations.push(Station::new(None, Entry::Ordered(Turnstile::new(path.buffers, one_worker)), onward));
            return;
        }
        let Some(last) = self.stations.last_mut() else { return };
        last.onward = onward;
        if !in_order && last.renumber.is_none() {
            // A pool needs no order, but it must be known which buffer is the last one to return.
            last.renumber = Some(Box::new(Renumber::new()));
        }
    }
}
