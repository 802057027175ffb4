//! The fair scheduler, gangs that lend, space sharing, large messages: cases computed by hand. Times are in µs.

use super::by_hand::PAIR;
use super::*;
use crate::general::NodeModel;
use cosched_core::Wait;

fn linux(strategy: &str, nodes: u32) -> Config {
    Config { model: NodeModel::Linux, ..machine(strategy, nodes) }
}

#[test]
fn fair_turns_end_at_ticks_when_a_slice_is_used_up() {
    let jobs = programs(&[(0, 1, "compute 20ms"), (0, 1, "compute 20ms")]);
    let (ends, _, record) = outcome_of(&linux("Local", 1), &jobs);
    // At 8 ms the second is 0.2 ms behind the first, so it continues for another slice.
    let expected = [4_000, 12_000, 16_000, 20_000, 24_000, 28_000, 32_000, 36_000, 40_000, 41_000];
    assert_eq!(record.switches(0).iter().map(|(at_us, _)| *at_us).collect::<Vec<_>>(), expected);
    assert_eq!(ends, [42_000, 41_000]);
}

#[test]
fn a_woken_process_keeps_its_lag() {
    let jobs = programs(&[(0, 1, "compute 1ms; io 3ms; compute 1ms"), (0, 1, "compute 50ms")]);
    // It had half a millisecond too much, so it is not eligible at 4 ms; at 8 ms it is.
    assert_eq!(outcome_of(&linux("Local", 1), &jobs).2.switches(0), [(1_000, 1), (8_000, 0), (9_200, 1)]);
}

#[test]
fn a_woken_process_preempts_one_that_had_more_than_its_part() {
    // The second has had 0.1 ms against 4 ms when it sleeps at 4.3 ms, so it is still behind at 5.3 ms.
    let jobs = programs(&[(0, 1, "compute 20ms"), (0, 1, "compute 100us; io 1ms; compute 100us")]);
    let (ends, _, record) = outcome_of(&linux("Local", 1), &jobs);
    assert_eq!(record.switches(0), [(4_000, 1), (4_300, 0), (5_300, 1), (5_600, 0)]);
    assert_eq!(ends[1], 5_600);
}

#[test]
fn spin_block_on_linux_wakes_at_once() {
    let jobs = programs(&[(0, 2, PAIR), (0, 1, "compute 10ms")]);
    let (ends, out, record) = outcome_of(&linux("SB", 2), &jobs);
    // It left 100 µs ahead of the mean, and comes back like that: not eligible before the tick at 4 ms.
    assert_eq!(record.switches(0), [(200, 1), (4_000, 0), (4_200, 1)]);
    assert_eq!((ends, out.interrupts), (vec![4_200, 10_853], 1));
}

#[test]
fn yields_and_boosts_on_linux() {
    let jobs = programs(&[(0, 2, PAIR), (0, 1, "compute 10ms")]);
    // A yield costs 3 µs and lets the other process run first at once.
    let (_, out, record) = outcome_of(&linux("SY", 2), &jobs);
    assert_eq!((record.switches(0)[0], out.cpu.sched_ns), ((203, 1), 3 * US));
    // A boost preempts at once; here that is at ticks, as in the paper's model.
    let (ends, out, record) = outcome_of(&linux("PB", 2), &jobs);
    assert_eq!(record.switches(0), [(1_007, 1), (2_007, 0), (2_207, 1)]);
    assert_eq!((ends, out.boosts), (vec![2_207, 11_632], 2));
    // The interrupt's routine ends at 1238.48, where the receiver preempts.
    let first = programs(&[(0, 1, "compute 10ms"), (0, 2, PAIR)]);
    assert_eq!(outcome_of(&linux("DCS", 2), &first).2.switches(0), [(1_238, 1), (1_438, 0)]);
}

#[test]
fn a_soft_gang_lends_what_it_leaves_idle() {
    let jobs = programs(&[(0, 1, "compute 10ms; io 20ms; compute 10ms"), (0, 1, "compute 100ms")]);
    let (ends, _, record) = outcome_of(&machine("soft-gang", 1), &jobs);
    assert_eq!(record.switches(0), [(10_000, 1), (30_000, 0), (40_200, 1)]);
    assert_eq!(ends, [40_200, 120_600]);
    assert_eq!(outcome_of(&machine("GS", 1), &jobs).0, [40_000, 302_000]);
}

#[test]
fn a_paired_gang_lends_to_the_next_row_only() {
    let first = "compute 10ms; io 100ms; compute 10ms";
    let jobs = programs(&[(0, 1, first), (0, 1, "compute 5ms; io 50ms; compute 5ms"), (0, 1, "compute 30ms")]);
    assert_eq!(outcome_of(&machine("paired-gang", 1), &jobs).0, [120_200, 70_200, 100_400]);
    assert_eq!(outcome_of(&machine("soft-gang", 1), &jobs).0, [120_200, 70_400, 45_400]);
}

#[test]
fn a_gang_that_blocks_lends_while_it_waits() {
    let jobs = programs(&[(0, 2, PAIR), (0, 1, "compute 10ms")]);
    assert_eq!(outcome_of(&machine("soft-gang", 2), &jobs).0, [1_185, 11_385], "busy: the guest comes after it");
    let config = Config { gang_wait: Wait::SpinBlock, ..machine("soft-gang", 2) };
    let (ends, out, record) = outcome_of(&config, &jobs);
    assert_eq!(record.switches(0), [(200, 1), (1_238, 0), (1_438, 1)]);
    assert_eq!((ends, out.blocks, out.interrupts), (vec![1_438, 10_853], 1, 1));
}

#[test]
fn backfilling_fills_holes_without_delaying_the_first() {
    let jobs =
        programs(&[(0, 2, "compute 10ms"), (0, 4, "compute 10ms"), (0, 2, "compute 10ms"), (0, 2, "compute 20ms")]);
    assert_eq!(outcome_of(&machine("FCFS", 4), &jobs).0, [10_000, 20_200, 30_400, 40_400]);
    assert_eq!(outcome_of(&machine("EASY", 4), &jobs).0, [10_000, 20_200, 10_000, 40_400]);
    // A job that runs longer may start earlier on CPUs that the first one does not need.
    let narrow =
        programs(&[(0, 2, "compute 10ms"), (0, 3, "compute 10ms"), (0, 1, "compute 90ms"), (0, 1, "compute 90ms")]);
    assert_eq!(outcome_of(&machine("EASY", 4), &narrow).0, [10_000, 20_200, 90_000, 110_400]);
}

#[test]
fn large_messages_take_longer_on_the_wire() {
    let jobs = programs(&[(0, 2, "on 0 { send 1 64KiB }; on 1 { recv 0 }")]);
    let out = outcome_of(&machine("Local", 2), &jobs).1;
    assert_eq!(out.sim_end_ns, 80_000 + 5_000 + 327_680 + 80_000);
}

#[test]
fn gangs_have_a_column_for_each_cpu() {
    let config = Config { cpus_per_node: 2, ..machine("GS", 2) };
    let jobs = programs(&[(0, 3, "compute 100ms"), (0, 2, "compute 100ms"), (0, 1, "compute 10ms")]);
    let (ends, out, record) = outcome_of(&config, &jobs);
    assert_eq!(record.nodes, [vec![0, 0, 1], vec![0, 0], vec![1]]);
    assert_eq!((ends, out.context_switches), (vec![100_000, 302_000, 10_000], 4));
}
