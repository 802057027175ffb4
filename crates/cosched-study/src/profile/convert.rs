//! Converts a profile to a program of the simulator.
//!
//! Tasks of the same structure share text; where their times or partners differ, `on` distinguishes them. What is lost: the
//! variation of times within a loop (each iteration has the mean; the rounding error is compensated at the end), the time
//! in MPI calls (the simulator computes its own), and messages of a task to itself.

use super::collectives::{self, Act, Place};
use super::steps::{self, Step};
use super::{By, Call, Collective, Event, Profile, What};
use crate::error::Error;
use cosched_sim::program::{Pattern, Peer, Program, Statement, Who};

/// The number of alternations of computation and I/O in a program of which only totals are known.
const TURNS: u64 = 100;

impl Profile {
    /// The program whose tasks do what was recorded.
    ///
    /// # Errors
    /// If messages are sent but not received, or the other way round, or if nothing was recorded.
    pub fn program(&self) -> Result<Program, Error> {
        let unmatched = self.unmatched(5);
        if !unmatched.is_empty() {
            return Err(Error::subject(
                "the recorded messages do not match, so the program cannot be replayed",
                unmatched.join("\n       "),
                if self.complete {
                    "its warnings may name calls that cannot be recorded: cosched profile show FILE"
                } else {
                    "the recording is not complete: record a run to its end, with a larger --limit if need be"
                },
            ));
        }
        let body = if self.by == By::Mpi { Writer::new(self).all() } else { turns(self) };
        if body.is_empty() {
            let why = "no task computed, did I/O or sent a message";
            return Err(Error::subject("the profile is empty", why, "record a run of the program itself"));
        }
        let program = Program { body };
        if !program.can_be_read() {
            let why = "a time is longer than 10^15 ns, a message larger than 10^15 bytes, or there are too many loops in loops";
            let hint = "the recording is damaged: record it again";
            return Err(Error::subject("the profile contains what no program can do", why, hint));
        }
        Ok(program)
    }
}

/// The messages that all tasks send, including collectives, and their bytes.
pub(super) fn messages(profile: &Profile) -> (u64, u64) {
    let (mut messages, mut bytes) = (0_u64, 0_u64);
    for task in &profile.each {
        steps::visit(&task.operations, 1, &mut |call, times| {
            for act in call.does.iter().flat_map(|event| acts(profile, task.task, event)) {
                if let Act::Send(_, size) = act {
                    messages = messages.saturating_add(times);
                    bytes = bytes.saturating_add(times.saturating_mul(size));
                }
            }
        });
    }
    (messages, bytes)
}

/// A function that gives the actions of a member.
type HowTo = fn(What, Place, u64) -> Vec<Act>;

/// An event as sends and receives; the members are numbered as tasks.
fn acts(profile: &Profile, task: u32, event: &Event<u32>) -> Vec<Act> {
    let (collective, how): (_, HowTo) = match event {
        Event::Send { to, bytes } if *to != task => return vec![Act::Send(*to as usize, *bytes)],
        Event::Receive { from, .. } if *from != task => return vec![Act::Receive(*from as usize)],
        Event::Together(collective) => (collective, collectives::acts),
        Event::Begin(collective) => (collective, collectives::begin),
        Event::End(collective) => (collective, |what, at, _| collectives::end(what, at)),
        _ => return Vec::new(),
    };
    let Collective { what, among, root, bytes } = collective;
    let group = &profile.groups[*among as usize];
    let place = |task: u32| group.iter().position(|member| *member == task).unwrap_or(0);
    let at = Place { own: place(task), members: group.len(), root: root.map_or(0, place) };
    let as_task = |act: Act| match act {
        Act::Send(member, bytes) => Act::Send(group[member] as usize, bytes),
        Act::Receive(member) => Act::Receive(group[member] as usize),
    };
    how(*what, at, *bytes).into_iter().map(as_task).collect()
}

