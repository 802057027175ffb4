//! `auto`: the observed behaviour of each job decides how it is scheduled. The rule is core's (`policy/auto.rs`); this module feeds it, once for each
//! sample of a job's CPU time.

use super::Driver;
use crate::clock::{now, unix_ms};
use crate::waitpage::{Counts, WaitPage};
use crate::words;
use cosched_api::{Chosen, WaitMode};
use cosched_core::{Auto, AutoConfig, JobId, Plan, Reason, Seen, Time, Wait};
use cosched_linux::{Blocks, JobCgroup};

/// The shortest window.
const WINDOW_NS_MIN: u64 = 200_000_000;

/// Consecutive windows that must agree: more than a second. The start of a parallel program looks like waiting.
const WINDOWS: u32 = 5;

/// The beginning of a window.
#[derive(Clone, Copy, Debug)]
struct Moment {
    at: Time,
    /// The plan in force at that time.
    generation: u64,
}

/// The choice for a job, and what was observed of it at the last decision.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    auto: Auto,
    since_unix_ms: u64,
    changes: u32,
    last: Option<(Moment, u64, Counts)>,
    blocks: Blocks,
}

impl Default for Choice {
    fn default() -> Choice {
        let config = AutoConfig { windows: WINDOWS, ..AutoConfig::default() };
        Choice { auto: Auto::new(config), since_unix_ms: unix_ms(), changes: 0, last: None, blocks: Blocks::default() }
    }
}

impl Choice {
    /// For display.
    pub(super) fn view(&self) -> Chosen {
        let choice = self.auto.choice();
        let mode = if choice.wait == Wait::Busy { WaitMode::Busy } else { WaitMode::SpinBlock };
        Chosen {
            policy: words::wire_policy(choice.policy),
            mode,
            since_unix_ms: self.since_unix_ms,
            why: choice.reason.to_string(),
            changes: self.changes,
        }
    }

    /// The clock was set: the present window is discarded.
    pub(super) fn discard_window(&mut self) {
        self.last = None;
    }

    /// How its processes are to wait, when it has rivals. Before it was observed with any: spin block, under which its waits
    /// can be observed.
    pub(super) fn mode(&self) -> WaitMode {
        let choice = self.auto.choice();
        let known = !matches!(choice.reason, Reason::Alone | Reason::NotSeenYet);
        if known && choice.wait == Wait::Busy { WaitMode::Busy } else { WaitMode::SpinBlock }
    }

    /// What the job did since the window began, if the window is long enough and under one plan; then the next window begins.
    fn window(&mut self, plan: &Plan, cpu_time_ns: u64, counts: Counts) -> Option<(Moment, Seen)> {
        let now = Moment { at: now(), generation: plan.generation };
        let Some((since, cpu, before)) = self.last.filter(|(since, ..)| since.generation == now.generation) else {
            self.last = Some((now, cpu_time_ns, counts));
            self.blocks = Blocks::default();
            return None;
        };
        let interval_ns = now.at - since.at;
        if interval_ns < WINDOW_NS_MIN {
            return None;
        }
        self.last = Some((now, cpu_time_ns, counts));
        let seen = Seen {
            interval_ns,
            cpu_ns: cpu_time_ns.saturating_sub(cpu),
            waits: counts.waits.saturating_sub(before.waits),
            spin_ns: counts.spin_ns.saturating_sub(before.spin_ns),
            block_ns: counts.block_ns.saturating_sub(before.block_ns),
            hooked: counts.processes > 0 && counts.polls > 0,
            ..Seen::default()
        };
        Some((since, seen))
    }

    /// How often the job's threads have blocked in the window; 0 for a job without rivals, whose choice does not depend on it.
    fn blocks(&mut self, cgroup: &JobCgroup, rivals: u32) -> u64 {
        if rivals > 0 {
            return self.blocks.look(cgroup);
        }
        self.blocks = Blocks::default();
        0
    }
}

