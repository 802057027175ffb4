//! The weight of our subtree that leaves a part of the CPU time to processes outside jobs.
//!
//! The problem: a reserve is a share, and the kernel has only weights against siblings. The weight of a v1 subtree's siblings depends on a setting of
//! the kernel. With autogroup (sched(7), "The autogroup feature"; the default of most distributions) the processes of a v1 root are not bare tasks:
//! each session is a group of weight 1024. The kernel divides a group's weight, theirs and ours, over the CPUs where the group runs
//! (calc_group_shares in kernel/sched/fair.c). Without autogroup, and below the root always, bare tasks have 1024 on each CPU. The rule: our weight
//! is that of the opponent times the odds, and against bare tasks times the number of CPUs, because ours is divided and theirs is not. So the reserve
//! is exact against one session that runs on all CPUs, or one bare task on each; more of them get more. In the unified layout the opponents are
//! cgroups of weight 100, divided as ours is. Measurements and rejected alternatives: docs/decisions/0004.

use std::path::Path;

use crate::cgfile;
use crate::observe::cpus_online;

const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// The competitors of a v1 subtree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opponents {
    /// Groups of weight 1024, divided over the CPUs where they run.
    Sessions,
    /// Bare tasks of weight 1024, on this many CPUs.
    Tasks { cpus: usize },
}

/// The opponents of a v1 subtree, by the kernel's present settings.
pub(crate) fn opponents(subtree: &Path) -> Opponents {
    opponents_by(subtree, Path::new(AUTOGROUP), cpus_online())
}

fn opponents_by(subtree: &Path, autogroup: &Path, cpus: usize) -> Opponents {
    // Only the root of a v1 hierarchy has this file; a container's apparent root does not, and the kernel groups no tasks there.
    let below_root = subtree.parent().is_some_and(|parent| parent.join("release_agent").exists());
    let enabled = cgfile::read(autogroup).is_ok_and(|content| content.trim() == "1");
    if below_root && enabled { Opponents::Sessions } else { Opponents::Tasks { cpus } }
}

/// The cpu.shares of our subtree that leave the share `reserve` (0 to 1) to the others.
pub(crate) fn shares(reserve: f64, opponents: Opponents) -> u64 {
    let theirs = match opponents {
        Opponents::Sessions => 1024.0,
        Opponents::Tasks { cpus } => 1024.0 * cpus as f64,
    };
    (theirs * odds(reserve)).round().clamp(2.0, 262_144.0) as u64
}

/// The weight in the gangs' part of a slot: so large that others get only a tick now and then. No other part of cosched writes these numbers, so that
/// a thaw after the daemon's death recognises them as meant for a part of a slot only.
pub(crate) const OWN_SHARES: u32 = 262_143;
pub(crate) const OWN_WEIGHT: u32 = 9_999;

/// The cpu.shares of our subtree against neighbours, as if each of `jobs` were one of them.
pub(crate) fn fair_shares(jobs: u32, opponents: Opponents) -> u32 {
    (shares(0.5, opponents) * u64::from(jobs.max(1))).min(u64::from(OWN_SHARES) - 1) as u32
}

/// The same for cpu.weight.
pub(crate) fn fair_weight(jobs: u32) -> u32 {
    jobs.max(1).saturating_mul(100).min(OWN_WEIGHT - 1)
}

/// The cpu.weight of our subtree that leaves the share `reserve` (0 to 1) to one sibling of the default weight 100.
pub(crate) fn weight(reserve: f64) -> u64 {
    (100.0 * odds(reserve)).round().clamp(1.0, 10_000.0) as u64
}

/// The ratio of our share to theirs.
fn odds(reserve: f64) -> f64 {
    let reserve = reserve.clamp(1e-9, 1.0);
    (1.0 - reserve) / reserve
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_reserve_is_the_odds_of_ours_against_theirs() {
        let tasks = |cpus| Opponents::Tasks { cpus };
        assert_eq!(shares(0.5, tasks(2)), 2048);
        assert_eq!(shares(0.1, tasks(2)), 18_432);
        assert_eq!(shares(0.5, Opponents::Sessions), 1024);
        assert_eq!(shares(0.1, Opponents::Sessions), 9216);
        for opponents in [tasks(64), Opponents::Sessions] {
            assert_eq!(shares(0.0, opponents), 262_144);
            assert_eq!(shares(1.0, opponents), 2);
        }
        assert_eq!(weight(0.5), 100);
        assert_eq!(weight(0.05), 1900);
        assert_eq!(weight(0.0), 10_000);
    }

    #[test]
    fn fair_is_a_neighbour_for_each_job() {
        assert_eq!(fair_shares(1, Opponents::Sessions), 1024);
        assert_eq!(fair_shares(3, Opponents::Tasks { cpus: 2 }), 3 * 2048);
        assert_eq!(fair_weight(2), 200);
        for jobs in [0, 1, u32::MAX] {
            assert!((1..OWN_WEIGHT).contains(&fair_weight(jobs)));
            assert!((2..OWN_SHARES).contains(&fair_shares(jobs, Opponents::Tasks { cpus: 64 })));
        }
    }

    #[test]
    fn only_tasks_of_the_root_are_grouped_by_session() {
        let base = tempfile::tempdir().unwrap();
        let (root, setting) = (base.path().join("cpu"), base.path().join("autogroup"));
        fs::create_dir_all(root.join("user/cosched")).unwrap();
        fs::write(root.join("release_agent"), "").unwrap();
        let opponents = |dir: &str| opponents_by(&root.join(dir), &setting, 8);
        assert_eq!(opponents("cosched"), Opponents::Tasks { cpus: 8 }, "a kernel without autogroup");
        fs::write(&setting, "0\n").unwrap();
        assert_eq!(opponents("cosched"), Opponents::Tasks { cpus: 8 }, "switched off");
        fs::write(&setting, "1\n").unwrap();
        assert_eq!(opponents("cosched"), Opponents::Sessions);
        assert_eq!(opponents("user/cosched"), Opponents::Tasks { cpus: 8 }, "below the root");
    }
}
