//! `auto`: the observed behaviour of each job decides how it is scheduled, and how its processes wait. The rule is core's
//! (`policy/auto.rs`); this module feeds it, once for each sample of a job.

use crate::Node;
use crate::types::{Action, Sampled, Waits};
use cosched_cluster::Moment;
use cosched_core::{Auto, AutoConfig, Choice, GANG_SPIN_NS, JobId, Policy, Reason, Seen, Time, Wait};

/// The shortest window.
const WINDOW_NS_MIN: u64 = 200_000_000;

/// Consecutive windows that must agree: more than a second. The start of a parallel program looks like waiting.
const WINDOWS: u32 = 5;

/// The choice for a job, and what was observed of it at the last decision.
#[derive(Clone, Debug)]
pub struct Watch {
    auto: Auto,
    /// Since when the choice is in force, by the wall clock.
    pub since: Time,
    /// The number of changes.
    pub changes: u32,
    /// The number of its processes that poll, at the last sample.
    polling: u32,
    /// Programs of several ranks took turns in it then.
    in_turns: bool,
    window: Option<Window>,
    /// A window that has ended, and for which the host is counting blocks.
    ended: Option<Seen>,
}

/// The beginning of a window, and what the job had done until then.
#[derive(Clone, Copy, Debug)]
struct Window {
    at: Moment,
    /// The plan in force.
    generation: u64,
    cpu_ns: u64,
    waits: Waits,
}

/// What became of a window at a sample.
#[derive(Debug, PartialEq)]
enum Step {
    Begins,
    Continues,
    /// Since this wall-clock time; the next one begins.
    Ends(Time, Seen),
}

/// How a job's processes are to wait if their user leaves it to the machine, and what they compete with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Busy or spin block.
    pub wait: Wait,
    /// 1: other jobs want their CPUs. Not the number, which changes whenever a job begins or ends.
    pub rivals: u32,
    /// How long they spin before they block, where it is known.
    pub spin_ns: Option<u64>,
    /// However many of its own processes wait, those whose turn it is have their CPUs for themselves.
    pub in_turns: bool,
    /// Its processes may be subgangs: it is a gang, and its user has named no policy.
    pub may_have_subgangs: bool,
}

impl Watch {
    pub(crate) fn new(now: Moment) -> Watch {
        let auto = Auto::new(AutoConfig { windows: WINDOWS, ..AutoConfig::default() });
        Watch { auto, since: now.wall, changes: 0, polling: 0, in_turns: false, window: None, ended: None }
    }

    /// The choice in force.
    pub fn choice(&self) -> Choice {
        self.auto.choice()
    }

    /// How its processes are to wait, when it has rivals. Before it was observed with any: spin block, under which its waits
    /// can be observed.
    fn mode(&self) -> Wait {
        let choice = self.auto.choice();
        let known = !matches!(choice.reason, Reason::Alone | Reason::NotSeenYet);
        if known && choice.wait == Wait::Busy { Wait::Busy } else { Wait::SpinBlock }
    }

    /// A window is what the job did under one plan, while the wall clock, by which slots begin, was not set.
    fn step(&mut self, now: Moment, generation: u64, sampled: &Sampled) -> Step {
        let Sampled { cpu_ns, waits, .. } = *sampled;
        let next = Window { at: now, generation, cpu_ns, waits };
        let Some(begun) = self.window.filter(|begun| begun.generation == generation && !was_set(begun.at, now)) else {
            (self.window, self.ended) = (Some(next), None);
            return Step::Begins;
        };
        let interval_ns = now.steady - begun.at.steady;
        if interval_ns < WINDOW_NS_MIN {
            return Step::Continues;
        }
        self.window = Some(next);
        let seen = Seen {
            interval_ns,
            cpu_ns: cpu_ns.saturating_sub(begun.cpu_ns),
            waits: waits.waits.saturating_sub(begun.waits.waits),
            spin_ns: waits.spin_ns.saturating_sub(begun.waits.spin_ns),
            block_ns: waits.block_ns.saturating_sub(begun.waits.block_ns),
            hooked: waits.processes > 0 && waits.polls > 0,
            ..Seen::default()
        };
        Step::Ends(begun.at.wall, seen)
    }
}

