//! What operators and owners change while a cluster runs, and what nodes report about themselves.

mod common;

use common::{measured, refusal};
use cosched_cluster::wire::{Answer, Ask, NodeAsk, Packing, Queue, Rights, Shares, WantAsk};
use cosched_core::cluster::Stage;
use cosched_core::{Disposition, JobId};
use cosched_node::Request;
use cosched_swarm::world::{ROOT, S, World, job, job_on, submit, user};

#[test]
fn administrators_change_queues_and_shares_of_a_running_cluster() {
    let mut world = World::started(23, 2);
    let queue = |name: &str| Queue {
        name: name.to_owned(),
        exclusive: false,
        memory_bytes_max: None,
        disk_bytes_max: None,
        time_ns_max: None,
        ..Queue::default()
    };
    let shares = Shares { express: 9, interactive: 3, batch: 2, standby: 1 };
    let queues = |names: &[&str]| Ask::Queues { queues: names.iter().map(|name| queue(name)).collect() };
    world.job_ns_max = 20 * S;
    world.ask(0, user(1), submit(job("a", 8)));
    let asked = [
        (user(1), queues(&["", "b"]), Some("for administrators")),
        (ROOT, queues(&["b"]), Some("in queues that are left out: 1 in ")),
        (ROOT, queues(&["", "b", "b"]), Some("a name of its own")),
        (ROOT, queues(&["b", ""]), None),
        (ROOT, Ask::Shares { working: shares, off: shares }, None),
        (user(1), Ask::Packing { packing: Packing::BestFit }, Some("for administrators")),
        (ROOT, Ask::Packing { packing: Packing::BestFit }, None),
        (user(1), Ask::RowsMax { rows: 3 }, Some("for administrators")),
        (ROOT, Ask::RowsMax { rows: 0 }, Some("out of range")),
        (ROOT, Ask::RowsMax { rows: 3 }, None),
    ]
    .map(|(by, ask, why)| (world.ask(0, by, ask).unwrap(), why));
    world.run(2 * S);
    for (ask, why) in asked {
        let answer = world.hosts[0].answers.get(&ask);
        match why {
            None => assert_eq!(answer, Some(&vec![Answer::Done])),
            Some(why) => assert!(refusal(answer).contains(why), "{answer:?}"),
        }
    }
    let config = world.state().unwrap().config;
    assert_eq!((config.queues[0].name.as_str(), config.working.express), ("b", 9));
    assert_eq!((config.packing, config.rows_max), (Packing::BestFit.into(), 3));
    assert_eq!(world.state().unwrap().jobs[&JobId(1)].spec.queue, 1);
    world.run(40 * S);
    world.check_end();
}

/// Requests of other users that name it are refused, and it is passed over for those that name no node.
#[test]
fn a_queue_is_for_those_whose_it_is() {
    let mut world = World::started(26, 2);
    world.job_ns_max = 1000 * S;
    let of = |name: &str, users: &[u32]| {
        let rights = Rights { users: users.to_vec(), ..Rights::default() };
        Queue { name: name.to_owned(), rights, ..Queue::default() }
    };
    world.ask(0, ROOT, Ask::Queues { queues: vec![of("hers", &[7]), of("all", &[])] });
    world.run(2 * S);
    let named = |name: &str| {
        let mut ask = job(name, 1);
        ask.queue = Some("hers".to_owned());
        submit(ask)
    };
    let refused = world.ask(0, user(1), named("a")).unwrap();
    let taken = [(user(1), submit(job("b", 1))), (user(7), named("c"))].map(|(by, ask)| world.ask(0, by, ask).unwrap());
    world.run(2 * S);
    assert!(refusal(world.hosts[0].answers.get(&refused)).contains("queue hers is for other users"));
    let queue_of = |ask| match world.hosts[0].answers[ask][..] {
        [Answer::Submitted { job }] => world.state().unwrap().jobs[&JobId(job)].spec.queue,
        _ => panic!("{:?}", world.hosts[0].answers[ask]),
    };
    assert_eq!([queue_of(&taken[0]), queue_of(&taken[1])], [1, 0]);
}