impl Driver {
    /// Handles a sample of a job's CPU time: it may change how the job is scheduled.
    pub(super) fn judge(&mut self, id: u64, cpu_time_ns: u64) {
        let job = JobId(id);
        let Some(live) = self.live.get_mut(&id) else { return };
        let counts = live.page.as_ref().map(WaitPage::read).unwrap_or_default();
        let cpus = self.identity.cpus_at_a_time;
        let was_crowded = std::mem::replace(&mut live.polling, counts.processes) > cpus;
        let crowd_changed = was_crowded != (counts.processes > cpus);
        if !self.plan.jobs.get(&job).is_some_and(|planned| planned.auto) {
            live.chosen.last = None;
            if crowd_changed {
                self.order_waits();
            }
            return;
        }
        let before = live.chosen.mode();
        let chosen = live.chosen.window(&self.plan, cpu_time_ns, counts).and_then(|(since, mut seen)| {
            seen.offered_ns = self.running.offered_ns(&self.plan, job, since.at, seen.interval_ns);
            seen.rivals = self.running.rivals();
            seen.blocks = live.chosen.blocks(&live.cgroup, seen.rivals);
            let policy = live.chosen.auto.choice().policy;
            live.chosen.auto.see(&seen).filter(|choice| choice.policy != policy).map(|choice| (choice, seen))
        });
        if crowd_changed || before != live.chosen.mode() {
            self.order_waits();
        }
        let (Some((choice, seen)), Some(live)) = (chosen, self.live.get_mut(&id)) else { return };
        live.chosen.changes += 1;
        live.chosen.since_unix_ms = unix_ms();
        let told = format!("{}: {}", words::wire_policy(choice.policy).name(), choice.reason);
        tracing::info!(id, to = told, ?seen, "auto");
        self.remember(id, |record| record.event(unix_ms(), "auto", told));
        let moment = self.cluster.moment();
        self.cluster.node.choose(moment, job, choice.policy, choice.reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{Node, NodeId, Packing, Planner, PlannerConfig, Policy, Shares, Sharing};

    fn plan(generation: u64) -> Plan {
        let planner = Planner::new(PlannerConfig {
            nodes: vec![Node { id: NodeId(0), cpus: 2 }],
            slot_length_ns: 100_000_000,
            policy: Policy::Auto,
            sharing: Sharing::Soft,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        });
        Plan { generation, ..Plan::clone(planner.plan()) }
    }

    fn counts(waits: u64, spin_ns: u64) -> Counts {
        Counts { processes: 1, polls: 9, waits, spin_ns, ..Counts::default() }
    }

    /// A choice whose window began `ns_ago` nanoseconds ago, under plan 1.
    fn begun(ns_ago: u64) -> Choice {
        let at = Time(now().0 - ns_ago);
        Choice { last: Some((Moment { at, generation: 1 }, 100, counts(5, 50))), ..Choice::default() }
    }

    #[test]
    fn a_window_is_what_a_job_did_under_one_plan() {
        let (_, seen) = begun(WINDOW_NS_MIN).window(&plan(1), 150, counts(7, 80)).unwrap();
        assert_eq!((seen.cpu_ns, seen.waits, seen.spin_ns, seen.hooked), (50, 2, 30, true));
        assert!(seen.interval_ns >= WINDOW_NS_MIN);
        assert!(begun(WINDOW_NS_MIN).window(&plan(2), 150, counts(7, 80)).is_none(), "another plan: it begins anew");
        assert!(begun(0).window(&plan(1), 150, counts(7, 80)).is_none(), "too short");
        let mut set = begun(WINDOW_NS_MIN);
        set.discard_window();
        assert!(set.window(&plan(1), 150, counts(7, 80)).is_none(), "the clock was set meanwhile");
    }

    #[test]
    fn counts_that_a_job_has_set_back_are_nothing() {
        let (_, seen) = begun(WINDOW_NS_MIN).window(&plan(1), 50, Counts::default()).unwrap();
        assert_eq!((seen.cpu_ns, seen.waits, seen.spin_ns, seen.hooked), (0, 0, 0, false));
    }

    #[test]
    fn who_was_not_seen_yet_blocks_so_that_it_can_be() {
        let choice = Choice::default();
        assert_eq!(choice.mode(), WaitMode::SpinBlock);
        assert_eq!((choice.view().changes, choice.view().policy), (0, words::wire_policy(choice.auto.choice().policy)));
    }
}
