//! The operations of a task: calls, and loops of them.

use super::rank_file::{self, Members, RankFile};
use super::repeats::{Node, fold};
use super::{Collective, Event};
use serde::{Deserialize, Serialize};

/// One step of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum Step {
    /// A call.
    Call(Call),
    /// This number of repetitions of steps, at least one.
    Repeat(u64, Vec<Step>),
}

/// A call and the time before it. Times are sums over all executions, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Call {
    pub name: String,
    pub does: Vec<Event<u32>>,
    /// Before the call: on the CPU, in I/O, ready to run but without a CPU.
    pub compute_ns: u64,
    pub io_ns: u64,
    pub wait_ns: u64,
    /// In the call, and the part of that on the CPU.
    pub message_ns: u64,
    pub message_cpu_ns: u64,
}

/// A step in JSON: `repeat` and `body`, or the fields of a call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    body: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    does: Vec<Event<u32>>,
    #[serde(skip_serializing_if = "is_zero")]
    compute_ns: u64,
    #[serde(skip_serializing_if = "is_zero")]
    io_ns: u64,
    #[serde(skip_serializing_if = "is_zero")]
    wait_ns: u64,
    #[serde(skip_serializing_if = "is_zero")]
    message_ns: u64,
    #[serde(skip_serializing_if = "is_zero")]
    message_cpu_ns: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl TryFrom<Written> for Step {
    type Error = String;

    fn try_from(written: Written) -> Result<Step, String> {
        let Written { repeat, body, call, does, compute_ns, io_ns, wait_ns, message_ns, message_cpu_ns } = written;
        match (repeat, call) {
            (Some(0), _) => Err("something is repeated 0 times".into()),
            (Some(_), None) if body.is_empty() => Err("nothing is repeated".into()),
            (Some(times), None) => Ok(Step::Repeat(times, body)),
            (None, Some(name)) => {
                Ok(Step::Call(Call { name, does, compute_ns, io_ns, wait_ns, message_ns, message_cpu_ns }))
            }
            _ => Err("an operation has either \"repeat\" and \"body\" or \"call\"".into()),
        }
    }
}

impl From<Step> for Written {
    fn from(step: Step) -> Written {
        match step {
            Step::Repeat(times, body) => Written { repeat: Some(times), body, ..Written::default() },
            Step::Call(Call { name, does, compute_ns, io_ns, wait_ns, message_ns, message_cpu_ns }) => {
                let call = Some(name);
                Written { call, does, compute_ns, io_ns, wait_ns, message_ns, message_cpu_ns, ..Written::default() }
            }
        }
    }
}

/// Visits each call, with the number of times that it is executed.
pub(super) fn visit(steps: &[Step], times: u64, to: &mut impl FnMut(&Call, u64)) {
    for step in steps {
        match step {
            Step::Call(call) => to(call, times),
            Step::Repeat(repeat, body) => visit(body, times.saturating_mul(*repeat), to),
        }
    }
}

/// The number of calls and loops in the text of these steps.
pub fn length(steps: &[Step]) -> usize {
    let of = |step: &Step| if let Step::Repeat(_, body) = step { 1 + length(body) } else { 1 };
    steps.iter().map(of).sum()
}

/// The number of repetitions of the loop with most of the computation: what people would call the program's
/// iterations.
pub fn iterations(steps: &[Step]) -> Option<u64> {
    let compute = |step: &Step| {
        let mut sum = 0_u64;
        visit(std::slice::from_ref(step), 1, &mut |call, _| {
            let times = [call.compute_ns, call.io_ns, call.message_ns];
            sum = times.into_iter().fold(sum, u64::saturating_add);
        });
        sum
    };
    let loops = steps.iter().filter(|step| matches!(step, Step::Repeat(..)));
    match loops.max_by_key(|step| compute(step))? {
        Step::Repeat(times, _) => Some(*times),
        Step::Call(_) => None,
    }
}

/// The calls of a rank as steps; `group` assigns numbers to the members of a communicator.
pub(super) fn of_rank(file: &RankFile, group: &mut impl FnMut(&[u32]) -> u32) -> Vec<Step> {
    let kinds: Vec<Call> = file.kinds.iter().map(|kind| of_kind(kind, group)).collect();
    let symbols: Vec<u32> = file.calls.iter().map(|call| call.kind).collect();
    let mut steps: Vec<Step> = fold(&symbols).iter().map(|node| step(node, &kinds)).collect();
    let mut calls = file.calls.iter();
    add_times(&mut steps, &mut calls);
    steps
}

