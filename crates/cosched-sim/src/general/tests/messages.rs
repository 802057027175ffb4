//! Messages with costs by their route. Times are in µs, those of the Bunyip (Strazdins and Uhlmann 2004, equations 1, 2,
//! 7): 1000 words take 80 + 850, of which 28 + 140 are CPU time; within a node 42 + 100, all of it CPU time.

use super::*;
use crate::general::{Messages, NodeModel, Route};
use crate::strategy::Strategy;

const TCP: Route = Route { latency_ns: 80_000, byte_ps: 106_250, cpu_ns: 28_000, cpu_byte_ps: 17_500, poll_ns: None };
const MEMORY: Route = Route { latency_ns: 42_000, byte_ps: 12_500, cpu_ns: 42_000, cpu_byte_ps: 12_500, poll_ns: None };

/// Dual nodes whose interrupts, queue moves and switches cost nothing: all of that is included in the messages' times.
fn duals(strategy: &str, nodes: u32) -> Config {
    let base = machine(strategy, nodes);
    let params = Params { interrupt_ns: 0, queue_move_ns: 0, switch_ns: 0, ..base.params };
    Config { params, cpus_per_node: 2, messages: Some(Messages { network: TCP, memory: MEMORY }), ..base }
}

#[test]
fn a_message_alone_takes_alpha_and_beta() {
    // Tasks 0 and 1 are on node 0, 2 and 3 on node 1.
    let network = programs(&[(0, 4, "on 0 { send 2 8000B }; on 2 { recv 0 }")]);
    let memory = programs(&[(0, 4, "on 0 { send 1 8000B }; on 1 { recv 0 }")]);
    for strategy in ["Local", "SB", "GS"] {
        let (ends, out, _) = outcome_of(&duals(strategy, 2), &network);
        assert_eq!((ends, out.cpu.message_ns, out.cpu.compute_ns), (vec![930], 168 * US, 0), "{strategy}");
        let (ends, out, _) = outcome_of(&duals(strategy, 2), &memory);
        assert_eq!((ends, out.cpu.message_ns), (vec![142], 142 * US), "{strategy}");
    }
}

#[test]
fn messages_of_a_node_share_its_link_in_each_direction() {
    // Both send for 84; the first has the link from 84 to 794, and its receiver the other link from 136 to 846.
    let both = programs(&[(0, 4, "on 0..1 { send +2 8000B }; on 2..3 { recv -2 }")]);
    let (ends, _, record) = outcome_of(&duals("Local", 2), &both);
    assert_eq!(record.messages.iter().map(|m| m.delivered_ns / US).collect::<Vec<_>>(), [846, 1_556]);
    assert_eq!(ends, [1_640]);
    let each_way = programs(&[(0, 4, "on 0 { send 2 8000B; recv 2 }; on 2 { send 0 8000B; recv 0 }")]);
    assert_eq!(outcome_of(&duals("Local", 2), &each_way).0, [930]);
    // Two nodes send to a third: its link is the bottleneck.
    let to_one = programs(&[(0, 6, "on 0 { send 4 8000B }; on 2 { send 5 8000B }; on 4 { recv 0 }; on 5 { recv 2 }")]);
    assert_eq!(outcome_of(&duals("Local", 3), &to_one).0, [1_640]);
}

#[test]
fn messages_of_a_pair_stay_in_order_in_memory() {
    // Through a network, so that the bytes take time after the send: 1000 words until 84 + 52 + 710 = 846; the empty
    // message, sent at 98, would arrive at 150.
    let base = duals("Local", 1);
    let config = Config { messages: Some(Messages { network: TCP, memory: TCP }), ..base };
    let jobs = programs(&[(0, 2, "on 0 { send 1 8000B; send 1 0B }; on 1 { recv 0; recv 0 }")]);
    let (ends, _, record) = outcome_of(&config, &jobs);
    assert_eq!(record.messages.iter().map(|m| m.delivered_ns / US).collect::<Vec<_>>(), [846, 846]);
    assert_eq!(ends, [846 + 84 + 14]);
}

#[test]
fn polling_goes_by_the_way_that_the_message_will_take() {
    let text = "on 0 { compute 300us; send 1 0B; send 2 0B }; on 1..2 { recv 0 }";
    let jobs = programs(&[(0, 4, text)]);
    let polls = |network_ns, memory_ns| {
        let network = Route { poll_ns: network_ns, ..TCP };
        let messages = Some(Messages { network, memory: Route { poll_ns: memory_ns, ..MEMORY } });
        let (ends, out, _) = outcome_of(&Config { messages, ..duals("SB", 2) }, &jobs);
        assert_eq!(ends, [300 + 21 + 80]);
        (out.blocks, out.cpu.spin_ns / US)
    };
    // Task 1 waits until 321, task 2 until 387; the spin time of the parameters is 200.
    assert_eq!(polls(None, None), (2, 400));
    assert_eq!(polls(Some(0), Some(400 * US)), (1, 321));
    assert_eq!(polls(Some(400 * US), Some(0)), (1, 387));
    assert_eq!(polls(Some(0), Some(0)), (2, 0));
}

#[test]
fn a_gang_keeps_what_a_local_job_lends() {
    // One process waits 10 ms for the other; the second copy could compute meanwhile.
    let text = "on 0 { compute 10ms; send 1 0B }; on 1 { recv 0; compute 10ms }";
    let jobs = programs(&[(0, 2, text), (0, 2, text)]);
    let ends = |strategy| {
        let base = duals(strategy, 1);
        let mut config = Config { cpus_per_node: 1, ..base };
        config.params = Params { nodes: 2, quantum_ns: 5 * MS, spin_ns: 1, ..base.params };
        outcome_of(&config, &jobs).0.into_iter().max().unwrap()
    };
    assert!(ends("GS") >= 40_000, "{}", ends("GS"));
    assert!(ends("SB") <= 31_000, "{}", ends("SB"));
}

#[test]
fn laws_hold_with_costs_of_messages() {
    let text =
        "repeat 4 { compute 300us skew; barrier; alltoall 1kB; bcast root=1 64KiB; exchange 2d; ring; io 100us }";
    let jobs = programs(&[(0, 6, text), (1_000, 4, text), (2_000, 5, text)]);
    for strategy in Strategy::all() {
        for model in [NodeModel::Paper, NodeModel::Linux] {
            let config = Config { model, ..duals(strategy.name(), 3) };
            let out = outcome_of(&config, &jobs).1;
            assert_eq!(out, outcome_of(&config, &jobs).1, "{strategy} {model:?}");
            assert!(out.cpu.message_ns > 0);
        }
    }
}
