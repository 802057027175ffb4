//! `cosched show`: everything about a job.

use super::columns::elapsed_ms;
use crate::context::Context;
use crate::out::{Failure, plain, print, print_json};
use crate::{format, jobs};
use cosched_api::{Adopted, DecidedMatter, Job, JobState, JobWaiting, NodeResources, WaitMode};
use std::fmt::Write;

/// `cosched show JOB…`.
pub(crate) fn show(context: &Context, words: &[String]) -> Result<u8, Failure> {
    let mut first = true;
    jobs::for_each(context, words, |client, id| {
        let job = client.job(id)?;
        if context.json {
            print_json(&job)?;
        } else {
            print(&format!("{}{}", if first { "" } else { "\n" }, text(&job, format::now_unix_ms())))?;
            first = false;
        }
        Ok(0)
    })
}

/// As it is printed.
pub(crate) fn text(job: &Job, now_unix_ms: u64) -> String {
    let mut lines = vec![
        ("job", format!("{} {}", job.id, job.name)),
        ("state", state(job)),
        ("user", format!("{} (uid {})", job.user, job.uid)),
        ("class", decided(job, DecidedMatter::Class, job.class.name().into())),
        ("policy", decided(job, DecidedMatter::Policy, policy(job))),
        ("CPUs", cpus(job)),
        ("command", format::command_line(&job.command)),
    ];
    let mut add = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    add("adopted", job.adopted.as_ref().map(adopted));
    add("limits", job.adopted.as_ref().map(|adopted| adopted.limits.join(", ")).filter(|limits| !limits.is_empty()));
    add("quota", job.adopted.as_ref().and_then(|adopted| adopted.quota).map(quota));
    add("directory", job.cwd.clone());
    add("submitted", Some(format::moment(job.submitted_unix_ms)));
    // Only if it waited.
    let later = |start: &u64| start.abs_diff(job.submitted_unix_ms) >= 1000;
    add("started", job.started_unix_ms.filter(later).map(format::moment));
    add("starts", job.expected_start_unix_ms.map(|at| format!("{} at the latest", format::second(at))));
    add("ended", job.ended_unix_ms.map(format::moment));
    add("elapsed", elapsed_ms(job, now_unix_ms).map(format::duration_ms));
    add("CPU time", Some(cpu_time(job)));
    add("share", share(job));
    let most = job.share_max.map(|part| format!("{} of the time, in whole slots", format::exact_percent(part)));
    add("at most", most.map(|text| decided(job, DecidedMatter::Share, text)));
    add("memory", memory(job));
    add("time limit", job.time_ms_max.map(format::duration_ms));
    add("begins", job.begin_unix_ms.filter(|_| job.state == JobState::Waiting).map(format::moment));
    add("nodes", nodes(job));
    add("queue", job.queue.clone());
    add("restarts", Some(job.restarts).filter(|count| *count > 0).map(|count| count.to_string()));
    add("first pid", Some(job.pid).filter(|pid| *pid != 0).map(|pid| pid.to_string()));
    add("processes", job.processes.map(|count| format!("{count}{}", on_nodes(job))));
    add("matrix", matrix(job));
    add("waiting", job.waiting.as_ref().map(waiting));
    add("boosts", job.boosts.map(|count| format!("{count} caused by messages")));
    add("output", job.log_path.clone());
    add("cgroup", Some(job.cgroup.clone()).filter(|path| !path.is_empty()));
    lines.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<11}{}", plain(value));
        text
    })
}

fn cpus(job: &Job) -> String {
    let list = job.places.as_ref().map(|list| format!("CPUs {list}"));
    let alone = job.exclusive_cores.then(|| "cores to itself".to_owned());
    let more: Vec<String> = list.into_iter().chain(alone).collect();
    if more.is_empty() { job.cpus.to_string() } else { format!("{} ({})", job.cpus, more.join(", ")) }
}

/// Its owner's quota of CPU time, where that was turned into a share.
fn quota(part: f64) -> String {
    format!(
        "its owner's, turned into a share of {}; it holds again when the job is released",
        format::exact_percent(part)
    )
}

/// Where an adopted job comes from, and whether its processes stay there.
fn adopted(adopted: &Adopted) -> String {
    let from = adopted.from.as_deref().unwrap_or("a cgroup");
    match adopted.cgroup {
        Some(_) => format!("{from}; it stays in its cgroup"),
        None => format!("{from}; its processes were moved, and are moved back by `cosched release`"),
    }
}

/// Adds who decided it, if that was an administrator.
fn decided(job: &Job, matter: DecidedMatter, text: String) -> String {
    match job.decided.iter().find(|decision| decision.matter == matter) {
        Some(decision) => format!("{text}, set by {}, an administrator", decision.user),
        None => text,
    }
}

