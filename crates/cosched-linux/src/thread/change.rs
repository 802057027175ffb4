//! Reads, changes and restores a thread's scheduling.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use rustix::process::Pid;
use rustix::thread::CpuSet;

use super::error::{class_right, nice_right};
use super::{Class, Thread, ThreadError, attr};

/// A thread's scheduling at some time: enough to restore it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduling {
    /// Nice value, −20 (most) to 19 (least).
    pub nice: i8,
    /// Slice in nanoseconds; 0 on kernels before 6.12, which have no slice per thread, and where the class hides it (fifo).
    pub slice_ns: u64,
    /// Whether the slice is the system's, not one of the thread's own.
    pub slice_is_default: bool,
    /// Scheduling class.
    pub class: Class,
    /// The CPUs that it may use, in ascending order.
    pub cpus: Vec<usize>,
    /// SCHED_RESET_ON_FORK: its children start with the default.
    reset_on_fork: bool,
}

/// The range of slices, in microseconds; the kernel clamps others to it.
pub const fn slice_us_range() -> RangeInclusive<u32> {
    100..=100_000
}

impl Thread {
    /// The present scheduling.
    ///
    /// # Errors
    /// [`ThreadError::Gone`] once the thread has ended.
    pub fn scheduling(&self) -> Result<Scheduling, ThreadError> {
        let failed = |source| super::error_of(self.tid(), "scheduling", source);
        self.alive()?;
        let now = attr::get(self.tid).map_err(failed)?;
        let class = class_of(&now);
        let slice_ns = if matches!(class, Class::Normal | Class::Batch | Class::Idle) { now.sched_runtime } else { 0 };
        Ok(Scheduling {
            nice: attr::nice(self.tid).map_err(failed)? as i8,
            slice_ns,
            slice_is_default: slice_ns == 0 || default_slice_ns() == Some(slice_ns),
            class,
            cpus: attr::cpus(self.tid).map_err(failed)?,
            reset_on_fork: now.sched_flags & libc::SCHED_FLAG_RESET_ON_FORK as u64 != 0,
        })
    }

    /// Sets the nice value. Raising it (less CPU) is always permitted; lowering it again needs privilege.
    ///
    /// # Errors
    /// [`ThreadError::NoRight`], [`ThreadError::OutOfRange`], [`ThreadError::Gone`].
    pub fn set_nice(&self, nice: i8) -> Result<(), ThreadError> {
        let what = format!("nice {nice}");
        if !(-20..=19).contains(&nice) {
            return Err(ThreadError::OutOfRange { what, why: "a nice value is -20 to 19".to_owned() });
        }
        self.alive()?;
        attr::set_nice(self.tid, nice.into()).map_err(|e| ThreadError::of(what, self.tid(), nice_right, e))
    }

    /// Gives it a slice of its own, in microseconds, within [`slice_us_range`]. Nice value and class stay.
    ///
    /// # Errors
    /// [`ThreadError::NotSupported`] where the kernel ignores it (before 6.12) or the class has no slice,
    /// [`ThreadError::OutOfRange`], [`ThreadError::Gone`].
    pub fn set_slice_us(&self, slice_us: u32) -> Result<(), ThreadError> {
        let what = format!("slice of {slice_us} us");
        if !slice_us_range().contains(&slice_us) {
            return Err(ThreadError::OutOfRange { what, why: "a slice is 100 to 100000 us".to_owned() });
        }
        self.put_slice_ns(u64::from(slice_us) * 1000, &what)
    }

    /// Restores the system's slice.
    ///
    /// # Errors
    /// As [`Thread::set_slice_us`].
    pub fn set_default_slice(&self) -> Result<(), ThreadError> {
        self.put_slice_ns(0, "the default slice")
    }

    /// A runtime of 0 means the system's slice.
    fn put_slice_ns(&self, slice_ns: u64, what: &str) -> Result<(), ThreadError> {
        let tid = self.tid();
        let failed = |e| ThreadError::of(what.to_owned(), tid, nice_right, e);
        self.alive()?;
        let now = attr::get(self.tid).map_err(failed)?;
        if !fair(now.sched_policy) {
            let why = format!("class {} has no slice; normal and batch have", class_of(&now));
            return Err(ThreadError::NotSupported { what: what.to_owned(), tid, why });
        }
        attr::set(self.tid, &attr::Attr { sched_runtime: slice_ns, ..now }).map_err(failed)?;
        let taken_ns = attr::get(self.tid).map_err(failed)?.sched_runtime;
        if slice_ns != 0 && taken_ns != slice_ns {
            let why = format!("it took the call, but the slice is {taken_ns} ns; slices of threads need Linux 6.12");
            return Err(ThreadError::NotSupported { what: what.to_owned(), tid, why });
        }
        Ok(())
    }

    /// Sets the class. Nice value and slice stay. Children of a thread at SCHED_FIFO do not inherit it.
    ///
    /// # Errors
    /// [`ThreadError::NoRight`], [`ThreadError::OutOfRange`], [`ThreadError::NotSupported`], [`ThreadError::Gone`].
    pub fn set_class(&self, class: Class) -> Result<(), ThreadError> {
        match class {
            Class::Fifo(1..=99) => self.put_class(class, true),
            Class::Fifo(priority) => {
                let why = "a priority of SCHED_FIFO is 1 to 99".to_owned();
                Err(ThreadError::OutOfRange { what: format!("fifo {priority}"), why })
            }
            Class::Other(policy) => {
                let why = "only normal, batch, idle and fifo are set here".to_owned();
                Err(ThreadError::OutOfRange { what: format!("policy {policy}"), why })
            }
            Class::Normal | Class::Batch | Class::Idle => {
                let kept = self.scheduling()?.reset_on_fork;
                self.put_class(class, kept)
            }
        }
    }

