//! Real-time priority and locked memory, as far as this user is permitted.

use std::io;
use std::time::{Duration, Instant};

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Gives the calling thread SCHED_FIFO at `priority` (1 to 99), which its children do not inherit.
///
/// # Errors
/// The kernel's: EPERM without CAP_SYS_NICE, and also when CONFIG_RT_GROUP_SCHED is on and the thread's v1 cpu cgroup has no real-time
/// budget (cpu.rt_runtime_us is 0 in every cgroup but the root).
pub fn become_realtime(priority: i32) -> io::Result<()> {
    set_policy(libc::SCHED_FIFO, priority)
}

fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a live sched_param, which the call only reads.
    let result = unsafe { libc::sched_setscheduler(0, policy | libc::SCHED_RESET_ON_FORK, &parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends the calling thread's real-time priority, which is always permitted. Every thread does so before it ends (see [`ordinarily`]).
pub(crate) fn become_ordinary() {
    let _ = set_policy(libc::SCHED_OTHER, 0);
}

/// Does something at ordinary priority, such as to reap a process: the kernel takes what has ended from /proc in a loop that waits for those that read
/// there, and at real-time priority that keeps them from the CPU, up to a second long.
pub fn ordinarily<T>(work: impl FnOnce() -> T) -> T {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the first call takes a number only, the second writes to a live sched_param.
    let is_realtime = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO
        && unsafe { libc::sched_getparam(0, &raw mut parameters) } == 0;
    if !is_realtime {
        return work();
    }
    become_ordinary();
    let done = work();
    // Where that is not permitted any more it stays ordinary, and nothing else changes.
    let _ = become_realtime(parameters.sched_priority);
    done
}

/// While this lives, the calling thread has priority over everything of ordinary priority: for bounded work that others wait for, or until the thread
/// ends.
#[derive(Debug)]
pub struct Ahead {
    // It applies to the thread that made it.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Ahead {
    /// `None` where real-time priority is not permitted.
    pub fn begin() -> Option<Ahead> {
        Ahead::at(1).ok()
    }

    /// # Errors
    /// As of [`become_realtime`].
    pub(crate) fn at(priority: i32) -> io::Result<Ahead> {
        become_realtime(priority).map(|()| Ahead { _not_send: std::marker::PhantomData })
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        become_ordinary();
    }
}

/// A thread's priority above all of ordinary priority, as long as it uses little of it.
///
/// The problem: a daemon that must answer and plan in time waits behind what it schedules. In the gangs' part of a slot the jobs weigh 256 times what
/// a session does (`reserve.rs`), and a storm of forks in the daemon's own session is one of a hundred runnable processes. The rule: the thread has
/// real-time priority for 100 ms of CPU time in each second, and ordinary priority for the rest of the period: whoever floods it gets
/// no more than that. Without the right to real-time priority nothing changes.
#[derive(Debug)]
pub struct Pace {
    ahead: Option<Ahead>,
    /// Since when, and the thread's CPU time then; `None`: the priority is not limited yet.
    period: Option<(Instant, Duration)>,
}

/// See [`Pace`].
const PACE_BUDGET: Duration = Duration::from_millis(100);
/// See [`Pace`].
const PACE_PERIOD: Duration = Duration::from_secs(1);

impl Pace {
    /// Gives the calling thread its priority, for as long as it likes until [`limit`](Pace::limit).
    pub fn begin() -> Pace {
        Pace { ahead: Ahead::begin(), period: None }
    }

    /// From now on the budget applies.
    pub fn limit(&mut self) {
        self.period.get_or_insert_with(|| (Instant::now(), thread_cpu_time()));
    }

    /// Its thread calls this between two pieces of work.
    pub fn heed(&mut self) {
        let Some((since, before)) = self.period else { return };
        let (now, used) = (Instant::now(), thread_cpu_time());
        if now.duration_since(since) >= PACE_PERIOD {
            self.period = Some((now, used));
            self.ahead = self.ahead.take().or_else(Ahead::begin);
        } else if used.saturating_sub(before) > PACE_BUDGET {
            self.ahead = None;
        }
    }

    /// When the thread has its priority back, if it has used it up: it has to call [`heed`](Pace::heed) then.
    pub fn due(&self) -> Option<Instant> {
        self.period.filter(|_| self.ahead.is_none()).map(|(since, _)| since + PACE_PERIOD)
    }
}

fn thread_cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32)
}

