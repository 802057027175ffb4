//! The agent with a planner and a simulated node: jobs use CPU according to their loads, and the test sets the clock.

use super::*;
use crate::class::{Class, Shares};
use crate::job::{Job, Node, Packing, Policy, Sharing};
use crate::plan::Standing;
use crate::planner::{Planner, PlannerAction, PlannerConfig, PlannerInput};

const SECOND_NS: u64 = 1_000_000_000;
const IDLE_AFTER_NS: u64 = 10 * SECOND_NS;
const DROP_AFTER_NS: u64 = 60 * SECOND_NS;
const FULL_PPM: u64 = 1_000_000;

struct TestNode {
    planner: Planner,
    agent: Agent,
    now: Time,
    /// By job: the part of the CPU time that it uses of what it may use, in millionths, and what it has used until now.
    loads: BTreeMap<JobId, (u64, u64)>,
    samples: Vec<(Time, JobId)>,
    asleep: Vec<(Time, JobId)>,
    dropped: Vec<(Time, JobId)>,
    awake: Vec<(Time, JobId)>,
}

impl TestNode {
    fn new(cpus: u32, slot_length_ns: u64) -> TestNode {
        TestNode {
            planner: Planner::new(PlannerConfig {
                nodes: [Node { id: NodeId(0), cpus }].into(),
                slot_length_ns,
                policy: Policy::Gang,
                sharing: Sharing::Strict,
                packing: Packing::FirstFit,
                shares: Shares::default(),
            }),
            agent: Agent::new(AgentConfig {
                idle_after_ns: IDLE_AFTER_NS,
                drop_after_ns: DROP_AFTER_NS,
                drive_boundaries: false,
                ..AgentConfig::default()
            }),
            now: Time(1_000 * SECOND_NS),
            loads: BTreeMap::new(),
            samples: Vec::new(),
            asleep: Vec::new(),
            dropped: Vec::new(),
            awake: Vec::new(),
        }
    }

    fn submit(&mut self, id: u64, cpus: u32, class: Class, load_ppm: u64) {
        self.loads.insert(JobId(id), (load_ppm, 0));
        let job = Job { id: JobId(id), owner: 0, class, policy: None, cpus, node: None };
        self.tell(PlannerInput::Submit(job));
    }

    fn load(&mut self, id: u64, load_ppm: u64) {
        self.loads.entry(JobId(id)).or_default().0 = load_ppm;
    }

    fn tell(&mut self, input: PlannerInput) {
        self.planner.handle(self.now, input).unwrap();
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            while let Some(PlannerAction::Publish(plan, _)) = self.planner.poll_action() {
                self.agent.handle(self.now, AgentInput::Plan(plan));
            }
            match self.agent.poll_action() {
                None => return,
                Some(AgentAction::Sample { job }) => {
                    self.samples.push((self.now, job));
                    let cpu_time_ns = self.loads[&job].1;
                    self.agent.handle(self.now, AgentInput::CpuTime { job, cpu_time_ns });
                }
                Some(AgentAction::Asleep { job, .. }) => {
                    self.asleep.push((self.now, job));
                    self.planner.handle(self.now, PlannerInput::Asleep(job)).unwrap();
                }
                Some(AgentAction::Dropped { job, .. }) => self.dropped.push((self.now, job)),
                Some(AgentAction::Awake { job, .. }) => {
                    self.awake.push((self.now, job));
                    self.planner.handle(self.now, PlannerInput::Awake(job)).unwrap();
                }
                Some(AgentAction::Set { .. }) => panic!("the agent does not drive boundaries here"),
                Some(AgentAction::Unsound(flaw)) => panic!("{flaw}"),
            }
        }
    }

    /// Lets time pass, and calls the agent whenever its timeout is due.
    fn run_for(&mut self, ns: u64) {
        let end = self.now + ns;
        while let Some((due, _)) = self.agent.poll_timeout().filter(|(due, _)| *due <= end) {
            self.pass(due);
            self.agent.handle_timeout(self.now);
            self.settle();
            assert!(self.agent.poll_timeout().is_none_or(|(t, _)| t > self.now), "a busy loop");
        }
        self.pass(end);
    }

    fn pass(&mut self, to: Time) {
        let to = to.max(self.now);
        let plan = self.planner.plan();
        for (id, (load_ppm, used_ns)) in &mut self.loads {
            let Some(planned) = plan.jobs.get(id) else { continue };
            let may_ns = match (planned.standing, planned.policy) {
                (Standing::Suspended, _) => 0,
                (Standing::Scheduled, Policy::Gang) => plan.owned_ns(*id, self.now, to),
                _ => to - self.now,
            };
            *used_ns += may_ns / 1_000 * u64::from(planned.cpus) * *load_ppm / 1_000;
        }
        self.now = to;
    }

    fn sleeps(&self, id: u64) -> bool {
        self.planner.plan().jobs[&JobId(id)].standing == Standing::Asleep
    }
}

