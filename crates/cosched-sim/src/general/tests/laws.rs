//! Determinism, invariants and readings on a small busy machine.

use super::*;
use crate::params::{Placement, Readings, Topology};
use crate::strategy::Strategy;

/// Jobs of all kinds that crowd six nodes.
pub(super) fn crowd() -> Vec<JobSpec> {
    let sizes = [3, 6, 2, 1, 4, 5, 6, 2, 3, 1, 4, 6];
    let spec = |(i, tasks): (usize, &u32)| {
        let i = i as u64;
        job(i * 7_301_003, *tasks, 10 * MS + i * 5_777_777, JobType::ALL[(i % 6) as usize])
    };
    sizes.iter().enumerate().map(spec).collect()
}

fn small(strategy: Strategy) -> Params {
    Params { mpl: 3, skew: 0.5, quantum_ns: 20 * MS, ..Params::paper(strategy, 6) }
}

#[test]
fn laws_hold_under_all_strategies() {
    for strategy in Strategy::paper() {
        let params = small(strategy);
        let out = simulate(&params, &crowd());
        assert!(out.jobs.iter().all(|job| job.finish_ns > job.start_ns), "{strategy}");
        assert_eq!(out.sim_end_ns, out.jobs.iter().filter_map(|job| job.finish_ns).max().unwrap());
        let checked = Params { check_invariants: true, ..params };
        assert_eq!(simulate(&checked, &crowd()), out, "{strategy}: the same again");
        let other = simulate(&Params { seed: 2, ..params }, &crowd());
        assert_ne!(other.jobs, out.jobs, "{strategy}: another seed");
    }
}

#[test]
fn an_end_cuts_everything_there() {
    for strategy in Strategy::paper() {
        let full = simulate(&small(strategy), &crowd());
        let end_ns = full.sim_end_ns / 2 + 12_345;
        let cut = simulate(&Params { end_ns: Some(end_ns), ..small(strategy) }, &crowd());
        assert_eq!(cut.sim_end_ns, end_ns);
        assert!(cut.events < full.events);
        for (early, late) in cut.jobs.iter().zip(&full.jobs) {
            assert_eq!(early.finish_ns, late.finish_ns.filter(|ns| *ns <= end_ns), "{strategy}");
            assert_eq!(early.start_ns, late.start_ns.filter(|ns| *ns <= end_ns), "{strategy}");
        }
    }
}

#[test]
fn a_list_need_not_be_sorted_and_breaks_ties_of_arrival() {
    let params = Params { mpl: 1, skew: 0.0, ..Params::paper("Local".parse().unwrap(), 1) };
    let at = [5, 3, 9, 3].map(|ms| job(ms * MS, 1, 100 * MS, JobType::J6));
    let starts: Vec<u64> = simulate(&params, &at).jobs.iter().map(|job| job.start_ns.unwrap()).collect();
    assert!(starts[1] == 3 * MS && starts[1] < starts[3] && starts[3] < starts[0] && starts[0] < starts[2]);
}

#[test]
fn slices_of_a_cpu_follow_each_other_and_add_up() {
    for strategy in Strategy::paper() {
        let params = small(strategy);
        let (out, record) = recorded(&params, &crowd());
        assert_eq!(out, simulate(&params, &crowd()), "watching changes nothing");
        let mut busy = [0; 5];
        for node in 0..params.nodes {
            let mut until = 0;
            for (activity, start, end, _) in record.of_cpu(node) {
                assert!(until <= start && start < end, "{strategy} node {node}");
                until = end;
                busy[activity as usize] += end - start;
            }
        }
        let cpu = out.cpu;
        assert_eq!(busy, [cpu.compute_ns, cpu.spin_ns, cpu.switch_ns, cpu.interrupt_ns, cpu.sched_ns], "{strategy}");
        assert_eq!(record.messages.len() as u64, out.messages);
        assert!(record.messages.iter().all(|m| m.delivered_ns - m.sent_ns >= 185_480));
    }
}

