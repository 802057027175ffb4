//! `--array 1-20%4`: one detached job for each index. With a limit N on concurrent jobs, each job starts after the one N places
//! before it, so the planner needs no concept of arrays.

use serde::{Deserialize, Serialize};

/// Each waiting job has two processes of its user.
const TASKS_MAX: usize = 256;

/// A parsed `--array` option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Array {
    pub(super) indexes: Vec<u32>,
    /// The maximum number of concurrent jobs.
    pub(super) at_a_time: usize,
}

/// One job of an array, as passed to its supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(super) index: u32,
    pub(super) count: usize,
    /// The number of the array's first job; `None` for the first job itself.
    pub(super) array: Option<u64>,
    /// It starts when this job has ended.
    pub(super) after: Option<u64>,
}

/// `1-20`, `1,3,7-9`, `0-100:10`, each also with `%4`.
pub(crate) fn parse_array(text: &str) -> Result<Array, String> {
    let wrong = || format!("`{text}` is not an array; write for example 1-20, 1-20%4 (4 at a time), 0-90:10 or 1,3,8");
    let (list, at_a_time) = match text.split_once('%') {
        Some((list, number)) => (list, number.parse().ok().filter(|most| *most > 0).ok_or_else(wrong)?),
        None => (text, usize::MAX),
    };
    let mut indexes = Vec::new();
    for part in list.split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let (first, last, step) = (number(first)?, number(last)?, number(step)? as usize);
        if first > last || step == 0 {
            return Err(wrong());
        }
        indexes.extend((first..=last).step_by(step).take(TASKS_MAX + 1));
    }
    let many = indexes.len();
    if many > TASKS_MAX {
        return Err(format!("an array has at most {TASKS_MAX} jobs; give a job several indexes to do"));
    }
    indexes.sort_unstable();
    indexes.dedup();
    if indexes.len() < many { Err(format!("`{text}` names an index twice")) } else { Ok(Array { indexes, at_a_time }) }
}

impl Array {
    /// The job at `place`, to be registered after the jobs with these numbers.
    pub(super) fn task(&self, place: usize, registered: &[u64]) -> Task {
        let after = place.checked_sub(self.at_a_time).and_then(|before| registered.get(before).copied());
        Task { index: self.indexes[place], count: self.indexes.len(), array: registered.first().copied(), after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_and_mistakes() {
        let of = |text: &str| parse_array(text).map(|array| (array.indexes, array.at_a_time));
        assert_eq!(of("1-4%2"), Ok((vec![1, 2, 3, 4], 2)));
        assert_eq!(of("8,1,3-4"), Ok((vec![1, 3, 4, 8], usize::MAX)));
        assert_eq!(of("0-90:30"), Ok((vec![0, 30, 60, 90], usize::MAX)));
        for bad in ["", "4-1", "1-4%0", "a", "1-", "1-9:0", "1,1", "0-4294967295", "1--2"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn each_comes_after_the_one_so_many_before() {
        let array = parse_array("5-9%2").unwrap();
        let after: Vec<_> = (0..5).map(|place| array.task(place, &[11, 12, 13, 14]).after).collect();
        assert_eq!(after, [None, None, Some(11), Some(12), Some(13)]);
        let first = array.task(0, &[]);
        assert_eq!((first.index, first.count, first.array), (5, 5, None));
        assert_eq!(array.task(3, &[11, 12, 13]).array, Some(11));
    }
}