/// Whether the wall clock was set between two moments; it may be slewed by a twentieth.
fn was_set(begin: Moment, end: Moment) -> bool {
    let steady_ns = end.steady - begin.steady;
    end.wall < begin.wall || (end.wall - begin.wall).abs_diff(steady_ns) > steady_ns / 20
}

impl Node {
    /// How a job is observed; `None` if it has no part here.
    pub fn watch(&self, id: JobId) -> Option<&Watch> {
        self.parts.get(&id).map(|part| &part.watch)
    }

    /// How the processes of a job that leaves it to the machine are to wait.
    pub fn waiting(&self, id: JobId) -> Waiting {
        let planned = self.local.plan().jobs.get(&id);
        let auto = planned.is_some_and(|planned| planned.auto);
        let gang = planned.is_some_and(|planned| planned.policy == Policy::Gang);
        let has_own_policy = self.local.job(id).is_some_and(|job| job.policy.is_some());
        // Their turns would be others on each node.
        let spans = self.local.job(id).is_some_and(|job| job.spans);
        let may_have_subgangs = gang && !spans && (auto || !has_own_policy);
        let watch = self.watch(id);
        // Those whose turn it is have the CPUs for themselves, as a gang in its slot, and the others want them.
        let in_turns = may_have_subgangs && watch.is_some_and(|watch| watch.in_turns);
        let rivals = if in_turns { 1 } else { self.running.rivals().min(1) };
        let crowded = !in_turns && watch.is_some_and(|watch| self.is_crowd(watch.polling));
        // A policy requested by name means what it means in the literature. Otherwise a job's own processes yield to each other when there are
        // more of them than CPUs; those of a single job that fits spin all the same, which they find out by themselves.
        let wait = match watch {
            Some(watch) if auto && !crowded => watch.mode(),
            _ if auto || (!has_own_policy && (crowded || rivals == 0)) => Wait::SpinBlock,
            _ => Wait::Busy,
        };
        // A gang's processes have their slots for themselves: if there are more of them than CPUs, they compete only with each other.
        let rivals = if gang && crowded { 0 } else { rivals };
        let spin_ns = (gang && auto && rivals > 0).then_some(GANG_SPIN_NS);
        Waiting { wait, rivals, spin_ns, in_turns, may_have_subgangs }
    }

    fn is_crowd(&self, processes: u32) -> bool {
        processes > self.machine.cpus_at_a_time
    }

    /// A sample of a job may change how it is scheduled.
    pub(crate) fn sampled(&mut self, id: JobId, sampled: &Sampled) {
        self.local.cpu_time(self.now.wall, id, sampled.cpu_ns);
        let (plan, rivals) = (self.local.plan(), self.running.rivals());
        let Some(part) = self.parts.get_mut(&id) else { return };
        let was_polling = std::mem::replace(&mut part.watch.polling, sampled.waits.processes);
        let was_in_turns = std::mem::replace(&mut part.watch.in_turns, sampled.waits.in_turns);
        let step = if plan.jobs.get(&id).is_some_and(|planned| planned.auto) {
            part.watch.step(self.now, plan.generation, sampled)
        } else {
            (part.watch.window, part.watch.ended) = (None, None);
            Step::Continues
        };
        match step {
            Step::Continues => (),
            // So that the next count is that of this window.
            Step::Begins if rivals > 0 => self.actions.push_back(Action::CountBlocks(id)),
            Step::Begins => (),
            Step::Ends(since, seen) => {
                let offered_ns = self.running.offered_ns(plan, id, since, seen.interval_ns, sampled.held);
                let seen = Seen { offered_ns, rivals, ..seen };
                // The choice of a job without rivals does not depend on it.
                if rivals > 0 {
                    part.watch.ended = Some(seen);
                    self.actions.push_back(Action::CountBlocks(id));
                } else {
                    self.judge(id, seen);
                }
            }
        }
        let crowd_changed = self.is_crowd(was_polling) != self.is_crowd(sampled.waits.processes);
        if crowd_changed || was_in_turns != sampled.waits.in_turns {
            self.actions.push_back(Action::OrderWaits);
        }
    }

