//! Detects that the wall clock was set.
//!
//! The problem: slots are computed from the wall clock, and an operator, a time daemon or a resumed machine may set it, forwards or back. The slot
//! thread reads the time again by itself; other parts with times of their own have to be told. The rule: a timer of the wall clock far in the future
//! is cancelled by the kernel when the clock is set (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). The size of the step is the change of the wall
//! clock's distance to the clock that counts from the boot, suspended time included.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime, timerfd_create,
    timerfd_settime,
};

/// The year 2242: the timer is meant to be cancelled, not to expire.
const FAR_S: i64 = 1 << 33;
/// A time daemon that slews the clock changes it by at most this between two calls that are 10 s apart.
const SLEW_NS_MAX: i64 = 20_000_000;

/// A watch over the wall clock.
#[derive(Debug)]
pub struct ClockWatch {
    timer: OwnedFd,
    distance_ns: i64,
}

impl ClockWatch {
    /// Starts a watch. Its descriptor is readable when the clock was set.
    ///
    /// # Errors
    /// The kernel gives no timer.
    pub fn new() -> io::Result<ClockWatch> {
        let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        arm(&timer)?;
        Ok(ClockWatch { timer, distance_ns: distance_ns() })
    }

    /// The change of the clock since the last call, in nanoseconds, forwards or back; `None` if it was not set.
    pub fn look(&mut self) -> Option<i64> {
        let mut count = [0u8; 8];
        let told = rustix::io::read(&self.timer, &mut count) == Err(Errno::CANCELED);
        if told {
            // ECANCELED again means that it was set once more meanwhile, which the distance shows.
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
        // The clock was set since the last call, and the timer is armed nevertheless.
        Ok(_) | Err(Errno::CANCELED) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// The difference between the wall clock and the time since the boot.
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
