//! Auto: gang or local scheduling, chosen by a job's observed behaviour.
//!
//! Problem: gang scheduling with lending of idle CPUs is at least as good as anything else for programs that compute and
//! exchange often, local scheduling with spin block is better for programs that wait a lot and block in their waits, and
//! a program that spins in its waits collapses without a gang. Users do not want to find out beforehand which case theirs is, and
//! programs change.
//!
//! Rule. A job is observed in windows of about 0.2 to 1 s. In a gang: the part of the CPU time of its slots that it
//! uses otherwise than by spinning in waits that last [`WAIT_WORTH_NS`] or more; shorter waits are of no use to other jobs.
//! Below [`WAITS_BELOW_PPM`] it waits a lot, and becomes local: a job whose waits are not observed (not hooked) has blocked by
//! itself then, as spinning uses CPU time. Its processes spin for [`GANG_SPIN_NS`] in a gang: no other job has their CPUs
//! before the node has found them idle. Even the search for idle CPUs costs a fine-grained program some percent, so a gang that
//! uses [`LENDS_BELOW_PPM`] of its slots in [`LOOKS`] windows in a row waits busy, and is examined again in each
//! [`RESTS`]th window. A job whose threads block more often than once in [`BLOCKS_EVERY_NS`] of CPU time needs no gang, whether or not
//! its waits are observed (hooked waits block later): each block hands a CPU to any thread that can use it, its own partners among them.
//! It becomes local, [`EVIDENT`] windows are enough, and it stays local. Locally the used part says less, because beside
//! other jobs even a job that waits uses what it is offered. So a local job that uses [`USES_ALL_PPM`] of it becomes a
//! gang again if its waits are not observed, because it may spin in them, or if they are and it is blocked in them less
//! than [`BLOCKED_ABOVE_PPM`] of its time. A hooked one also does if it spins more than [`SPINS_ABOVE_PPM`] of its CPU
//! time. A job that is alone has nothing to choose: it keeps its policy, and waits busy.
//!
//! No flapping: a change needs [`AutoConfig::windows`] windows in a row with the same result, and the last change must be a
//! dwell ago. The dwell doubles with each change, from `dwell_ns_min` to `dwell_ns_max`, and halves after eight dwells
//! without one. So, whatever a job does, it is changed at most 2 + log2(max / min) + t / (4 · min) + t / max times in a
//! time t. A job without a change for long enough is changed after `dwell_ns_min` and `windows` windows at the latest, and
//! a job that has never been changed after `windows` windows.
//!
//! Source: the measurements on Linux in reference/live-mechanisms.md, §1; that it pays to distinguish jobs by how they
//! wait: Strazdins & Uhlmann 2004. Units: ns; millionths (ppm).

use super::dynamic::Wait;
use crate::job::Policy;
use crate::reason::Reason;

/// A gang that uses less of its slots' CPU time than this waits a lot.
const WAITS_BELOW_PPM: u64 = 700_000;

/// Spinning does not count as wasted in waits that are shorter than this on average: about four times the cost of a block, the wake-up
/// and the two switches.
const WAIT_WORTH_NS: u64 = 100_000;

/// A job that blocks more often than once in this much CPU time needs no gang. A hooked wait blocks after [`GANG_SPIN_NS`] at the earliest.
const BLOCKS_EVERY_NS: u64 = 500_000;

/// The number of such windows in a row that is enough evidence.
const EVIDENT: u32 = 3;

/// The spin time of a gang's processes under auto. The processes that they wait for run at the same time, so most waits are short; the idle
/// probe needs a millisecond and more to find a CPU that could be lent.
pub const GANG_SPIN_NS: u64 = 2_000_000;

/// A gang that uses less of its slots' CPU time than this has something to lend.
const LENDS_BELOW_PPM: u64 = 900_000;

/// The number of windows in which a gang has to have nothing to lend before it waits busy.
const LOOKS: u32 = 2;

/// The number of windows from then on until it is examined again.
const RESTS: u32 = 20;

/// A local job that is blocked for less of its time than this waits little.
const BLOCKED_ABOVE_PPM: u64 = 200_000;

