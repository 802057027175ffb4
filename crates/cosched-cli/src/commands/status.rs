//! `cosched status`: the CPUs, the matrix, the switches, and any problems.

use super::matrix;
use crate::context::Context;
use crate::out::{Failure, print, print_json, use_colour, with_documents};
use crate::picture::draw;
use crate::{format, jobs};
use cosched_api::{Clock, Distribution, NodeStatus, Period, QueueStatus, Status};
use std::io::{self, IsTerminal};
use std::time::Duration;

const WATCH_PAUSE: Duration = Duration::from_millis(500);

/// `cosched status`.
pub(crate) fn status(context: &Context, watch: bool) -> Result<u8, Failure> {
    let mut client = jobs::connect(context)?;
    let redraw = watch && !context.json && io::stdout().is_terminal();
    loop {
        let status = client.status()?;
        if context.json {
            print_json(&status)?;
        } else {
            let text = text(&status, format::now_unix_ms(), use_colour());
            if redraw { draw(&text)? } else { print(&text)? }
        }
        if !watch {
            return Ok(0);
        }
        std::thread::sleep(WATCH_PAUSE);
    }
}

/// Empty on a single machine: a section without lines is not shown.
fn cluster(status: &Status) -> String {
    let Some(cluster) = status.cluster.as_ref().filter(|cluster| !cluster.alone) else { return String::new() };
    let (nodes, gone): (Vec<&NodeStatus>, Vec<&NodeStatus>) =
        status.nodes.iter().flatten().partition(|node| node.alive);
    let names: Vec<&str> = nodes.iter().take(8).map(|node| node.name.as_str()).collect();
    let more = if nodes.len() > names.len() { ", … (`cosched nodes`)" } else { "" };
    let store = if cluster.store_answers { "" } else { "; its store does not answer" };
    let plan = match cluster.plan_in_use {
        Some(plan) if plan == cluster.plan_generation => format!("plan {plan}"),
        Some(plan) => format!("plan {plan}, {} is the newest", cluster.plan_generation),
        None => "no plan: gangs that span nodes have no slots here".to_owned(),
    };
    let gone = if gone.is_empty() { String::new() } else { format!("; {} gone (`cosched nodes`)", gone.len()) };
    format!("{}{store}; {plan}; {} nodes: {}{more}{gone}", cluster.name, nodes.len(), names.join(", "))
}

/// The queues of a single machine, if it has any; `cosched nodes` shows those of a cluster.
fn queues(status: &Status) -> String {
    let Some(cluster) = status.cluster.as_ref().filter(|cluster| cluster.alone) else { return String::new() };
    let store = if cluster.store_answers { "" } else { "; they cannot be written now" };
    let queue = |queue: &QueueStatus| match queue.waiting {
        0 => queue.name.clone(),
        waiting => format!("{} ({waiting} wait)", queue.name),
    };
    let names: Vec<String> = cluster.queues.iter().map(queue).collect();
    let ceiling = match cluster.ceiling {
        1.0.. => String::new(),
        part => format!("; gangs have at most {} of the slots", format::percent(part)),
    };
    format!("{}{ceiling}{store}", names.join(", "))
}

fn text(status: &Status, now_unix_ms: u64, colour: bool) -> String {
    let mut sections = vec![
        ("daemon", daemon(status, now_unix_ms)),
        ("CPUs", cpus(status)),
        ("policy", policy(status)),
        ("cluster", cluster(status)),
        ("queues", queues(status)),
        ("jobs", counts(status)),
        ("matrix", matrix_lines(status)),
        ("switches", switches(status)),
        ("boosts", boosts(status)),
        ("mechanism", mechanisms(status)),
        ("cgroups", status.layout.clone()),
        ("safety", safety(status)),
        ("clock", status.clock.as_ref().map(|of| clock(of, is_cluster(status))).unwrap_or_default()),
    ];
    sections.push(("wrong", warnings(status, colour)));
    let mut text = String::new();
    for (title, lines) in sections {
        for (number, line) in lines.lines().enumerate() {
            let title = if number == 0 { title } else { "" };
            text.push_str(format!("{title:<11}{line}").trim_end());
            text.push('\n');
        }
    }
    text
}

fn daemon(status: &Status, now_unix_ms: u64) -> String {
    let up = format::duration_ms(now_unix_ms.saturating_sub(status.started_unix_ms));
    let kind = if status.embedded { ", started on demand" } else { "" };
    let who = format!("pid {}, uid {}, up {up}{kind}", status.pid, status.uid);
    format!("coschedd {} on {}, {who}\n{}", status.version, status.node, status.socket)
}

fn cpus(status: &Status) -> String {
    let list = status.cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let part = format::percent(status.reserve);
    let reserve = match (status.reserve_fair == Some(true), status.reserve > 0.0) {
        (false, _) => format!("{part} of the CPU time is reserved for processes outside jobs"),
        (true, false) => "processes outside jobs have what Linux gives them beside the jobs".to_owned(),
        (true, true) => {
            format!("{part} of each slot is kept for processes outside jobs that want a CPU now (reserve: fair)")
        }
    };
    let size = format::size(status.memory_bytes);
    format!("{} ({list}), {size} memory; {reserve}{}", status.cpus.len(), load(status).unwrap_or_default())
}