    /// How often a job's threads have blocked since the last count.
    pub(crate) fn blocked(&mut self, id: JobId, blocks: u64) {
        let ended = self.parts.get_mut(&id).and_then(|part| part.watch.ended.take());
        if let Some(seen) = ended {
            self.judge(id, Seen { blocks, ..seen });
        }
    }

    fn judge(&mut self, id: JobId, seen: Seen) {
        let Some(part) = self.parts.get_mut(&id) else { return };
        let (mode, policy) = (part.watch.mode(), part.watch.choice().policy);
        let changed = part.watch.auto.see(&seen).filter(|choice| choice.policy != policy);
        if mode != part.watch.mode() {
            self.actions.push_back(Action::OrderWaits);
        }
        let Some(choice) = changed else { return };
        (part.watch.since, part.watch.changes) = (self.now.wall, part.watch.changes + 1);
        self.actions.push_back(Action::Chose { job: id, choice, seen });
        if self.local.job(id).is_some_and(|job| job.spans) {
            self.member.choice(self.now, id, choice.policy.into(), choice.reason.into());
        } else {
            self.local.choose(id, choice.policy, choice.reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{ID, S, at, said, with_policy};
    use crate::types::Input;

    const MS: u64 = 1_000_000;

    fn counts(waits: u64, spin_ns: u64) -> Waits {
        Waits { processes: 1, polls: 9, waits, spin_ns, ..Waits::default() }
    }

    /// A window that began at the time 0, under plan 1.
    fn begun() -> Watch {
        let window = Window { at: at(0), generation: 1, cpu_ns: 100, waits: counts(5, 50) };
        Watch { window: Some(window), ..Watch::new(at(0)) }
    }

    fn step(watch: &mut Watch, now: Moment, generation: u64, cpu_ns: u64, waits: Waits) -> Step {
        watch.step(now, generation, &Sampled { cpu_ns, waits, held: 0.0 })
    }

    #[test]
    fn a_window_is_what_a_job_did_under_one_plan() {
        let ended = at(WINDOW_NS_MIN);
        let Step::Ends(since, seen) = step(&mut begun(), ended, 1, 150, counts(7, 80)) else { panic!() };
        assert_eq!((since, seen.interval_ns), (at(0).wall, WINDOW_NS_MIN));
        assert_eq!((seen.cpu_ns, seen.waits, seen.spin_ns, seen.hooked), (50, 2, 30, true));
        assert_eq!(step(&mut begun(), ended, 2, 150, counts(7, 80)), Step::Begins, "another plan");
        assert_eq!(step(&mut begun(), at(WINDOW_NS_MIN - 1), 1, 150, counts(7, 80)), Step::Continues, "too short");
        for wall in [at(0).wall + 10 * S, Time(5)] {
            let set = Moment { wall, ..ended };
            assert_eq!(step(&mut begun(), set, 1, 150, counts(7, 80)), Step::Begins, "the clock was set");
        }
    }

    #[test]
    fn counts_that_a_job_has_set_back_are_nothing() {
        let Step::Ends(_, seen) = step(&mut begun(), at(S), 1, 50, Waits::default()) else { panic!() };
        assert_eq!((seen.cpu_ns, seen.waits, seen.spin_ns, seen.hooked), (0, 0, 0, false));
    }

    /// A node with two jobs on its two CPUs, of which ID is left to auto, after samples of it each 100 ms: its CPU time, and how often it blocked
    /// in each window. Returns the node's actions, but for samples.
    fn sampled(node: &mut Node, cpu_ppm: u64, blocks: u64, windows: u64) -> Vec<Action> {
        let mut all = Vec::new();
        for i in 0..=2 * windows {
            let ns = S + i * 100 * MS;
            let sampled = Sampled { cpu_ns: ns / 1_000_000 * cpu_ppm, ..Sampled::default() };
            node.handle(at(ns), Input::Sampled(ID, sampled));
            for action in said(node) {
                match action {
                    Action::CountBlocks(job) => node.handle(at(ns), Input::Blocks(job, blocks)),
                    action => all.push(action),
                }
            }
        }
        all
    }

    #[test]
    fn a_job_that_blocks_by_itself_becomes_local_and_its_host_is_told_once() {
        let mut node = with_policy(Policy::Auto);
        let mut chosen = sampled(&mut node, 500_000, 100_000, 8);
        chosen.retain(|action| *action != Action::OrderWaits);
        assert!(
            matches!(chosen[..], [Action::Chose { job: ID, choice: Choice { policy: Policy::Local, .. }, .. }]),
            "{chosen:?}"
        );
        assert_eq!((node.watch(ID).unwrap().changes, node.local().plan().jobs[&ID].policy), (1, Policy::Local));
    }

    #[test]
    fn a_job_with_a_policy_of_its_own_keeps_it() {
        let mut node = with_policy(Policy::Gang);
        assert_eq!(sampled(&mut node, 500_000, 100_000, 8), []);
        assert_eq!(node.local().plan().jobs[&ID].policy, Policy::Gang);
    }

    #[test]
    fn a_gang_may_have_subgangs_where_its_user_has_named_no_policy() {
        let may = |policy: Policy| with_policy(policy).waiting(ID).may_have_subgangs;
        assert_eq!([Policy::Auto, Policy::Gang, Policy::Local].map(may), [true, false, false]);
        let mut node = with_policy(Policy::Auto);
        sampled(&mut node, 500_000, 100_000, 8);
        assert!(!node.waiting(ID).may_have_subgangs, "it has become local");
        assert!(!node.waiting(JobId(99)).may_have_subgangs, "there is none");
    }

    #[test]
    fn programs_in_turns_wait_as_a_gang_in_its_slot_and_their_host_is_told() {
        for (policy, expected) in [(Policy::Auto, true), (Policy::Gang, false), (Policy::Local, false)] {
            let mut node = with_policy(policy);
            for in_turns in [true, false] {
                let waits = Waits { processes: 5, in_turns, ..Waits::default() };
                node.handle(at(S), Input::Sampled(ID, Sampled { waits, ..Sampled::default() }));
                assert!(said(&mut node).contains(&Action::OrderWaits), "{policy:?}");
                let waiting = node.waiting(ID);
                assert_eq!(waiting.in_turns, expected && in_turns, "{policy:?}");
                assert_eq!(waiting.rivals == 1, policy == Policy::Local || (expected && in_turns), "{policy:?}");
            }
        }
    }

    #[test]
    fn more_processes_than_cpus_block_in_their_waits_and_their_host_is_told() {
        let mut node = with_policy(Policy::Auto);
        let waiting = |node: &Node| (node.waiting(ID).wait, node.waiting(ID).rivals);
        assert_eq!(waiting(&node), (Wait::SpinBlock, 1));
        for (processes, expected) in
            [(2, vec![]), (3, vec![Action::OrderWaits]), (4, vec![]), (1, vec![Action::OrderWaits])]
        {
            let waits = Waits { processes, ..Waits::default() };
            node.handle(at(S), Input::Sampled(ID, Sampled { waits, ..Sampled::default() }));
            let told: Vec<Action> = said(&mut node).into_iter().filter(|it| *it == Action::OrderWaits).collect();
            assert_eq!(told, expected, "{processes} processes");
            assert_eq!(
                node.waiting(ID).rivals,
                u32::from(processes <= 2),
                "a gang of its own has its slots for itself"
            );
        }
    }
}