#[test]
fn an_idle_gang_falls_asleep_and_wakes_at_its_next_sample() {
    let mut node = TestNode::new(2, 100_000_000);
    node.submit(1, 2, Class::Batch, FULL_PPM);
    node.submit(2, 2, Class::Batch, 0);
    node.run_for(IDLE_AFTER_NS);
    assert!(!node.sleeps(2), "the first sample is later than the arrival");
    node.run_for(3 * SECOND_NS);
    assert!(node.sleeps(2) && !node.sleeps(1));
    assert_eq!(node.planner.plan().turns.len(), 1);

    let samples = node.samples.len();
    node.load(2, FULL_PPM);
    node.run_for(5 * SECOND_NS);
    let (first, _) = node.samples[samples..].iter().find(|(_, job)| *job == JobId(2)).unwrap();
    assert_eq!(node.awake, [(*first, JobId(2))]);
    assert_eq!(node.planner.plan().turns.len(), 2);
}

#[test]
fn a_gang_that_sleeps_for_very_long_is_dropped_and_only_a_user_brings_it_back() {
    let mut node = TestNode::new(2, 100_000_000);
    node.submit(1, 2, Class::Batch, 0);
    let start = node.now;
    node.run_for(DROP_AFTER_NS - 2 * SECOND_NS);
    assert!(node.sleeps(1) && node.dropped.is_empty());
    node.run_for(6 * SECOND_NS);
    let [(at, JobId(1))] = node.dropped[..] else { panic!("{:?}", node.dropped) };
    assert!((DROP_AFTER_NS..DROP_AFTER_NS + 4 * SECOND_NS).contains(&(at - start)), "{}", at - start);
    node.load(1, FULL_PPM);
    node.run_for(20 * SECOND_NS);
    assert!(node.sleeps(1) && node.awake.is_empty(), "nobody waits for it any more");
    node.tell(PlannerInput::Awake(JobId(1)));
    node.load(1, 0);
    node.run_for(IDLE_AFTER_NS + 5 * SECOND_NS);
    assert_eq!((node.asleep.len(), node.dropped.len()), (2, 1), "it is watched as any other gang again");
}

#[test]
fn next_to_no_cpu_time_now_and_then_keeps_a_sleeper_from_being_dropped() {
    let mut node = TestNode::new(2, 100_000_000);
    node.submit(1, 2, Class::Batch, 0);
    for _ in 0..6 {
        node.run_for(DROP_AFTER_NS / 2);
        assert!(node.sleeps(1), "too little to wake");
        node.loads.get_mut(&JobId(1)).unwrap().1 += 15_000_000;
    }
    assert!(node.dropped.is_empty());
}

#[test]
fn cpu_time_between_falling_asleep_and_the_first_sample_wakes() {
    let mut node = TestNode::new(2, 100_000_000);
    node.submit(1, 2, Class::Batch, 0);
    while node.asleep.is_empty() {
        node.run_for(SECOND_NS / 10);
    }
    node.load(1, FULL_PPM);
    node.run_for(SECOND_NS / 5);
    node.load(1, 0);
    node.run_for(SECOND_NS);
    assert_eq!(node.awake.len(), 1);
}

#[test]
fn only_the_slots_of_a_gang_count() {
    let mut node = TestNode::new(2, SECOND_NS);
    (1..=4).for_each(|id| node.submit(id, 2, Class::Batch, FULL_PPM));
    node.submit(5, 2, Class::Batch, 20_000);
    node.run_for(120 * SECOND_NS);
    assert_eq!(node.asleep, [], "a gang with a fifth of the slots uses them");
}

#[test]
fn what_is_next_to_nothing_counts_as_nothing() {
    let mut node = TestNode::new(2, 100_000_000);
    node.submit(1, 2, Class::Batch, 5_000);
    node.submit(2, 2, Class::Batch, 20_000);
    node.run_for(20 * SECOND_NS);
    assert_eq!(node.asleep.iter().map(|(_, job)| job.0).collect::<Vec<_>>(), [1]);
}