fn state(job: &Job) -> String {
    let state = job.state.name();
    let exit = job.exit.map(|exit| match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("by {}", format::signal(signal)),
        (None, None) => "it is unknown how".into(),
    });
    let exit = match (exit, job.out_of_memory) {
        (Some(exit), Some(killed)) => Some(format!("{exit}; {killed}")),
        (exit, _) => exit,
    };
    match (job.state, exit) {
        (JobState::Ended, _) if job.adopted.as_ref().is_some_and(|adopted| adopted.released) => {
            format!("{state}: it was released, and its processes run on without cosched")
        }
        (JobState::Ended, None) if job.adopted.is_some() && job.ended_why.is_none() => {
            format!("{state}: it has no process left")
        }
        (JobState::Ended, Some(exit)) => match &job.ended_why {
            Some(why) => format!("{state}, {exit}: {why}"),
            None => format!("{state}, {exit}"),
        },
        (JobState::Ended, None) if job.ended_why.is_some() => {
            format!("{state}: {}", job.ended_why.as_deref().unwrap_or_default())
        }
        (JobState::Ended, None) => format!("{state}; it is unknown how"),
        (JobState::Waiting, _) => match &job.waits_for {
            Some(why) => format!("{state}: {why}"),
            None => state.into(),
        },
        (JobState::Running, None) if job.stopped => {
            "stopped by a signal, as Ctrl-Z sends it; `fg` in its terminal continues it, or `cosched kill -s CONT`"
                .into()
        }
        (JobState::Asleep, _) => format!("{state}: it used no CPU for a while, so it has no slots"),
        (JobState::Dropped, _) => format!(
            "{state}: it used no CPU for a very long time, so Linux schedules it; `cosched resume {}` gives it slots again",
            job.id
        ),
        (JobState::Unknown, _) => format!("{state}: the store's state cannot be read; `cosched status` says why"),
        (JobState::Lost, _) => format!("{state}: its processes vanished while no daemon was running"),
        (JobState::Suspended, None) => decided(job, DecidedMatter::Suspension, state.into()),
        (_, Some(exit)) => format!("{state}; its main process has ended, {exit}"),
        (_, None) => state.into(),
    }
}

/// What it has on each node, or requests while it waits.
fn nodes(job: &Job) -> Option<String> {
    let node = |node: &NodeResources| {
        let cpus = node.cpus.map(|cpus| format!(":{cpus}")).unwrap_or_default();
        let memory = node.memory_bytes.map(|bytes| format!(" ({})", format::size(bytes))).unwrap_or_default();
        format!("{}{cpus}{memory}", node.name)
    };
    let nodes: Vec<String> = job.nodes.iter().map(node).collect();
    (!nodes.is_empty()).then(|| nodes.join(", "))
}

fn policy(job: &Job) -> String {
    let whose = if job.own_policy.is_some() { "its own" } else { "the machine's" };
    let policy = format!("{} ({whose})", job.policy.name());
    let Some(chosen) = &job.chosen else { return policy };
    let since = format::moment(chosen.since_unix_ms);
    let changes = match chosen.changes {
        0 => String::new(),
        1 => ", changed once".into(),
        count => format!(", changed {count} times"),
    };
    format!("{policy}: {} since {since}{changes}; {}", chosen.policy.name(), chosen.why)
}

/// How its processes wait and what that costs.
fn waiting(waiting: &JobWaiting) -> String {
    let asked = if waiting.asked.mode == waiting.mode { "" } else { " (asked: auto)" };
    let spin = match (waiting.spin_us, waiting.asked.spin_us) {
        (Some((low, high)), _) if low == high => format!(" {low} µs"),
        (Some((low, high)), _) => format!(" {low} to {high} µs"),
        (None, Some(us)) => format!(" {us} µs"),
        (None, None) => String::new(),
    };
    let subgangs = match waiting.subgangs {
        0 => String::new(),
        count => {
            format!("; {count} subgangs (processes with several busy threads, or programs of several ranks) take turns")
        }
    };
    let mut text = format!("{}{spin}{asked}{subgangs}", waiting.mode.name());
    if waiting.polls == 0 {
        // The library is not involved.
        if waiting.mode != WaitMode::Micro {
            text.push_str("; no waits recorded yet");
        }
        return text;
    }
    let (spun, slept) = (format::duration_ms(waiting.spin_ms), format::duration_ms(waiting.block_ms));
    let _ = write!(text, "; {} waits, {} ended while spinning", waiting.waits, waiting.spins);
    let _ = write!(
        text,
        "; blocked {} times, {} until a timeout, yielded {}",
        waiting.blocks, waiting.timeouts, waiting.yields
    );
    let _ = write!(text, "; spun {spun}, slept {slept}, in {} processes", waiting.processes);
    text
}

fn cpu_time(job: &Job) -> String {
    if job.use_of_nodes.as_ref().is_some_and(Vec::is_empty) {
        return "not known on this node; ask the daemons of its nodes".into();
    }
    let total = format!("{}{}", format::duration_ms(job.cpu_time_ms), on_nodes(job));
    job.cpu_percent.map_or(total.clone(), |percent| format!("{total}, now {percent:.0}% of one CPU"))
}

