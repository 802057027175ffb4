//! Cases that were computed by hand. Times are in µs.

use super::*;
use crate::params::Placement;

/// Two tasks: the first waits for a message, the second sends it after a millisecond. It is delivered at 1185.48.
pub(super) const PAIR: &str = "on 0 { recv 1 }; on 1 { compute 1ms; send 0 }";

#[test]
fn d3_quanta_are_looked_at_at_ticks_and_grow_with_lower_levels() {
    let jobs = programs(&[(0, 1, "compute 50ms"), (0, 1, "compute 50ms")]);
    let (ends, out, record) = outcome_of(&machine("Local", 1), &jobs);
    // 20 ms at level 59; the second has its own at the tick at 41 only. Then 23.05 ms at level 58.
    assert_eq!(record.switches(0), [(20_000, 1), (41_000, 0), (65_000, 1), (89_000, 0), (95_400, 1)]);
    assert_eq!((ends, out.context_switches), (vec![95_400, 101_000], 5));
}

#[test]
fn d3_a_process_without_rivals_just_goes_on() {
    let (ends, out, _) = outcome_of(&machine("Local", 1), &programs(&[(0, 1, "compute 3s")]));
    assert_eq!((ends, out.context_switches), (vec![3_000_000], 0));
}

#[test]
fn d4_a_preempted_process_goes_to_the_tail_with_what_is_left_of_its_quantum() {
    let waker = "compute 1ms; io 50ms; compute 1ms";
    let jobs = programs(&[(0, 1, waker), (0, 1, "compute 100ms"), (0, 1, "compute 100ms")]);
    let (_, _, record) = outcome_of(&machine("Local", 1), &jobs);
    let expected = [(1_000, 1), (22_000, 2), (43_000, 1), (51_000, 0), (52_200, 2), (76_000, 1), (92_000, 2)];
    assert_eq!(record.switches(0)[..7], expected);
    let to_head = reading(machine("Local", 1), |r| r.preempted_to_head = true);
    let (_, _, record) = outcome_of(&to_head, &jobs);
    assert_eq!(record.switches(0)[3..5], [(51_000, 0), (52_200, 1)]);
}

#[test]
fn d5_a_woken_process_does_not_preempt_an_equal() {
    let jobs = programs(&[(0, 1, "compute 5ms; io 1ms; compute 1ms"), (0, 1, "compute 100ms")]);
    assert_eq!(outcome_of(&machine("Local", 1), &jobs).0, [27_200, 106_600]);
    assert_eq!(outcome_of(&reading(machine("Local", 1), |r| r.wake_tie = true), &jobs).0, [7_200, 106_600]);
}

#[test]
fn d6_a_switch_is_paid_when_another_one_gets_the_cpu() {
    let jobs = programs(&[(0, 1, "compute 1ms"), (0, 1, "compute 1ms"), (5_000, 1, "compute 1ms")]);
    assert_eq!(outcome_of(&machine("Local", 1), &jobs).0, [1_000, 2_200, 6_200]);
    assert_eq!(
        outcome_of(&reading(machine("Local", 1), |r| r.free_switch_from_idle = true), &jobs).0,
        [1_000, 2_000, 6_000]
    );
    let alone = programs(&[(0, 1, "compute 1ms; io 1ms; compute 1ms")]);
    assert_eq!(outcome_of(&machine("Local", 1), &alone).0, [3_000]);
}

#[test]
fn d6_a_switch_cannot_be_interrupted_by_a_tick() {
    // The switch that begins at 2900 lasts until 3100; the tick at 3000 finds a woken process and an equal.
    let jobs =
        programs(&[(0, 1, "compute 900us; io 2050us; compute 1ms"), (0, 1, "compute 1800us"), (0, 1, "compute 9ms")]);
    let config = reading(machine("Local", 1), |r| r.wake_tie = true);
    let (ends, _, record) = outcome_of(&config, &jobs);
    // 900 + 200 + 1800: the second ends at 2900, the third switches in; the first wakes at 2950 and preempts at 4000.
    assert_eq!(record.switches(0), [(900, 1), (2_900, 2), (4_000, 0), (5_200, 2)]);
    assert_eq!(ends, [5_200, 2_900, 13_500]);
}

