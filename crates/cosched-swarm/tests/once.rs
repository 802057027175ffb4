//! Launchers that each start a part of a job on their own node.

use cosched_cluster::wire::{Answer, JobAsk, NodeAsk, WantAsk};
use cosched_core::JobId;
use cosched_swarm::world::{S, World, job, submit, user};

/// Launchers on several nodes request the same job at the same time: one job is made. It is over when it is empty on
/// all its nodes.
#[test]
fn a_job_that_several_launchers_ask_for_is_one() {
    let mut world = World::started(22, 2);
    world.job_ns_max = 600 * S;
    let names =
        ["n0", "n1"].map(|node| NodeAsk { node: node.into(), cpus: 1, cpus_min: 1, memory_bytes: 0, disk_bytes: 0 });
    let wide = |name: &str, nodes: &[NodeAsk]| {
        submit(JobAsk { want: WantAsk::PerNode(nodes.to_vec()), lead: None, once: true, ..job(name, 1) })
    };
    let asked = [
        (0, 7, wide("slurm-17", &names)),
        (1, 7, wide("slurm-17", &names)),
        (1, 7, wide("slurm-18", &names)),
        (1, 8, wide("slurm-17", &names)),
        (1, 7, wide("slurm-17", &names[1..])),
        (0, 7, wide("slurm-17", &names)),
    ];
    let ids: Vec<_> =
        asked.into_iter().map(|(node, uid, ask)| (node, world.ask(node, user(uid), ask).unwrap())).collect();
    world.run(2 * S);
    let mut numbers: Vec<u64> = Vec::new();
    for (node, id) in ids {
        let [Answer::Submitted { job }] = world.hosts[node].answers[&id][..] else { panic!("not one answer: {id:?}") };
        numbers.push(job);
    }
    let same = numbers[0];
    assert_eq!((numbers[1], numbers[5]), (same, same), "{numbers:?}");
    assert_eq!(numbers.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{numbers:?}");

    let closing = |world: &World| world.jobs().iter().find(|job| job.id == same).unwrap().closing;
    let tell = |world: &mut World, node: usize, empty: bool| {
        world.tell(node, |member, now| member.empty(now, JobId(same), empty));
        world.run(S);
    };
    tell(&mut world, 0, true);
    assert!(!closing(&world), "it has processes on the other node");
    tell(&mut world, 0, false);
    tell(&mut world, 1, true);
    assert!(!closing(&world), "the first node has some again");
    tell(&mut world, 0, true);
    assert!(closing(&world));
    // A request from now on means the next job.
    let id = world.ask(0, user(7), wide("slurm-17", &names)).unwrap();
    world.run(S);
    assert!(matches!(world.hosts[0].answers[&id][..], [Answer::Submitted { job }] if job != same));
}
