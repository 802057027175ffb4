//! Sets of processors as intervals: those of a job, and those that are free.

use std::collections::BTreeMap;

/// Closed intervals of processors (from 0), ascending.
pub type Places = Vec<(u32, u32)>;

/// The lowest free processors; as many as there are, if there are fewer.
pub(super) fn take(free: &mut BTreeMap<u32, u32>, mut count: u32) -> Places {
    let mut places = Vec::new();
    while count > 0 {
        let Some((low, high)) = free.pop_first() else { break };
        let used = count.min(high - low + 1);
        places.push((low, low + used - 1));
        if low + used <= high {
            free.insert(low + used, high);
        }
        count -= used;
    }
    places
}

/// Adds an interval that is not free; neighbours become one.
pub(super) fn give(free: &mut BTreeMap<u32, u32>, (mut low, mut high): (u32, u32)) {
    let before = free.range(..low).next_back().map(|(from, to)| (*from, *to));
    if let Some((from, _)) = before.filter(|(_, to)| to + 1 == low) {
        free.remove(&from);
        low = from;
    }
    if let Some(to) = free.remove(&(high + 1)) {
        high = to;
    }
    free.insert(low, high);
}