/// The load of the CPUs.
fn load(status: &Status) -> Option<String> {
    let load = status.load.as_ref().filter(|load| !load.cpus.is_empty())?;
    let busy: Vec<String> =
        load.cpus.iter().map(|cpu| format!("cpu{} {}", cpu.cpu, format::percent(cpu.busy))).collect();
    let average = load.average.map_or(String::new(), |average| format!(", load {average:.2}"));
    let free = load.memory_available_bytes.map_or(String::new(), |bytes| format!(", {} free", format::size(bytes)));
    Some(format!("\nbusy: {}{average}{free}", busy.join(" ")))
}

/// Whether slots have to agree with those of other machines.
fn is_cluster(status: &Status) -> bool {
    status.cluster.as_ref().is_some_and(|cluster| !cluster.alone)
}

fn clock(clock: &Clock, in_cluster: bool) -> String {
    let kept = match (clock.synchronised, clock.error_estimated_us) {
        (None, _) => "the kernel does not report whether it is synchronised".to_owned(),
        (Some(true), Some(us)) => format!("synchronised, estimated error {}", format::latency_us(us as f64)),
        (Some(true), None) => "synchronised".to_owned(),
        (Some(false), _) => "not synchronised".to_owned(),
    };
    let needed = match (&clock.holds_slots, clock.required) {
        (Some(why), _) => format!("; gangs have no slots: {why}"),
        (None, true) => "; gangs have slots only while it is synchronised".to_owned(),
        (None, false) if in_cluster => {
            "; gangs have slots anyway (require_synchronised_clock = false), but they may not match those of other nodes"
                .to_owned()
        }
        (None, false) => "; a single machine does not need it".to_owned(),
    };
    let steps = match (clock.steps, clock.last_step_ms, clock.last_step_unix_ms) {
        (steps @ 1.., Some(ms), Some(at)) => {
            let times = if steps == 1 { "once".to_owned() } else { format!("{steps} times") };
            format!("\nset {times} since the daemon started, by {:+.1} s at {}", ms as f64 / 1e3, format::moment(at))
        }
        _ => String::new(),
    };
    format!("{kept}{needed}{steps}")
}

pub(super) fn policy(status: &Status) -> String {
    let slots = format!("slots of {}", format::slot_ms(status.slot_length_ms));
    let period = match status.period {
        None => "",
        Some(Period::Working) => "; working hours",
        Some(Period::Off) => "; off-hours",
    };
    format!("{}, {} sharing, {slots}{period}", status.policy.name(), status.sharing.name())
}

/// The same with everything else that `cosched policy` sets for a cluster.
pub(super) fn policy_of_all(status: &Status) -> String {
    let mut text = policy(status);
    let Some(cluster) = &status.cluster else { return text };
    text.push_str(&format!("; a ceiling of {}", format::percent(cluster.ceiling)));
    if !cluster.alone {
        let packing = cluster.packing.map(|packing| format!(", {} packing", packing.name()));
        let rows = cluster.rows_max.map(|rows| format!(", at most {rows} rows"));
        let dead = match cluster.node_dead_after_ms {
            Some(ms) => format!(", nodes are dead after {}", format::duration_ms(ms)),
            None => ", nodes are dead only when an operator declares it".to_owned(),
        };
        text.extend(packing.into_iter().chain(rows).chain([dead]));
    }
    text
}

fn counts(status: &Status) -> String {
    let parts: Vec<String> = status
        .jobs
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(state, count)| format!("{count} {}", state.name()))
        .collect();
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}

fn matrix_lines(status: &Status) -> String {
    let matrix = &status.matrix;
    if matrix.rows.is_empty() {
        return "empty: no gang has slots".into();
    }
    let cycle = match matrix.cycle_slots {
        1 => "a cycle of 1 slot".to_owned(),
        count => format!("a cycle of {count} slots"),
    };
    format!("plan {}, slot {}, {cycle}\n{}", status.generation, matrix.slot, matrix::text(matrix))
}

fn switches(status: &Status) -> String {
    let switches = &status.switches;
    if switches.count == 0 {
        return "none since the daemon started".into();
    }
    let counts = format!("{}, {} late, {} failed writes", switches.count, switches.late, switches.errors);
    format!("{counts}\n{}\n{}", latency("wake", &switches.wake), latency("done", &switches.done))
}

fn latency(name: &str, times: &Distribution) -> String {
    let show = format::latency_us;
    format!("{name}: median {}, p99 {}, max {}", show(times.p50_us), show(times.p99_us), show(times.max_us))
}

