//! What has to be true of a history. Pure: the same history has the same faults, on every machine.
//!
//! Elapsed time proves nothing while something is broken: a condition "within a bound" is only checked once nothing has been broken
//! for as long as the bound ([`History::calm`]). Overlapping operations may have happened in any order.

use super::history::{Ask, Entry, Fault, Heard, History, Life, Look, Ms, Register, Shown};
use std::collections::{BTreeMap, BTreeSet};

/// After this time without faults, everything must have happened. It covers leases of etcd and of nodes, and a busy machine.
pub(super) const BOUND_MS: Ms = 12_000;

/// Gangs whose programs were seen in the same slot this often, within one calm period, count as sharing slots.
const SLOTS_SHARED_MAX: usize = 20;

/// A job that was made ready has its first process within a minute.
const EMPTY_MS_MAX: Ms = 75_000;

/// Everything that is wrong with a history, one line each.
pub(super) fn check(history: &History) -> Vec<String> {
    let mut wrong = Vec::new();
    numbers(history, &mut wrong);
    known(history, &mut wrong);
    killed(history, &mut wrong);
    suspended(history, &mut wrong);
    over(history, &mut wrong);
    exits(history, &mut wrong);
    registers(history, &mut wrong);
    lives(history, &mut wrong);
    alive_at_the_end(history, &mut wrong);
    slots(history, &mut wrong);
    // Each node reports it.
    wrong.sort();
    wrong.dedup();
    wrong
}

/// A number belongs to one job, and a job has one number.
fn numbers(history: &History, wrong: &mut Vec<String>) {
    let told = history.entries.iter().filter_map(|e| match (&e.ask, &e.heard) {
        (Ask::Submit(name), Heard::Done(id)) => Some((*id, name)),
        _ => None,
    });
    let shown = history.all_looks().flat_map(|look| &look.jobs).map(|job| (job.id, &job.name));
    let pairs: BTreeSet<(u64, &String)> = told.chain(shown).collect();
    let (mut ids, mut names) = (BTreeMap::new(), BTreeMap::new());
    for (id, name) in pairs {
        if let Some(other) = ids.insert(id, name) {
            wrong.push(format!("number {id} was given twice: to {other} and to {name}"));
        }
        if let Some(other) = names.insert(name, id) {
            wrong.push(format!("{name} is two jobs: {other} and {id}"));
        }
    }
}

/// If a client was told a job's number, every node knows the job, and all nodes report the same about it.
fn known(history: &History, wrong: &mut Vec<String>) {
    let ids: BTreeSet<u64> = names(history).into_values().collect();
    for look in &history.last {
        let shown: BTreeSet<u64> = look.jobs.iter().map(|job| job.id).collect();
        let missing: Vec<_> = ids.difference(&shown).collect();
        if !missing.is_empty() {
            wrong.push(format!("node {} does not know the jobs {missing:?}", look.node));
        }
    }
    for (id, jobs) in last_shown(history) {
        if jobs.iter().any(|job| (&job.state, &job.class, job.code) != (&jobs[0].state, &jobs[0].class, jobs[0].code)) {
            wrong.push(format!("nodes do not agree on job {id}: {jobs:?}"));
        }
    }
}

/// A killed job is over, and stays so.
fn killed(history: &History, wrong: &mut Vec<String>) {
    for entry in history.entries.iter().filter(|e| e.is_done()) {
        let Ask::Kill(id) = entry.ask else { continue };
        if let Some((at, life)) = beat_after(history, id, entry.end, |_, _| false) {
            wrong.push(format!("job {id} was killed at {}, and its {} beats at {at}", entry.end, of(life)));
        }
        if last_shown(history).get(&id).is_some_and(|jobs| jobs.iter().any(|job| !job.is_over())) {
            wrong.push(format!("job {id} was killed at {}, and is not over", entry.end));
        }
    }
}