#[test]
fn every_reading_changes_something() {
    let default = Readings::default();
    let cases: [(&str, Readings); 16] = [
        ("PB", Readings { random_phase: true, ..default }),
        ("SB", Readings { reverse_ties: true, ..default }),
        ("Local", Readings { solaris_quanta: true, ..default }),
        ("Local", Readings { preempted_to_head: true, ..default }),
        ("PB", Readings { no_boost_tie: true, ..default }),
        ("DCS", Readings { no_dcs_tie: true, ..default }),
        ("SB", Readings { wake_tie: true, ..default }),
        ("Local", Readings { free_switch_from_idle: true, ..default }),
        ("SB", Readings { placement: Placement::First, ..default }),
        ("SB", Readings { topology: Topology::Line, ..default }),
        ("SB", Readings { io_interrupt: true, ..default }),
        ("SB", Readings { any_message_wakes: true, ..default }),
        ("SY", Readings { yield_again: true, ..default }),
        ("PB", Readings { boost_after_scheduler: true, ..default }),
        ("GS", Readings { empty_rows: true, ..default }),
        ("GS", Readings { switch_in_quantum: true, ..default }),
    ];
    for (strategy, readings) in cases {
        let params = small(strategy.parse().unwrap());
        let mut jobs = crowd();
        if readings.reverse_ties {
            // Nodes affect each other only through messages, so a tie mainly decides which job comes first.
            jobs.iter_mut().for_each(|job| job.arrival_ns = 0);
        }
        let usual = simulate(&params, &jobs);
        let other = simulate(&Params { readings, ..params }, &jobs);
        assert_ne!(usual.jobs, other.jobs, "{strategy} {readings:?}");
    }
}

#[test]
fn switches_without_cost_are_counted_too() {
    let params = Params { switch_ns: 0, ..small("SB".parse().unwrap()) };
    let out = simulate(&params, &crowd());
    assert!(out.context_switches > 100 && out.cpu.switch_ns == 0);
    let out = simulate(&small("SB".parse().unwrap()), &crowd());
    assert!(out.cpu.switch_ns <= out.context_switches * 200 * US);
    assert!(out.cpu.switch_ns > (out.context_switches - 6) * 200 * US, "the last may be cut");
}

#[test]
fn every_point_left_open_changes_something() {
    use crate::general::Finer;
    let default = Finer::default();
    let cases = [
        ("PB", Finer { tick_at_zero: true, ..default }),
        ("Local", Finer { tick_in_switch: true, ..default }),
        ("PB-SB", Finer { no_boost_in_switch: true, ..default }),
        ("PB-SB", Finer { boost_time_last: true, ..default }),
        ("DCS", Finer { no_tick_in_kernel: true, ..default }),
        ("SB", Finer { interrupt_acts_first: true, ..default }),
        ("Local", Finer { dispatch_before_admission: true, ..default }),
        ("DCS", Finer { last_owner_is_current: true, ..default }),
        ("DCS-SB", Finer { demand_before_consuming: true, ..default }),
    ];
    for (strategy, finer) in cases {
        // In a crowd, the effect of the first millisecond soon disappears: ticks set the pace.
        let jobs = if finer.tick_at_zero { crowd()[..1].to_vec() } else { crowd() };
        let works: Vec<Work> = jobs.iter().copied().map(Work::Paper).collect();
        // Expensive checks make it likely that something happens meanwhile.
        let check_ns = if finer.boost_time_last { 50 * US } else { 2 * US };
        let params = small(strategy.parse().unwrap());
        let config = Config::paper(Params { check_invariants: true, check_ns, ..params });
        let usual = simulate(&config.params, &jobs);
        let other = simulate_all(&Config { finer, ..config }, &works, &mut Silent, &mut |_| true).unwrap();
        assert_ne!(usual.jobs, other.jobs, "{strategy} {finer:?}");
    }
}