/// The patterns that implement a collective of all tasks, if the language has them.
fn patterns(collective: &Collective<u32>, tasks: u32) -> Option<Vec<Statement>> {
    let Collective { what, root, bytes, .. } = *collective;
    let root = root.unwrap_or(0);
    let found = match what {
        What::Barrier => vec![Pattern::Barrier],
        What::Bcast => vec![Pattern::Broadcast { root, bytes }],
        What::Reduce => vec![Pattern::Reduce { root, bytes }],
        What::Allreduce => vec![Pattern::Reduce { root: 0, bytes }, Pattern::Broadcast { root: 0, bytes }],
        What::Alltoall => vec![Pattern::AllToAll(bytes)],
        What::Allgather if tasks > 1 => {
            let body = vec![Statement::Pattern(Pattern::Ring(bytes))];
            let times = u64::from(tasks) - 1;
            return Some(if times == 1 { body } else { vec![Statement::Repeat { times, body }] });
        }
        _ => return None,
    };
    Some(found.into_iter().map(Statement::Pattern).collect())
}

struct Writer<'a> {
    profile: &'a Profile,
    /// The remainders from rounding the means of each task's computation and I/O, in nanoseconds.
    rest: Vec<(u64, u64)>,
}

impl<'a> Writer<'a> {
    fn new(profile: &'a Profile) -> Writer<'a> {
        Writer { profile, rest: vec![(0, 0); profile.each.len()] }
    }

    /// All tasks: neighbours of the same shape share text.
    fn all(mut self) -> Vec<Statement> {
        let each = &self.profile.each;
        let mut body = Vec::new();
        let mut first = 0;
        while first < each.len() {
            let same = |task: &&super::Task| same_shape(&task.operations, &each[first].operations);
            let count = each[first..].iter().take_while(same).count();
            let tasks: Vec<u32> = (first..first + count).map(|task| task as u32).collect();
            let steps: Vec<&[Step]> =
                each[first..first + count].iter().map(|task| task.operations.as_slice()).collect();
            let mut text = self.shared(&tasks, &steps, 1);
            let rest: Vec<Vec<Statement>> = tasks.iter().map(|task| times(self.rest[*task as usize])).collect();
            text.extend(spread(&tasks, rest));
            if count == each.len() {
                return text;
            }
            body.extend(on(&tasks, text));
            first += count;
        }
        body
    }

    /// Tasks whose steps have the same shape; `count`: how often they are executed.
    fn shared(&mut self, tasks: &[u32], steps: &[&[Step]], count: u64) -> Vec<Statement> {
        let mut body = Vec::new();
        for place in 0..steps[0].len() {
            let here: Vec<&Step> = steps.iter().map(|steps| &steps[place]).collect();
            match here[0] {
                Step::Repeat(repeat, _) => {
                    let inner: Vec<&[Step]> = here.iter().map(|step| inside(step)).collect();
                    let inner = self.shared(tasks, &inner, count * repeat);
                    if !inner.is_empty() {
                        body.push(Statement::Repeat { times: *repeat, body: inner });
                    }
                }
                Step::Call(_) => {
                    let calls: Vec<&Call> = here.iter().filter_map(|step| call(step)).collect();
                    let before = tasks.iter().zip(&calls).map(|(task, call)| self.before(*task, call, count)).collect();
                    append(&mut body, spread(tasks, before));
                    body.extend(self.events(tasks, &calls));
                }
            }
        }
        body
    }

    /// The mean computation and I/O before a call; the remainder of the division is kept.
    fn before(&mut self, task: u32, call: &Call, count: u64) -> Vec<Statement> {
        let rest = &mut self.rest[task as usize];
        rest.0 += call.compute_ns % count;
        rest.1 += call.io_ns % count;
        times((call.compute_ns / count, call.io_ns / count))
    }

    /// The actions of the tasks in a call: with relative partners if these are the same for all, else with absolute ones.
    fn events(&self, tasks: &[u32], calls: &[&Call]) -> Vec<Statement> {
        let each = |by_distance: bool| -> Vec<Vec<Statement>> {
            let one = |(task, call): (&u32, &&Call)| {
                call.does.iter().flat_map(|event| self.event(*task, event, by_distance)).collect()
            };
            tasks.iter().zip(calls).map(one).collect()
        };
        let by_distance = each(true);
        if tasks.len() > 1 && by_distance.windows(2).all(|pair| pair[0] == pair[1]) {
            return by_distance.into_iter().next().unwrap_or_default();
        }
        spread(tasks, each(false))
    }

    fn event(&self, task: u32, event: &Event<u32>, by_distance: bool) -> Vec<Statement> {
        if let Event::Together(collective) = event
            && collective.among == 0
            && let Some(patterns) = patterns(collective, self.profile.tasks)
        {
            return patterns;
        }
        let peer = |other: usize| if by_distance { self.distance(task, other) } else { Peer::Task(other as u32) };
        let statement = |act: Act| match act {
            Act::Send(to, bytes) => Statement::Send { to: peer(to), bytes },
            Act::Receive(from) => Statement::Receive { from: peer(from) },
        };
        acts(self.profile, task, event).into_iter().map(statement).collect()
    }

    /// The shorter way around the ring of tasks.
    fn distance(&self, task: u32, other: usize) -> Peer {
        let tasks = i64::from(self.profile.tasks);
        let right = (other as i64 - i64::from(task)).rem_euclid(tasks);
        Peer::Offset(if 2 * right > tasks { right - tasks } else { right })
    }
}

fn inside(step: &Step) -> &[Step] {
    if let Step::Repeat(_, body) = step { body } else { &[] }
}

fn call(step: &Step) -> Option<&Call> {
    if let Step::Call(call) = step { Some(call) } else { None }
}

/// Appends statements, and merges adjacent computations that all tasks do.
fn append(body: &mut Vec<Statement>, more: Vec<Statement>) {
    for statement in more {
        match (body.last_mut(), &statement) {
            (Some(Statement::Compute { ns, skew: false }), Statement::Compute { ns: more, skew: false }) => {
                *ns = ns.saturating_add(*more)
            }
            _ => body.push(statement),
        }
    }
}

/// Whether two sequences have the same loops around the same number of calls.
fn same_shape(a: &[Step], b: &[Step]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| match (a, b) {
            (Step::Call(_), Step::Call(_)) => true,
            (Step::Repeat(n, a), Step::Repeat(m, b)) => n == m && same_shape(a, b),
            _ => false,
        })
}

