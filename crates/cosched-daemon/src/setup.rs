//! `coschedd --setup`: what this machine offers to cosched and what could be improved, as data for `cosched setup`.
//!
//! It uses the same functions as the daemon at its start. With `fix` it changes kernel settings that are known to cause trouble, and only those that
//! a reboot reverts.

use crate::args::Args;
use crate::config::Config;
use crate::driver::not_good_enough;
use crate::ground;
use crate::instance::{Places, lock_tree};
use cosched_linux::observe::{clock_error, cpus_allowed};
use cosched_linux::{mechanism, realtime};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The result of one check.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    subject: &'static str,
    /// `ok`, `better` (works, could be better) or `missing` (jobs cannot run as jobs without it).
    state: &'static str,
    found: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    hint: String,
    /// The change that `--fix` has made, or could make.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<Fix>,
}

/// A setting that can be fixed.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Fix {
    path: PathBuf,
    value: String,
    done: bool,
}

impl Finding {
    fn ok(subject: &'static str, found: impl Into<String>) -> Finding {
        Finding { subject, state: "ok", found: found.into(), hint: String::new(), fix: None }
    }

    fn better(subject: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Finding {
        Finding { state: "better", hint: hint.into(), ..Finding::ok(subject, found) }
    }

    fn missing(subject: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Finding {
        Finding { state: "missing", hint: hint.into(), ..Finding::ok(subject, found) }
    }
}

/// Prints the findings, a line of JSON each.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn setup(config: &Config, args: &Args, fix: bool) -> anyhow::Result<()> {
    let mut found = cgroups(config, args);
    found.push(real_time(config, Path::new("/proc/sys/kernel/sched_rt_runtime_us")));
    found.push(locked_memory());
    let why = not_good_enough(clock_error(), config.slot_length.as_nanos() as u64);
    found.push(match why {
        None => Finding::ok("clock", "synchronised"),
        Some(why) => Finding::better(
            "clock",
            why,
            "gangs that span nodes need it: let chrony or another time daemon keep the clock",
        ),
    });
    found.push(swap(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default()));
    found.push(match cpus_allowed().len() {
        1 => Finding::better("CPUs", "1", "a parallel job needs several; gangs of one process each gain nothing"),
        count => Finding::ok("CPUs", count.to_string()),
    });
    for mut finding in found {
        if let Some(of) = finding.fix.as_mut().filter(|_| fix) {
            match std::fs::write(&of.path, &of.value) {
                Ok(()) => (of.done, finding.state) = (true, "ok"),
                Err(e) => finding.hint = format!("{}; it could not be changed: {e}", finding.hint),
            }
        }
        println!("{}", serde_json::to_string(&finding)?);
    }
    Ok(())
}

/// The location of jobs' cgroups, and the mechanism that would switch gangs.
fn cgroups(config: &Config, args: &Args) -> Vec<Finding> {
    let places = Places::new(args, config);
    let (tree, without) = match ground::open_tree(ground::cgroups(&args.cgroup), (args, config, &places)) {
        Ok(opened) => opened,
        Err(e) => {
            let hint = "`cosched run` gives commands only the wait library here; gangs need root, a cgroup of your own \
                        (systemd-run --user --scope -p Delegate=yes $SHELL), or a kernel with pidfds";
            return vec![Finding::missing("cgroups", format!("{e:#}"), hint)];
        }
    };
    let mut found = match without {
        None => vec![
            Finding::ok("cgroups", tree.layout().to_string()),
            Finding::ok("own cgroup", tree.v2_dir().display().to_string()),
        ],
        Some(of) => vec![Finding::better("cgroups", format!("{} ({})", of.what, of.why), of.hint)],
    };
    let probes = mechanism::probe(&tree);
    found.push(match probes.iter().find(|probe| (probe.soft || tree.has_keepers()) && probe.usable) {
        Some(probe) => Finding::ok("switching", format!("{}: {}", probe.name, probe.why)),
        None => Finding::better(
            "switching",
            "gangs are frozen outside their slots",
            "Linux 5.15 or newer lets them use idle CPUs",
        ),
    });
    // A running daemon holds the lock of the cgroup, also while it has no jobs.
    if lock_tree(&tree).is_ok() && tree.jobs().is_ok_and(|jobs| jobs.is_empty()) {
        let _ = tree.remove();
    }
    found
}

/// Whether the slot thread would get real-time priority, and CPU time at it.
fn real_time(config: &Config, budget: &Path) -> Finding {
    // Tried in a thread that ends, so that the priority does not stay.
    let priority = config.realtime_priority;
    let tried = std::thread::spawn(move || realtime::become_realtime(priority)).join();
    judged(
        tried.map_or_else(|_| Err("it could not be tried".to_owned()), |tried| tried.map_err(|e| e.to_string())),
        priority,
        budget,
    )
}

/// The finding for real-time priority that was granted or not.
fn judged(tried: Result<(), String>, priority: i32, budget: &Path) -> Finding {
    let subject = "real-time priority";
    let budget_us = std::fs::read_to_string(budget).unwrap_or_default();
    match tried {
        Ok(()) if budget_us.trim() == "0" => {
            let hint = "the kernel gives real-time threads no CPU time (kernel.sched_rt_runtime_us): the slot thread would never run";
            let fix = Fix { path: budget.to_owned(), value: "950000".to_owned(), done: false };
            Finding { fix: Some(fix), ..Finding::missing(subject, "granted, but without CPU time", hint) }
        }
        Ok(()) => Finding::ok(subject, format!("SCHED_FIFO {priority}")),
        Err(e) => Finding::better(
            subject,
            format!("not granted: {e}"),
            "switches can come late under load: run the daemon as root (systemctl enable --now coschedd.socket), or raise LimitRTPRIO",
        ),
    }
}

fn locked_memory() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    match limit {
        Some(bytes) if bytes < 64 << 20 && !rustix::process::getuid().is_root() => Finding::better(
            "locked memory",
            format!("{} KiB", bytes >> 10),
            "the daemon's memory may be swapped out, and switches come late: raise LimitMEMLOCK (ulimit -l)",
        ),
        _ => Finding::ok("locked memory", "permitted"),
    }
}

fn swap(meminfo: &str) -> Finding {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("SwapTotal:"));
    let kib: u64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    match kib {
        0 => Finding::ok("swap", "none"),
        kib => Finding::better(
            "swap",
            format!("{} MiB", kib >> 10),
            "jobs that together need more than the memory page each other out at every switch: declare --mem, and set \
             `memory` in cosched.toml, so that jobs that do not fit wait",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_is_worth_a_word_and_none_is_not() {
        assert_eq!((swap("SwapTotal: 0 kB").state, swap("").state), ("ok", "ok"));
        let found = swap("MemTotal: 1 kB\nSwapTotal:  2097152 kB\n");
        assert_eq!((found.state, found.found.as_str()), ("better", "2048 MiB"));
    }

    #[test]
    fn real_time_threads_without_cpu_time_can_be_helped() {
        let dir = tempfile::tempdir().unwrap();
        let budget = dir.path().join("sched_rt_runtime_us");
        std::fs::write(&budget, "0\n").unwrap();
        let found = judged(Ok(()), 10, &budget);
        let fix = Fix { path: budget.clone(), value: "950000".to_owned(), done: false };
        assert_eq!((found.state, found.fix), ("missing", Some(fix)));
        let refused = judged(Err("not permitted".to_owned()), 10, &budget);
        assert_eq!((refused.state, refused.fix), ("better", None));
        std::fs::write(&budget, "950000\n").unwrap();
        assert_eq!(judged(Ok(()), 10, &budget).state, "ok");
    }
}
