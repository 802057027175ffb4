//! What the monitor adds to a report.

use cosched_core::stage::{bottleneck, bound};

use super::totals::Totals;
use super::{Watch, lock};
use crate::priority::describe;
use crate::report::{Bound, Report, StageReport, Trace};

impl Watch {
    /// Completes a report in which the executor has filled in names, kinds, rounds, bytes and
    /// queues.
    pub(crate) fn complete(&self, report: &mut Report) {
        let totals = self.totals();
        report.elapsed_s = seconds(totals.at_ns);
        report.cpus = cosched_linux::thread::cpus_usable() as u32;
        report.priorities = self.priorities.name();
        report.rounds = self.facts.sinks.iter().map(|sink| totals.stages[*sink].rounds).sum();
        for (index, stage) in report.stages.iter_mut().enumerate() {
            self.complete_stage(index, &totals, stage);
        }
        report.bound = self.bound(&totals);
        report.occupancy = lock(&self.samples).report();
        report.stalls = lock(&self.stalls).clone();
        report.notes = lock(&self.log).notes.clone();
        report.trace = self.is_traced.then(|| self.trace());
    }

    fn complete_stage(&self, index: usize, totals: &Totals, stage: &mut StageReport) {
        let total = totals.stages[index];
        stage.busy_s = seconds(total.busy_ns);
        stage.cpu_s = seconds(total.spent.cpu_ns);
        stage.delay_s = seconds(total.spent.delay_ns);
        stage.wait_in_s = seconds(total.wait_in_ns);
        stage.wait_out_s = seconds(total.wait_out_ns);
        stage.switches_voluntary = total.spent.voluntary;
        stage.switches_involuntary = total.spent.involuntary;
        let asked = lock(&self.settings)[index].incarnations;
        stage.incarnations = asked.unwrap_or(self.facts.stages[index].incarnations) as usize;
        stage.tids = self.seats_of(index).iter().map(|seat| seat.tid).collect();
        {
            let samples = lock(&self.samples);
            stage.queue_mean = samples.mean(index);
            stage.queue_max = samples.max[index];
        }
        stage.settings = self.settings_in_words(index);
        let log = lock(&self.log);
        let (actions, count) = log.actions(index);
        (stage.actions, stage.actions_count) = (actions.to_vec(), count);
    }

    fn settings_in_words(&self, index: usize) -> String {
        let changes = lock(&self.settings)[index].changes_from(&cosched_core::stage::Setting::default());
        changes.iter().map(describe).collect::<Vec<_>>().join(", ")
    }

    /// The bound for all work that was done so far.
    fn bound(&self, totals: &Totals) -> Bound {
        let window = self.window(&self.nothing(), totals);
        let (bound, stage) = (bound(&window), bottleneck(&window));
        Bound {
            compute_s: seconds(bound.compute_ns),
            communicate_s: seconds(bound.communicate_ns),
            io_s: seconds(bound.io_ns),
            limiting: bound.limiting().name().to_owned(),
            stage: stage.map(|place| self.facts.stages[self.facts.flow[place]].name.clone()),
        }
    }

    fn trace(&self) -> Trace {
        let (mut spans, mut dropped, seats) = {
            let crew = lock(&self.crew);
            (crew.spans.clone(), crew.dropped, crew.seats.clone())
        };
        for seat in seats {
            let (more, lost) = seat.spans.all();
            spans.extend(more);
            dropped += lost;
        }
        spans.sort_by(|a, b| a.3.total_cmp(&b.3));
        Trace { spans, dropped }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
