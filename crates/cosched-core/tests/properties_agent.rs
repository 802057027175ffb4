//! Invariants of an agent and a planner together, whatever jobs arrive, end, work and wait.

use cosched_core::{
    Agent, AgentAction, AgentConfig, AgentInput, Class, Disposition, Job, JobId, Node, NodeId, Packing, Planner,
    PlannerAction, PlannerConfig, PlannerInput, Policy, Shares, Sharing, Standing, Time,
};
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

const SECOND_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy)]
struct Load {
    working: bool,
    used_ns: u64,
    /// At the last sample.
    seen_ns: Option<u64>,
    /// Whether it has ever waited.
    waited: bool,
}

struct Host {
    planner: Planner,
    agent: Agent,
    config: AgentConfig,
    now: Time,
    loads: BTreeMap<JobId, Load>,
    /// The dispositions from the agent; with `drive_boundaries`.
    set: BTreeMap<JobId, Disposition>,
    samples: Vec<Time>,
}

impl Host {
    fn new(slot_length_ns: u64, config: AgentConfig) -> Host {
        let planner = Planner::new(PlannerConfig {
            nodes: [Node { id: NodeId(0), cpus: 3 }].into(),
            slot_length_ns,
            policy: Policy::Gang,
            sharing: Sharing::Strict,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        });
        let agent = Agent::new(config.clone());
        let now = Time(77_777_777_777);
        Host { planner, agent, config, now, loads: BTreeMap::new(), set: BTreeMap::new(), samples: Vec::new() }
    }

    fn tell(&mut self, input: PlannerInput) -> Result<bool, TestCaseError> {
        let accepted = self.planner.handle(self.now, input).is_ok();
        self.settle()?;
        Ok(accepted)
    }

    fn settle(&mut self) -> Result<(), TestCaseError> {
        self.publish();
        loop {
            let actions: Vec<AgentAction> = std::iter::from_fn(|| self.agent.poll_action()).collect();
            if actions.is_empty() {
                return Ok(());
            }
            for action in actions {
                self.act(action)?;
            }
        }
    }

    fn publish(&mut self) {
        while let Some(PlannerAction::Publish(plan, _)) = self.planner.poll_action() {
            self.loads.retain(|id, _| plan.jobs.contains_key(id));
            self.set.retain(|id, _| plan.jobs.contains_key(id));
            self.agent.handle(self.now, AgentInput::Plan(plan));
        }
    }

    fn act(&mut self, action: AgentAction) -> Result<(), TestCaseError> {
        match action {
            AgentAction::Set { job, to, .. } => {
                self.set.insert(job, to);
            }
            AgentAction::Sample { job } => self.sample(job)?,
            // The answer to a sample is handled in `sample`.
            AgentAction::Asleep { .. } | AgentAction::Awake { .. } | AgentAction::Dropped { .. } => {
                prop_assert!(false, "{:?} unasked", action)
            }
            AgentAction::Unsound(flaw) => prop_assert!(false, "{}", flaw),
        }
        Ok(())
    }

    /// Passes a sample in. A gang that always used its slots must not be reported asleep; a sleeping gang that worked since its
    /// last sample must be reported awake now, and only then.
    fn sample(&mut self, job: JobId) -> Result<(), TestCaseError> {
        self.samples.push(self.now);
        // Actions that are still queued are about earlier plans.
        while let Some(AgentAction::Set { job, to, .. }) = self.agent.poll_action() {
            self.set.insert(job, to);
        }
        let Load { used_ns, seen_ns, waited, .. } = self.loads[&job];
        self.loads.entry(job).and_modify(|load| load.seen_ns = Some(used_ns));
        let planned = &self.planner.plan().jobs[&job];
        let sleeper = planned.standing == Standing::Asleep;
        let wakes_ns = self.config.wake_cpu_ns * u64::from(planned.cpus);
        let worked = seen_ns.is_some_and(|seen| used_ns - seen >= wakes_ns);
        self.agent.handle(self.now, AgentInput::CpuTime { job, cpu_time_ns: used_ns });
        let said = self.agent.poll_action();
        let awake = matches!(said, Some(AgentAction::Awake { job: j, .. }) if j == job);
        let asleep = matches!(said, Some(AgentAction::Asleep { job: j, .. }) if j == job);
        prop_assert!(said.is_none() || awake || asleep, "{:?} is no answer to a sample", said);
        prop_assert_eq!(awake, sleeper && worked, "job {}", job);
        prop_assert!(!asleep || waited, "gang {} always used its slots", job);
        prop_assert!(!asleep || (planned.policy == Policy::Gang && !sleeper), "job {} is no gang with slots", job);
        if awake || asleep {
            let input = if awake { PlannerInput::Awake(job) } else { PlannerInput::Asleep(job) };
            self.planner.handle(self.now, input).unwrap();
            self.publish();
        }
        Ok(())
    }