#[test]
fn d7_nodes_with_the_fewest_processes_then_the_lowest_numbers() {
    let jobs = programs(&[(0, 2, "compute 9ms"), (0, 1, "compute 9ms"), (0, 2, "compute 9ms"), (0, 4, "compute 9ms")]);
    let config = machine("Local", 4);
    assert_eq!(outcome_of(&config, &jobs).2.nodes, [vec![0, 1], vec![2], vec![0, 3], vec![0, 1, 2, 3]]);
    let first = reading(config, |r| r.placement = Placement::First);
    assert_eq!(outcome_of(&first, &jobs).2.nodes, [vec![0, 1], vec![0], vec![0, 1], vec![0, 1, 2, 3]]);
}

#[test]
fn d7_the_head_of_the_queue_blocks_all_behind_it() {
    let mut config = machine("Local", 2);
    config.params.mpl = 1;
    let jobs = programs(&[(0, 1, "compute 9ms"), (1, 2, "compute 1ms"), (2, 1, "compute 1ms")]);
    // One of the two places is free for 9 ms less 1 µs.
    let (ends, out, _) = outcome_of(&config, &jobs);
    assert_eq!(ends, [9_000, 10_200, 11_400]);
    assert_eq!(out.free_while_waiting_ns, u128::from(8_999 * US));
}

#[test]
fn d9_interfaces_take_one_message_at_a_time_in_each_direction() {
    let fan_out = programs(&[(0, 3, "on 0 { send 1; send 2 }; on 1..2 { recv 0 }")]);
    let (ends, _, record) = outcome_of(&machine("Local", 3), &fan_out);
    let delivered: Vec<u64> = record.messages.iter().map(|m| m.delivered_ns).collect();
    assert_eq!((delivered, ends), (vec![185_480, 265_480], vec![265]));
    let fan_in = programs(&[(0, 3, "on 1..2 { send 0 }; on 0 { recv 1; recv 2 }")]);
    let (_, _, record) = outcome_of(&machine("Local", 3), &fan_in);
    let delivered: Vec<(u32, u64)> = record.messages.iter().map(|m| (m.from.0, m.delivered_ns)).collect();
    assert_eq!(delivered, [(1, 185_480), (2, 265_480)]);
}

#[test]
fn d14_spin_block_sleeps_until_an_interrupt() {
    let (_, out, _) = outcome_of(&machine("SB", 2), &programs(&[(0, 2, PAIR)]));
    assert_eq!(out.sim_end_ns, 1_185_480 + 53_000);
    assert_eq!((out.blocks, out.interrupts, out.cpu.spin_ns, out.cpu.interrupt_ns), (1, 1, 200_000, 53_000));
    let (_, out, _) = outcome_of(&machine("Local", 2), &programs(&[(0, 2, PAIR)]));
    assert_eq!((out.sim_end_ns, out.cpu.spin_ns), (1_185_480, 1_185_480));
}

#[test]
fn d14_spin_yield_gives_way_once() {
    let (_, out, _) = outcome_of(&machine("SY", 2), &programs(&[(0, 2, PAIR)]));
    assert_eq!((out.sim_end_ns, out.yields, out.cpu.sched_ns), (1_185_480, 1, 3_000));
    let again = reading(machine("SY", 2), |r| r.yield_again = true);
    let (_, out, _) = outcome_of(&again, &programs(&[(0, 2, PAIR)]));
    assert_eq!((out.yields, out.cpu.sched_ns), (5, 15_000), "at 200, 403, 606, 809 and 1012");
}

#[test]
fn d14_spin_yield_goes_below_the_other_and_raises_it() {
    let jobs = programs(&[(0, 2, PAIR), (0, 1, "compute 10ms")]);
    let (ends, out, record) = outcome_of(&machine("SY", 2), &jobs);
    // Yield at 200 (3 + 2 + 3 µs); at 1000 the other one, of level 59, comes before level 58.
    assert_eq!(record.switches(0), [(1_000, 1), (11_200, 0)]);
    assert_eq!((ends, out.boosts, out.cpu.sched_ns), (vec![11_400, 11_200], 1, 8_000));
}