#[test]
fn bursts_keep_a_gang_awake_if_they_come_often_enough() {
    for (pause_s, sleeps) in [(6, false), (25, true)] {
        let mut node = TestNode::new(2, 100_000_000);
        node.submit(1, 2, Class::Batch, FULL_PPM);
        for _ in 0..5 {
            node.load(1, FULL_PPM);
            node.run_for(SECOND_NS / 2);
            node.load(1, 0);
            node.run_for(pause_s * SECOND_NS);
        }
        assert_eq!(!node.asleep.is_empty(), sleeps, "pauses of {pause_s} s");
    }
}

#[test]
fn suspended_and_local_jobs_do_not_fall_asleep() {
    let mut node = TestNode::new(2, 100_000_000);
    (1..=2).for_each(|id| node.submit(id, 2, Class::Batch, 0));
    node.tell(PlannerInput::Suspend(JobId(1)));
    node.tell(PlannerInput::JobPolicy(JobId(2), Some(Policy::Local)));
    node.run_for(60 * SECOND_NS);
    assert_eq!(node.asleep, []);

    // Both start again as gangs: the time before does not count.
    node.tell(PlannerInput::Resume(JobId(1)));
    node.tell(PlannerInput::JobPolicy(JobId(2), None));
    node.run_for(IDLE_AFTER_NS - SECOND_NS);
    assert_eq!(node.asleep, []);
    node.run_for(4 * SECOND_NS);
    assert_eq!(node.asleep.len(), 2);
}

#[test]
fn a_gang_that_still_waits_for_its_slot_is_not_idle_when_it_gets_more_of_them() {
    // 17 turns of 30 s, of which gang 2 has one: it may not have run for minutes when gang 1 ends, just before a sample.
    for tenths in 0..10 {
        let mut node = TestNode::new(2, 30 * SECOND_NS);
        node.submit(1, 2, Class::Express, FULL_PPM);
        node.submit(2, 2, Class::Standby, FULL_PPM);
        node.run_for(17 * 30 * SECOND_NS + tenths * SECOND_NS / 10);
        node.tell(PlannerInput::End(JobId(1)));
        node.run_for(60 * SECOND_NS);
        assert_eq!(node.asleep, [], "after {tenths} tenths of a second");
    }
}

#[test]
fn a_clock_that_jumps_is_no_idleness() {
    let mut node = TestNode::new(2, 100_000_000);
    node.submit(1, 2, Class::Batch, FULL_PPM);
    node.run_for(5 * SECOND_NS);
    for jump_ns in [3_600 * SECOND_NS, 56 * 365 * 86_400 * SECOND_NS] {
        node.now = node.now + jump_ns;
        node.run_for(5 * SECOND_NS);
        assert_eq!(node.asleep, []);
    }
}

#[test]
fn a_new_plan_heals_a_clock_that_went_back() {
    let mut node = TestNode::new(2, 100_000_000);
    node.submit(1, 2, Class::Batch, 0);
    node.run_for(5 * SECOND_NS);
    node.now = Time(node.now.0 - 900 * SECOND_NS);
    node.submit(2, 2, Class::Batch, FULL_PPM);
    node.run_for(2 * IDLE_AFTER_NS);
    assert_eq!(node.asleep.iter().map(|(_, job)| job.0).collect::<Vec<_>>(), [1]);
}

/// The largest number of samples in any second.
fn samples_in_a_second(samples: &[(Time, JobId)]) -> usize {
    let within = |i: usize| samples[i..].iter().take_while(|(t, _)| *t - samples[i].0 < SECOND_NS).count();
    (0..samples.len()).map(within).max().unwrap_or(0)
}

#[test]
fn many_jobs_are_sampled_within_the_budget_and_none_is_forgotten() {
    let mut node = TestNode::new(4, 100_000_000);
    for id in 1..=200 {
        node.submit(id, 1, Class::ALL[id as usize % 4], if id % 2 == 0 { 0 } else { FULL_PPM });
    }
    node.run_for(120 * SECOND_NS);
    assert!(samples_in_a_second(&node.samples) <= 100);
    for id in 1..=200 {
        let at: Vec<Time> = node.samples.iter().filter(|(_, job)| job.0 == id).map(|(t, _)| *t).collect();
        let pause_ns = at.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(pause_ns <= 4 * SECOND_NS, "job {id} was not looked at for {pause_ns} ns");
        assert_eq!(node.sleeps(id), id % 2 == 0, "job {id}");
    }
}

