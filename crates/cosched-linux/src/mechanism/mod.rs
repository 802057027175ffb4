//! The mechanisms that stop and start a gang.
//!
//! The problem: at a slot boundary the outgoing gang must leave its CPUs and the incoming one must have them, within a fraction of a millisecond, for
//! as few system calls as possible. Measurements (reference/live-mechanisms.md, §2): the v2 freezer takes the CPUs away within 50 µs; weights and
//! cpu.idle act at the scheduler's next tick (4 ms) only; signals are as fast as the freezer, but programs and their parents see them.
//!
//! | name | outgoing gang | when |
//! |---|---|---|
//! | `freezer` | frozen for the slot | strict |
//! | `freeze-idle` | frozen until a CPU is idle, then thawed with cpu.idle | soft |
//! | `freeze-shares` | frozen until a CPU is idle, then thawed with the least weight | soft, kernels before 5.15 |
//! | `signals` | SIGSTOP for the slot | second choice, by name only; without cgroups the only one |

mod freezer;
mod signals;
mod soft;

pub use freezer::Freezer;
pub use signals::Signals;
pub use soft::Soft;

use rustix::io::Errno;

use crate::problem::Problem;
use crate::switch::{JobSwitch, WEIGHT_DEFAULT};
use crate::tree::Tree;
use cosched_core::Disposition;

/// The two occasions on which a job's state is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// At a switch: a gang starts, or leaves its CPUs at once.
    Switch,
    /// When CPUs are found idle, or nothing is switched: a gang in the background may use them.
    Fill,
}

/// Which gang's files are written first at a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The incoming gang is started, then the outgoing one is stopped.
    IncomingFirst,
    /// The outgoing gang is stopped, then the incoming one is started.
    OutgoingFirst,
}

/// A way to stop and start gangs. Implementations neither allocate nor lock: they write to open descriptors only.
pub trait Mechanism: Send {
    /// Its name, as `cosched status` shows it.
    fn name(&self) -> &'static str;

    /// The order of writes at a boundary.
    fn order(&self) -> Order;

    /// True when it has a background state; otherwise [`Disposition::Background`] is the same as [`Disposition::Stop`].
    fn has_background(&self) -> bool {
        false
    }

    /// True when a stopped process can only be started again by SIGCONT.
    fn uses_signals(&self) -> bool {
        false
    }

    /// Brings `job` from its present state into `to`; a running job gets `weight` (1 to 10000).
    ///
    /// # Errors
    /// The kernel's. The job keeps its recorded state then, so that the next application tries again.
    fn apply(&self, job: &JobSwitch, to: Disposition, weight: u32, phase: Phase) -> Result<(), Errno>;

    /// Lets `job` run as if cosched did not exist.
    ///
    /// # Errors
    /// The kernel's.
    fn release(&self, job: &JobSwitch) -> Result<(), Errno> {
        job.set_frozen(false)?;
        job.set_idle(false)?;
        job.set_weight(WEIGHT_DEFAULT)?;
        job.set_state(None);
        Ok(())
    }
}

/// Whether a mechanism works here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The mechanism's name.
    pub name: &'static str,
    /// True when it keeps the other gangs in the background instead of stopping them.
    pub soft: bool,
    /// True when it works here.
    pub usable: bool,
    /// What it does, or why it does not work.
    pub why: String,
}

/// Tests the requirements of each mechanism in a scratch cgroup of `tree`.
pub fn probe(tree: &Tree) -> Vec<Probe> {
    if tree.has_keepers() {
        let why = "SIGSTOP and SIGCONT to a job's processes by its keeper; programs and their parents see them".into();
        return vec![Probe { name: "signals", soft: false, usable: true, why }];
    }
    let facts = tree.probe_files();
    let mut found = Vec::new();
    let mut add = |name, soft, lacks: Option<String>, does: &str| {
        found.push(Probe { name, soft, usable: lacks.is_none(), why: lacks.unwrap_or_else(|| does.into()) });
    };
    let freeze = facts.freeze;
    let either = |other: Option<String>| freeze.clone().or(other);
    add("freezer", false, freeze.clone(), "cgroup v2 freezer, for the whole slot");
    add("freeze-idle", true, either(facts.idle), "cgroup v2 freezer until a CPU is idle, then cpu.idle");
    add(
        "freeze-shares",
        true,
        either(facts.weight),
        "cgroup v2 freezer until a CPU is idle, then the least CPU weight",
    );
    add("signals", false, None, "SIGSTOP and SIGCONT; programs and their parents see them");
    found
}

/// The best usable mechanism for strict or soft switching, or the one that is `wanted` by name.
///
/// # Errors
/// The wanted one is unknown or unusable, or none is usable: the message says why and names the usable ones.
pub fn choose(tree: &Tree, soft: bool, wanted: Option<&str>) -> Result<Box<dyn Mechanism>, Problem> {
    let probes = probe(tree);
    let chosen = choose_from(&probes, soft, wanted)?;
    Ok(if tree.has_keepers() { Box::new(Freezer::by_keepers()) } else { chosen })
}

fn choose_from(probes: &[Probe], soft: bool, wanted: Option<&str>) -> Result<Box<dyn Mechanism>, Problem> {
    let usable: Vec<&str> = probes.iter().filter(|p| p.usable).map(|p| p.name).collect();
    let hint = format!("usable here: {}", usable.join(", "));
    let Some(name) = wanted else {
        let best = probes.iter().find(|p| p.usable && p.soft == soft).or_else(|| probes.iter().find(|p| p.usable));
        return best.map(|p| make(p.name)).ok_or_else(|| Problem::new("no way to switch gangs", "none works", hint));
    };
    let what = format!("the mechanism '{name}' cannot be used");
    match probes.iter().find(|p| p.name == name) {
        None => Err(Problem::new(what, "there is none of that name", hint)),
        Some(p) if !p.usable => Err(Problem::new(what, p.why.clone(), hint)),
        Some(p) => Ok(make(p.name)),
    }
}

fn make(name: &'static str) -> Box<dyn Mechanism> {
    match name {
        "freezer" => Box::new(Freezer::default()),
        "freeze-idle" => Box::new(Soft::idle()),
        "freeze-shares" => Box::new(Soft::shares()),
        _ => Box::new(Signals::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes(idle: bool) -> Vec<Probe> {
        [("freezer", false, true), ("freeze-idle", true, idle), ("freeze-shares", true, true), ("signals", false, true)]
            .map(|(name, soft, usable)| Probe { name, soft, usable, why: "no cpu.idle".into() })
            .to_vec()
    }

    fn name(probes: &[Probe], soft: bool, wanted: Option<&str>) -> Result<&'static str, Problem> {
        choose_from(probes, soft, wanted).map(|m| m.name())
    }

    #[test]
    fn the_best_usable_mechanism_is_chosen() {
        assert_eq!(name(&probes(true), false, None), Ok("freezer"));
        assert_eq!(name(&probes(true), true, None), Ok("freeze-idle"));
        assert_eq!(name(&probes(false), true, None), Ok("freeze-shares"));
        assert_eq!(name(&probes(true), true, Some("signals")), Ok("signals"));
    }

    #[test]
    fn a_refusal_names_the_reason_and_the_others() {
        let error = name(&probes(false), true, Some("freeze-idle")).unwrap_err();
        assert_eq!(error.why, "no cpu.idle");
        assert_eq!(error.hint, "usable here: freezer, freeze-shares, signals");
        let error = name(&probes(false), true, Some("magic")).unwrap_err();
        assert_eq!(error.why, "there is none of that name");
    }
}
