//! Asks a custom strategy, and checks what it says.

use super::custom::{Begin, Custom, View, Waiting};
use super::engine::Sim;
use super::gang::Gang;
use super::process::{Pid, State};
use crate::observe::Observer;
use cosched_core::Wait;

impl<O: Observer> Sim<'_, O> {
    /// Asks the custom strategy, if there is one and it has not failed yet.
    fn ask<T>(&mut self, question: impl FnOnce(&mut dyn Custom) -> Result<T, String>) -> Option<T> {
        if self.refused.is_some() {
            return None;
        }
        match question(*self.custom.as_mut()?) {
            Ok(answer) => Some(answer),
            Err(what) => self.refuse(what),
        }
    }

    fn refuse<T>(&mut self, what: String) -> Option<T> {
        self.refused.get_or_insert(what);
        None
    }

    fn view(&self) -> View {
        let empty = || vec![None; self.cpus.len()];
        let rows =
            |gang: &Gang| gang.cells().chain(std::iter::repeat_with(empty)).take(self.params.mpl as usize).collect();
        View {
            now_ns: self.now_ns,
            waiting: self.queue.iter().copied().collect(),
            rows: self.gang.as_ref().map(rows).unwrap_or_default(),
            row: self.gang.as_ref().map_or(0, Gang::current),
            loads: self.nodes.iter().map(|node| node.places_used).collect(),
        }
    }

    /// What a custom strategy says of jobs that wait; `None`: it is decided as usual.
    pub(super) fn ask_arrival(&mut self) -> Option<Option<(u32, Vec<u32>)>> {
        self.custom.as_ref()?;
        let view = self.view();
        match self.ask(|custom| custom.arrival(view)) {
            Some(Begin::Usual) => None,
            Some(Begin::Job { job, row, places }) => Some(self.take_places(job, row, places)),
            Some(Begin::NoJob) | None => Some(None),
        }
    }

    /// Gives a job the places that were chosen for it, if that can be.
    fn take_places(&mut self, job: u32, row: usize, mut places: Vec<u32>) -> Option<(u32, Vec<u32>)> {
        places.sort_unstable();
        if !self.queue.contains(&job) {
            return self.refuse(format!("starts job {job}, which does not wait"));
        }
        let tasks = self.jobs[job as usize].tasks;
        let distinct = self.gang.is_none() && self.config.cpus_per_node > 1 || places.windows(2).all(|w| w[0] != w[1]);
        if places.len() != tasks as usize || !distinct {
            return self
                .refuse(format!("starts job {job} with {tasks} tasks on {places:?}: each needs a CPU of its own"));
        }
        let rows_max = self.params.mpl as usize;
        let free = match &mut self.gang {
            Some(gang) => row < rows_max && gang.insert_at(row, &places, job),
            None => self.have_room(&places),
        };
        if free {
            return Some((job, places));
        }
        let of_row = if self.gang.is_some() { format!(" in row {row}") } else { String::new() };
        self.refuse(format!(
            "starts job {job} on {places:?}{of_row}: not all of these exist and are free (MPL {rows_max})"
        ))
    }

    fn have_room(&self, nodes: &[u32]) -> bool {
        let cpus = self.config.cpus_per_node;
        nodes.chunk_by(|a, b| a == b).all(|same| {
            let more = same.len() as u32;
            let node = self.nodes.get(same[0] as usize);
            node.is_some_and(|node| more <= cpus && node.places_used + more <= self.params.level_max() * cpus)
        })
    }

    /// The row after the current one; `usual` without a custom strategy.
    pub(super) fn ask_row(&mut self, current: usize, usual: usize) -> usize {
        if self.custom.is_none() {
            return usual;
        }
        let view = self.view();
        let has_jobs: Vec<bool> = view.rows.iter().map(|row| row.iter().any(Option::is_some)).collect();
        let Some(Some(row)) = self.ask(|custom| custom.row_change(view)) else { return usual };
        if has_jobs.get(row) == Some(&true) || self.params.readings.empty_rows && row < has_jobs.len() {
            return row;
        }
        self.refuse(format!("chooses row {row}, which has no jobs")).unwrap_or(current)
    }

    /// Asks how a process waits, once for each wait.
    pub(super) fn ask_wait(&mut self, pid: Pid, from: u32) {
        if self.custom.is_none() || std::mem::replace(&mut self.process(pid).asked, true) {
            return;
        }
        let node = self.process(pid).node;
        let could_run = |other: &&Pid| {
            let process = self.jobs[other.job as usize].processes.get(other.task as usize);
            **other != pid && process.is_some_and(|process| process.state == State::Ready)
        };
        let ready = self.nodes[node as usize].table.iter().filter(could_run).count() as u32;
        let waiting = Waiting { now_ns: self.now_ns, job: pid.job, task: pid.task, from, node, ready };
        let told = self.ask(|custom| custom.wait(waiting)).flatten();
        if told.is_some_and(|(wait, _)| wait == Wait::SpinYield && self.params.strategy.is_gang()) {
            return self
                .refuse("lets a gang's process yield: no other job may run in its row".to_owned())
                .unwrap_or(());
        }
        // A time of 0 would never end: it looks at least once.
        self.process(pid).told = told.map(|(wait, spin_ns)| (wait, spin_ns.max(1)));
    }
}