/// A local job that spins for more of its CPU time than this should be a gang.
const SPINS_ABOVE_PPM: u64 = 300_000;

/// A local job that uses less of what it is offered than this waits for something, if only for a disk.
const USES_ALL_PPM: u64 = 900_000;

/// A window in which a job was offered less of its length than this is not evaluated.
const OFFERED_PPM_MIN: u64 = 20_000;

/// The number of dwells without a change after which the dwell halves.
const CALM_DWELLS: u64 = 8;

/// How fast policies change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoConfig {
    /// The number of windows in a row that must have the same result.
    pub windows: u32,
    /// The shortest time between two changes.
    pub dwell_ns_min: u64,
    /// The longest such time, for a job that changes often.
    pub dwell_ns_max: u64,
    /// The policy of a job that waits a lot: [`Policy::Local`], or [`Policy::Pb`] where the node boosts.
    pub waiting: Policy,
}

impl Default for AutoConfig {
    fn default() -> AutoConfig {
        AutoConfig { windows: 3, dwell_ns_min: 1_000_000_000, dwell_ns_max: 64_000_000_000, waiting: Policy::Local }
    }
}

/// What was observed of a job in one window on one node, for all its processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The length of the window.
    pub interval_ns: u64,
    /// CPU time that it used: for a gang in its own slots only, without its time in the background.
    pub cpu_ns: u64,
    /// CPU time that its slots offered to it, or its share while it is local. Where local jobs compete with a gang in its
    /// slots, the gang's part by their weights, so that time taken by them does not count as unused by the gang.
    pub offered_ns: u64,
    /// Waits for messages.
    pub waits: u64,
    /// Time that it spun in waits.
    pub spin_ns: u64,
    /// Time that it was blocked in waits.
    pub block_ns: u64,
    /// How often its threads gave up their CPUs voluntarily; 0 if that was not observed.
    pub blocks: u64,
    /// Whether the wait library is loaded and observes its waits.
    pub hooked: bool,
    /// The number of other jobs that want its CPUs.
    pub rivals: u32,
}

impl Seen {
    /// Whether the window is evidence about the job.
    fn counts(&self) -> bool {
        self.rivals > 0 && self.offered_ns > ppm_of(self.interval_ns, OFFERED_PPM_MIN)
    }

    fn blocks_often(&self) -> bool {
        self.blocks > self.cpu_ns / BLOCKS_EVERY_NS
    }

    /// CPU time without what it spun away in waits during which another job could have used the CPU.
    fn useful_ns(&self) -> u64 {
        let worth = self.hooked && self.spin_ns / self.waits.max(1) >= WAIT_WORTH_NS;
        if worth { self.cpu_ns.saturating_sub(self.spin_ns) } else { self.cpu_ns }
    }
}

fn ppm_of(ns: u64, ppm: u64) -> u64 {
    (u128::from(ns) * u128::from(ppm) / 1_000_000).min(u128::from(u64::MAX)) as u64
}

/// A job's scheduling, and the reason for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// [`Policy::Gang`], [`Policy::Local`] or [`Policy::Pb`].
    pub policy: Policy,
    /// How its processes wait: busy or spin block.
    pub wait: Wait,
    /// The reason.
    pub reason: Reason,
}

/// The choice for one job.
#[derive(Clone, Debug)]
pub struct Auto {
    config: AutoConfig,
    choice: Choice,
    /// The reason for its policy, which it also keeps while it is alone.
    reason: Reason,
    /// The number of windows in a row that were in favour of a change, and their reason.
    asked: (u32, Reason),
    /// The number of windows in a row in which it had nothing to lend as a gang, or waited busy.
    nothing_to_lend: u32,
    dwell_ns: u64,
    /// The time since the last change; at the beginning long enough for one.
    since_ns: u64,
    /// The time since the last change, or since the dwell was last halved.
    calm_ns: u64,
}

