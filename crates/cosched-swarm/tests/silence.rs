//! Nodes that are silent, and dead nodes: what that costs jobs, and that nothing lives twice.

use cosched_cluster::Notice;
use cosched_cluster::wire::{Answer, Ask, JobAsk, MainProcess, OnNodeLoss, Why};
use cosched_core::JobId;
use cosched_core::cluster::{Capacity, NEVER};
use cosched_swarm::world::{ROOT, S, World, job, job_on, submit, user};

/// A silence that is longer than a lease costs a gang its slots but ends no job, whatever the job's rule for a lost node says.
#[test]
fn a_silence_that_is_short_costs_slots_and_no_lives() {
    for on_node_loss in [OnNodeLoss::Kill, OnNodeLoss::Keep, OnNodeLoss::Requeue] {
        let mut world = World::started(11, 3);
        world.run(12 * S);
        world.job_ns_max = 500_000 * S;
        let one = |node| JobAsk { on_node_loss, ..job_on("one", node, 0) };
        world.ask(0, ROOT, Ask::NodeDeadAfter { ns: 20 * S });
        world.ask(0, user(1), submit(JobAsk { on_node_loss, ..job("all", 12) }));
        world.run(S);
        world.ask(2, user(1), submit(one("n2")));
        world.run(2 * S);
        world.hosts[2].cut_until = world.now + 9 * S;
        world.run(8 * S);
        let state = world.state().unwrap();
        assert_eq!(state.silent.len(), 1);
        assert!(state.jobs[&JobId(1)].place.as_ref().unwrap().home.is_none(), "others may have its cells");
        let late = world.ask(0, user(2), submit(job("late", 8))).unwrap();
        world.run(S);
        assert!(world.hosts[0].answers.contains_key(&late));
        assert!(world.running().contains(&(0, JobId(3))) && world.running().contains(&(1, JobId(3))));
        world.run(6 * S);
        let state = world.state().unwrap();
        assert!(state.silent.is_empty(), "{:?} {:?}", state.silent, world.hosts[2].notices);
        assert!(state.jobs[&JobId(1)].place.as_ref().unwrap().home.is_some());
        assert!(world.jobs().iter().all(|job| job.attempt == 0 && job.end.is_none()), "{on_node_loss:?}");
        let running = [(0, 1), (1, 1), (2, 1), (2, 2)].map(|(node, job)| (node, JobId(job)));
        assert!(running.iter().all(|part| world.running().contains(part)), "{on_node_loss:?}");
        world.check();
    }
}

/// A kept job gets its ranks back from a node that was considered dead and is alive.
#[test]
fn a_kept_job_has_its_ranks_back_after_any_silence() {
    let mut world = World::started(12, 3);
    world.run(12 * S);
    world.job_ns_max = 500_000 * S;
    world.ask(0, user(1), submit(JobAsk { on_node_loss: OnNodeLoss::Keep, ..job("a", 12) }));
    world.run(2 * S);
    world.hosts[2].cut_until = world.now + 60 * S;
    world.run(40 * S);
    let place = |world: &World| world.state().unwrap().jobs[&JobId(1)].place.clone().unwrap();
    assert_eq!((place(&world).parts.len(), place(&world).home.is_some()), (2, true), "it goes on without the node");
    assert_eq!(world.running().len(), 3, "and its rank there does, too");
    world.run(40 * S);
    assert_eq!((place(&world).parts.len(), world.running().len()), (3, 3));
    // Its machine is restarted: what was kept there is lost.
    world.hosts[2].cut_until = world.now + 30 * S;
    world.run(25 * S);
    world.power_off(2);
    world.start(2);
    world.run(20 * S);
    assert_eq!((place(&world).parts.len(), world.state().unwrap().nodes.len()), (2, 3));
    assert!(world.state().unwrap().kept.is_empty());
}

/// With this setting of the cluster, no node is dead until an operator says so, who is asked to be sure.
#[test]
fn an_operator_says_that_a_node_is_dead() {
    let mut world = World::started(13, 3);
    world.run(12 * S);
    world.job_ns_max = 500_000 * S;
    let refused = |world: &World, id| matches!(&world.hosts[0].answers[&id][..], [Answer::Refused { .. }]);
    world.ask(0, ROOT, Ask::NodeDeadAfter { ns: NEVER });
    world.ask(0, user(1), submit(job("a", 12)));
    world.run(2 * S);
    let dead = || Ask::Dead { node: "n2".to_owned() };
    let lives = world.ask(0, ROOT, dead()).unwrap();
    world.run(S);
    assert!(refused(&world, lives), "its lease is good");
    world.power_off(2);
    world.run(100 * S);
    assert_eq!(world.jobs()[0].end, None);
    let by_user = world.ask(0, user(1), dead()).unwrap();
    let by_root = world.ask(0, ROOT, dead()).unwrap();
    world.run(2 * S);
    assert!(refused(&world, by_user) && !refused(&world, by_root));
    assert_eq!(world.state().unwrap().nodes.len(), 2);
    assert_eq!(world.jobs()[0].end.map(|end| end.why), Some(Why::NodeLost));
}

