//! `auto`: what each job is seen to do decides how it is scheduled. The rule is core's (`policy/auto.rs`); here is what it
//! is shown, once for each sample of a job's CPU time.

use super::{Driver, machine};
use crate::clock::{now, unix_ms};
use crate::waitpage::Counts;
use cosched_api::{Chosen, WaitMode};
use cosched_core::{Auto, AutoConfig, JobId, Plan, PlannerInput, Seen, Standing, Wait};
use tokio::time::Instant;

/// What is chosen for a job, and what was seen of it when that was last thought about.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    auto: Auto,
    since_unix_ms: u64,
    changes: u32,
    last: Option<(Instant, u64, Counts)>,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice { auto: Auto::new(AutoConfig::default()), since_unix_ms: unix_ms(), changes: 0, last: None }
    }
}

impl Choice {
    /// For display.
    pub(super) fn view(&self) -> Chosen {
        let choice = self.auto.choice();
        let mode = if choice.wait == Wait::Busy { WaitMode::Busy } else { WaitMode::SpinBlock };
        Chosen {
            policy: machine::wire_policy(choice.policy),
            mode,
            since_unix_ms: self.since_unix_ms,
            why: choice.reason.to_string(),
            changes: self.changes,
        }
    }

    /// What the job did since the last call; `None` the first time.
    fn window(&mut self, cpu_time_ns: u64, counts: Counts) -> Option<Seen> {
        let t = Instant::now();
        let (since, cpu, before) = self.last.replace((t, cpu_time_ns, counts))?;
        Some(Seen {
            interval_ns: (t - since).as_nanos() as u64,
            cpu_ns: cpu_time_ns.saturating_sub(cpu),
            waits: counts.waits.saturating_sub(before.waits),
            spin_ns: counts.spin_ns.saturating_sub(before.spin_ns),
            block_ns: counts.block_ns.saturating_sub(before.block_ns),
            timeouts: counts.timeouts.saturating_sub(before.timeouts),
            hooked: counts.processes > 0 && counts.polls > 0,
            ..Seen::default()
        })
    }
}

impl Driver {
    /// A sample of a job's CPU time: what follows for how it is scheduled.
    pub(super) fn judge(&mut self, id: u64, cpu_time_ns: u64) {
        let job = JobId(id);
        let Some(live) = self.live.get_mut(&id) else { return };
        if !self.plan.jobs.get(&job).is_some_and(|planned| planned.auto) {
            live.chosen.last = None;
            return;
        }
        let counts = live.page.as_ref().map(|page| page.read()).unwrap_or_default();
        let Some(mut seen) = live.chosen.window(cpu_time_ns, counts) else { return };
        let cpus = self.identity.cpus.len() as u32;
        seen.offered_ns = offered_ns(&self.plan, job, seen.interval_ns, cpus);
        seen.rivals = super::waiting::rivals(&self.plan, cpus);
        let before = live.chosen.auto.choice().policy;
        let Some(choice) = live.chosen.auto.see(&seen) else { return };
        if choice.policy == before {
            return;
        }
        live.chosen.changes += 1;
        live.chosen.since_unix_ms = unix_ms();
        let words = format!("{}: {}", machine::wire_policy(choice.policy).name(), choice.reason);
        tracing::info!(id, words, ?seen, "auto");
        self.remember(id, |record| record.event(unix_ms(), "auto", words));
        if let Err(e) = self.planner.handle(now(), PlannerInput::Choice(job, choice.policy, choice.reason)) {
            tracing::error!("the planner refused a choice: {e}");
        }
    }
}

/// The CPU time that the plan offers to a job in an interval: that of its slots, of which local jobs take their part, or
/// its part by weight.
fn offered_ns(plan: &Plan, job: JobId, interval_ns: u64, cpus: u32) -> u64 {
    let Some(planned) = plan.jobs.get(&job) else { return 0 };
    let wanted = u64::from(planned.cpus) * interval_ns;
    let running = plan.jobs.values().filter(|other| other.standing == Standing::Scheduled);
    let (own, weights) = (u64::from(planned.weight), |local_only: bool| -> u64 {
        running
            .clone()
            .filter(|other| !local_only || other.policy.is_local())
            .map(|other| u64::from(other.weight))
            .sum()
    });
    match plan.share(job) {
        Some((turns, cycle)) => {
            let slots_ns = wanted * u64::from(turns) / u64::from(cycle.max(1));
            (u128::from(slots_ns) * u128::from(own) / u128::from(own + weights(true)).max(1)) as u64
        }
        None => wanted.min(u64::from(cpus) * interval_ns * own / weights(false).max(1)),
    }
}