/// A suspended job does not run until it is resumed.
fn suspended(history: &History, wrong: &mut Vec<String>) {
    for entry in history.entries.iter().filter(|e| e.is_done()) {
        let Ask::Suspend(id) = entry.ask else { continue };
        let resumes: Vec<&Entry> = later(history, entry, |ask| *ask == Ask::Resume(id));
        let resumed = |at: Ms| resumes.iter().any(|resume| resume.begin <= at);
        let let_go = |at: Ms, life: &Life| {
            let held_by_nobody = |f: &Fault| f.lets_go == Some(life.node) && f.from <= at && at <= f.to + BOUND_MS;
            resumed(at) || history.faults.iter().any(held_by_nobody)
        };
        if let Some((at, life)) = beat_after(history, id, entry.end, let_go) {
            wrong.push(format!("job {id} was suspended at {}, and its {} beats at {at}", entry.end, of(life)));
        }
        let still = |job: &&Shown| job.is_over() || job.state == "suspended";
        if resumes.is_empty() && last_shown(history).get(&id).is_some_and(|jobs| !jobs.iter().all(still)) {
            wrong.push(format!("job {id} was suspended at {}, and is not", entry.end));
        }
    }
    for entry in history.entries.iter().filter(|e| e.is_done()) {
        let Ask::Resume(id) = entry.ask else { continue };
        let moved = |job: &&Shown| job.state == "suspended";
        let suspends = later(history, entry, |ask| *ask == Ask::Suspend(id));
        if suspends.is_empty() && last_shown(history).get(&id).is_some_and(|jobs| jobs.iter().any(moved)) {
            wrong.push(format!("job {id} was resumed at {}, and is suspended", entry.end));
        }
    }
}

/// A job that a node reported as over does not come back, and no process of it is left.
fn over(history: &History, wrong: &mut Vec<String>) {
    let mut said: BTreeMap<(usize, u64), Ms> = BTreeMap::new();
    let mut looks: Vec<_> = history.all_looks().collect();
    looks.sort_by_key(|look| look.begin);
    for look in looks {
        for job in &look.jobs {
            match said.get(&(look.node, job.id)) {
                Some(at) if !job.is_over() && look.begin > *at => {
                    let Shown { id, state, .. } = job;
                    wrong
                        .push(format!("node {}: job {id} was over at {at}, and is {state} at {}", look.node, look.end));
                }
                None if job.is_over() => drop(said.insert((look.node, job.id), look.end)),
                _ => (),
            }
        }
    }
    let mut first: BTreeMap<u64, Ms> = BTreeMap::new();
    for ((_, id), at) in said {
        first.entry(id).and_modify(|of| *of = at.min(*of)).or_insert(at);
    }
    for (id, at) in first {
        if let Some((beat, life)) = beat_after(history, id, at, |_, _| false) {
            wrong.push(format!("job {id} was said to be over at {at}, and its {} beats at {beat}", of(life)));
        }
    }
}

/// A job's exit code is the one that its launcher reported successfully; and a job that no client ended has ended by itself or with
/// a node.
fn exits(history: &History, wrong: &mut Vec<String>) {
    for entry in history.entries.iter().filter(|e| e.is_done()) {
        let Ask::Exit(id, code) = entry.ask else { continue };
        // A job that was killed at the same time has ended by that, and a report to a node that was given up meanwhile was lost
        // with the node.
        let killed = history.entries.iter().any(|e| e.may_count() && e.ask == Ask::Kill(id));
        if killed || may_be_given_up(history, entry) {
            continue;
        }
        for job in last_shown(history).remove(&id).unwrap_or_default() {
            if job.code != Some(code) {
                wrong.push(format!("the exit code {code} of job {id} was acknowledged, and it is {:?}", job.code));
            }
        }
    }
    for (id, jobs) in last_shown(history) {
        let asked = |e: &Entry| e.may_count() && matches!(e.ask, Ask::Kill(of) | Ask::Exit(of, _) if of == id);
        let by_itself = lives_of(history, id).any(|life| life.ended.is_some());
        let excused = by_itself || history.entries.iter().any(asked) || !names(history).contains_key(&jobs[0].name);
        if jobs[0].is_over() && !excused && (jobs[0].why.is_none() || history.faults.is_empty()) {
            wrong.push(format!("job {id} is over, and nobody ended it: {:?}", jobs[0]));
        }
    }
}

