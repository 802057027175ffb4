//! What Slurm tells its hooks through their environment (slurm.conf, "PROLOG AND EPILOG SCRIPTS"; prolog_epilog.html).
//!
//! A task prolog's environment is controlled by the user: what is read from it can affect only that user's own job,
//! because the daemon decides by the uid.

use super::hostlist::{self, NODES_MAX};
use crate::out::{EXIT_REFUSED, Failure};

/// A Slurm job's resources on one of its nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Share {
    /// Slurm's name of the node.
    pub(super) node: String,
    pub(super) cpus: Option<u32>,
    pub(super) memory_bytes: Option<u64>,
}

/// A Slurm job on this node. Absent values are unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SlurmJob {
    /// Slurm's number; each task of an array has its own.
    pub(super) id: u32,
    /// As squeue shows it: `17`, or `17_3` in an array.
    pub(super) label: String,
    /// Its owner.
    pub(super) uid: Option<u32>,
    pub(super) name: Option<String>,
    pub(super) partition: Option<String>,
    pub(super) qos: Option<String>,
    /// CPUs on this node.
    pub(super) cpus: Option<u32>,
    /// Memory on this node.
    pub(super) memory_bytes: Option<u64>,
    /// Slurm's name of this node.
    pub(super) node: Option<String>,
    /// The number of its nodes; 0 if unknown.
    pub(super) node_count: u32,
    /// All its nodes, in Slurm's order; empty if unknown.
    pub(super) shares: Vec<Share>,
    /// CPUs on each of its nodes, in that order.
    pub(super) cpu_counts: Vec<u32>,
    pub(super) work_dir: Option<String>,
    /// The task, in a task prolog.
    pub(super) task_pid: Option<i32>,
}

impl SlurmJob {
    /// Reads the environment.
    ///
    /// # Errors
    /// When it does not come from Slurm.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Result<SlurmJob, Failure> {
        let text = |name: &str| variable(name).filter(|value| !value.is_empty());
        let number = |name: &str| text(name)?.parse::<u32>().ok();
        let Some(id) = number("SLURM_JOB_ID") else {
            let why = "SLURM_JOB_ID is not in the environment";
            let hint = "Slurm calls this: set Prolog, TaskProlog and Epilog in slurm.conf (docs/slurm.md)";
            return Err(Failure::explained(EXIT_REFUSED, "this was not called as a hook of a Slurm job", why, hint));
        };
        let label = match (text("SLURM_ARRAY_JOB_ID"), text("SLURM_ARRAY_TASK_ID")) {
            (Some(array), Some(task)) => format!("{array}_{task}"),
            _ => id.to_string(),
        };
        let node = text("SLURMD_NODENAME");
        let counts = text("SLURM_JOB_CPUS_PER_NODE").or_else(|| text("SLURM_TASKS_PER_NODE"));
        let counts = counts.and_then(|counts| expand(&counts)).unwrap_or_default();
        let names = text("SLURM_JOB_NODELIST").or_else(|| text("SLURM_NODELIST"));
        let names = names.and_then(|names| hostlist::expand(&names)).unwrap_or_default();
        let node_count = number("SLURM_JOB_NUM_NODES").unwrap_or(names.len() as u32);
        // The prolog of a step may list only the nodes of that step.
        let names = if names.len() as u32 == node_count { names } else { Vec::new() };
        let memory = |cpus| memory_of(&number, cpus);
        let shares = shares(names, &counts, memory);
        let own = shares.iter().find(|share| Some(&share.node) == node.as_ref());
        // If the nodes are unknown, the count is known only if all nodes have the same.
        let alike = || counts.first().copied().filter(|first| counts.iter().all(|count| count == first));
        let cpus = own.map_or_else(alike, |share| share.cpus);
        Ok(SlurmJob {
            id,
            label,
            uid: number("SLURM_JOB_UID"),
            name: text("SLURM_JOB_NAME"),
            partition: text("SLURM_JOB_PARTITION"),
            qos: text("SLURM_JOB_QOS"),
            cpus,
            memory_bytes: memory(cpus),
            node,
            node_count,
            shares,
            cpu_counts: counts,
            work_dir: text("SLURM_JOB_WORK_DIR").or_else(|| text("SLURM_SUBMIT_DIR")),
            task_pid: number("SLURM_TASK_PID").and_then(|pid| i32::try_from(pid).ok()),
        })
    }

    /// The owner, whom Slurm names to this hook.
    pub(super) fn owner(&self, hook: &str) -> Result<u32, Failure> {
        let missing = || {
            let why = "SLURM_JOB_UID is not in the environment";
            let hint = format!("Call it from Slurm's {hook}");
            Failure::explained(EXIT_REFUSED, "the job's owner is not known", why, &hint)
        };
        self.uid.ok_or_else(missing)
    }

    /// The cosched job's name.
    pub(super) fn cosched_name(&self) -> String {
        format!("slurm-{}", self.id)
    }

    /// Shown where other jobs have their command.
    pub(super) fn command(&self) -> Vec<String> {
        ["slurm".to_owned(), self.label.clone()].into_iter().chain(self.name.clone()).collect()
    }
}

/// Megabytes for each node, or for each CPU; 0 means all available memory, so it says nothing.
fn memory_of(number: &impl Fn(&str) -> Option<u32>, cpus: Option<u32>) -> Option<u64> {
    let per_cpu = || Some(u64::from(number("SLURM_MEM_PER_CPU")?) * u64::from(cpus?));
    let megabytes = number("SLURM_MEM_PER_NODE").map(u64::from).or_else(per_cpu);
    megabytes.filter(|megabytes| *megabytes > 0)?.checked_mul(1 << 20)
}

