//! Noticing that somebody set the wall clock.
//!
//! The problem: slots lie on the wall clock, and an operator, a time daemon or a resumed machine may set it, forwards or back. The slot
//! thread looks at the time anew by itself; who keeps times of his own has to be told. The rule: a timer of the wall clock that far
//! lies in the future is cancelled by the kernel when the clock is set (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). By how much it was
//! set is the change of its distance to the clock that counts since the machine's start, suspended time included.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime, timerfd_create,
    timerfd_settime,
};

/// The year 2242: the timer is there to be cancelled.
const FAR_S: i64 = 1 << 33;
/// A time daemon that turns the clock slowly changes it by no more than this between two looks that are 10 s apart.
const SLEW_NS_MAX: i64 = 20_000_000;

/// A watch over the wall clock.
#[derive(Debug)]
pub struct ClockWatch {
    timer: OwnedFd,
    distance_ns: i64,
}

impl ClockWatch {
    /// A watch from now on. Its descriptor is readable when the clock was set.
    ///
    /// # Errors
    /// When the kernel gives no timer.
    pub fn new() -> io::Result<ClockWatch> {
        let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        arm(&timer)?;
        Ok(ClockWatch { timer, distance_ns: distance_ns() })
    }

    /// By how much the clock was set since the last look, in nanoseconds, forwards or back; none when it was not.
    pub fn look(&mut self) -> Option<i64> {
        let mut count = [0u8; 8];
        let told = rustix::io::read(&self.timer, &mut count) == Err(Errno::CANCELED);
        if told {
            // ECANCELED once more: it was set again meanwhile, which the distance shows.
            let _ = arm(&self.timer);
        }
        let now_ns = distance_ns();
        let step_ns = now_ns - std::mem::replace(&mut self.distance_ns, now_ns);
        (told || step_ns.abs() > SLEW_NS_MAX).then_some(step_ns)
    }
}

impl AsFd for ClockWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

fn arm(timer: &OwnedFd) -> io::Result<()> {
    let value = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec { tv_sec: FAR_S, tv_nsec: 0 },
    };
    match timerfd_settime(timer, TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET, &value) {
        // The clock was set since the last time, and the timer is armed nevertheless.
        Ok(_) | Err(Errno::CANCELED) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// How far the wall clock is ahead of the machine's start.
fn distance_ns() -> i64 {
    let ns = |id| {
        let time = clock_gettime(id);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    ns(ClockId::Realtime) - ns(ClockId::Boottime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_nobody_sets_has_no_step() {
        let mut watch = ClockWatch::new().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(watch.look(), None);
    }

    #[test]
    fn a_change_of_the_distance_is_a_step_even_when_nobody_told() {
        let mut watch = ClockWatch::new().unwrap();
        watch.distance_ns += 5_000_000_000;
        let step_ns = watch.look().unwrap();
        assert!((-5_100_000_000..-4_900_000_000).contains(&step_ns), "{step_ns}");
        assert_eq!(watch.look(), None, "it is told once");
    }
}