#[test]
fn d15_periodic_boost_prefers_whose_message_is_there_then_who_computes() {
    let jobs = programs(&[(0, 2, PAIR), (0, 1, "compute 10ms")]);
    let (ends, out, record) = outcome_of(&machine("PB", 2), &jobs);
    assert_eq!(record.switches(0), [(1_007, 1), (2_007, 0), (2_207, 1)]);
    assert_eq!((ends, out.boosts), (vec![2_207, 11_632], 2));
    assert_eq!(out.cpu.sched_ns, (7 + 7 + 9 * 2) * US);
    let never = reading(machine("PB", 2), |r| r.no_boost_tie = true);
    assert_eq!(outcome_of(&never, &jobs).1.context_switches, 1, "then it is as Local");
}

#[test]
fn d16_demand_based_coscheduling_raises_the_receiver() {
    let jobs = programs(&[(0, 1, "compute 10ms"), (0, 2, PAIR)]);
    let (ends, out, record) = outcome_of(&machine("DCS", 2), &jobs);
    assert_eq!(record.switches(0), [(2_000, 1), (2_200, 0)]);
    assert_eq!((ends, out.boosts, out.interrupts), (vec![10_453, 2_200], 1, 1));
    let never = reading(machine("DCS", 2), |r| r.no_dcs_tie = true);
    assert_eq!(outcome_of(&never, &jobs).0, [10_053, 10_253]);
}

#[test]
fn d17_rows_take_turns() {
    let jobs = programs(&[(0, 1, "compute 300ms"), (0, 1, "compute 100ms"), (350_000, 1, "compute 10ms")]);
    let (ends, out, record) = outcome_of(&machine("GS", 1), &jobs);
    // Row 1 is current at 350, so the third starts at once.
    assert_eq!((ends, out.context_switches), (vec![504_000, 302_000, 360_000], 2));
    assert_eq!(record.rows, [(0, 0), (202 * MS, 1), (404 * MS, 0)]);
    let inside = reading(machine("GS", 1), |r| r.switch_in_quantum = true);
    assert_eq!(outcome_of(&inside, &jobs).0, [502_000, 300_000, 360_000]);
}

#[test]
fn d17_empty_rows_take_turns_in_the_other_reading_only() {
    let jobs = programs(&[(0, 1, "compute 300ms")]);
    let mut config = machine("GS", 1);
    config.params.mpl = 3;
    assert_eq!(outcome_of(&config, &jobs).0, [300_000]);
    assert_eq!(outcome_of(&reading(config, |r| r.empty_rows = true), &jobs).0, [706_000]);
}

#[test]
fn d17_io_and_messages_go_on_while_the_row_is_out() {
    let jobs = programs(&[(0, 1, "compute 199ms; io 50ms; compute 1ms"), (0, 1, "compute 200ms")]);
    // The I/O ends at 249; the computation that follows waits for the row at 404.
    assert_eq!(outcome_of(&machine("GS", 1), &jobs).0, [405_000, 402_000]);
}

#[test]
fn d24_every_second_all_are_equal_again() {
    let late = |at_us| programs(&[(0, 1, "compute 2s"), (at_us, 1, "compute 1ms")]);
    let first = |at_us| outcome_of(&machine("Local", 1), &late(at_us)).2.switches(0)[0];
    assert_eq!(first(500_500), (501_000, 1), "the old one has a low level");
    assert_eq!(first(1_000_500), (1_020_000, 1), "the old one has a whole quantum of level 59");
}

#[test]
fn d25_places_are_free_when_the_last_task_ends() {
    let mut config = machine("Local", 2);
    config.params.mpl = 1;
    let jobs = programs(&[(0, 2, "on 0 { compute 1ms }; on 1 { compute 5ms }"), (0, 1, "compute 1ms")]);
    assert_eq!(outcome_of(&config, &jobs).0, [5_000, 6_200]);
}
