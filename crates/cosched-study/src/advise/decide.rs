//! From numbers to advice: a pure function, and its rules.
//!
//! - A program *spins* if it is seen to poll for messages repeatedly (a million times per second of its CPU time: a poll
//!   takes 0.1 to 1 µs, so that is a tenth of the CPU time or more), or if its jobs use more CPU time together than alone
//!   (25 % more): they spend it waiting for partners that do not run. Only coscheduling, or another way to wait, helps
//!   such programs (Strazdins and Uhlmann 2004, section 4; Zhang et al. 2000, section 3).
//! - It *blocks* if it leaves CPUs idle when alone and yields them often. Other jobs can use what it leaves, so slowdowns
//!   below j are possible: max(1, j × CPU share) with perfect overlap (Strazdins and Uhlmann, section 5).
//! - Otherwise it *computes*: its processes do not wait for each other enough to matter. For a program that was cut off
//!   and whose waits were not seen, this cannot be distinguished from spinning.
//!
//! The choice is the policy with the smallest measured slowdown of two jobs; of those within 5 % of it, the simplest one.

use super::facts::{Company, Facts};
use crate::slowdown::results::OTHERS_DECIDE;
use serde::Serialize;

/// What kind of program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Its processes poll repeatedly while they wait.
    Spins,
    /// They yield their CPUs while they wait.
    Blocks,
    /// They hardly wait.
    Computes,
    /// It hardly uses the CPUs.
    Sleeps,
    /// It was cut off, and its waits could not be seen: it either computes or spins.
    Unknown,
}

/// How often its processes wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grain {
    /// More than 500 times a second: below 2 ms.
    Fine,
    /// More than 10 times a second.
    Medium,
    /// Less often.
    Coarse,
}

/// The conclusions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Advice {
    pub kind: Kind,
    /// None if its waits could not be seen.
    pub grain: Option<Grain>,
    /// The recommended policy; None if there is no basis for one.
    pub choice: Option<String>,
    /// Whether the choice follows from measured slowdowns, or from the kind of program only.
    pub is_measured: bool,
    /// Other processes influence these numbers more than the policies do.
    pub is_uncertain: bool,
    /// The number of jobs that fit into memory at once, if the memory is known.
    pub jobs_in_memory: Option<u64>,
    /// (jobs, max(1, j × CPU share)).
    pub expected: Vec<(u32, f64)>,
}

/// A program that uses less than this share of the CPUs is considered asleep.
const SLEEPS_BELOW: f64 = 0.05;
const POLLS_PER_CPU_S: f64 = 1e6;
const CPU_GROWTH: f64 = 1.25;
/// A program that blocks uses less than this share of the CPUs.
const BLOCKS_BELOW: f64 = 0.9;
const BLOCKS_PER_S: f64 = 20.0;
/// Slowdowns within this ratio are considered equal.
const ALIKE: f64 = 1.05;
/// Slowdowns below this are measurement artefacts.
const POSSIBLE_FROM: f64 = 0.9;

/// Draws the conclusions from the measurements.
pub fn decide(facts: &Facts) -> Advice {
    let kind = kind(facts);
    let jobs_in_memory = facts.memory_available_bytes.and_then(|bytes| bytes.checked_div(facts.memory_bytes));
    let (choice, is_measured) = choose(facts, kind);
    Advice {
        kind,
        grain: grain(facts, kind),
        choice: if jobs_in_memory.is_some_and(|jobs| jobs < 2) { None } else { choice },
        is_measured,
        is_uncertain: facts.others_cpu_share > OTHERS_DECIDE || is_impossible(facts),
        jobs_in_memory,
        expected: [2, 4, 8].map(|jobs: u32| (jobs, (f64::from(jobs) * facts.cpu_share).max(1.0))).to_vec(),
    }
}

/// Two jobs are never faster than one: if they were, conditions on the machine differed between the runs.
fn is_impossible(facts: &Facts) -> bool {
    facts.company.iter().filter_map(|company| company.slowdown).any(|slowdown| slowdown < POSSIBLE_FROM)
}

fn kind(facts: &Facts) -> Kind {
    let linux = facts.company.iter().find(|company| company.policy == "linux");
    let has_grown =
        facts.is_whole && linux.and_then(|linux| linux.cpu_growth).is_some_and(|growth| growth > CPU_GROWTH);
    let is_seen = facts.waits.is_some_and(|waits| waits.polls_per_cpu_s > POLLS_PER_CPU_S);
    match facts.cpu_share {
        share if share < SLEEPS_BELOW => Kind::Sleeps,
        _ if is_seen || has_grown => Kind::Spins,
        share if share < BLOCKS_BELOW && facts.voluntary_per_s > BLOCKS_PER_S => Kind::Blocks,
        _ if !facts.is_whole && facts.waits.is_none() => Kind::Unknown,
        _ => Kind::Computes,
    }
}

/// From the waits that were seen; without these only programs that block show their waits, as context switches.
fn grain(facts: &Facts, kind: Kind) -> Option<Grain> {
    let seen = facts.waits.and_then(|waits| waits.per_s);
    let per_s = match kind {
        Kind::Spins | Kind::Unknown => seen?,
        _ => seen.unwrap_or(0.0).max(facts.voluntary_per_s),
    };
    Some(match per_s {
        per_s if per_s > 500.0 => Grain::Fine,
        per_s if per_s > 10.0 => Grain::Medium,
        _ => Grain::Coarse,
    })
}

