//! How the threads of a stage are scheduled, and one change of that.

use alloc::vec::Vec;

/// A scheduling class of Linux (`man 7 sched`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Class {
    /// `SCHED_OTHER`.
    #[default]
    Normal,
    /// `SCHED_BATCH`: does not preempt others when it wakes up.
    Batch,
    /// `SCHED_IDLE`: what the others leave, nearly.
    Idle,
    /// `SCHED_FIFO` with a priority from 1 to 99: before all of the above. Needs a right.
    Fifo(u8),
}

/// How the threads of a stage are to be scheduled; what is `None` stays as the kernel or the user has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Setting {
    /// −20 (first) to 19 (last). `None` is 0.
    pub nice: Option<i8>,
    /// The time slice that EEVDF grants, 100 to 100 000 µs; 0 is the kernel's own, as is `None`.
    pub slice_us: Option<u32>,
    /// `None` is [`Class::Normal`].
    pub class: Option<Class>,
    /// The CPUs that it may use. `None` or none: all of the process.
    pub cpus: Option<Vec<usize>>,
    /// Threads that work as this stage. `None` is 1.
    pub incarnations: Option<u32>,
}

/// One change to one stage. Values are absolute: who undoes a change sends the value that held before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The nice value.
    Nice(i8),
    /// The slice in µs; 0 is the kernel's own.
    SliceUs(u32),
    /// The class.
    Class(Class),
    /// The CPUs; none: all that the process may use.
    Affinity(Vec<usize>),
    /// How many threads work as this stage, 1 at least.
    Incarnations(u32),
}

impl Setting {
    /// The change that brings the knob which `change` turns back to what it is now.
    pub fn inverse(&self, change: &Change) -> Change {
        match change {
            Change::Nice(_) => Change::Nice(self.nice.unwrap_or(0)),
            Change::SliceUs(_) => Change::SliceUs(self.slice_us.unwrap_or(0)),
            Change::Class(_) => Change::Class(self.class.unwrap_or_default()),
            Change::Affinity(_) => Change::Affinity(self.cpus.clone().unwrap_or_default()),
            Change::Incarnations(_) => Change::Incarnations(self.incarnations.unwrap_or(1)),
        }
    }

    /// Takes the change over.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Nice(nice) => self.nice = Some(*nice),
            Change::SliceUs(slice_us) => self.slice_us = Some(*slice_us),
            Change::Class(class) => self.class = Some(*class),
            Change::Affinity(cpus) => self.cpus = Some(cpus.clone()),
            Change::Incarnations(count) => self.incarnations = Some(*count),
        }
    }

    /// Whether the change would change nothing.
    pub fn has(&self, change: &Change) -> bool {
        self.inverse(change) == *change
    }

    /// Whether both mean the same: what is not set has the kernel's value.
    pub fn means(&self, other: &Setting) -> bool {
        self.changes_from(other).is_empty() && other.changes_from(self).is_empty()
    }

    /// The changes that lead here from `from`.
    pub fn changes_from(&self, from: &Setting) -> Vec<Change> {
        let wanted = [
            self.nice.map(Change::Nice),
            self.slice_us.map(Change::SliceUs),
            self.class.map(Change::Class),
            self.cpus.clone().map(Change::Affinity),
            self.incarnations.map(Change::Incarnations),
        ];
        wanted.into_iter().flatten().filter(|change| !from.has(change)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inverse_brings_back_what_was() {
        let start = Setting { nice: Some(3), ..Setting::default() };
        for change in [
            Change::Nice(-5),
            Change::SliceUs(100),
            Change::Class(Class::Batch),
            Change::Affinity(alloc::vec![1]),
            Change::Incarnations(4),
        ] {
            let mut now = start.clone();
            let back = now.inverse(&change);
            now.apply(&change);
            assert!(now.has(&change) && !start.has(&change), "{change:?}");
            now.apply(&back);
            assert!(start.has(&back) && now.changes_from(&start).is_empty(), "{change:?}");
        }
    }

    #[test]
    fn what_is_not_set_has_the_kernels_values() {
        let free = Setting::default();
        assert!(free.has(&Change::Nice(0)) && free.has(&Change::SliceUs(0)) && free.has(&Change::Class(Class::Normal)));
        assert!(free.has(&Change::Affinity(Vec::new())) && free.has(&Change::Incarnations(1)));
        let slow = Setting { nice: Some(10), class: Some(Class::Batch), ..Setting::default() };
        assert!(free.means(&Setting { nice: Some(0), incarnations: Some(1), ..free.clone() }) && !free.means(&slow));
        assert_eq!(slow.changes_from(&free), [Change::Nice(10), Change::Class(Class::Batch)]);
    }
}
