//! What makes the pods of each gang one job, on whichever nodes they are: pods and jobs in, steps out.
//!
//! The problem: a gang's pods start and end on nodes that know of each other no more than coschedd's jobs say. The rule: the nodes of a gang are this one and
//! those of its jobs that live. So all of its plug-ins come to the same nodes, and ask for one job on them, which is made once. When it runs, each one moves
//! its pods there, and a job that all have left ends by itself. No pod is waited for: a gang is who is there.

use std::collections::{BTreeMap, BTreeSet};

/// A gang's job as coschedd knows it, that lives.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Known {
    pub(crate) id: u64,
    pub(crate) gang: String,
    pub(crate) nodes: BTreeSet<String>,
    /// It has no place yet.
    pub(crate) waits: bool,
    /// Its pods on this node.
    pub(crate) cgroups: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// A cgroup is not to be in this job any more.
    Leave {
        job: u64,
        cgroup: String,
    },
    /// It is to be in this one, and in no other.
    Enter {
        job: u64,
        cgroup: String,
    },
    /// A job that waits in vain.
    Cancel {
        job: u64,
    },
    Register {
        gang: String,
        nodes: BTreeSet<String>,
    },
}

/// The steps of a node, whose gangs have these cgroups. `alive` are the nodes that coschedd can reach.
pub(crate) fn steps(
    own: &str,
    alive: &BTreeSet<String>,
    gangs: &BTreeMap<String, BTreeSet<String>>,
    jobs: &[Known],
) -> Vec<Step> {
    let wanted: BTreeSet<&String> = gangs.values().flatten().collect();
    let leave = |job: &Known| {
        let id = job.id;
        let gone: Vec<String> = job.cgroups.iter().filter(|cgroup| !wanted.contains(cgroup)).cloned().collect();
        gone.into_iter().map(move |cgroup| Step::Leave { job: id, cgroup })
    };
    let mut steps: Vec<Step> = jobs.iter().flat_map(leave).collect();
    let is_alone = |job: &Known| job.nodes.iter().eq([own]);
    for job in jobs.iter().filter(|job| job.waits && is_alone(job) && !gangs.contains_key(&job.gang)) {
        steps.push(Step::Cancel { job: job.id });
    }
    for (gang, cgroups) in gangs {
        let all = || jobs.iter().filter(|job| job.gang == *gang);
        let mut nodes: BTreeSet<String> =
            all().flat_map(|job| &job.nodes).filter(|node| alive.contains(*node)).cloned().collect();
        nodes.insert(own.to_owned());
        let has_begun = all().filter(|job| !job.waits && job.nodes.contains(own));
        // Of two the newer one: the other is about to end.
        if let Some(best) = has_begun.max_by_key(|job| (job.nodes == nodes, job.id)) {
            let may_move = |cgroup: &&String| best.nodes == nodes || !all().any(|job| job.cgroups.contains(*cgroup));
            let enter = |cgroup: &String| Step::Enter { job: best.id, cgroup: cgroup.clone() };
            steps.extend(cgroups.difference(&best.cgroups).filter(may_move).map(enter));
        }
        steps.extend(
            all()
                .filter(|job| job.waits && is_alone(job) && job.nodes != nodes)
                .map(|job| Step::Cancel { job: job.id }),
        );
        if !all().any(|job| job.nodes == nodes) {
            steps.push(Step::Register { gang: gang.clone(), nodes });
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn gangs(of: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
        of.iter().map(|(gang, cgroups)| ((*gang).to_owned(), set(cgroups))).collect()
    }

    fn job(id: u64, nodes: &[&str], cgroups: &[&str]) -> Known {
        Known { id, gang: "ns/g".into(), nodes: set(nodes), waits: false, cgroups: set(cgroups) }
    }

    fn enter(job: u64, cgroup: &str) -> Step {
        Step::Enter { job, cgroup: cgroup.into() }
    }

    #[test]
    fn pods_of_one_name_on_a_node_enter_one_job() {
        let two = gangs(&[("ns/g", &["/a", "/b"])]);
        let asked = |jobs: &[Known]| steps("n1", &set(&["n1"]), &two, jobs);
        assert_eq!(asked(&[]), [Step::Register { gang: "ns/g".into(), nodes: set(&["n1"]) }]);
        let waits = Known { waits: true, ..job(1, &["n1"], &[]) };
        assert_eq!(asked(std::slice::from_ref(&waits)), [], "they run as any pod until it begins");
        assert_eq!(asked(&[job(1, &["n1"], &["/a"])]), [enter(1, "/b")]);
        let other = Known { gang: "other/g".into(), ..job(2, &["n1"], &["/c"]) };
        assert_eq!(
            asked(&[job(1, &["n1"], &["/a", "/b"]), other]),
            [Step::Leave { job: 2, cgroup: "/c".into() }],
            "another namespace's is another gang, and none is wanted there"
        );
        assert_eq!(steps("n1", &set(&["n1"]), &gangs(&[]), &[waits]), [Step::Cancel { job: 1 }]);
    }

    #[test]
    fn pods_stay_where_they_are_until_the_job_of_all_nodes_runs() {
        let one = gangs(&[("ns/g", &["/a"])]);
        let alive = set(&["n1", "n2"]);
        let asked = |jobs: &[Known]| steps("n1", &alive, &one, jobs);
        let (own, theirs) = (job(1, &["n1"], &["/a"]), job(2, &["n2"], &[]));
        let all = job(3, &["n1", "n2"], &[]);
        assert_eq!(
            asked(&[own.clone(), theirs.clone()]),
            [Step::Register { gang: "ns/g".into(), nodes: set(&["n1", "n2"]) }]
        );
        assert_eq!(asked(&[own.clone(), theirs.clone(), Known { waits: true, ..all.clone() }]), []);
        assert_eq!(asked(&[own.clone(), theirs, all.clone()]), [enter(3, "/a")]);
        let waits = Known { waits: true, cgroups: set(&[]), ..own };
        assert_eq!(asked(&[waits, all.clone()]), [enter(3, "/a"), Step::Cancel { job: 1 }]);
        // A node that cannot be reached does not hold up the others.
        let lost = job(4, &["n1", "n3"], &["/a"]);
        assert_eq!(asked(&[lost.clone(), all.clone()]), [enter(3, "/a")]);
        assert_eq!(asked(&[lost]), [Step::Register { gang: "ns/g".into(), nodes: set(&["n1"]) }]);
    }

    /// Pods with their nodes.
    type Members = BTreeSet<(String, String)>;

    /// Nodes with their plug-ins, and the jobs of one store.
    #[derive(Default)]
    struct World {
        /// By node: its pods, and whether it can be reached.
        nodes: BTreeMap<String, (BTreeSet<String>, bool)>,
        /// The members of each job, with their nodes.
        jobs: BTreeMap<u64, (BTreeSet<String>, Members)>,
        last: u64,
    }

    impl World {
        fn turn(&mut self, own: &str) {
            let (pods, is_alive) = &self.nodes[own];
            if !is_alive {
                return;
            }
            let alive = self.nodes.iter().filter(|(_, (_, alive))| *alive).map(|(name, _)| name.clone()).collect();
            let wanted = if pods.is_empty() { gangs(&[]) } else { BTreeMap::from([("ns/g".to_owned(), pods.clone())]) };
            let known = |(id, (nodes, members)): (&u64, &(BTreeSet<String>, Members))| Known {
                nodes: nodes.clone(),
                cgroups: members.iter().filter(|(node, _)| node == own).map(|(_, pod)| pod.clone()).collect(),
                ..job(*id, &[], &[])
            };
            let known: Vec<Known> = self.jobs.iter().map(known).collect();
            for step in steps(own, &alive, &wanted, &known) {
                match step {
                    Step::Register { nodes, .. } => {
                        if !self.jobs.values().any(|(of, _)| *of == nodes) {
                            self.last += 1;
                            self.jobs.insert(self.last, (nodes, BTreeSet::new()));
                        }
                    }
                    Step::Enter { job, cgroup } => {
                        let member = (own.to_owned(), cgroup);
                        self.jobs.values_mut().for_each(|(_, members)| members.retain(|of| *of != member));
                        self.jobs.get_mut(&job).unwrap().1.insert(member);
                    }
                    Step::Leave { job, cgroup } => {
                        self.jobs.get_mut(&job).unwrap().1.remove(&(own.to_owned(), cgroup));
                    }
                    Step::Cancel { .. } => unreachable!("no job waits here"),
                }
            }
        }

        /// Jobs without members end after a while.
        fn end_empty(&mut self) {
            self.jobs.retain(|_, (_, members)| !members.is_empty());
        }
    }

    #[test]
    fn whatever_comes_and_goes_a_gang_comes_together() {
        for seed in 1..200_u64 {
            let mut state = seed;
            let mut draw = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let mut world = World::default();
            for n in 0..4 {
                world.nodes.insert(format!("n{n}"), (BTreeSet::new(), true));
            }
            for _ in 0..60 {
                let node = format!("n{}", draw(4));
                let (pods, is_alive) = world.nodes.get_mut(&node).unwrap();
                match draw(6) {
                    0 => drop(pods.insert(format!("/{node}-{}", draw(3)))),
                    1 => drop(pods.pop_first()),
                    2 => *is_alive = draw(3) > 0,
                    3 => world.end_empty(),
                    _ => world.turn(&node),
                }
            }
            world.nodes.values_mut().for_each(|(_, is_alive)| *is_alive = true);
            for _ in 0..4 {
                (0..4).for_each(|n| world.turn(&format!("n{n}")));
            }
            world.end_empty();
            let pods: Members = world
                .nodes
                .iter()
                .flat_map(|(node, (pods, _))| pods.iter().map(|pod| (node.clone(), pod.clone())))
                .collect();
            let members: Vec<&Members> = world.jobs.values().map(|(_, members)| members).collect();
            match pods.is_empty() {
                true => assert!(members.is_empty(), "seed {seed}: {members:?}"),
                false => assert_eq!(members, [&pods], "seed {seed}"),
            }
        }
    }
}