    fn run_for(&mut self, ns: u64) -> Result<(), TestCaseError> {
        let end = self.now + ns;
        while let Some((due, _)) = self.agent.poll_timeout().filter(|(due, _)| *due <= end) {
            prop_assert!(due > self.now, "what was due before has been done");
            self.pass(due);
            self.agent.handle_timeout(self.now);
            self.settle()?;
            prop_assert!(self.agent.poll_timeout().is_none_or(|(t, _)| t > self.now), "a busy loop");
            self.check_set()?;
        }
        self.pass(end);
        Ok(())
    }

    /// The time between two timeouts is within one slot, because the agent drives the boundaries.
    fn pass(&mut self, to: Time) {
        for (id, load) in &mut self.loads {
            let cpus = u64::from(self.planner.plan().jobs[id].cpus);
            if load.working && self.set.get(id) == Some(&Disposition::Run) {
                load.used_ns += (to - self.now) * cpus;
            }
        }
        self.now = to;
    }

    /// Checks that the dispositions from the agent are those of the plan for this moment.
    fn check_set(&self) -> Result<(), TestCaseError> {
        let plan = self.planner.plan();
        let said: Vec<(JobId, Disposition)> = self.set.iter().map(|(id, to)| (*id, *to)).collect();
        prop_assert_eq!(said, plan.dispositions(plan.slot_at(self.now)).collect::<Vec<_>>());
        Ok(())
    }

    fn step(&mut self, (kind, id, ms): (u8, u64, u64)) -> Result<(), TestCaseError> {
        let job = JobId(id);
        match kind {
            0 | 1 => {
                let class = Class::ALL[ms as usize % 4];
                let submitted = Job { id: job, owner: 0, class, policy: None, cpus: 1 + ms as u32 % 3, node: None };
                let working = ms % 2 == 0;
                let load = Load { working, used_ns: 0, seen_ns: None, waited: !working };
                // The load must exist before the agent requests a sample of it.
                if let Entry::Vacant(vacant) = self.loads.entry(job) {
                    vacant.insert(load);
                    self.tell(PlannerInput::Submit(submitted))?;
                }
            }
            2 => drop(self.tell(PlannerInput::End(job))?),
            3 => drop(self.tell(PlannerInput::Suspend(job))?),
            4 | 5 => drop(self.tell(PlannerInput::Resume(job))?),
            6 => drop(self.tell(PlannerInput::JobPolicy(job, (ms % 2 == 0).then_some(Policy::Local)))?),
            _ => drop(self.loads.entry(job).and_modify(|load| {
                load.working = !load.working;
                load.waited = true;
            })),
        }
        self.run_for(ms * 1_000_000)
    }
}

/// The largest number of samples in any second.
fn in_a_second(samples: &[Time]) -> usize {
    let within = |i: usize| samples[i..].iter().take_while(|t| **t - samples[i] < SECOND_NS).count();
    (0..samples.len()).map(within).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(Config { cases: 64, failure_persistence: None, ..Config::default() })]

    #[test]
    fn an_agent_is_right_about_sleep_and_never_hurries(
        steps in prop::collection::vec((0..9_u8, 0..8_u64, 0..9_000_u64), 1..40),
        slot_ms in prop_oneof![Just(100_u64), Just(1_000), 37..3_000_u64],
        (idle_ms, sample_ms, samples_per_s_max) in (100..12_000_u64, 50..2_500_u64, 1..40_u32),
    ) {
        let mut host = Host::new(slot_ms * 1_000_000, AgentConfig {
            idle_after_ns: idle_ms * 1_000_000,
            sample_interval_ns: sample_ms * 1_000_000,
            samples_per_s_max,
            ..AgentConfig::default()
        });
        for step in steps {
            host.step(step)?;
        }
        prop_assert!(in_a_second(&host.samples) <= samples_per_s_max as usize);
    }
}
