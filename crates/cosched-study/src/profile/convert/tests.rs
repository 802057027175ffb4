//! Tests of the conversion: what the tasks of the program do is what the profile says.

use super::*;
use crate::profile::{FORMAT, Task};
use cosched_sim::Topology;
use cosched_sim::program::{Code, Op, Setting};
use proptest::prelude::*;

fn profile(groups: Vec<Vec<u32>>, each: Vec<Vec<Step>>) -> Profile {
    let task = |(task, operations): (usize, Vec<Step>)| Task { task: task as u32, operations, ..Task::default() };
    Profile {
        format: FORMAT.into(),
        by: By::Mpi,
        cosched: String::new(),
        command: vec!["x".into()],
        recorded: String::new(),
        host: String::new(),
        library: None,
        tasks: each.len() as u32,
        elapsed_s: 1.0,
        complete: true,
        exit: 0,
        warnings: Vec::new(),
        network: None,
        groups: [vec![(0..each.len() as u32).collect()], groups].concat(),
        each: each.into_iter().enumerate().map(task).collect(),
    }
}

fn does(compute_ns: u64, does: Vec<Event<u32>>) -> Step {
    Step::Call(Call { name: "MPI_X".into(), does, compute_ns, ..Call::default() })
}

fn together(what: What, among: u32, root: Option<u32>, bytes: u64) -> Event<u32> {
    Event::Together(Collective { what, among, root, bytes })
}

fn codes(profile: &Profile) -> Vec<Code> {
    let program = profile.program().unwrap();
    let read_back: Program = program.to_string().parse().unwrap();
    assert_eq!(read_back, program);
    program.expand(Setting { tasks: profile.tasks, seed: 1, topology: Topology::Ring }).unwrap()
}

/// (computation, I/O, sends, receives) of a task, with loops expanded.
fn sums(code: &Code) -> (u64, u64, u64, u64) {
    let (mut sums, mut loops) = ((0, 0, 0, 0), Vec::new());
    for op in code.ops() {
        let times: u64 = loops.iter().product();
        match op {
            Op::Compute(span) => sums.0 += times * span.ns,
            Op::Hold(ns) => sums.0 += times * ns,
            Op::Io(span) => sums.1 += times * span.ns,
            Op::Send { .. } => sums.2 += times,
            Op::Receive { .. } => sums.3 += times,
            Op::Repeat { times } => loops.push(*times),
            Op::Again => drop(loops.pop()),
        }
    }
    sums
}

#[test]
fn a_ring_is_one_text_for_all() {
    let task = |rank: u32| {
        let right = Event::Send { to: (rank + 1) % 4, bytes: 800 };
        let left = Event::Receive { from: (rank + 3) % 4, bytes: 800 };
        vec![
            Step::Repeat(10, vec![does(1000, vec![right, left])]),
            does(7, vec![together(What::Allreduce, 0, None, 8)]),
        ]
    };
    let profile = profile(vec![], (0..4).map(task).collect());
    let text = profile.program().unwrap().to_string();
    let expected = "repeat 10 {\n    compute 100ns\n    send right 800B\n    recv left\n}\ncompute 7ns\n\
                    reduce root=0 8B\nbcast root=0 8B\n";
    assert_eq!(text, expected);
    assert_eq!(messages(&profile), (4 * 10 + 6, 4 * 10 * 800 + 6 * 8));
}

#[test]
fn times_of_their_own_are_kept_and_so_is_what_division_leaves() {
    let task = |ns: u64| vec![Step::Repeat(3, vec![does(ns, vec![together(What::Barrier, 0, None, 0)])])];
    let profile = profile(vec![], vec![task(1000), task(2000)]);
    let codes = codes(&profile);
    assert_eq!((sums(&codes[0]).0, sums(&codes[1]).0), (1000, 2000));
    let text = profile.program().unwrap().to_string();
    assert!(text.contains("repeat 3 {") && text.contains("on 0 {\n        compute 333ns"), "{text}");
}