/// Nodes and counts are in the same order; a list of counts with another length is ignored.
pub(super) fn shares(names: Vec<String>, counts: &[u32], memory: impl Fn(Option<u32>) -> Option<u64>) -> Vec<Share> {
    let known = counts.len() == names.len();
    let share = |(at, node): (usize, String)| {
        let cpus = counts.get(at).copied().filter(|_| known);
        Share { node, cpus, memory_bytes: memory(cpus) }
    };
    names.into_iter().enumerate().map(share).collect()
}

/// `SLURM_JOB_CPUS_PER_NODE` counts in the order of the job's nodes: `4`, `4(x3),2`.
fn expand(counts: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in counts.split(',') {
        let (count, times) = part.strip_suffix(')').and_then(|part| part.split_once("(x")).unwrap_or((part, "1"));
        let times = times.parse().ok().filter(|times| *times <= NODES_MAX - all.len())?;
        all.extend(std::iter::repeat_n(count.parse::<u32>().ok()?, times));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(text: &str) -> Result<SlurmJob, Failure> {
        let find =
            |name: &str| text.split(' ').find_map(|pair| pair.strip_prefix(&format!("{name}="))).map(str::to_owned);
        SlurmJob::of(find)
    }

    #[test]
    fn a_prolog_of_22_05() {
        let job = job("SLURM_JOB_ID=1 SLURM_JOB_UID=65534 SLURM_JOB_PARTITION=main SLURM_JOB_CPUS_PER_NODE=2 SLURM_JOB_WORK_DIR=/w")
            .unwrap();
        let expected = SlurmJob {
            id: 1,
            label: "1".into(),
            uid: Some(65534),
            partition: Some("main".into()),
            cpus: Some(2),
            cpu_counts: vec![2],
            work_dir: Some("/w".into()),
            ..SlurmJob::default()
        };
        assert_eq!(job, expected);
        assert_eq!((job.cosched_name(), job.command()), ("slurm-1".into(), vec!["slurm".into(), "1".into()]));
    }

    #[test]
    fn an_arrays_task_and_its_memory() {
        let array = "SLURM_JOB_ID=20 SLURM_ARRAY_JOB_ID=17 SLURM_ARRAY_TASK_ID=3 SLURM_JOB_NAME=arr";
        let task = job(&format!("{array} SLURM_MEM_PER_NODE=100 SLURM_TASK_PID=77")).unwrap();
        assert_eq!((task.cosched_name(), task.command().join(" ")), ("slurm-20".into(), "slurm 17_3 arr".into()));
        assert_eq!((task.memory_bytes, task.task_pid), (Some(100 << 20), Some(77)));
        let per_cpu = job(&format!("{array} SLURM_MEM_PER_CPU=100 SLURM_JOB_CPUS_PER_NODE=4(x3)")).unwrap();
        assert_eq!((per_cpu.memory_bytes, per_cpu.cpus), (Some(400 << 20), Some(4)));
        assert_eq!(job(&format!("{array} SLURM_MEM_PER_NODE=0")).unwrap().memory_bytes, None);
        let most = "SLURM_MEM_PER_CPU=4294967295 SLURM_JOB_CPUS_PER_NODE=4294967295";
        assert_eq!(job(&format!("{array} {most}")).unwrap().memory_bytes, None);
    }

    #[test]
    fn each_node_has_its_share() {
        let text = "SLURM_JOB_ID=20 SLURM_JOB_NODELIST=n[1-3] SLURM_JOB_CPUS_PER_NODE=2(x2),1 SLURM_MEM_PER_CPU=10";
        let wide = job(&format!("{text} SLURMD_NODENAME=n3")).unwrap();
        let share = |node: &str, cpus, megabytes: u64| Share {
            node: node.into(),
            cpus: Some(cpus),
            memory_bytes: Some(megabytes << 20),
        };
        assert_eq!(wide.shares, [share("n1", 2, 20), share("n2", 2, 20), share("n3", 1, 10)]);
        assert_eq!((wide.cpus, wide.memory_bytes), (Some(1), Some(10 << 20)));
        // The prolog of a step on one of the nodes.
        let step =
            job("SLURM_JOB_ID=20 SLURM_NODELIST=n2 SLURM_JOB_NUM_NODES=2 SLURM_JOB_CPUS_PER_NODE=2(x2)").unwrap();
        assert_eq!((step.node_count, step.shares, step.cpus), (2, Vec::new(), Some(2)));
        // Nothing is known about a node that is not in the list.
        assert_eq!(job(&format!("{text} SLURMD_NODENAME=x")).unwrap().cpus, None);
        let tasks = job("SLURM_JOB_ID=20 SLURM_NODELIST=n1,n2 SLURM_TASKS_PER_NODE=3(x2) SLURMD_NODENAME=n2").unwrap();
        assert_eq!((tasks.cpus, tasks.shares.len()), (Some(3), 2));
    }

    #[test]
    fn counts_are_unfolded() {
        assert_eq!(expand("4"), Some(vec![4]));
        assert_eq!(expand("4(x2),2,1(x1)"), Some(vec![4, 4, 2, 1]));
        for bad in ["", "x", "4(x", "4(xa)", "4(x99999999999)", "4,,2", "1(x65536),1"] {
            assert_eq!(expand(bad), None, "{bad}");
        }
    }

    #[test]
    fn without_slurm_it_says_so() {
        let failure = job("HOME=/").unwrap_err();
        assert!(failure.code == EXIT_REFUSED && failure.message.contains("TaskProlog"), "{}", failure.message);
    }
}