fn boosts(status: &Status) -> String {
    let b = &status.boosting;
    if b.jobs == 0 && b.looks == 0 && b.rings == 0 {
        return "no job under pb or dcs".into();
    }
    let what = format!("{} jobs, {} sockets by {}; {} boosts", b.jobs, b.sockets, b.sensor, b.boosts);
    let up_ms = format::now_unix_ms().saturating_sub(status.started_unix_ms).max(1);
    let part = format::percent(b.cost_ms as f64 / up_ms as f64);
    let cost = format!("{} checks, {} wake-ups, {} CPU time", b.looks, b.rings, format::duration_ms(b.cost_ms));
    let without = b.without_bpf.as_ref().map_or(String::new(), |why| format!("\nwithout BPF: {why}"));
    format!("{what}\n{cost} ({part} of one CPU){without}")
}

fn mechanisms(status: &Status) -> String {
    let priority = match status.realtime_priority {
        Some(priority) => format!("real-time priority {priority}"),
        None => "no real-time priority".into(),
    };
    let mut text = format!("{}, {priority}", status.mechanism);
    for (name, why) in &status.mechanisms {
        let mark = if *name == status.mechanism { '*' } else { ' ' };
        text.push_str(&format!("\n{mark} {name}: {why}"));
    }
    text
}

fn safety(status: &Status) -> String {
    let safety = &status.safety;
    let guard = safety.guard_pid.map_or("no guard".to_owned(), |pid| format!("guard {pid}"));
    let agent = if safety.kernel_agent { "the kernel thaws jobs if both are gone" } else { "no agent in the kernel" };
    format!("{guard}, no job stays frozen longer than {}, {agent}", format::duration_ms(safety.lease_ms))
}

fn warnings(status: &Status, colour: bool) -> String {
    if status.warnings.is_empty() {
        return "nothing is wrong".into();
    }
    let (on, off) = if colour { ("\x1b[33m", "\x1b[0m") } else { ("", "") };
    let one = |w: &cosched_api::Warning| {
        format!("{on}{}{off}\n  why: {}\n  hint: {}", w.what, w.why, with_documents(&w.hint))
    };
    status.warnings.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A daemon's status for tests: two gangs on two CPUs.
    pub(crate) fn example() -> Status {
        let times = serde_json::json!({"count": 90, "p50_us": 41.5, "p99_us": 260.0, "max_us": 1900.0});
        serde_json::from_value(serde_json::json!({
            "version": "0.1.0", "pid": 77, "uid": 0, "started_unix_ms": 1_700_000_000_000_u64, "embedded": true,
            "socket": "/run/cosched/coschedd.sock", "node": "n1", "cpus": [0, 1], "memory_bytes": 8_u64 << 30,
            "policy": "gang", "sharing": "soft", "slot_length_ms": 100, "reserve": 0.05, "layout": "hybrid",
            "mechanism": "freezer", "mechanisms": {"freezer": "chosen: the fastest here", "weight": "slower"},
            "realtime_priority": 10, "generation": 12,
            "matrix": {"columns": ["cpu0", "cpu1"], "turns": [0, 1], "text": "", "slot": 17, "current_row": 0, "current": [7],
                "cycle_slots": 2, "rows": [{"index": 0, "cells": [7, 7], "also": [], "slots": 1},
                {"index": 1, "cells": [8, 8], "also": [9], "slots": 1}]},
            "switches": {"count": 90, "wake": times, "done": times, "late": 1, "errors": 0},
            "jobs": {"running": 3, "ended": 2}, "safety": {"guard_pid": 78, "lease_ms": 1000, "kernel_agent": false},
            "warnings": [],
            "load": {"cpus": [{"cpu": 0, "busy": 0.97}, {"cpu": 1, "busy": 0.5}], "average": 2.25,
                "memory_available_bytes": 3_u64 << 30},
            "clock": {"synchronised": true, "error_estimated_us": 130, "error_us_max": 9000, "required": false, "steps": 0},
        }))
        .expect("the literal is a status")
    }

    #[test]
    fn the_clock_of_a_node_is_not_called_one_machine_s() {
        let of = Clock { synchronised: Some(false), ..Clock::default() };
        assert_eq!(clock(&of, false), "not synchronised; a single machine does not need it");
        assert!(clock(&of, true).contains("may not match those of other nodes"));
    }

    #[test]
    fn everything_has_its_line() {
        let mut status = example();
        insta::assert_snapshot!("status", text(&status, status.started_unix_ms + 65_000, false));
        status.warnings = vec![cosched_api::Warning { what: "w".into(), why: "y".into(), hint: "h".into() }];
        (status.matrix.rows, status.switches.count, status.safety.guard_pid) = (Vec::new(), 0, None);
        status.clock = Some(Clock {
            synchronised: Some(false),
            holds_slots: Some("x".into()),
            steps: 2,
            last_step_ms: Some(-5012),
            last_step_unix_ms: Some(0),
            ..Clock::default()
        });
        let text = text(&status, status.started_unix_ms, false);
        assert!(text.contains("clock      not synchronised; gangs have no slots: x\n           set 2 times"), "{text}");
        assert!(text.contains("by -5.0 s at"), "{text}");
        assert!(text.contains("wrong      w\n             why: y\n             hint: h\n"), "{text}");
        assert!(
            text.contains("matrix     empty") && text.contains("none since") && text.contains("no guard"),
            "{text}"
        );
    }
}