#[test]
fn the_rate_of_samples_is_bounded_for_every_interval() {
    for (sample_interval_ns, samples_per_s_max) in
        [(700_000_000, 100), (SECOND_NS / 2, 1), (60 * SECOND_NS, 7), (1, 30)]
    {
        let mut node = TestNode::new(2, 100_000_000);
        node.agent.config.sample_interval_ns = sample_interval_ns;
        node.agent.config.samples_per_s_max = samples_per_s_max;
        (1..=120).for_each(|id| node.submit(id, 2, Class::Batch, FULL_PPM));
        node.run_for(150 * SECOND_NS);
        let most = samples_in_a_second(&node.samples);
        assert!((1..=samples_per_s_max as usize).contains(&most), "{most} samples, {samples_per_s_max} allowed");
    }
}

#[test]
fn an_agent_that_drives_says_every_change_once_and_when_the_next_boundary_is() {
    let mut node = TestNode::new(2, 100_000_000);
    let mut agent = Agent::new(AgentConfig::default());
    (1..=2).for_each(|id| node.submit(id, 2, Class::Batch, FULL_PPM));
    agent.handle(Time(5), AgentInput::Plan(Arc::clone(node.planner.plan())));
    let set = |job, to, reason| AgentAction::Set { job: JobId(job), to, weight: 10_000, reason };
    let said = |agent: &mut Agent| core::iter::from_fn(|| agent.poll_action()).collect::<Vec<_>>();
    let (run, stop) = (Disposition::Run, Disposition::Stop);
    assert_eq!(said(&mut agent), [set(1, run, Reason::NewPlan), set(2, stop, Reason::NewPlan)]);
    assert_eq!(agent.poll_timeout(), Some((Time(100_000_000), Reason::SlotBoundary)));
    agent.handle_timeout(Time(100_000_000));
    assert_eq!(said(&mut agent), [set(1, stop, Reason::SlotBoundary), set(2, run, Reason::SlotBoundary)]);
    agent.handle_timeout(Time(100_000_001));
    assert_eq!(said(&mut agent), []);
}

#[test]
fn an_old_plan_that_comes_late_changes_nothing() {
    let mut node = TestNode::new(2, 100_000_000);
    let mut agent = Agent::new(AgentConfig::default());
    node.submit(1, 2, Class::Batch, FULL_PPM);
    let old = Arc::clone(node.planner.plan());
    node.submit(2, 2, Class::Batch, FULL_PPM);
    agent.handle(Time(5), AgentInput::Plan(Arc::clone(node.planner.plan())));
    while agent.poll_action().is_some() {}
    agent.handle(Time(6), AgentInput::Plan(old));
    assert_eq!((agent.poll_action(), agent.watches.len()), (None, 2));
}

#[test]
fn an_agent_that_forgot_a_job_says_so_and_begins_anew() {
    let mut node = TestNode::new(2, 100_000_000);
    let mut agent = Agent::new(AgentConfig::default());
    (1..=2).for_each(|id| node.submit(id, 2, Class::Batch, FULL_PPM));
    agent.handle(Time(5), AgentInput::Plan(Arc::clone(node.planner.plan())));
    while agent.poll_action().is_some() {}
    agent.set.remove(&JobId(2));
    agent.handle(Time(6), AgentInput::CpuTime { job: JobId(1), cpu_time_ns: 1 });
    let said: Vec<_> = core::iter::from_fn(|| agent.poll_action()).collect();
    let flaw = AgentAction::Unsound(crate::Flaw::Jobs { told: 1, there: 2 });
    assert!(matches!(said[..], [first, AgentAction::Set { .. }, AgentAction::Set { .. }] if first == flaw), "{said:?}");
}

#[test]
fn a_job_that_auto_chooses_for_is_seen_often_after_each_plan() {
    let mut node = TestNode::new(2, 100_000_000);
    node.tell(PlannerInput::MachinePolicy(Policy::Auto));
    node.submit(1, 2, Class::Batch, FULL_PPM);
    let samples_in = |node: &mut TestNode, ns: u64| {
        node.samples.clear();
        node.run_for(ns);
        node.samples.len()
    };
    for policy in [Policy::Auto, Policy::Gang] {
        node.tell(PlannerInput::MachinePolicy(policy));
        let expected = if policy == Policy::Auto { 23..=25 } else { 3..=4 };
        assert!(expected.contains(&samples_in(&mut node, 3 * SECOND_NS)), "{policy:?}: {:?}", node.samples);
        samples_in(&mut node, SECOND_NS);
        assert_eq!(samples_in(&mut node, 4 * SECOND_NS), 4);
    }
}