/// A node of another size keeps its jobs.
#[test]
fn a_node_that_has_less_keeps_its_jobs() {
    let mut world = World::started(14, 2);
    world.job_ns_max = 500_000 * S;
    world.ask(0, user(1), submit(job("a", 8)));
    world.run(S);
    world.ask(1, user(1), submit(job_on("b", "n1", 600 << 20)));
    world.run(3 * S);
    let less = Capacity { cpus: 2, memory_bytes: 500 << 20, disk_bytes: 1 << 30 };
    world.tell(1, |member, now| member.capacity(now, less));
    world.run(3 * S);
    let state = world.state().unwrap();
    let id = world.hosts[1].member().unwrap().id().unwrap();
    assert_eq!(state.nodes[&id].capacity, less);
    let place = |id| state.jobs[&JobId(id)].place.clone().unwrap();
    assert_eq!(place(1).parts.iter().map(|part| part.cpus).sum::<u32>(), 6);
    assert!(place(1).home.is_some());
    assert_eq!(world.running().len(), 3);
}

/// Seed 647 without it: its jobs were begun again elsewhere while they still ran on the machine that was out of touch.
#[test]
fn another_machine_gets_the_name_of_one_that_is_out_of_touch_when_its_jobs_are_given_up() {
    let mut world = World::started(7, 3);
    world.job_ns_max = 1000 * S;
    world.ask(0, ROOT, Ask::NodeDeadAfter { ns: 500 * S });
    let want = JobAsk { on_node_loss: OnNodeLoss::Requeue, ..job_on("a", "n1", 0) };
    world.ask(0, user(1), submit(want));
    world.run(2 * S);
    let (before, twin) = (world.running(), world.add_host("n1"));
    assert_eq!(before.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [1]);
    world.hosts[1].cut_until = world.now + 600 * S;
    world.hosts[twin].boots = 1000;
    world.start(twin);
    world.run(60 * S);
    let kept = |notice: &&Notice| matches!(notice, Notice::Unusable(why) if why.contains("is kept for another machine, home of n1 1"));
    assert_eq!(world.hosts[twin].notices.iter().filter(kept).count(), 1, "{:?}", world.hosts[twin].notices);
    assert!(!world.hosts[twin].member().unwrap().is_joined());
    assert_eq!(world.running(), before);
    world.power_off(1);
    world.ask(0, ROOT, Ask::Dead { node: "n1".to_owned() });
    world.run(10 * S);
    assert!(world.hosts[twin].member().unwrap().is_joined());
    // The same machine, switched on again, is the one that the name is kept for.
    world.power_off(twin);
    world.run(30 * S);
    world.start(twin);
    world.run(10 * S);
    assert!(world.hosts[twin].member().unwrap().is_joined());
    world.check();
}

/// All of them in one transaction were more than a store takes, so nothing was ever planned again.
#[test]
fn a_node_from_which_hundreds_of_jobs_are_led_may_restart_or_die() {
    for (on_node_loss, dies) in [(OnNodeLoss::Kill, false), (OnNodeLoss::Keep, true), (OnNodeLoss::Requeue, false)] {
        {
            let mut world = World::started(3, 2);
            world.job_ns_max = 500_000 * S;
            world.ask(0, ROOT, Ask::NodeDeadAfter { ns: 20 * S });
            world.run(S);
            for k in 0..150 {
                let lead = Some("n1".to_owned());
                world.hosts[1].mains.insert(k, u64::MAX);
                let main = Some(MainProcess { pid: k, start_ticks: 0 });
                // The first ones run on n0, the others wait.
                let job = job_on(&format!("job {k}"), "n0", if k < 135 { 1 << 20 } else { 1 << 29 });
                world.ask(1, user(1), submit(JobAsk { on_node_loss, lead, main, ..job }));
                world.run(S / 200);
            }
            world.run(10 * S);
            assert_eq!(world.state().unwrap().jobs.len(), 150);
            world.power_off(1);
            if !dies {
                world.start(1);
            }
            world.run(60 * S);
            let late = world.ask(0, user(2), submit(job_on("late", "n0", 1 << 20))).unwrap();
            world.run(5 * S);
            let of = format!("{on_node_loss:?}, dies {dies}");
            assert!(
                matches!(world.hosts[0].answers.get(&late).map(Vec::as_slice), Some([Answer::Submitted { .. }])),
                "{of}"
            );
            let led = world
                .jobs()
                .into_iter()
                .filter(|job| job.end.is_none() && job.attempt == 0 && !job.closing && job.ask.lead.is_some());
            assert_eq!(led.count(), 0, "{of}");
            world.check();
        }
    }
}

/// All machines of a cluster were replaced, and no node is left that could declare one of them dead.
#[test]
fn a_cluster_whose_only_machine_was_replaced_begins_again_when_that_one_is_dead() {
    let mut world = World::started(5, 1);
    world.job_ns_max = 1000 * S;
    world.ask(0, ROOT, Ask::NodeDeadAfter { ns: 30 * S });
    world.ask(0, user(1), submit(JobAsk { on_node_loss: OnNodeLoss::Requeue, ..job("a", 1) }));
    world.run(2 * S);
    world.power_off(0);
    world.run(10 * S);
    let new = world.add_host("n0");
    world.hosts[new].boots = 1000;
    world.start(new);
    world.run(30 * S);
    assert!(!world.hosts[new].member().unwrap().is_joined(), "it may be out of touch");
    world.run(20 * S);
    assert!(world.hosts[new].member().unwrap().is_joined());
    world.run(10 * S);
    assert_eq!(world.running().into_iter().collect::<Vec<_>>(), [(new, JobId(1))]);
    world.check();
}
