//! Tests with real threads, checked through /proc and the kernel's own calls.

use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::*;

/// A thread that lives until the handle is dropped.
struct Sleeper {
    tid: i32,
    end: Option<Sender<()>>,
    join: Option<std::thread::JoinHandle<()>>,
}

impl Sleeper {
    fn new() -> Sleeper {
        let (tell, told) = channel();
        let (end, ended) = channel();
        let join = std::thread::spawn(move || {
            tell.send(current_tid()).unwrap();
            let _ = ended.recv();
        });
        Sleeper { tid: told.recv().unwrap(), end: Some(end), join: Some(join) }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        drop(self.end.take());
        self.join.take().map(std::thread::JoinHandle::join);
    }
}

/// Field 19 of /proc/self/task/TID/stat, which the crate itself does not read.
fn nice_in_stat(tid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
    stat[stat.rfind(')').unwrap() + 1..].split_whitespace().nth(19 - 3).unwrap().parse().unwrap()
}

/// Runs `body` on a thread without CAP_SYS_NICE: capabilities belong to threads, not to processes.
fn without_the_right<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let limited = move || {
        let now = capabilities(None).unwrap();
        let without = |set: CapabilitySet| set.difference(CapabilitySet::SYS_NICE);
        let sets = CapabilitySets { effective: without(now.effective), ..now };
        set_capabilities(None, sets).unwrap();
        body()
    };
    std::thread::spawn(limited).join().unwrap()
}

fn has_the_right() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE))
}

#[test]
fn a_lower_priority_shows_in_proc_and_is_undone() {
    let sleeper = Sleeper::new();
    let thread = Thread::of(sleeper.tid).unwrap();
    let before = thread.scheduling().unwrap();
    thread.set_nice(before.nice + 3).unwrap();
    assert_eq!(nice_in_stat(sleeper.tid), i32::from(before.nice) + 3);
    assert_eq!(nice_in_stat(current_tid()), i32::from(before.nice), "other threads keep theirs");
    if has_the_right() {
        thread.restore(&before).unwrap();
        assert_eq!(nice_in_stat(sleeper.tid), i32::from(before.nice));
    }
}

#[test]
fn slices_are_taken_and_the_default_comes_back() {
    let sleeper = Sleeper::new();
    let thread = Thread::of(sleeper.tid).unwrap();
    let before = thread.scheduling().unwrap();
    assert!(before.slice_is_default);
    for slice_us in [*slice_us_range().start(), 7_000, *slice_us_range().end()] {
        match thread.set_slice_us(slice_us) {
            Ok(()) => {}
            Err(ThreadError::NotSupported { .. }) => return,
            Err(e) => panic!("{e}"),
        }
        let now = thread.scheduling().unwrap();
        assert_eq!((now.slice_ns, now.slice_is_default), (u64::from(slice_us) * 1000, false));
        assert_eq!((now.nice, now.class, &now.cpus), (before.nice, before.class, &before.cpus));
    }
    thread.set_class(Class::Batch).unwrap();
    thread.set_nice(before.nice + 1).unwrap();
    let now = thread.scheduling().unwrap();
    assert_eq!((now.class, now.slice_ns), (Class::Batch, 100_000_000), "class and nice value leave the slice alone");
    if has_the_right() {
        thread.restore(&before).unwrap();
        assert_eq!(thread.scheduling().unwrap(), before);
    }
}

#[test]
fn every_class_is_set_and_undone() {
    let sleeper = Sleeper::new();
    let thread = Thread::of(sleeper.tid).unwrap();
    let before = thread.scheduling().unwrap();
    for class in [Class::Batch, Class::Normal, Class::Idle, Class::Fifo(3)] {
        match thread.set_class(class) {
            Ok(()) => assert_eq!(thread.scheduling().unwrap().class, class),
            // A cgroup without a real-time budget refuses this even to root.
            Err(ThreadError::NoRight { .. }) if matches!(class, Class::Fifo(_)) || !has_the_right() => {}
            Err(e) => panic!("{class}: {e}"),
        }
    }
    if has_the_right() {
        thread.restore(&before).unwrap();
        assert_eq!(thread.scheduling().unwrap(), before);
    }
}

#[test]
fn a_slice_of_its_own_is_restored_from_below_another_class() {
    let sleeper = Sleeper::new();
    let thread = Thread::of(sleeper.tid).unwrap();
    if !has_the_right() || thread.set_slice_us(5_000).is_err() {
        return;
    }
    let before = thread.scheduling().unwrap();
    thread.set_slice_us(300).unwrap();
    thread.set_class(Class::Idle).unwrap();
    assert!(matches!(thread.set_slice_us(400), Err(ThreadError::NotSupported { .. })), "idle has no slice to set");
    thread.restore(&before).unwrap();
    assert_eq!(thread.scheduling().unwrap(), before);
}

#[test]
fn affinity_is_narrowed_and_widened_again() {
    let sleeper = Sleeper::new();
    let thread = Thread::of(sleeper.tid).unwrap();
    let before = thread.scheduling().unwrap();
    let one = *before.cpus.last().unwrap();
    assert_eq!(thread.set_cpus(&[one]).unwrap(), [one]);
    assert_eq!(thread.scheduling().unwrap().cpus, [one]);
    thread.restore(&before).unwrap();
    assert_eq!(thread.scheduling().unwrap(), before);
    for bad in [&[][..], &[usize::MAX], &[rustix::thread::CpuSet::MAX_CPU - 1]] {
        assert!(matches!(thread.set_cpus(bad), Err(ThreadError::OutOfRange { .. })), "{bad:?}");
    }
}

