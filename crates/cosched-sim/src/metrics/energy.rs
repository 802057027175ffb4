//! The energy of nodes, by what they do.

use crate::observe::{Activity, JobChange, Message, Observer, Slice};
use serde::Serialize;

/// The power of a node in each of its states, in W. A node of several CPUs is between them, by what each CPU does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watts {
    /// No CPU has a process; also a node whose processes all sleep or are blocked.
    pub idle: f64,
    /// All CPUs compute, send, switch or serve interrupts.
    pub busy: f64,
    /// All CPUs spin for messages.
    pub spinning: f64,
    /// The node has no job.
    pub off: f64,
}

/// Energy by state, in J, and the mean power of all nodes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Energy {
    /// All of it.
    pub total_j: f64,
    /// CPUs that are busy.
    pub busy_j: f64,
    /// CPUs that spin.
    pub spinning_j: f64,
    /// CPUs that are idle on nodes with a job.
    pub idle_j: f64,
    /// Nodes without a job.
    pub off_j: f64,
    /// Over the simulated time; W.
    pub mean_w: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    busy_ns: u64,
    spinning_ns: u64,
    off_ns: u64,
    /// Processes of jobs that have not ended; since when there is none.
    places: u32,
    off_since_ns: u64,
}

/// Observes what nodes do.
#[derive(Clone, Debug)]
pub struct Meter {
    watts: Watts,
    cpus_per_node: u32,
    nodes: Vec<Node>,
}

impl Meter {
    /// For a machine of this size.
    pub fn new(watts: Watts, nodes: u32, cpus_per_node: u32) -> Meter {
        Meter { watts, cpus_per_node, nodes: vec![Node::default(); nodes as usize] }
    }

    /// What was used up to the end of the simulation.
    pub fn energy(&self, sim_end_ns: u64) -> Energy {
        let (watts, cpus) = (&self.watts, u64::from(self.cpus_per_node));
        let mut sum = Energy::default();
        for node in &self.nodes {
            let empty_ns = if node.places == 0 { sim_end_ns.saturating_sub(node.off_since_ns) } else { 0 };
            let off_ns = node.off_ns + empty_ns;
            let (on_ns, used_ns) = ((sim_end_ns - off_ns) * cpus, node.busy_ns + node.spinning_ns);
            let idle_ns = on_ns.saturating_sub(used_ns);
            // A node without a job may take part in the switches of gangs.
            let off_ns = (off_ns * cpus).saturating_sub(used_ns.saturating_sub(on_ns));
            let of_cpus = |ns: u64, power: f64| ns as f64 / 1e9 / cpus as f64 * power;
            sum.busy_j += of_cpus(node.busy_ns, watts.busy);
            sum.spinning_j += of_cpus(node.spinning_ns, watts.spinning);
            sum.idle_j += of_cpus(idle_ns, watts.idle);
            sum.off_j += of_cpus(off_ns, watts.off);
        }
        sum.total_j = sum.busy_j + sum.spinning_j + sum.idle_j + sum.off_j;
        sum.mean_w = if sim_end_ns > 0 { sum.total_j / (sim_end_ns as f64 / 1e9) } else { 0.0 };
        sum
    }
}

impl Observer for Meter {
    fn slice(&mut self, slice: Slice) {
        let node = &mut self.nodes[slice.node as usize];
        let took_ns = slice.end_ns - slice.start_ns;
        match slice.activity {
            Activity::Io | Activity::Blocked => {}
            Activity::Spin => node.spinning_ns += took_ns,
            Activity::Compute | Activity::Message | Activity::Switch | Activity::Interrupt | Activity::Scheduler => {
                node.busy_ns += took_ns;
            }
        }
    }

    fn message(&mut self, _: Message) {}

    fn job(&mut self, time_ns: u64, _: u32, change: JobChange, nodes: &[u32], _: Option<u32>) {
        for node in nodes {
            let node = &mut self.nodes[*node as usize];
            match change {
                JobChange::Arrived => {}
                JobChange::Started => {
                    if node.places == 0 {
                        node.off_ns += time_ns - node.off_since_ns;
                    }
                    node.places += 1;
                }
                JobChange::Finished => {
                    node.places -= 1;
                    node.off_since_ns = time_ns;
                }
            }
        }
    }

    fn row(&mut self, _: u64, _: u32) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::general::{Config, simulate};
    use crate::{JobSpec, Params, Strategy, paper};

    #[test]
    fn states_are_told_apart() {
        let watts = Watts { idle: 100.0, busy: 200.0, spinning: 150.0, off: 10.0 };
        let mut meter = Meter::new(watts, 2, 2);
        let slice = |node, start, end, activity| Slice { node, start_ns: start, end_ns: end, activity, process: None };
        const S: u64 = 1_000_000_000;
        meter.job(S, 0, JobChange::Arrived, &[], None);
        meter.job(S, 0, JobChange::Started, &[0, 0], None);
        meter.slice(slice(0, S, 3 * S, Activity::Compute));
        meter.slice(slice(0, S, 2 * S, Activity::Spin));
        meter.slice(slice(0, 2 * S, 3 * S, Activity::Io));
        meter.job(3 * S, 0, JobChange::Finished, &[0, 0], None);
        let energy = meter.energy(4 * S);
        // Node 0: 2 s of one CPU busy, 1 s of the other spinning, 1 s of it idle, 2 s without a job. Node 1: 4 s without one.
        let expected = (200.0, 75.0, 50.0, 60.0);
        assert_eq!((energy.busy_j, energy.spinning_j, energy.idle_j, energy.off_j), expected);
        assert_eq!((energy.total_j, energy.mean_w), (385.0, 96.25));
    }

    /// With the same power in all states energy is power × nodes × time, in both engines; with 1 W for computing it is the computation.
    #[test]
    fn energy_is_that_of_the_outcome() {
        let job = |at: u64, tasks| JobSpec {
            arrival_ns: at,
            tasks,
            exec_ns: 40_000_000,
            kind: "J3".parse().unwrap(),
            class: cosched_core::Class::Batch,
            footprint: crate::job::Footprint::default(),
        };
        let jobs = [job(0, 4), job(1_000_000, 2), job(90_000_000, 3)];
        for strategy in ["GS", "SB", "PB", "Local"] {
            let params = Params::paper(strategy.parse::<Strategy>().unwrap(), 4);
            let same = Watts { idle: 3.0, busy: 3.0, spinning: 3.0, off: 3.0 };
            let spins = Watts { idle: 0.0, busy: 0.0, spinning: 1.0, off: 0.0 };
            let mut meters = (Meter::new(same, 4, 1), Meter::new(spins, 4, 1));
            let out = paper::run(&params, &jobs, &mut meters, &mut |_| true).unwrap();
            let all = meters.0.energy(out.sim_end_ns).total_j;
            assert!((all / (12.0 * out.sim_end_ns as f64 / 1e9) - 1.0).abs() < 1e-9, "{strategy}: {all}");
            let spun = meters.1.energy(out.sim_end_ns).total_j;
            assert!((spun - out.cpu.spin_ns as f64 / 1e9).abs() < 1e-9, "{strategy}: {spun}");
            let works: Vec<_> = jobs.iter().map(|job| crate::general::Work::Paper(*job)).collect();
            let mut general = Meter::new(spins, 4, 1);
            simulate(&Config::paper(params), &works, &mut general, &mut |_| true).unwrap();
            assert_eq!(general.energy(out.sim_end_ns), meters.1.energy(out.sim_end_ns), "{strategy}");
        }
    }
}