/// Gives the calling thread the best fair priority (nice −20), for when real time is not permitted.
///
/// # Errors
/// EPERM or EACCES without CAP_SYS_NICE.
pub fn become_nice() -> io::Result<()> {
    // Not through libc, which has gettid only since glibc 2.30.
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    // SAFETY: setpriority takes numbers only. On Linux PRIO_PROCESS with a thread's number means that thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, -20) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the calling thread's timers fire without slack (the default is 50 µs for fair threads).
pub(crate) fn no_timer_slack() {
    // SAFETY: PR_SET_TIMERSLACK takes one number, the slack in nanoseconds.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
}

/// Keeps the pages of this process in memory once they have been touched, now and later. It does not touch them all, so the process does not grow.
///
/// # Errors
/// ENOMEM or EPERM when RLIMIT_MEMLOCK does not allow it.
pub fn lock_memory() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?)
}

/// Raises the limit of open files to the hard limit, or to 65,536 if that is less (a job takes four), and returns it.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // A higher limit would slow down programs that close all descriptors one by one.
    let wanted = limit.maximum.unwrap_or(u64::MAX).min(65_536);
    let current = limit.current.unwrap_or(u64::MAX);
    if current < wanted && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }).is_ok()
    {
        return wanted;
    }
    current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_ahead_is_an_ordinary_thread_afterwards() {
        // SAFETY: takes a number only.
        let policy = || unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
        let Some(ahead) = Ahead::begin() else {
            println!("SKIPPED: real-time priority is not permitted");
            return;
        };
        assert_eq!(policy(), libc::SCHED_FIFO);
        assert_eq!((ordinarily(policy), policy()), (libc::SCHED_OTHER, libc::SCHED_FIFO));
        assert_eq!(std::thread::spawn(policy).join().unwrap(), libc::SCHED_OTHER, "nobody inherits it");
        drop(ahead);
        assert_eq!((policy(), ordinarily(policy), policy()), (libc::SCHED_OTHER, libc::SCHED_OTHER, libc::SCHED_OTHER));
    }

    #[test]
    fn who_uses_the_budget_up_is_ordinary_until_the_period_ends() {
        let work = |time| while thread_cpu_time() < time {};
        let mut pace = Pace::begin();
        if pace.ahead.is_none() {
            println!("SKIPPED: real-time priority is not permitted");
            return;
        }
        work(thread_cpu_time() + PACE_BUDGET + Duration::from_millis(1));
        pace.heed();
        assert!(pace.ahead.is_some() && pace.due().is_none(), "there is no limit yet");
        pace.limit();
        pace.heed();
        assert!(pace.ahead.is_some());
        work(thread_cpu_time() + PACE_BUDGET + Duration::from_millis(1));
        // A machine that stands still could have let the period pass.
        let since = Instant::now();
        pace.period = pace.period.map(|(_, before)| (since, before));
        pace.heed();
        if since.elapsed() < PACE_PERIOD {
            assert!(pace.ahead.is_none());
            assert_eq!(pace.due(), Some(since + PACE_PERIOD));
        }
        pace.period = pace.period.map(|(since, before)| (since - PACE_PERIOD, before));
        pace.heed();
        assert!(pace.ahead.is_some() && pace.due().is_none());
    }

    #[test]
    fn the_limit_of_open_files_never_falls() {
        let first = raise_open_files();
        assert!(raise_open_files() >= first);
    }
}
