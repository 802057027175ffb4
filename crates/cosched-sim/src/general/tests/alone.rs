//! One job alone (D10).

use super::*;
use crate::job::Shape;

#[test]
fn without_skewness_it_takes_exactly_its_ideal_time() {
    for strategy in ["GS", "Local", "SB", "SY"] {
        for tasks in [1, 2, 3, 8, 32] {
            for kind in JobType::ALL {
                let params =
                    Params { skew: 0.0, check_invariants: true, ..Params::paper(strategy.parse().unwrap(), 32) };
                let spec = job(1_234_567, tasks, 30 * MS, kind);
                let shape = Shape::new(&spec, &params);
                let out = simulate(&params, &[spec]);
                let exec = out.jobs[0].finish_ns.unwrap() - out.jobs[0].start_ns.unwrap();
                assert_eq!(exec, shape.iterations * shape.iteration_ns(), "{strategy} {tasks} {kind}");
                assert_eq!(out.cpu.compute_ns, u64::from(tasks) * shape.iterations * shape.compute_ns);
                assert_eq!((out.context_switches, out.interrupts, out.blocks, out.yields), (0, 0, 0, 0));
            }
        }
    }
}

#[test]
fn periodic_boost_costs_two_microseconds_a_look() {
    // Alone and computing for ever: each tick checks one endpoint, which is its own.
    let params = Params { skew: 0.0, ..Params::paper("PB".parse().unwrap(), 1) };
    let spec = job(0, 1, 50 * MS, JobType::J4);
    let out = simulate(&params, &[spec]);
    let shape = Shape::new(&spec, &params);
    let alone_ns = shape.iterations * shape.iteration_ns();
    // 5 of 95 parts are I/O, during which no endpoint is checked.
    let looks = out.cpu.sched_ns / (2 * US);
    assert!((45..=50).contains(&looks), "{looks}");
    assert_eq!(out.sim_end_ns - alone_ns, out.cpu.sched_ns, "all of it delays the job");
    assert_eq!((out.boosts, out.context_switches), (0, 0));
}

#[test]
fn demand_based_coscheduling_interrupts_until_the_first_tick() {
    let params = Params { skew: 0.0, ..Params::paper("DCS".parse().unwrap(), 2) };
    // C = D = 216393 ns, M = 185480: the first messages arrive at 618266, before any tick has noted a process.
    let out = simulate(&params, &[job(0, 2, 618_266, JobType::J3)]);
    assert_eq!((out.task_iterations, out.messages), (2, 2));
    assert_eq!((out.sim_end_ns, out.interrupts), (618_266, 0), "consumed before the interrupt is taken");
    // An interrupt of 53 µs each. At 1 ms both do I/O, so no process is noted; at the second messages they end.
    let out = simulate(&params, &[job(0, 2, 2 * 618_266, JobType::J3)]);
    assert_eq!((out.sim_end_ns, out.interrupts), (2 * 618_266 + 53_000, 2));
    assert_eq!((out.cpu.interrupt_ns, out.boosts), (2 * 53_000, 0));
}
