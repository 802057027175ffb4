//! Translates core's settings to the kernel's.

use cosched_core::stage::autotune::Rights;
use cosched_core::stage::{Change, Class, Setting};
use cosched_linux::thread::{self, Scheduling, Thread, ThreadError};

/// Applies all parts of a setting to a thread; if one is refused, the others are still applied. `base` is the thread's
/// scheduling before the first change.
pub(crate) fn apply(thread: &Thread, base: &Scheduling, setting: &Setting) -> Vec<(Change, Result<(), ThreadError>)> {
    // A change of the class may change the slice, so it comes first.
    let changes = [
        setting.class.map(Change::Class),
        setting.nice.map(Change::Nice),
        setting.slice_us.map(Change::SliceUs),
        setting.cpus.clone().map(Change::Affinity),
    ];
    changes.into_iter().flatten().map(|one| (one.clone(), change(thread, base, &one))).collect()
}

/// Makes one change to a thread.
///
/// # Errors
/// The kernel's refusal; the thread is unchanged then.
pub(crate) fn change(thread: &Thread, base: &Scheduling, change: &Change) -> Result<(), ThreadError> {
    match change {
        Change::Nice(nice) => thread.set_nice(*nice),
        Change::SliceUs(0) => match base.slice_is_default {
            true => thread.set_default_slice(),
            false => thread.set_slice_us((base.slice_ns / 1000) as u32),
        },
        Change::SliceUs(slice_us) => thread.set_slice_us(*slice_us),
        Change::Class(class) => thread.set_class(kernel_class(*class)),
        Change::Affinity(cpus) if cpus.is_empty() => thread.set_cpus(&base.cpus).map(|_| ()),
        Change::Affinity(cpus) => thread.set_cpus(cpus).map(|_| ()),
        // The executor controls the number of threads.
        Change::Incarnations(_) => Ok(()),
    }
}

fn kernel_class(class: Class) -> thread::Class {
    match class {
        Class::Normal => thread::Class::Normal,
        Class::Batch => thread::Class::Batch,
        Class::Idle => thread::Class::Idle,
        Class::Fifo(priority) => thread::Class::Fifo(priority),
    }
}

/// A description of a change, as in reports.
pub(crate) fn describe(change: &Change) -> String {
    match change {
        Change::Nice(nice) => format!("nice {nice}"),
        Change::SliceUs(0) => "the default slice".to_owned(),
        Change::SliceUs(slice_us) if slice_us % 1000 == 0 => format!("slice {} ms", slice_us / 1000),
        Change::SliceUs(slice_us) => format!("slice {} ms", f64::from(*slice_us) / 1000.0),
        Change::Class(class) => format!("class {}", kernel_class(*class)),
        Change::Affinity(cpus) if cpus.is_empty() => "all CPUs".to_owned(),
        Change::Affinity(cpus) => {
            format!("CPU {}", cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
        }
        Change::Incarnations(count) => format!("{count} threads"),
    }
}

/// What this process may do to the priorities of its threads. Real-time classes only if the user's bounds allow them.
pub(crate) fn rights(wanted: Rights) -> Rights {
    let now = Thread::current().and_then(|thread| thread.scheduling()).map_or(0, |now| now.nice);
    Rights { lower_nice: thread::nice_min() <= now, real_time: wanted.real_time }
}