/// A node's load is reported where anyone can read it: at once when the node is new, then when the load has changed.
#[test]
fn a_load_is_read_from_any_node() {
    let mut world = World::started(24, 2);
    let told = |world: &mut World, name: Option<&str>| {
        world.hosts[1].loads = None;
        world.request(1, ROOT, Request::Loads(name.map(str::to_owned))).expect("a daemon");
        world.run(S);
        world.hosts[1].loads.clone().expect("an answer")
    };
    let load = |world: &mut World| told(world, Some("n0")).remove("n0").and_then(|ack| ack.measured);
    assert_eq!(load(&mut world), None, "it has said nothing");
    world.tell(0, |member, now| member.measured(now, measured(1000)));
    world.run(S);
    assert_eq!(load(&mut world), Some(measured(1000)));
    world.tell(0, |member, now| member.measured(now, measured(1600)));
    world.run(60 * S);
    assert_eq!(load(&mut world), Some(measured(1000)), "flicker");
    world.tell(0, |member, now| member.measured(now, measured(1700)));
    world.run(40 * S);
    assert_eq!(load(&mut world), Some(measured(1700)));
    assert_eq!(told(&mut world, None).len(), 2);
    world.hosts[1].loads = None;
    world.request(1, ROOT, Request::Loads(Some("n9".to_owned())));
    world.run(S);
    assert_eq!(world.hosts[1].loads, None, "there is no such node");
    world.run(40 * S);
    world.check_end();
}

/// The owner's requests reach a job from any node; other users' requests do not.
#[test]
fn resources_are_changed_by_the_owner_and_as_far_as_there_is_room() {
    let mut world = World::started(25, 2);
    world.job_ns_max = 1000 * S;
    let per_node = |cpus: [u32; 2], memory_bytes| {
        let ask = |(n, cpus)| NodeAsk { node: format!("n{n}"), cpus, cpus_min: cpus, memory_bytes, disk_bytes: 0 };
        WantAsk::PerNode((0..2).zip(cpus).map(ask).collect())
    };
    let memory = world.state().unwrap().nodes.values().map(|node| node.capacity.memory_bytes).min().unwrap();
    for name in ["first", "second"] {
        let mut ask = job(name, 2);
        ask.want = per_node([1, 1], memory / 4);
        world.ask(0, user(1), submit(ask));
        world.run(S);
    }
    let asked = [
        (user(2), per_node([1, 1], 1), Some("another user's")),
        (user(1), per_node([1, 1], memory), Some("the others there leave")),
        (user(1), per_node([1, 99], 1), Some("99 CPUs on node n1, which has")),
        (user(1), WantAsk::Total { cpus: 1, memory_per_cpu_bytes: 1, disk_bytes: 0 }, Some("needs a CPU of each")),
        (user(1), per_node([2, 1], memory / 2), None),
    ]
    .map(|(by, want, why)| (world.ask(1, by, Ask::Resources { job: 1, want }).unwrap(), why));
    world.run(2 * S);
    for (ask, why) in asked {
        let answer = world.hosts[1].answers.get(&ask);
        match why {
            None => assert_eq!(answer, Some(&vec![Answer::Done])),
            Some(why) => assert!(refusal(answer).contains(why), "{answer:?}"),
        }
    }
    let state = world.state().unwrap();
    let parts = &state.jobs[&JobId(1)].place.as_ref().unwrap().parts;
    let parts: Vec<_> = parts.iter().map(|part| (part.cpus, part.memory_bytes)).collect();
    assert_eq!(parts, [(2, memory / 2), (1, memory / 2)]);
    let record = world.jobs().into_iter().find(|job| job.id == 1).unwrap();
    assert_eq!(record.ask.want, per_node([2, 1], memory / 2));
    assert_eq!(record.history.last().unwrap().what, "resources changed");
}

/// The number of waiting jobs of one user is limited; other users and administrators are not affected.
#[test]
fn a_users_loop_leaves_room_for_others() {
    let mut world = World::started(26, 2);
    world.job_ns_max = 10_000 * S;
    let memory = world.state().unwrap().nodes.values().map(|node| node.capacity.memory_bytes).min().unwrap();
    let waiting = |n| submit(job_on(&format!("j{n}"), "n0", memory));
    // The first one begins, and all others wait for its memory.
    let mut asked = Vec::new();
    for n in 0..1003 {
        asked.push(world.ask(0, user(1), waiting(n)).unwrap());
        if n % 50 == 49 {
            world.run(2 * S);
        }
    }
    world.run(2 * S);
    let answer = |world: &World, n: usize| world.hosts[0].answers.get(&asked[n]).cloned();
    assert_eq!(answer(&world, 1000), Some(vec![Answer::Submitted { job: 1001 }]));
    for late in [1001, 1002] {
        assert!(refusal(answer(&world, late).as_ref()).contains("1000 of your jobs are waiting already"), "{late}");
    }
    for (by, n) in [(user(2), 2000), (ROOT, 2001)] {
        let ask = world.ask(0, by, waiting(n)).unwrap();
        world.run(2 * S);
        assert!(matches!(world.hosts[0].answers[&ask][..], [Answer::Submitted { .. }]));
    }
    let end = Ask::Kill { job: 1, how: cosched_cluster::wire::KillHow::FORCE };
    world.ask(0, user(1), end);
    world.run(5 * S);
    let again = world.ask(0, user(1), waiting(2002)).unwrap();
    world.run(2 * S);
    assert!(matches!(world.hosts[0].answers[&again][..], [Answer::Submitted { .. }]), "one has begun");
}