#[test]
fn values_of_no_kernel_are_refused_before_the_call() {
    let thread = Thread::current().unwrap();
    let before = thread.scheduling().unwrap();
    let refused = [
        thread.set_nice(20),
        thread.set_nice(-21),
        thread.set_slice_us(99),
        thread.set_slice_us(100_001),
        thread.set_class(Class::Fifo(0)),
        thread.set_class(Class::Fifo(100)),
        thread.set_class(Class::Other(6)),
    ];
    for result in refused {
        let error = result.unwrap_err();
        assert!(matches!(error, ThreadError::OutOfRange { .. }), "{error}");
    }
    assert_eq!(thread.scheduling().unwrap(), before);
}

#[test]
fn without_the_right_raising_is_refused_and_says_what_is_missing() {
    let (raise, fifo, lower, slice, back) = without_the_right(|| {
        let thread = Thread::current().unwrap();
        let before = thread.scheduling().unwrap();
        let raise = thread.set_nice(before.nice - 1);
        let fifo = thread.set_class(Class::Fifo(1));
        let lower = thread.set_nice(before.nice + 2);
        let slice = thread.set_slice_us(200);
        (raise, fifo, lower, slice, thread.restore(&before).map(|()| thread.scheduling().unwrap() == before))
    });
    lower.unwrap();
    assert!(matches!(slice, Ok(()) | Err(ThreadError::NotSupported { .. })), "a slice needs no right: {slice:?}");
    if attr::nice_min_unprivileged() < 20 {
        return;
    }
    let raise = raise.unwrap_err();
    assert!(matches!(raise, ThreadError::NoRight { .. }), "{raise}");
    assert!(raise.to_string().contains("CAP_SYS_NICE") && raise.to_string().contains("RLIMIT_NICE"), "{raise}");
    assert!(matches!(back, Err(ThreadError::NoRight { .. })), "nice is one way without privilege: {back:?}");
    assert!(matches!(fifo, Err(ThreadError::NoRight { .. })), "{fifo:?}");
}

#[test]
fn what_is_refused_does_not_keep_the_rest_from_being_put_back() {
    let (outcome, before, after) = without_the_right(|| {
        let thread = Thread::current().unwrap();
        let before = thread.scheduling().unwrap();
        thread.set_nice(before.nice + 1).unwrap();
        let _ = thread.set_slice_us(200);
        thread.set_cpus(&before.cpus[..1]).unwrap();
        (thread.restore(&before), before, thread.scheduling().unwrap())
    });
    assert_eq!((after.slice_ns, after.slice_is_default, after.cpus), (before.slice_ns, true, before.cpus));
    if attr::nice_min_unprivileged() == 20 {
        assert!(matches!(outcome, Err(ThreadError::NoRight { .. })));
    }
}

#[test]
fn a_thread_that_has_ended_is_not_mistaken_for_another() {
    let sleeper = Sleeper::new();
    let tid = sleeper.tid;
    let thread = Thread::of(tid).unwrap();
    drop(sleeper);
    // A thread is joined a little before the kernel removes it from its lists.
    let began = Instant::now();
    while thread.usage().is_ok() && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(matches!(thread.usage(), Err(ThreadError::Gone { .. })));
    assert!(matches!(thread.set_nice(5), Err(ThreadError::Gone { .. })));
    assert!(matches!(thread.scheduling(), Err(ThreadError::Gone { .. })));
    assert!(matches!(Thread::of(tid), Err(ThreadError::Gone { .. })));
    assert!(matches!(Thread::of(1), Err(ThreadError::Gone { .. })), "init is not a thread of ours");
    assert!(matches!(Thread::of(-1), Err(ThreadError::Gone { .. })));
}

#[test]
fn work_and_waiting_are_counted() {
    let thread = Thread::current().unwrap();
    let (before, switches) = (thread.usage().unwrap(), thread.switches().unwrap());
    let began = Instant::now();
    let mut x = 1u64;
    while thread.usage().unwrap().since(before).cpu_ns < 20_000_000 && began.elapsed() < Duration::from_secs(10) {
        x = (0..1000).fold(x, |x, n| std::hint::black_box(x.wrapping_mul(n | 1)));
    }
    std::thread::sleep(Duration::from_millis(2));
    let used = thread.usage().unwrap().since(before);
    assert!(used.cpu_ns >= 20_000_000, "{used:?} {x}");
    assert!(used.cpu_ns + used.delay_ns <= began.elapsed().as_nanos() as u64 + 10_000_000, "{used:?}");
    assert!(used.runs >= 1);
    assert!(thread.switches().unwrap().voluntary > switches.voluntary);
    assert!(cpus_usable() >= 1);
}

#[test]
fn two_on_one_cpu_are_delayed() {
    let cpu = Thread::current().unwrap().scheduling().unwrap().cpus[0];
    let spin = move || {
        let thread = Thread::current().unwrap();
        thread.set_cpus(&[cpu]).unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(150) {
            std::hint::spin_loop();
        }
        thread.usage().unwrap()
    };
    let both = [std::thread::spawn(spin), std::thread::spawn(spin)].map(|thread| thread.join().unwrap());
    let delay_ns: u64 = both.iter().map(|usage| usage.delay_ns).sum();
    assert!(delay_ns > 50_000_000, "{both:?}");
}

#[test]
fn a_running_thread_s_cpu_time_is_of_this_moment() {
    let thread = Thread::current().unwrap();
    // Much less than a tick.
    let steps = (0..50).filter(|_| {
        let (began, before) = (Instant::now(), thread.usage().unwrap().cpu_ns);
        while began.elapsed() < Duration::from_micros(200) {
            std::hint::spin_loop();
        }
        let used = thread.usage().unwrap().cpu_ns - before;
        (100_000..2_000_000).contains(&used)
    });
    assert!(steps.count() > 10, "a clock that moves at ticks stands still between them");
}
