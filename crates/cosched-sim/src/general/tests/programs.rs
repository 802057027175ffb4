//! Programs, several CPUs per node, the fair scheduler, gangs that lend, space sharing.

use super::*;
use crate::general::NodeModel;
use crate::job::Shape;
use crate::strategy::Strategy;

/// The jobs of the crowd as programs.
fn as_programs(params: &Params) -> Vec<Work> {
    let work = |spec: &JobSpec| {
        let shape = Shape::new(spec, params);
        let program = std::sync::Arc::new(crate::program::Program::of_paper(&shape));
        let estimate_ns = Some(spec.exec_ns);
        Work::Program(ProgramJob {
            arrival_ns: spec.arrival_ns,
            tasks: spec.tasks,
            program,
            estimate_ns,
            class: cosched_core::Class::Batch,
            own: Own::default(),
        })
    };
    laws::crowd().iter().map(work).collect()
}

#[test]
fn the_papers_jobs_are_programs() {
    for strategy in Strategy::all() {
        let params = Params { mpl: 3, skew: 0.5, quantum_ns: 20 * MS, ..Params::paper(strategy, 6) };
        let paper = simulate(&params, &laws::crowd());
        let own = simulate_all(&Config::paper(params), &as_programs(&params), &mut Silent, &mut |_| true).unwrap();
        assert_eq!(own.jobs, paper.jobs, "{strategy}");
        assert_eq!((own.cpu, own.messages, own.events), (paper.cpu, paper.messages, paper.events), "{strategy}");
    }
}

#[test]
fn laws_hold_for_all_patterns_on_all_machines() {
    let text = "repeat 4 { compute 300us skew; barrier; alltoall 1kB; bcast root=1 64KiB; reduce root=0 8B\n\
                exchange 2d; io 200us skew; exchange 3d 100B; ring; random-pairs; on even { compute 1ms } }";
    let jobs = programs(&[(0, 6, text), (1_000, 4, text), (2_000, 5, text), (3_000, 2, text), (3_000, 6, text)]);
    for strategy in Strategy::all() {
        for (model, cpus) in
            [(NodeModel::Paper, 1), (NodeModel::Paper, 3), (NodeModel::Linux, 1), (NodeModel::Linux, 2)]
        {
            let base = Config::paper(Params {
                mpl: 3,
                quantum_ns: 10 * MS,
                check_invariants: true,
                ..Params::paper(strategy, 6)
            });
            let config = Config { model, cpus_per_node: cpus, ..base };
            let out = outcome_of(&config, &jobs).1;
            assert_eq!(out, outcome_of(&config, &jobs).1, "{strategy} {model:?} {cpus}");
        }
    }
}

#[test]
fn a_program_that_waits_for_ever_is_an_error() {
    // Every message has its receive, but each task waits first.
    let jobs = programs(&[(0, 2, "compute 1ms"), (0, 2, "recv right; send right")]);
    for strategy in ["Local", "SB", "PB", "GS", "soft-gang", "FCFS"] {
        let result = simulate_all(&machine(strategy, 2), &jobs, &mut Silent, &mut |_| true);
        let Err(SimError::Deadlock { index: 1, what }) = result else { panic!("{strategy}: {result:?}") };
        assert_eq!(what, "task 0 waits for a message of task 1");
    }
    let wrong = simulate_all(&machine("GS", 2), &programs(&[(0, 1, "send right")]), &mut Silent, &mut |_| true);
    assert!(matches!(wrong, Err(SimError::Program { index: 0, .. })));
}

#[test]
fn a_node_that_sleeps_has_no_ticks() {
    let jobs = programs(&[(0, 2, "repeat 3 { compute 15ms; io 400s; barrier }"), (900_000_000, 1, "compute 1ms")]);
    for strategy in ["Local", "SB", "PB-SB", "SY", "DCS"] {
        let (ends, out, _) = outcome_of(&machine(strategy, 2), &jobs);
        assert!(ends[0] > 1_200_000_000 && ends[0] < 1_200_100_000, "{strategy}: {ends:?}");
        // 1,200 s are 120,000 ticks of each node. A task that waits busy at the barrier is awake for a moment only.
        assert!(out.events < 500, "{strategy}: {} events", out.events);
    }
}

#[test]
fn a_barrier_lets_nobody_go_before_the_last_has_come() {
    let jobs = programs(&[(0, 5, "on 3 { compute 20ms }; barrier; compute 1ms")]);
    let (ends, out, record) = outcome_of(&machine("Local", 5), &jobs);
    // Three rounds of at most 80 + 5 + 80 µs each after the last one has arrived.
    assert!(ends[0] > 21_000 && ends[0] <= 21_000 + 3 * 165, "{ends:?}");
    assert_eq!(out.messages, 15);
    let computed = record.slices.iter().filter(|s| s.activity == Activity::Compute && s.start_ns < 20 * MS).count();
    assert_eq!(computed, 1);
}

#[test]
fn cpus_of_a_node_share_its_processes() {
    let config = Config { cpus_per_node: 2, ..machine("Local", 1) };
    let three = programs(&[(0, 1, "compute 30ms"), (0, 1, "compute 30ms"), (0, 1, "compute 30ms")]);
    let (ends, out, _) = outcome_of(&config, &three);
    // At 20 ms all are one level lower except the third, which gets the first CPU; of the other two, which are now
    // equal, the first gets the second CPU. It ends at 30.2 and leaves it to the second for its last 10 ms.
    assert_eq!((ends, out.context_switches), (vec![30_200, 40_400, 50_200], 3));
}

#[test]
fn the_programs_that_come_with_the_simulator_run() {
    let machine = Config { cpus_per_node: 2, ..machine("GS", 2) };
    // (text, tasks, its computation alone in ms); messages are added to that.
    let known = [
        (include_str!("../../../programs/nearest-neighbours.prog"), 4, 1000),
        (include_str!("../../../programs/barrier-mpi.prog"), 2, 1000),
        (include_str!("../../../programs/barrier-omp.prog"), 2, 1000),
        (include_str!("../../../programs/matmul.prog"), 2, 800),
        (include_str!("../../../programs/occupancy.prog"), 1, 5000),
    ];
    for (text, tasks, ms) in known {
        let program: crate::program::Program = text.parse().unwrap();
        assert_eq!(program.to_string().parse(), Ok(program), "it can be written and read again");
        let (ends, out, _) = outcome_of(&machine, &programs(&[(0, tasks, text)]));
        let alone_us = ms * 1000;
        assert!(ends[0] >= alone_us && ends[0] < alone_us + 300 * out.messages / 2 + 200_000, "{text}: {ends:?}");
    }
}

#[test]
fn a_woken_process_goes_back_to_its_own_cpu() {
    let config = Config { cpus_per_node: 2, ..machine("Local", 1) };
    let jobs = programs(&[(0, 1, "compute 1ms; io 5ms; compute 1ms"), (0, 1, "compute 2ms; io 1ms; compute 1ms")]);
    // At 3 ms both CPUs are idle, and the second process continues where it was.
    let (ends, out, _) = outcome_of(&config, &jobs);
    assert_eq!((ends, out.context_switches), (vec![7_000, 4_000], 0));
}