/// Whether the node that received the request may have been given up before it could tell the others.
fn may_be_given_up(history: &History, entry: &Entry) -> bool {
    let lasts = |f: &&Fault| f.to - f.from >= history.lease_ms.saturating_sub(1_000);
    let near = |f: &&Fault| f.from < entry.end + 1_000 && f.to + BOUND_MS > entry.begin;
    history.faults.iter().any(|f| lasts(&f) && near(&f))
}

/// The value at the end is the one that was set last.
fn registers(history: &History, wrong: &mut Vec<String>) {
    let mut ends: Vec<(Register, &String)> = history.values.iter().map(|(of, value)| (of.clone(), value)).collect();
    for (id, jobs) in last_shown(history) {
        ends.extend(jobs.into_iter().filter(|job| !job.is_over()).map(|job| (Register::Class(id), &job.class)));
    }
    for (register, value) in ends {
        let set = |ask: &Ask| matches!(ask, Ask::Set(of, _) if *of == register);
        // A write whose successor began after the write was acknowledged no longer counts, if the successor was acknowledged.
        let stands = |end: Ms| {
            let newer = |e: &&Entry| set(&e.ask) && e.is_done() && e.begin > end;
            !history.entries.iter().any(|e| newer(&e))
        };
        let wrote = |e: &Entry| matches!(&e.ask, Ask::Set(of, to) if *of == register && to == value);
        let unknown = |e: &Entry| matches!(e.heard, Heard::Unknown(_));
        let written = history.entries.iter().any(|e| wrote(e) && e.may_count() && (unknown(e) || stands(e.end)));
        let initially = history.initial.iter().any(|(of, first)| *of == register && first == value) && stands(0);
        // A job's initial class is known only from its submission.
        let untouched = matches!(register, Register::Class(_)) && stands(0);
        if !(written || initially || untouched) {
            wrong.push(format!("{register:?} is {value}, which is not what was set last"));
        }
    }
}

/// The next life of a job begins when no process of the previous one is left.
fn lives(history: &History, wrong: &mut Vec<String>) {
    let mut by_name: BTreeMap<&String, Vec<&Life>> = BTreeMap::new();
    for life in history.lives.iter().filter(|life| !life.beats.is_empty()) {
        by_name.entry(&life.name).or_default().push(life);
    }
    for (name, mut lives) in by_name {
        lives.sort_by_key(|life| life.beats[0]);
        for (n, later) in lives.iter().enumerate() {
            let both = |l: &&&Life| l.life != later.life && l.beats.last() >= later.beats.first();
            if let Some(earlier) = lives[..n].iter().find(both) {
                let at = later.beats[0];
                wrong.push(format!("{name} lives twice at {at}: its {} and its {}", of(earlier), of(later)));
            }
        }
    }
}

/// A job that is not over, suspended or waiting must compute. If a launcher was not told of its job, it has ended: that job may be
/// empty for a while.
fn alive_at_the_end(history: &History, wrong: &mut Vec<String>) {
    let Some(end) = history.last.iter().map(|look| look.begin).min() else { return };
    let acknowledged = names(history);
    for (id, jobs) in last_shown(history) {
        let long = || history.looks.iter().any(|look| look.end + EMPTY_MS_MAX < end && runs_in(look, id));
        let runs =
            jobs.iter().all(|job| job.state == "running") && (acknowledged.contains_key(&jobs[0].name) || long());
        let beats = |life: &Life| life.beats.last().is_some_and(|at| *at + BOUND_MS > end);
        if runs && !lives_of(history, id).any(beats) {
            wrong
                .push(format!("job {id} is said to run, and nobody of it has beaten for {BOUND_MS} ms: {:?}", jobs[0]));
        }
        if jobs[0].state == "waiting" {
            wrong.push(format!("job {id} waits, where there is room for all: {:?}", jobs[0]));
        }
    }
}