fn of_kind(kind: &rank_file::Kind, group: &mut impl FnMut(&[u32]) -> u32) -> Call {
    let mut together = |c: &Collective<Members>| {
        let Collective { what, among, root, bytes } = c;
        Collective { what: *what, among: group(among), root: *root, bytes: *bytes }
    };
    let mut event = |event: &Event<Members>| match event {
        Event::Send { to, bytes } => Event::Send { to: *to, bytes: *bytes },
        Event::Receive { from, bytes } => Event::Receive { from: *from, bytes: *bytes },
        Event::Together(c) => Event::Together(together(c)),
        Event::Begin(c) => Event::Begin(together(c)),
        Event::End(c) => Event::End(together(c)),
        Event::File { bytes } => Event::File { bytes: *bytes },
        Event::Unknown => Event::Unknown,
    };
    Call { name: kind.name.clone(), does: kind.events.iter().map(&mut event).collect(), ..Call::default() }
}

fn step(node: &Node, kinds: &[Call]) -> Step {
    match node {
        Node::Leaf(kind) => Step::Call(kinds[*kind as usize].clone()),
        Node::Loop(times, body) => Step::Repeat(*times, body.iter().map(|node| step(node, kinds)).collect()),
    }
}

/// Follows the steps in the order of execution, and adds each call's times to its step.
fn add_times<'a>(steps: &mut [Step], calls: &mut impl Iterator<Item = &'a rank_file::Call>) {
    for step in steps {
        match step {
            Step::Repeat(times, body) => (0..*times).for_each(|_| add_times(body, calls)),
            Step::Call(sum) => {
                if let Some(call) = calls.next() {
                    add(sum, call);
                }
            }
        }
    }
}

/// Calls of file functions are I/O: only their computation before is counted as computation.
fn add(sum: &mut Call, call: &rank_file::Call) {
    more(&mut sum.compute_ns, call.compute_ns);
    more(&mut sum.io_ns, call.io_ns);
    more(&mut sum.wait_ns, call.wait_ns);
    if sum.does.iter().any(|event| matches!(event, Event::File { .. })) {
        let off_ns = call.call_ns.saturating_sub(call.call_cpu_ns);
        more(&mut sum.compute_ns, call.call_cpu_ns);
        more(&mut sum.io_ns, off_ns.saturating_sub(call.call_wait_ns));
        more(&mut sum.wait_ns, off_ns.min(call.call_wait_ns));
    } else {
        more(&mut sum.message_ns, call.call_ns);
        more(&mut sum.message_cpu_ns, call.call_cpu_ns);
    }
}

/// Saturates, because a damaged file may have any times.
fn more(sum: &mut u64, ns: u64) {
    *sum = sum.saturating_add(ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(kinds: &[u32]) -> RankFile {
        let kind = |bytes| rank_file::Kind { name: "MPI_Send".into(), events: vec![Event::Send { to: 1, bytes }] };
        let call = |(place, kind): (usize, &u32)| rank_file::Call {
            kind: *kind,
            compute_ns: 1000 + place as u64,
            io_ns: place as u64,
            call_ns: 7,
            ..rank_file::Call::default()
        };
        let calls = kinds.iter().enumerate().map(call).collect();
        RankFile { kinds: (0..4).map(kind).collect(), calls, ..RankFile::default() }
    }

    #[test]
    fn no_time_is_lost_where_calls_become_loops() {
        let kinds: Vec<u32> = [vec![3], [0, 1, 1, 2].repeat(50), vec![3]].concat();
        let file = rank(&kinds);
        let steps = of_rank(&file, &mut |_| 0);
        assert!(length(&steps) < 10 && iterations(&steps) == Some(50), "{steps:?}");
        let (mut compute_ns, mut calls) = (0, 0);
        visit(&steps, 1, &mut |call, times| {
            compute_ns += call.compute_ns;
            calls += times;
        });
        assert_eq!(compute_ns, file.calls.iter().map(|call| call.compute_ns).sum::<u64>());
        assert_eq!(calls, kinds.len() as u64);
    }

    #[test]
    fn steps_are_written_and_read_back_and_mistakes_named() {
        let steps = of_rank(&rank(&[0, 1, 0, 1, 2]), &mut |_| 0);
        let text = serde_json::to_string(&steps).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Step>>(&text).unwrap(), steps);
        let why = |text: &str| serde_json::from_str::<Step>(text).unwrap_err().to_string();
        assert!(why(r#"{"repeat":0,"body":[{"call":"a"}]}"#).contains("0 times"));
        assert!(why(r#"{"repeat":3}"#).contains("nothing is repeated"));
        assert!(why(r#"{}"#).contains("either"));
        assert!(why(r#"{"call":"a","compute_ns":-5}"#).contains("-5"));
    }
}