fn choose(facts: &Facts, kind: Kind) -> (Option<String>, bool) {
    // CPU time does not mean progress for a program that spins, so if it was cut off only its kind is known.
    if !facts.is_whole && kind == Kind::Spins {
        return (facts.company.iter().find(|c| c.policy.starts_with("gang")).map(|c| c.policy.clone()), false);
    }
    if kind == Kind::Unknown {
        return (None, false);
    }
    let known: Vec<(&Company, f64)> = facts
        .company
        .iter()
        .filter(|company| !company.is_bound)
        .filter_map(|company| Some((company, company.slowdown?)))
        .collect();
    let Some(best) = known.iter().map(|(_, slowdown)| *slowdown).reduce(f64::min) else { return (None, false) };
    // The list begins with plain Linux, followed by the other policies in the given order.
    let first = known.iter().find(|(_, slowdown)| *slowdown <= best * ALIKE);
    (first.map(|(company, _)| company.policy.clone()), true)
}

#[cfg(test)]
mod tests {
    use super::super::facts::Waits;
    use super::super::samples::{company, facts};
    use super::*;

    #[test]
    fn spinners_that_collapse_are_for_gangs() {
        let facts =
            facts(0.98, 3.0, vec![company("linux", 3.8, 1.9), company("local", 3.7, 1.9), company("gang", 2.05, 1.0)]);
        let advice = decide(&facts);
        assert_eq!((advice.kind, advice.choice.as_deref(), advice.is_measured), (Kind::Spins, Some("gang"), true));
        assert_eq!(advice.expected, [(2, 1.96), (4, 3.92), (8, 7.84)]);
        // The waits alone show it too, and the grain.
        let calm = Facts {
            waits: Some(Waits { polls_per_cpu_s: 6e6, per_s: Some(9000.0) }),
            ..super::super::samples::facts(0.9, 3.0, vec![])
        };
        assert_eq!((decide(&calm).kind, decide(&calm).grain), (Kind::Spins, Some(Grain::Fine)));
    }

    #[test]
    fn programs_that_block_are_best_left_to_linux_unless_measured_otherwise() {
        let facts = facts(0.5, 900.0, vec![company("linux", 1.1, 1.0), company("gang", 2.0, 1.0)]);
        let advice = decide(&facts);
        assert_eq!((advice.kind, advice.choice.as_deref()), (Kind::Blocks, Some("linux")));
        assert_eq!(advice.expected[0], (2, 1.0));
        let better =
            super::super::samples::facts(0.5, 900.0, vec![company("linux", 1.5, 1.0), company("local", 1.2, 1.0)]);
        assert_eq!(decide(&better).choice.as_deref(), Some("local"));
    }

    #[test]
    fn differences_within_the_noise_leave_the_simplest() {
        let facts =
            facts(0.99, 1.0, vec![company("linux", 2.04, 1.0), company("local", 2.0, 1.0), company("gang", 2.01, 1.0)]);
        assert_eq!((decide(&facts).kind, decide(&facts).choice.as_deref()), (Kind::Computes, Some("linux")));
        assert_eq!(
            decide(&super::super::samples::facts(0.01, 2.0, vec![company("linux", 1.0, 1.0)])).kind,
            Kind::Sleeps
        );
    }

    #[test]
    fn bounds_are_no_measurements() {
        let cut = Company { is_bound: true, ..company("linux", 4.0, 2.0) };
        let advice = decide(&facts(0.98, 3.0, vec![cut.clone(), company("gang", 4.5, 1.0)]));
        assert_eq!(advice.choice.as_deref(), Some("gang"));
        assert_eq!(decide(&facts(0.98, 3.0, vec![cut])).choice, None);
    }

    #[test]
    fn of_a_cut_spinner_only_its_kind_is_known() {
        let mut facts = facts(0.99, 3.0, vec![company("linux", 2.0, 1.0), company("gang", 2.1, 1.0)]);
        facts.is_whole = false;
        assert_eq!((decide(&facts).kind, decide(&facts).choice), (Kind::Unknown, None));
        facts.waits = Some(Waits { polls_per_cpu_s: 6e6, per_s: None });
        assert_eq!((decide(&facts).choice.as_deref(), decide(&facts).is_measured), (Some("gang"), false));
    }

    #[test]
    fn what_does_not_fit_is_not_shared_and_noise_is_named() {
        let mut facts = facts(0.98, 3.0, vec![company("linux", 2.0, 1.0)]);
        facts.memory_bytes = 5 << 30;
        facts.others_cpu_share = 0.4;
        let advice = decide(&facts);
        assert_eq!((advice.jobs_in_memory, advice.choice, advice.is_uncertain), (Some(1), None, true));
        assert!(!decide(&super::super::samples::facts(0.4, 3.0, vec![company("linux", 1.0, 1.0)])).is_uncertain);
        assert!(decide(&super::super::samples::facts(0.4, 3.0, vec![company("linux", 0.7, 1.0)])).is_uncertain);
    }

    #[test]
    fn memory_that_nobody_saw_fits_how_often_nobody_knows() {
        let facts = Facts { memory_bytes: 0, ..facts(0.5, 3.0, vec![company("linux", 1.0, 1.0)]) };
        assert_eq!(decide(&facts).jobs_in_memory, None);
    }
}