impl Auto {
    /// A new job is a gang that blocks if it can: that is never a disaster.
    pub fn new(config: AutoConfig) -> Auto {
        let reason = Reason::NotSeenYet;
        Auto {
            config,
            choice: Choice { policy: Policy::Gang, wait: Wait::SpinBlock, reason },
            reason,
            asked: (0, reason),
            nothing_to_lend: 0,
            dwell_ns: config.dwell_ns_min,
            since_ns: u64::MAX,
            calm_ns: 0,
        }
    }

    /// The choice in force.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Evaluates a window. Returns the choice if it has changed.
    pub fn see(&mut self, seen: &Seen) -> Option<Choice> {
        self.pass(seen.interval_ns);
        let policy = self.next_policy(seen);
        let wait = if seen.hooked && seen.rivals > 0 { self.next_wait(policy, seen) } else { Wait::Busy };
        let reason = if seen.rivals == 0 { Reason::Alone } else { self.reason };
        let before = core::mem::replace(&mut self.choice, Choice { policy, wait, reason });
        (self.choice != before).then_some(self.choice)
    }

    /// How a hooked job waits.
    fn next_wait(&mut self, policy: Policy, seen: &Seen) -> Wait {
        if policy != Policy::Gang {
            self.nothing_to_lend = 0;
            return Wait::SpinBlock;
        }
        if seen.counts() {
            let busy = self.choice.wait == Wait::Busy;
            let lends = !busy && seen.useful_ns() < ppm_of(seen.offered_ns, LENDS_BELOW_PPM);
            self.nothing_to_lend = if lends { 0 } else { self.nothing_to_lend + 1 };
        }
        if self.nothing_to_lend >= LOOKS + RESTS {
            self.nothing_to_lend = LOOKS - 1;
        }
        if self.nothing_to_lend < LOOKS { Wait::SpinBlock } else { Wait::Busy }
    }

    fn pass(&mut self, ns: u64) {
        self.since_ns = self.since_ns.saturating_add(ns);
        self.calm_ns = self.calm_ns.saturating_add(ns);
        if self.calm_ns >= self.dwell_ns.saturating_mul(CALM_DWELLS) {
            self.dwell_ns = (self.dwell_ns / 2).max(self.config.dwell_ns_min);
            self.calm_ns = 0;
        }
    }

    fn next_policy(&mut self, seen: &Seen) -> Policy {
        let policy = self.choice.policy;
        if !seen.counts() {
            return policy;
        }
        let asks = if policy == Policy::Gang { leaves_gang(seen) } else { leaves_local(seen) };
        let Some(reason) = asks else {
            self.asked.0 = 0;
            if self.reason == Reason::NotSeenYet {
                self.reason = Reason::WaitsLittle;
            }
            return policy;
        };
        self.asked = (self.asked.0.saturating_add(1), reason);
        let evident = policy == Policy::Gang && seen.blocks_often();
        let windows = if evident { EVIDENT.min(self.config.windows) } else { self.config.windows };
        if self.asked.0 < windows || self.since_ns < self.dwell_ns {
            return policy;
        }
        // The first change is free: a job that has just begun has shown its behaviour.
        if self.since_ns < u64::MAX {
            self.dwell_ns = self.dwell_ns.saturating_mul(2).min(self.config.dwell_ns_max);
        }
        (self.asked.0, self.reason) = (0, reason);
        (self.since_ns, self.calm_ns) = (0, 0);
        if policy == Policy::Gang { self.config.waiting } else { Policy::Gang }
    }
}

/// The reason why a gang should become local, if there is one.
fn leaves_gang(seen: &Seen) -> Option<Reason> {
    let waits = seen.useful_ns() < ppm_of(seen.offered_ns, WAITS_BELOW_PPM);
    (waits || seen.blocks_often()).then_some(Reason::WaitsMuch)
}