fn runs_in(look: &Look, id: u64) -> bool {
    look.jobs.iter().any(|job| job.id == id && job.state == "running")
}

/// Two gangs that own the CPU of one node beat in different slots. A gang that is thawed or frozen late is seen in another's slot
/// now and then; a gang that really shares slots is seen there again and again. The first and last quarter of a slot do not count.
fn slots(history: &History, wrong: &mut Vec<String>) {
    if history.slot_ms == 0 {
        return;
    }
    let mut seen: BTreeMap<usize, BTreeMap<Ms, BTreeSet<&String>>> = BTreeMap::new();
    for life in &history.lives {
        let middle = |at: &&Ms| (history.slot_ms / 4..history.slot_ms * 3 / 4).contains(&(**at % history.slot_ms));
        for at in life.beats.iter().filter(middle) {
            seen.entry(life.node).or_default().entry(at / history.slot_ms).or_default().insert(&life.name);
        }
    }
    for (node, slots) in seen {
        let mut shared: BTreeMap<(&String, &String, Ms), usize> = BTreeMap::new();
        for (slot, names) in slots {
            let at = slot * history.slot_ms;
            let calm = history.calm(at.saturating_sub(BOUND_MS), at + 1) > BOUND_MS;
            for (n, one) in names.iter().enumerate().filter(|_| calm) {
                for other in names.iter().skip(n + 1) {
                    *shared.entry((one, other, at / 5_000)).or_default() += 1;
                }
            }
        }
        for ((one, other, five_seconds), times) in shared.into_iter().filter(|(_, n)| *n > SLOTS_SHARED_MAX) {
            let at = five_seconds * 5_000;
            wrong.push(format!("{one} and {other} shared {times} slots of node {node} in the 5 s from {at} on"));
        }
    }
}

/// A beat of a job that comes too late after something that should have ended it, unless `excused`.
fn beat_after(history: &History, id: u64, after: Ms, excused: impl Fn(Ms, &Life) -> bool) -> Option<(Ms, &Life)> {
    let calm = |at: Ms| at > after + BOUND_MS && history.calm(after, at) > BOUND_MS;
    let late = |life: &Life, at: Ms| calm(at) && !excused(at, life);
    lives_of(history, id).find_map(|life| Some((*life.beats.iter().find(|at| late(life, **at))?, life)))
}

/// The operations that may have happened after this one.
fn later<'a>(history: &'a History, entry: &Entry, is: impl Fn(&Ask) -> bool) -> Vec<&'a Entry> {
    let unknown = |e: &Entry| !e.is_done();
    let of = |e: &&Entry| is(&e.ask) && e.may_count() && (e.end >= entry.begin || unknown(e));
    history.entries.iter().filter(of).collect()
}

/// The jobs that were acknowledged, by name.
fn names(history: &History) -> BTreeMap<&String, u64> {
    let told = history.entries.iter().filter_map(|e| match (&e.ask, &e.heard) {
        (Ask::Submit(name), Heard::Done(id)) => Some((name, *id)),
        _ => None,
    });
    told.collect()
}

/// What the nodes reported about each job at the end.
fn last_shown(history: &History) -> BTreeMap<u64, Vec<&Shown>> {
    let mut all: BTreeMap<u64, Vec<&Shown>> = BTreeMap::new();
    for job in history.last.iter().flat_map(|look| &look.jobs) {
        all.entry(job.id).or_default().push(job);
    }
    all
}

fn lives_of(history: &History, id: u64) -> impl Iterator<Item = &Life> {
    history.lives.iter().filter(move |life| history.id_of(&life.name) == Some(id))
}

fn of(life: &Life) -> String {
    format!("process {} (life {}) on node {}", life.pid, life.life, life.node)
}