#[test]
fn tasks_of_different_structure_have_texts_of_their_own() {
    let barrier = || vec![together(What::Barrier, 0, None, 0)];
    let root = vec![does(5, vec![Event::Send { to: 2, bytes: 1 }]), does(1, barrier())];
    let idle = || vec![does(1, barrier())];
    let last = vec![does(1, vec![Event::Receive { from: 0, bytes: 1 }]), does(1, vec![]), does(1, barrier())];
    let profile = profile(vec![], vec![root, idle(), last]);
    let codes = codes(&profile);
    assert_eq!([0, 1, 2].map(|task| sums(&codes[task]).2), [3, 2, 2]);
    assert_eq!([0, 1, 2].map(|task| sums(&codes[task]).0), [6, 1, 3]);
}

#[test]
fn collectives_of_a_part_are_written_out() {
    let whats = [What::Bcast, What::Scan, What::Gather, What::ReduceScatter, What::Alltoall, What::Allgather];
    let task = |_| whats.map(|what| does(1, vec![together(what, 1, None, 8)])).to_vec();
    let mut each: Vec<Vec<Step>> = (0..4).map(task).collect();
    each[0] = vec![does(9, vec![])];
    let profile = profile(vec![vec![3, 1, 2]], each);
    let codes = codes(&profile);
    assert_eq!(sums(&codes[0]), (9, 0, 0, 0));
    assert!(codes[1].ops().iter().all(|op| !matches!(op, Op::Send { to: 0, .. } | Op::Receive { from: 0 })));
}

#[test]
fn what_does_not_match_is_said() {
    let profile = profile(vec![], vec![vec![does(1, vec![Event::Send { to: 1, bytes: 8 }])], vec![does(1, vec![])]]);
    let message = profile.program().unwrap_err().to_string();
    assert!(message.contains("task 0 sends 1 messages to task 1, which receives 0"), "{message}");
}

#[test]
fn a_program_of_one_task_and_one_of_nothing() {
    let alone = profile(vec![], vec![vec![does(8, vec![together(What::Allgather, 0, None, 8)])]]);
    assert_eq!(sums(&codes(&alone)[0]), (8, 0, 0, 0));
    let nothing = profile(vec![], vec![vec![]]);
    assert!(nothing.program().unwrap_err().to_string().contains("the profile is empty"));
}

/// Steps of all tasks at once, so that messages match: in loops, either a pair communicates, or all
/// do something.
fn rounds(tasks: u32) -> impl Strategy<Value = Vec<Vec<Step>>> {
    let what = prop_oneof![
        Just(What::Barrier),
        Just(What::Bcast),
        Just(What::Allreduce),
        Just(What::Scatter),
        Just(What::Allgather),
        Just(What::Scan)
    ];
    let all = (what, 0..tasks, 0..99_u64)
        .prop_map(move |(what, root, bytes)| vec![vec![together(what, 0, Some(root), bytes)]; tasks as usize]);
    let pair = (0..tasks, 1..tasks, 0..99_u64).prop_map(move |(from, by, bytes)| {
        let to = (from + by) % tasks;
        let mut each = vec![Vec::new(); tasks as usize];
        each[from as usize].push(Event::Send { to, bytes });
        each[to as usize].push(Event::Receive { from, bytes });
        each
    });
    let leaf = (prop_oneof![all, pair], prop::collection::vec(0..10_000_u64, tasks as usize));
    let call = leaf.prop_map(|(each, times)| {
        each.into_iter().zip(times).map(|(events, ns)| vec![does(ns, events)]).collect::<Vec<_>>()
    });
    call.prop_recursive(3, 12, 4, |inner| {
        (1..5_u64, prop::collection::vec(inner, 1..4)).prop_map(|(times, parts)| {
            let tasks = parts[0].len();
            (0..tasks)
                .map(|task| vec![Step::Repeat(times, parts.iter().flat_map(|part| part[task].clone()).collect())])
                .collect()
        })
    })
}

proptest! {
    #[test]
    fn programs_do_what_profiles_say(each in rounds(3)) {
        let profile = profile(vec![], each);
        let codes = codes(&profile);
        for (task, code) in profile.each.iter().zip(&codes) {
            let mut compute_ns = 0;
            steps::visit(&task.operations, 1, &mut |call, _| compute_ns += call.compute_ns);
            prop_assert_eq!(sums(code).0, compute_ns);
        }
        let sent: u64 = codes.iter().map(|code| sums(code).2).sum();
        prop_assert_eq!(sent, messages(&profile).0);
        prop_assert_eq!(sent, codes.iter().map(|code| sums(code).3).sum::<u64>());
    }
}
