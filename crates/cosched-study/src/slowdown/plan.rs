//! Which sets to run, and in what order.

use super::mix::MixJob;
use super::record::{Baseline, Head, Run};

/// A set that is run once per repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Cell {
    pub policy: String,
    /// The number of jobs in the set.
    pub jobs: u32,
    /// The index of a job of the mix that runs alone.
    pub alone: Option<usize>,
}

/// The policy that is always compared with.
pub const LINUX: &str = "linux";

impl Cell {
    /// Whether a run belongs to this cell.
    pub fn is_of(&self, run: &Run) -> bool {
        run.policy == self.policy && run.jobs == self.jobs && run.alone == self.alone
    }

    /// A title such as `gang, 4 jobs`.
    pub fn title(&self, mix: &[MixJob]) -> String {
        match (self.alone.and_then(|place| mix.get(place)), mix.is_empty(), self.jobs) {
            (Some(job), ..) => format!("{}, {} alone", self.policy, job.name),
            (None, false, jobs) => format!("{}, all {jobs} jobs", self.policy),
            (None, true, 1) => format!("{}, 1 job", self.policy),
            (None, true, jobs) => format!("{}, {jobs} jobs", self.policy),
        }
    }
}

/// The sets of a repetition: for each number of jobs all policies in turn. The baseline is always included and is the
/// first of all; each repetition starts at another place, so that no set always follows the same one or always runs
/// at the same time since the start.
pub fn cells(head: &Head, repetition: u32) -> Vec<Cell> {
    let mut cells = in_order(head);
    let step = (cells.len() / head.repeat.max(1) as usize).max(1);
    let shift = repetition as usize * step % cells.len().max(1);
    cells.rotate_left(shift);
    cells
}

fn in_order(head: &Head) -> Vec<Cell> {
    let cell = |policy: &str, jobs, alone| Cell { policy: policy.to_owned(), jobs, alone };
    if !head.commands.is_empty() {
        let all = head.commands.iter().map(|job| job.count).sum();
        let alone = (0..head.commands.len()).map(|place| cell(LINUX, 1, Some(place)));
        return alone.chain(head.policies.iter().map(|policy| cell(policy, all, None))).collect();
    }
    let mut cells: Vec<Cell> = match head.baseline {
        Baseline::Linux => vec![cell(LINUX, 1, None)],
        Baseline::Own => head.policies.iter().map(|policy| cell(policy, 1, None)).collect(),
    };
    for jobs in &head.jobs {
        for policy in &head.policies {
            let next = cell(policy, *jobs, None);
            if !cells.contains(&next) {
                cells.push(next);
            }
        }
    }
    cells
}

/// The policy whose single job is the baseline.
pub fn single_policy(head: &Head) -> &str {
    match head.baseline {
        Baseline::Linux => LINUX,
        Baseline::Own => head.policies.first().map_or(LINUX, String::as_str),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::head;
    use super::*;

    fn text(cells: &[Cell]) -> String {
        cells.iter().map(|cell| format!("{}{}", cell.policy, cell.jobs)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn policies_take_turns_and_linux_alone_is_always_measured() {
        let head = head(&["gang", "linux"], &[2, 4], 5);
        assert_eq!(text(&cells(&head, 0)), "linux1 gang2 linux2 gang4 linux4");
        assert_eq!(text(&cells(&head, 1)), "gang2 linux2 gang4 linux4 linux1");
        let own = Head { baseline: Baseline::Own, ..head.clone() };
        assert_eq!(text(&cells(&own, 0)), "gang1 linux1 gang2 linux2 gang4 linux4");
        assert_eq!((single_policy(&head), single_policy(&own)), ("linux", "gang"));
        // Every repetition has the same sets.
        for repetition in 0..9 {
            let mut sorted = cells(&head, repetition);
            sorted.sort_by_key(|cell| (cell.jobs, cell.policy.clone()));
            assert_eq!(text(&sorted), "linux1 gang2 linux2 gang4 linux4");
        }
    }

    #[test]
    fn a_mix_has_each_job_alone_and_all_together() {
        let job = |name: &str, count| MixJob { name: name.into(), class: None, start_s: 0.0, count, command: vec![] };
        let head = Head { commands: vec![job("a", 1), job("b", 2)], ..head(&["linux", "gang"], &[1], 1) };
        let titles: Vec<String> = cells(&head, 0).iter().map(|cell| cell.title(&head.commands)).collect();
        assert_eq!(titles, ["linux, a alone", "linux, b alone", "linux, all 3 jobs", "gang, all 3 jobs"]);
    }
}
