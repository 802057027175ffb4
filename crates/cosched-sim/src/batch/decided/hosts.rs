//! Which job uses which host, and sets of hosts as schedulers write them.

use crate::batch::intervals::Places;
use crate::workload::excerpt;

const NO_JOB: u32 = u32::MAX;

/// The hosts of the machine.
#[derive(Debug)]
pub(super) struct Hosts {
    used_by: Vec<u32>,
}

impl Hosts {
    pub(super) fn new(hosts: u32) -> Hosts {
        Hosts { used_by: vec![NO_JOB; hosts as usize] }
    }

    /// Gives hosts to a job, all or none.
    ///
    /// # Errors
    /// A host that is used, and the job that uses it; `None`: there is no such host.
    pub(super) fn take(&mut self, places: &Places, job: u32) -> Result<(), (u32, Option<u32>)> {
        for (low, high) in places {
            let last = self.used_by.len() as u32;
            if *high >= last {
                return Err((last.max(*low), None));
            }
            let part = &self.used_by[*low as usize..=*high as usize];
            if let Some(place) = part.iter().position(|by| *by != NO_JOB) {
                return Err((low + place as u32, Some(part[place])));
            }
        }
        self.set(places, job);
        Ok(())
    }

    pub(super) fn free(&mut self, places: &Places) {
        self.set(places, NO_JOB);
    }

    fn set(&mut self, places: &Places, by: u32) {
        for (low, high) in places {
            self.used_by[*low as usize..=*high as usize].fill(by);
        }
    }
}

/// How many hosts these are.
pub(super) fn count(places: &Places) -> u64 {
    places.iter().map(|(low, high)| u64::from(high - low) + 1).sum()
}

/// `0-3 7`: as few disjoint intervals as possible, ascending.
pub(super) fn parse(text: &str) -> Result<Places, String> {
    let interval = |word: &str| {
        let (low, high) = word.split_once('-').unwrap_or((word, word));
        let (low, high) = (low.parse::<u32>().ok()?, high.parse::<u32>().ok()?);
        (low <= high).then_some((low, high))
    };
    let wrong = |word: &str| format!("`{}` is no interval of hosts, as 0-3", excerpt(word));
    let words = text.split_ascii_whitespace();
    let mut all = words.map(|word| interval(word).ok_or_else(|| wrong(word))).collect::<Result<Places, String>>()?;
    all.sort_unstable();
    let mut places = Places::new();
    for (low, high) in all {
        match places.last_mut() {
            Some((_, last)) if low <= last.saturating_add(1) => *last = high.max(*last),
            _ => places.push((low, high)),
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_hosts_are_read() {
        let same = |text: &str| parse(text).map(|places| (crate::metrics::words_of(&places), count(&places)));
        assert_eq!(same("5 0-3 2-4 9-9"), Ok(("0-5 9".to_owned(), 7)));
        assert_eq!(same(" "), Ok((String::new(), 0)));
        assert_eq!(same("0-4294967295 4294967295"), Ok(("0-4294967295".to_owned(), 1 << 32)));
        for wrong in ["3-1", "-1", "1,2", "1-", "x", "4294967296", "0 1-2-3"] {
            assert!(same(wrong).is_err_and(|error| error.contains("is no interval of hosts")), "{wrong}");
        }
    }

    #[test]
    fn hosts_are_given_once() {
        let mut hosts = Hosts::new(6);
        let set = |text: &str| parse(text).unwrap();
        assert_eq!(hosts.take(&set("1-2 4"), 7), Ok(()));
        assert_eq!(hosts.take(&set("0 3-5"), 8), Err((4, Some(7))));
        assert_eq!(hosts.take(&set("3-6"), 8), Err((6, None)));
        assert_eq!(hosts.take(&set("9"), 8), Err((9, None)));
        hosts.free(&set("1-2 4"));
        assert_eq!(hosts.take(&set("0-5"), 8), Ok(()));
    }
}
