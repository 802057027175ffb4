//! The scheduling of a stage's threads, and single changes of it.

use alloc::vec::Vec;
use core::fmt;

/// A scheduling class of Linux (`man 7 sched`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Class {
    /// `SCHED_OTHER`.
    #[default]
    Normal,
    /// `SCHED_BATCH`: does not preempt others when it wakes up.
    Batch,
    /// `SCHED_IDLE`: almost only the CPU time that others leave.
    Idle,
    /// `SCHED_FIFO` with a priority from 1 to 99: before all of the above. Needs permission.
    Fifo(u8),
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Normal => f.write_str("normal"),
            Class::Batch => f.write_str("batch"),
            Class::Idle => f.write_str("idle"),
            Class::Fifo(priority) => write!(f, "fifo {priority}"),
        }
    }
}

/// The scheduling of a stage's threads; fields that are `None` stay as the kernel or the user has set them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Setting {
    /// −20 (first) to 19 (last). `None` is 0.
    pub nice: Option<i8>,
    /// The time slice that EEVDF grants, 100 to 100 000 µs; 0 is the kernel's own, as is `None`.
    pub slice_us: Option<u32>,
    /// `None` is [`Class::Normal`].
    pub class: Option<Class>,
    /// The CPUs that it may use. `None` or empty: all CPUs of the process.
    pub cpus: Option<Vec<usize>>,
    /// Threads that work as this stage. `None` is 1.
    pub incarnations: Option<u32>,
}

/// One change to one stage. Values are absolute: to undo a change, the value before it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The nice value.
    Nice(i8),
    /// The slice in µs; 0 is the kernel's own.
    SliceUs(u32),
    /// The class.
    Class(Class),
    /// The CPUs; empty: all that the process may use.
    Affinity(Vec<usize>),
    /// The number of threads that work as this stage, at least 1.
    Incarnations(u32),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Nice(nice) => write!(f, "nice {nice}"),
            Change::SliceUs(0) => f.write_str("the default slice"),
            Change::SliceUs(slice_us) => write!(f, "slice {} ms", f64::from(*slice_us) / 1000.0),
            Change::Class(class) => write!(f, "class {class}"),
            Change::Affinity(cpus) if cpus.is_empty() => f.write_str("all CPUs"),
            Change::Affinity(cpus) => {
                f.write_str("CPU ")?;
                cpus.iter().enumerate().try_for_each(|(k, cpu)| write!(f, "{}{cpu}", if k == 0 { "" } else { "," }))
            }
            Change::Incarnations(1) => f.write_str("1 thread"),
            Change::Incarnations(count) => write!(f, "{count} threads"),
        }
    }
}

impl Setting {
    /// The change that restores the value that `change` would replace.
    pub fn inverse(&self, change: &Change) -> Change {
        match change {
            Change::Nice(_) => Change::Nice(self.nice.unwrap_or(0)),
            Change::SliceUs(_) => Change::SliceUs(self.slice_us.unwrap_or(0)),
            Change::Class(_) => Change::Class(self.class.unwrap_or_default()),
            Change::Affinity(_) => Change::Affinity(self.cpus.clone().unwrap_or_default()),
            Change::Incarnations(_) => Change::Incarnations(self.incarnations.unwrap_or(1)),
        }
    }

    /// Applies the change to this setting.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Nice(nice) => self.nice = Some(*nice),
            Change::SliceUs(slice_us) => self.slice_us = Some(*slice_us),
            Change::Class(class) => self.class = Some(*class),
            Change::Affinity(cpus) => self.cpus = Some(cpus.clone()),
            Change::Incarnations(count) => self.incarnations = Some(*count),
        }
    }

    /// Whether the change would have no effect.
    pub fn has(&self, change: &Change) -> bool {
        self.inverse(change) == *change
    }

    /// Whether both have the same effect: fields that are not set have the kernel's value.
    pub fn means(&self, other: &Setting) -> bool {
        self.changes_from(other).is_empty() && other.changes_from(self).is_empty()
    }

    /// The changes that lead from `from` to this setting.
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
    fn changes_are_told_in_words() {
        use alloc::string::ToString;
        let told = [
            (Change::SliceUs(100), "slice 0.1 ms"),
            (Change::SliceUs(100_000), "slice 100 ms"),
            (Change::Class(Class::Fifo(1)), "class fifo 1"),
            (Change::Affinity(alloc::vec![0, 2]), "CPU 0,2"),
            (Change::Incarnations(2), "2 threads"),
        ];
        told.iter().for_each(|(change, words)| assert_eq!(change.to_string(), *words));
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
