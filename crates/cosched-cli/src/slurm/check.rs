//! `cosched slurm check`: inconsistencies between this node's Slurm, the settings and the daemon.

use super::finding::{Finding, field};
use super::settings::Settings;
use super::{connect, names};
use crate::context::Context;
use crate::out::Failure;
use cosched_api::Status;
use std::path::Path;
use std::process::Command;

/// Runs all checks, prints the findings, and returns 1 when something is wrong.
pub(super) fn check(context: &Context, path: &Path) -> Result<u8, Failure> {
    let settings = Settings::read(path)?;
    let status = connect(context, &settings).and_then(|mut client| Ok(client.status()?));
    let mut findings = vec![daemon(&status)];
    match (ask(&["show", "config"]), ask(&["show", "partition", "--oneliner"])) {
        (Ok(config), Ok(partitions)) => {
            findings.extend(hooks(&config));
            findings.extend(plugins(&config, unified()));
            findings.extend(sharing(&partitions));
        }
        (Err(why), _) | (_, Err(why)) => findings.push(Finding::new("wrong", why)),
    }
    if let (Ok(status), Ok(nodes)) = (&status, ask(&["show", "nodes", "--oneliner"])) {
        findings.extend(names::agree(&nodes, &hostname(), status));
    }
    let wrong = findings.iter().any(|finding| finding.verdict == "wrong");
    let line = |finding: &Finding| format!("{:5}  {}\n", finding.verdict, finding.what);
    context.give(&findings, || findings.iter().map(line).collect())?;
    Ok(u8::from(wrong))
}

fn daemon(status: &Result<Status, Failure>) -> Finding {
    match status {
        Ok(Status { version, node, cluster: None, .. }) => {
            Finding::new("ok", format!("coschedd {version} answers on {node}, a single machine"))
        }
        Ok(Status { version, node, cluster: Some(cluster), .. }) if cluster.alone => {
            Finding::new("ok", format!("coschedd {version} answers on {node}, a single machine"))
        }
        Ok(Status { version, node, cluster: Some(cluster), .. }) if cluster.store_answers => {
            Finding::new("ok", format!("coschedd {version} answers on {node}, a node of cluster {}", cluster.name))
        }
        Ok(Status { node, cluster: Some(cluster), .. }) => Finding::new(
            "wrong",
            format!(
                "coschedd on {node} has no contact with the store of cluster {}; `cosched status` says why",
                cluster.name
            ),
        ),
        Err(failure) => Finding::new("wrong", failure.message.replace("\n  ", "; ")),
    }
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

fn ask(words: &[&str]) -> Result<String, String> {
    let shown = format!("scontrol {}", words.join(" "));
    let output = Command::new("scontrol").args(words).output().map_err(|e| format!("`{shown}` cannot be run: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{shown}` failed: {}", said.lines().next().unwrap_or("it wrote nothing")))
}

/// Whether v2 has the controllers: then one hierarchy serves Slurm and cosched, and a process has one place in it.
fn unified() -> bool {
    std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").is_ok_and(|text| text.contains("cpu"))
}

fn value<'a>(config: &'a str, key: &str) -> Option<&'a str> {
    let find = |line: &'a str| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key).then_some(value.trim())
    };
    config.lines().find_map(find).filter(|value| !matches!(*value, "" | "(null)"))
}

/// One finding for each hook, whether it is configured or not. A task prolog suffices to schedule jobs.
fn hooks(config: &str) -> Vec<Finding> {
    let absent = [
        ("TaskProlog", "wrong", "no task enters its cosched job"),
        ("Prolog", "note", "the first task registers the job: never in class express, and when_down has no effect"),
        ("Epilog", "note", "processes that Slurm does not find at the job's end remain"),
    ];
    let finding = |(key, verdict, without): (&str, &'static str, &str)| match value(config, key) {
        Some(path) => Finding::new("ok", format!("{key}={path}")),
        None => Finding::new(verdict, format!("{key} is not set in slurm.conf: {without}")),
    };
    absent.into_iter().map(finding).collect()
}

fn plugins(config: &str, unified: bool) -> Vec<Finding> {
    let of = |key: &str| value(config, key).unwrap_or_default();
    let mut found = Vec::new();
    match of("PreemptMode") {
        mode if mode.contains("GANG") => {
            found.push(Finding::new(
                "wrong",
                format!("PreemptMode={mode}: Slurm would stop jobs that have slots from cosched; remove GANG"),
            ));
        }
        mode => found.push(Finding::new("ok", format!("PreemptMode={mode}"))),
    }
    for key in ["ProctrackType", "TaskPlugin", "JobAcctGatherType"] {
        let value = of(key);
        if unified && value.contains("cgroup") {
            let why = "in the single hierarchy of cgroup v2, a task cannot be in both Slurm's and cosched's cgroup";
            found.push(Finding::new("wrong", format!("{key}={value}: {why}; see docs/slurm.md")));
        } else if value.contains("affinity") {
            let why = "tasks of jobs smaller than the node are bound to CPUs that cosched did not choose";
            found.push(Finding::new("note", format!("{key}={value}: {why}")));
        } else {
            found.push(Finding::new("ok", format!("{key}={value}")));
        }
    }
    if !matches!(value(config, "InactiveLimit"), None | Some("0 sec")) {
        found.push(Finding::new(
            "note",
            "InactiveLimit: an srun inside a suspended job does not answer, and slurmctld ends its job",
        ));
    }
    found
}

fn sharing(partitions: &str) -> Vec<Finding> {
    let finding = |line: &str| {
        let (name, shared) = (field(line, "PartitionName"), field(line, "OverSubscribe"));
        match shared.split(':').next() {
            Some("FORCE" | "YES") => Finding::new("ok", format!("partition {name}: OverSubscribe={shared}")),
            _ => Finding::new("note", format!("partition {name}: OverSubscribe={shared}: its jobs do not share CPUs")),
        }
    };
    partitions.lines().filter(|line| line.contains("PartitionName=")).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(findings: &[Finding]) -> Vec<&'static str> {
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn missing_hooks_are_named() {
        let config =
            "Epilog                  = (null)\nProlog                  = /x/prolog\nPrologEpilogTimeout     = 65534\n";
        let found = hooks(config);
        assert_eq!(verdicts(&found), ["wrong", "ok", "note"]);
        assert!(found[0].what.starts_with("TaskProlog is not set"), "{found:?}");
    }

    #[test]
    fn what_does_not_go_together_is_wrong() {
        let config = |preempt: &str, track: &str, task: &str, inactive: &str| {
            format!(
                "PreemptMode = {preempt}\nProctrackType = {track}\nTaskPlugin = {task}\n\
                 JobAcctGatherType = jobacct_gather/linux\nInactiveLimit = {inactive}\n"
            )
        };
        let good = config("OFF", "proctrack/linuxproc", "task/none", "0 sec");
        assert_eq!(verdicts(&plugins(&good, true)), ["ok"; 4]);
        let gang = config("GANG,SUSPEND", "proctrack/cgroup", "task/cgroup,task/affinity", "60 sec");
        assert_eq!(verdicts(&plugins(&gang, true)), ["wrong", "wrong", "wrong", "ok", "note"]);
        assert_eq!(verdicts(&plugins(&gang, false)), ["wrong", "ok", "note", "ok", "note"]);
    }

    #[test]
    fn partitions_that_share_are_told_from_those_that_do_not() {
        let found =
            sharing("PartitionName=a Default=NO OverSubscribe=NO\nPartitionName=b OverSubscribe=FORCE:4 X=1\n\n");
        assert_eq!(verdicts(&found), ["note", "ok"]);
    }
}