/// The reason why a local job should become a gang, if there is one.
fn leaves_local(seen: &Seen) -> Option<Reason> {
    let uses_all = seen.cpu_ns > ppm_of(seen.offered_ns, USES_ALL_PPM);
    if !seen.hooked {
        return (uses_all && !seen.blocks_often()).then_some(Reason::MaySpin);
    }
    let blocked_ns = ppm_of(seen.block_ns.saturating_add(seen.cpu_ns), BLOCKED_ABOVE_PPM);
    if seen.spin_ns > ppm_of(seen.cpu_ns, SPINS_ABOVE_PPM) {
        Some(Reason::SpinsInVain)
    } else {
        (seen.block_ns < blocked_ns && uses_all).then_some(Reason::WaitsLittle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A window of 200 ms of a job that was offered half of a CPU.
    fn window(cpu_ms: u64) -> Seen {
        Seen { interval_ns: 200 * MS, cpu_ns: cpu_ms * MS, offered_ns: 100 * MS, rivals: 1, ..Seen::default() }
    }

    fn hooked(cpu_ms: u64, spin_ms: u64, block_ms: u64) -> Seen {
        let (spin_ns, block_ns) = (spin_ms * MS, block_ms * MS);
        Seen { hooked: true, waits: 100, spin_ns, block_ns, ..window(cpu_ms) }
    }

    /// The changes of policy that result from the windows, each with the window's index.
    fn changes(auto: &mut Auto, windows: impl IntoIterator<Item = Seen>) -> Vec<(usize, Policy, Reason)> {
        let mut found = Vec::new();
        for (i, seen) in windows.into_iter().enumerate() {
            let before = auto.choice().policy;
            auto.see(&seen);
            if auto.choice().policy != before {
                found.push((i, auto.choice().policy, auto.choice().reason));
            }
        }
        found
    }

    fn local() -> Auto {
        let mut auto = Auto::new(AutoConfig::default());
        changes(&mut auto, [hooked(30, 0, 60); 3]);
        assert_eq!(auto.choice().policy, Policy::Local);
        auto
    }

    use alloc::vec::Vec;

    #[test]
    fn a_gang_that_waits_a_lot_becomes_local() {
        let first = |seen| changes(&mut Auto::new(AutoConfig::default()), [seen; 20]).first().copied();
        let becomes = Some((2, Policy::Local, Reason::WaitsMuch));
        assert_eq!(first(hooked(69, 0, 30)), becomes);
        assert_eq!(first(hooked(71, 0, 30)), None, "not so much");
        assert_eq!(first(hooked(95, 30, 10)), becomes, "what it spins away is no use");
        assert_eq!(first(window(50)), becomes, "nobody sees its waits, but it blocks");
        assert_eq!(first(window(100)), None, "it may spin");
        let short = Seen { waits: 1000, ..hooked(95, 60, 0) };
        assert_eq!(first(short), None, "nobody could use such short waits");
    }

    #[test]
    fn who_blocks_often_by_himself_becomes_local_soon_and_stays_so() {
        // Of 85 ms of CPU time: a block in each 0.5 ms.
        let often = |cpu_ms, blocks| Seen { blocks, ..window(cpu_ms) };
        let mut auto = Auto::new(AutoConfig { windows: 9, ..AutoConfig::default() });
        let seen = changes(&mut auto, [often(85, 171); 20]);
        assert_eq!(seen, [(2, Policy::Local, Reason::WaitsMuch)]);
        assert_eq!(changes(&mut auto, [often(100, 300); 20]), [], "though it uses all that it is offered");
        assert_eq!(changes(&mut auto, [often(100, 30); 20]).len(), 1, "it may spin now");
        let first = |seen| changes(&mut Auto::new(AutoConfig::default()), [seen; 20]).len();
        assert_eq!(first(often(85, 170)), 0, "not so often");
        let hooked_too = Seen { blocks: 900, ..hooked(85, 0, 10) };
        assert_eq!(first(hooked_too), 1, "most of its waits are not those that are hooked");
    }

    #[test]
    fn a_local_job_becomes_a_gang_when_that_is_better() {
        let first = |seen| changes(&mut local(), [seen; 20]).first().map(|(_, policy, reason)| (*policy, *reason));
        assert_eq!(first(hooked(95, 0, 20)), Some((Policy::Gang, Reason::WaitsLittle)));
        assert_eq!(first(hooked(100, 0, 30)), None, "it uses all it is offered, but it waits");
        assert_eq!(first(hooked(80, 0, 0)), None, "it waits for something else than messages");
        assert_eq!(first(hooked(100, 40, 60)), Some((Policy::Gang, Reason::SpinsInVain)));
        assert_eq!(first(window(95)), Some((Policy::Gang, Reason::MaySpin)));
        assert_eq!(first(window(80)), None);
    }

    #[test]
    fn a_job_that_is_alone_waits_busy_and_keeps_its_policy() {
        let mut auto = local();
        let alone = Seen { rivals: 0, ..hooked(5, 0, 1) };
        let choice = Choice { policy: Policy::Local, wait: Wait::Busy, reason: Reason::Alone };
        assert_eq!(auto.see(&alone), Some(choice));
        assert!((0..100).all(|_| auto.see(&alone).is_none()));
        let again = auto.see(&hooked(30, 0, 60)).map(|choice| (choice.policy, choice.wait, choice.reason));
        assert_eq!(again, Some((Policy::Local, Wait::SpinBlock, Reason::WaitsMuch)));
    }

    #[test]
    fn a_gang_with_nothing_to_lend_waits_busy_and_is_looked_at_again() {
        let mut auto = Auto::new(AutoConfig::default());
        let mut waits = |seen: Seen, windows: usize| -> Vec<Wait> {
            let one = |_| {
                auto.see(&seen);
                auto.choice().wait
            };
            (0..windows).map(one).collect()
        };
        let spin_block = |waits: &[Wait]| waits.iter().filter(|wait| **wait == Wait::SpinBlock).count();
        assert_eq!(waits(hooked(95, 0, 0), 3), [Wait::SpinBlock, Wait::Busy, Wait::Busy]);
        assert_eq!(spin_block(&waits(hooked(95, 0, 0), 210)), 10, "one window in 21");
        assert!(spin_block(&waits(hooked(80, 0, 20), 100)) > 75, "there is something to lend");
    }

    #[test]
    fn windows_without_slots_say_nothing() {
        let nothing = Seen { offered_ns: 3 * MS, ..hooked(0, 0, 100) };
        assert_eq!(changes(&mut Auto::new(AutoConfig::default()), [nothing; 50]), []);
        let between = [hooked(30, 0, 60), nothing, hooked(30, 0, 60), nothing, hooked(30, 0, 60)];
        assert_eq!(changes(&mut Auto::new(AutoConfig::default()), between).len(), 1);
    }

    #[test]
    fn a_node_that_boosts_does_so_for_jobs_that_wait() {
        let mut auto = Auto::new(AutoConfig { waiting: Policy::Pb, ..AutoConfig::default() });
        assert_eq!(changes(&mut auto, [hooked(30, 0, 60); 5]), [(2, Policy::Pb, Reason::WaitsMuch)]);
        assert_eq!(changes(&mut auto, [hooked(95, 0, 0); 9]), [(2, Policy::Gang, Reason::WaitsLittle)]);
    }

    #[test]
    fn who_changes_often_dwells_longer_until_it_has_calmed_down() {
        let mut auto = local();
        // Always the behaviour that is in favour of a change.
        let contrary =
            |auto: &Auto| if auto.choice().policy == Policy::Gang { hooked(30, 0, 60) } else { hooked(95, 0, 0) };
        let mut gaps = Vec::new();
        let mut gap = 0;
        while gaps.len() < 9 {
            let seen = contrary(&auto);
            gap += 1;
            if !changes(&mut auto, [seen]).is_empty() {
                gaps.push(core::mem::take(&mut gap));
            }
        }
        assert_eq!(gaps, [5, 10, 20, 40, 80, 160, 320, 320, 320], "1 s to 64 s");
        changes(&mut auto, core::iter::repeat_n(hooked(80, 0, 30), 16 * 320));
        let seen = contrary(&auto);
        assert_eq!(changes(&mut auto, [seen; 3]).len(), 1);
        assert_eq!(auto.dwell_ns, 2_000 * MS);
    }
}