fn times((compute_ns, io_ns): (u64, u64)) -> Vec<Statement> {
    let compute = (compute_ns > 0).then_some(Statement::Compute { ns: compute_ns, skew: false });
    let io = (io_ns > 0).then_some(Statement::Io { ns: io_ns, skew: false });
    compute.into_iter().chain(io).collect()
}

/// The statements of each task: once if all do the same, else for each range of neighbours that do.
fn spread(tasks: &[u32], each: Vec<Vec<Statement>>) -> Vec<Statement> {
    if each.windows(2).all(|pair| pair[0] == pair[1]) {
        return each.into_iter().next().unwrap_or_default();
    }
    let mut body = Vec::new();
    let mut first = 0;
    while first < each.len() {
        let count = each[first..].iter().take_while(|other| **other == each[first]).count();
        body.extend(on(&tasks[first..first + count], each[first].clone()));
        first += count;
    }
    body
}

/// Restricts statements to a range of neighbouring tasks.
fn on(tasks: &[u32], body: Vec<Statement>) -> Option<Statement> {
    let (first, last) = (*tasks.first()?, *tasks.last()?);
    (!body.is_empty()).then_some(Statement::On { who: Who::Range(first, last), body })
}

/// For an observed program only the totals are known.
fn turns(profile: &Profile) -> Vec<Statement> {
    let ns = |seconds: f64| (seconds * 1e9).round() as u64;
    let tasks: Vec<u32> = (0..profile.tasks).collect();
    let all = |of: fn(u64) -> u64| {
        let each = profile.each.iter().map(|task| times((of(ns(task.compute_s)), of(ns(task.io_s))))).collect();
        spread(&tasks, each)
    };
    let turn = all(|ns| ns / TURNS);
    let rest = all(|ns| ns % TURNS);
    let repeat = (!turn.is_empty()).then_some(Statement::Repeat { times: TURNS, body: turn });
    repeat.into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests;