/// All daemons know which node has left, also those started later; a node that is back has not left.
#[test]
fn a_node_that_left_is_known_to_be_gone_until_it_is_back() {
    let mut world = World::started(27, 3);
    let gone = |world: &World, at: usize| -> Vec<(String, Option<u64>)> {
        let member = world.hosts[at].member().expect("it runs");
        member.gone().map(|(name, left_ns)| (name.to_owned(), left_ns)).collect()
    };
    assert_eq!(gone(&world, 0), []);
    world.crash(2);
    world.run(60 * S);
    let known = gone(&world, 0);
    assert!(matches!(&known[..], [(name, Some(_))] if name == "n2"), "{known:?}");
    world.crash(1);
    world.start(1);
    world.run(20 * S);
    assert_eq!(gone(&world, 1), known);
    world.start(2);
    world.run(20 * S);
    for at in 0..3 {
        assert_eq!(gone(&world, at), [], "n{at}");
    }
    world.check_end();
}

/// What is held for want of memory does not wait for an unavailable store once no other job uses the memory.
#[test]
fn what_is_held_goes_on_without_a_store_when_there_is_room() {
    let mut world = World::started(28, 2);
    world.job_ns_max = 10_000 * S;
    let memory = world.state().unwrap().nodes.values().map(|node| node.capacity.memory_bytes).min().unwrap();
    for name in ["first", "second", "third"] {
        world.ask(0, user(1), submit(job_on(name, "n1", memory / 4)));
        world.run(S);
    }
    // The first and the third one turn out to need half of the node each: there is no room for three.
    world.tell(1, |member, now| member.memory(now, JobId(1), memory / 2));
    world.tell(1, |member, now| member.memory(now, JobId(3), memory / 2));
    world.run(5 * S);
    let stopped = |world: &World| -> Vec<u64> {
        let parts = &world.hosts[1].processes.parts;
        parts.iter().filter(|(_, part)| part.to == Disposition::Stop).map(|(id, _)| id.0).collect()
    };
    assert_eq!(stopped(&world), [3]);
    world.store_away_until = world.now + 100 * S;
    let until = world.now + 30 * S;
    world.run(20 * S);
    assert!(!world.hosts[1].member().unwrap().is_joined());
    assert_eq!(stopped(&world), [3], "the others have the memory still");
    // The second one ends, and the memory that it had is enough.
    world.hosts[1].processes.parts.get_mut(&JobId(2)).unwrap().sleeps_until = Some(until);
    world.run(20 * S);
    assert!(stopped(&world).is_empty());
    world.run(100 * S);
    assert_eq!(world.state().unwrap().jobs[&JobId(3)].stage, Stage::Ready);
    assert!(stopped(&world).is_empty());
    assert!(world.violation.is_none(), "{:?}", world.violation);
}

/// A user who starts one quick job after the other does not push out the exit codes of other users' jobs.
#[test]
fn nobody_pushes_out_the_ended_jobs_of_another() {
    let mut world = World::new(37, 2);
    for host in &mut world.hosts {
        host.settings.keep_ended_max = 5;
    }
    (0..2).for_each(|node| world.start(node));
    world.run(3 * S);
    world.ask(0, user(1), submit(job("theirs", 1)));
    world.run(30 * S);
    for n in 0..12 {
        world.ask(1, user(2), submit(job(&format!("quick{n}"), 1)));
    }
    world.run(120 * S);
    let ended = |world: &World, uid| {
        let of = world.jobs().into_iter().filter(move |job| job.owner.uid == uid && job.end.is_some());
        of.map(|job| job.id).collect::<Vec<_>>()
    };
    assert_eq!((ended(&world, 1), ended(&world, 2).len()), (vec![1], 5));
    // Of each user, the newest jobs that there is room for.
    let of = |world: &World| world.jobs().into_iter().find(|job| job.owner.uid == 1).unwrap();
    let bytes = cosched_cluster::wire::encode(&of(&world)).len() as u64;
    for node in 0..2 {
        world.hosts[node].settings.keep_ended_bytes = 3 * bytes;
        world.crash(node);
        world.start(node);
    }
    world.run(30 * S);
    let kept = ended(&world, 2).len();
    assert!(ended(&world, 1) == [1] && (1..=3).contains(&kept), "{kept}");
    world.check_end();
}