/// The job's share of the machine's CPU time, over the last seconds.
fn share(job: &Job) -> Option<String> {
    let (due, received) = (job.share_due?, job.share_received?);
    let outside = job
        .outside_ms
        .map_or(String::new(), |ms| format!("; {} of its CPU time outside its slots", format::duration_ms(ms)));
    Some(format!("received {} of the machine, due {}{outside}", format::percent(received), format::percent(due)))
}

fn memory(job: &Job) -> Option<String> {
    let parts = [
        ("now", job.memory_bytes),
        ("at most", job.memory_peak_bytes),
        ("declared", job.mem_bytes),
        ("limit", job.mem_bytes_max),
    ];
    let known: Vec<String> =
        parts.iter().filter_map(|(name, bytes)| bytes.map(|bytes| format!("{name} {}", format::size(bytes)))).collect();
    (!known.is_empty()).then(|| known.join(", ") + &on_nodes(job))
}

/// The node where its use was measured, if it has other nodes, too.
fn on_nodes(job: &Job) -> String {
    match job.use_of_nodes.as_deref() {
        None | Some([]) => String::new(),
        Some(names) => format!(" on {} alone", names.join(", ")),
    }
}

fn matrix(job: &Job) -> Option<String> {
    let row = job.row.map(|row| format!("row {row}"));
    let share = job.share.map(|share| format!("owns its CPUs {} of the time", format::percent(share)));
    let parts: Vec<String> = row.into_iter().chain(share).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::job;

    #[test]
    fn what_other_nodes_know_is_not_told_as_the_whole_job_s() {
        let mut job = job(7, "a.out");
        (job.use_of_nodes, job.processes, job.memory_bytes) = (Some(vec!["b".into()]), Some(3), Some(1 << 20));
        let shown = text(&job, job.submitted_unix_ms);
        for line in ["CPU time   12.3s on b alone\n", "processes  3 on b alone\n", "memory     now 1.0M on b alone\n"] {
            assert!(shown.contains(line), "`{line}` is missing in:\n{shown}");
        }
        (job.use_of_nodes, job.processes, job.memory_bytes) = (Some(vec![]), None, None);
        (job.pid, job.cgroup) = (0, String::new());
        let shown = text(&job, job.submitted_unix_ms);
        assert!(shown.contains("CPU time   not known on this node"), "{shown}");
        assert!(!shown.contains("first pid") && !shown.contains("cgroup"), "{shown}");
    }

    #[test]
    fn who_ended_a_job_is_told() {
        let mut job = job(7, "a.out");
        (job.state, job.ended_why) = (JobState::Ended, Some("killed by ann".into()));
        assert_eq!(state(&job), "ended: killed by ann");
        job.exit = Some(cosched_api::ExitStatus { code: None, signal: Some(9) });
        assert_eq!(state(&job), "ended, by SIGKILL: killed by ann");
    }

    #[test]
    fn what_was_killed_for_lack_of_memory_is_told() {
        let mut job = job(7, "a.out");
        job.state = JobState::Ended;
        job.exit = Some(cosched_api::ExitStatus { code: None, signal: Some(9) });
        job.out_of_memory = Some(cosched_api::OutOfMemory { killed: 1, limit_bytes: Some(64 << 20) });
        assert_eq!(state(&job), "ended, by SIGKILL; out of memory: the kernel killed 1 process, limit 64 MiB");
        job.out_of_memory = Some(cosched_api::OutOfMemory { killed: 2, limit_bytes: None });
        assert_eq!(state(&job), "ended, by SIGKILL; out of memory: the kernel killed 2 processes");
    }

    #[test]
    fn a_running_gang() {
        let mut job = job(7, "a.out");
        (job.row, job.share, job.processes) = (Some(1), Some(0.5), Some(3));
        job.started_unix_ms = Some(job.submitted_unix_ms);
        job.places = Some("2-3".into());
        (job.memory_bytes, job.mem_bytes) = (Some(1 << 20), Some(4 << 30));
        (job.time_ms_max, job.mem_bytes_max) = (Some(7_200_000), Some(5 << 30));
        (job.share_due, job.share_received, job.outside_ms) = (Some(0.5), Some(0.46), Some(1200));
        let text = text(&job, job.submitted_unix_ms + 65_000);
        for line in [
            "job        7 a.out\n",
            "state      running\n",
            "policy     gang (the machine's)\n",
            "CPUs       2 (CPUs 2-3)\n",
            "elapsed    1m05s\n",
            "share      received 46% of the machine, due 50%; 1.2s of its CPU time outside its slots\n",
            "memory     now 1.0M, declared 4.0G, limit 5.0G\n",
            "time limit 2h00m\n",
            "matrix     row 1, owns its CPUs 50% of the time\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(!text.contains("output") && !text.contains("ended"), "{text}");
    }

    #[test]
    fn states_are_explained() {
        let mut job = job(7, "a.out");
        job.exit = Some(cosched_api::ExitStatus { code: Some(3), signal: None });
        assert_eq!(state(&job), "running; its main process has ended, exit code 3");
        job.state = JobState::Ended;
        assert_eq!(state(&job), "ended, exit code 3");
        job.exit = None;
        assert_eq!(state(&job), "ended; it is unknown how");
    }
}