    fn put_class(&self, class: Class, reset_on_fork: bool) -> Result<(), ThreadError> {
        let failed = |e| ThreadError::of(format!("class {class}"), self.tid(), || class_right(class), e);
        self.alive()?;
        let (policy, priority) = policy_of(class);
        let flags = if reset_on_fork { libc::SCHED_RESET_ON_FORK } else { 0 };
        attr::set_policy(self.tid, policy | flags, priority).map_err(failed)?;
        let taken = class_of(&attr::get(self.tid).map_err(failed)?);
        if taken == class {
            return Ok(());
        }
        let why = format!("it took the call, but the class is {taken}");
        Err(ThreadError::NotSupported { what: format!("class {class}"), tid: self.tid(), why })
    }

    /// Restricts it to these CPUs, and returns those that are in force: the kernel leaves out CPUs that the cpuset does not allow.
    ///
    /// # Errors
    /// [`ThreadError::OutOfRange`] for an empty list, a CPU beyond the largest set, or CPUs of which none may be used; [`ThreadError::Gone`].
    pub fn set_cpus(&self, cpus: &[usize]) -> Result<Vec<usize>, ThreadError> {
        let what = format!("CPUs {cpus:?}");
        if cpus.is_empty() || cpus.iter().any(|&cpu| cpu >= CpuSet::MAX_CPU) {
            let why = format!("at least one CPU, each below {}", CpuSet::MAX_CPU);
            return Err(ThreadError::OutOfRange { what, why });
        }
        self.alive()?;
        match attr::set_cpus(self.tid, cpus) {
            Ok(()) => attr::cpus(self.tid).map_err(|e| super::error_of(self.tid(), "CPUs", e)),
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => Err(ThreadError::OutOfRange {
                what,
                why: "none of them is online and allowed by the cpuset".to_owned(),
            }),
            Err(e) => Err(ThreadError::of(what, self.tid(), || "the thread is another user's".to_owned(), e)),
        }
    }

    /// Restores the settings that [`Thread::scheduling`] returned before. Unchanged settings are not touched, so an undo needs no right without a
    /// reason; a refusal of one setting does not keep the others from being restored.
    ///
    /// # Errors
    /// The first refusal.
    pub fn restore(&self, before: &Scheduling) -> Result<(), ThreadError> {
        let now = self.scheduling()?;
        let mut outcome = Ok(());
        let mut note = |result: Result<(), ThreadError>| {
            if outcome.is_ok() {
                outcome = result;
            }
        };
        // Only a fair class has a slice: it is restored on whichever side of the change of class is fair.
        note(self.restore_slice(before));
        if (now.class, now.reset_on_fork) != (before.class, before.reset_on_fork) {
            note(self.put_class(before.class, before.reset_on_fork));
            note(self.restore_slice(before));
        }
        if now.nice != before.nice {
            note(self.set_nice(before.nice));
        }
        if now.cpus != before.cpus {
            note(self.set_cpus(&before.cpus).map(|_| ()));
        }
        outcome
    }

    fn restore_slice(&self, before: &Scheduling) -> Result<(), ThreadError> {
        let now = self.scheduling()?;
        let settable = matches!(now.class, Class::Normal | Class::Batch);
        if !settable || before.slice_ns == 0 || now.slice_ns == before.slice_ns {
            return Ok(());
        }
        let slice_ns = if before.slice_is_default { 0 } else { before.slice_ns };
        self.put_slice_ns(slice_ns, "the slice before")
    }
}

/// Classes that have a slice.
fn fair(policy: u32) -> bool {
    matches!(policy as i32, libc::SCHED_OTHER | libc::SCHED_BATCH)
}

fn class_of(attr: &attr::Attr) -> Class {
    match attr.sched_policy as i32 {
        libc::SCHED_OTHER => Class::Normal,
        libc::SCHED_BATCH => Class::Batch,
        libc::SCHED_IDLE => Class::Idle,
        libc::SCHED_FIFO => Class::Fifo(attr.sched_priority as u8),
        policy => Class::Other(policy as u32),
    }
}

fn policy_of(class: Class) -> (i32, i32) {
    match class {
        Class::Normal => (libc::SCHED_OTHER, 0),
        Class::Batch => (libc::SCHED_BATCH, 0),
        Class::Idle => (libc::SCHED_IDLE, 0),
        Class::Fifo(priority) => (libc::SCHED_FIFO, priority.into()),
        Class::Other(policy) => (policy as i32, 0),
    }
}

/// The system's slice. The kernel reports a thread's slice, but not whether it is its own; so it is read once from a new thread, which has none of
/// its own.
fn default_slice_ns() -> Option<u64> {
    static SLICE_NS: OnceLock<Option<u64>> = OnceLock::new();
    fn ask() -> Option<u64> {
        let tid: Pid = rustix::thread::gettid();
        let inherited = attr::get(tid).ok()?;
        attr::set(tid, &attr::Attr { sched_runtime: 0, ..inherited }).ok()?;
        attr::get(tid).ok().filter(|attr| fair(attr.sched_policy)).map(|attr| attr.sched_runtime)
    }
    *SLICE_NS.get_or_init(|| {
        let asking = std::thread::Builder::new().name("cosched-slice".to_owned()).spawn(ask).ok()?;
        asking.join().ok().flatten()
    })
}
