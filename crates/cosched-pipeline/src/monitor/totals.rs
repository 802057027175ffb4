//! The totals of all stages until an instant, including activities that have not ended; and the window between two instants.

use std::sync::atomic::Ordering::Relaxed;

use cosched_core::stage::{StageView, Window};

use super::{Doing, Spent, Watch, lock};

/// One stage until an instant.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Total {
    pub(super) rounds: u64,
    pub(super) busy_ns: u64,
    pub(super) wait_in_ns: u64,
    pub(super) wait_out_ns: u64,
    pub(super) spent: Spent,
    queue_sum: f64,
    threads: u32,
}

/// All stages until an instant.
#[derive(Debug, Clone, Default)]
pub(super) struct Totals {
    pub(super) at_ns: u64,
    pub(super) stages: Vec<Total>,
    looks: u64,
    /// CPU time that all processes used on the pipeline's CPUs, if that was requested.
    pub(super) all_ns: Option<u64>,
}

impl Watch {
    /// The totals until now.
    pub(super) fn totals(&self) -> Totals {
        let seats = self.seats();
        seats.iter().for_each(|seat| seat.divide());
        let at_ns = self.now_ns();
        let mut stages: Vec<Total> = self
            .counters
            .iter()
            .map(|counters| Total {
                rounds: counters.rounds(),
                busy_ns: counters.busy_ns.load(Relaxed),
                wait_in_ns: counters.wait_in_ns.load(Relaxed),
                wait_out_ns: counters.wait_out_ns.load(Relaxed),
                ..Total::default()
            })
            .collect();
        for seat in &seats {
            let (doing, since_ns) = seat.doing();
            let so_far_ns = at_ns.saturating_sub(since_ns);
            match doing {
                Doing::Nothing | Doing::Aside(_) | Doing::Carry(_) => {}
                Doing::Work(stage) => stages[stage].busy_ns += so_far_ns,
                Doing::WaitIn(stage) => stages[stage].wait_in_ns += so_far_ns,
                Doing::WaitOut(stage) => stages[stage].wait_out_ns += so_far_ns,
            }
            for (stage, spent) in seat.spent() {
                stages[stage].spent.add(spent);
                stages[stage].threads += 1;
            }
        }
        for (total, spent) in stages.iter_mut().zip(&lock(&self.crew).spent) {
            total.spent.add(*spent);
        }
        let samples = lock(&self.samples);
        for (total, sum) in stages.iter_mut().zip(&samples.sums) {
            total.queue_sum = *sum;
        }
        Totals { at_ns, stages, looks: samples.looks, all_ns: None }
    }

    /// The totals at the start: all zero.
    pub(super) fn nothing(&self) -> Totals {
        Totals { stages: vec![Total::default(); self.facts.stages.len()], ..Totals::default() }
    }

    /// The differences between two instants, with the stages in the order of flow.
    pub(super) fn window(&self, from: &Totals, to: &Totals) -> Window {
        let looks = (to.looks - from.looks).max(1) as f64;
        let between = |stage: usize| {
            let (then, now) = (from.stages[stage], to.stages[stage]);
            let facts = &self.facts.stages[stage];
            StageView {
                resource: facts.resource,
                threads: self.at_once(stage, now.threads),
                rounds: now.rounds.saturating_sub(then.rounds),
                busy_ns: now.busy_ns.saturating_sub(then.busy_ns),
                cpu_ns: now.spent.cpu_ns.saturating_sub(then.spent.cpu_ns),
                delay_ns: now.spent.delay_ns.saturating_sub(then.spent.delay_ns),
                wait_in_ns: now.wait_in_ns.saturating_sub(then.wait_in_ns),
                wait_out_ns: now.wait_out_ns.saturating_sub(then.wait_out_ns),
                queue_in: (now.queue_sum - then.queue_sum) / looks,
                queue_in_max: facts.queue_max,
                replicable_to: facts.replicable_to,
            }
        };
        let rounds = |totals: &Totals| -> u64 { self.facts.sinks.iter().map(|sink| totals.stages[*sink].rounds).sum() };
        Window {
            length_ns: to.at_ns.saturating_sub(from.at_ns),
            cpus: cosched_linux::thread::cpus_usable() as u32,
            rounds: rounds(to) - rounds(from),
            stages: self.facts.flow.iter().copied().map(between).collect(),
            others_ns: others_ns(from, to),
        }
    }

    /// How many threads can work on the stage at once: of the existing ones or, if there are none, of the most that there
    /// were. On the workers, which all stages share, at most as many as the stage has incarnations.
    fn at_once(&self, stage: usize, living: u32) -> u32 {
        let facts = &self.facts.stages[stage];
        let asked = lock(&self.settings)[stage].incarnations.unwrap_or(facts.incarnations).max(1);
        let threads = if living == 0 { lock(&self.crew).most[stage] } else { living };
        threads.clamp(1, asked.max(facts.incarnations))
    }
}

/// CPU time that processes other than the pipeline used on its CPUs between two instants.
fn others_ns(from: &Totals, to: &Totals) -> Option<u64> {
    let all_ns = to.all_ns?.saturating_sub(from.all_ns?);
    let own_ns = |totals: &Totals| totals.stages.iter().map(|stage| stage.spent.cpu_ns).sum::<u64>();
    Some(all_ns.saturating_sub(own_ns(to).saturating_sub(own_ns(from))))
}
