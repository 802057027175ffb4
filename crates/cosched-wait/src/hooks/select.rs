//! select and pselect. The kernel clears the sets of a call that finds nothing, so they are saved for the next.

use super::{Wait, ask, is_zero};
use crate::thread::{self, Thread};
use core::ffi::{c_int, c_ulong};
use core::ptr::null;
use libc::{fd_set, pollfd, sigset_t, timespec, timeval};

/// Calls with larger sets are passed on: they are not of the usual type.
const SET_MAX: c_int = libc::FD_SETSIZE as c_int;
const WORD: usize = c_ulong::BITS as usize;
const WORDS: usize = SET_MAX as usize / WORD;
/// Calls with more descriptors than this are passed on.
const DESCRIPTORS_MAX: usize = 256;

interpose! {
    fn select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, time: *mut timeval) -> c_int
        => |call| {
            let at_once = time.as_ref().is_some_and(|time| time.tv_sec == 0 && time.tv_usec == 0);
            selected(count, [read, write, except], at_once, null(), call)
        };
    fn pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, time: *const timespec,
               mask: *const sigset_t) -> c_int
        => |call| selected(count, [read, write, except], is_zero(time), mask, call);
}

/// # Safety
/// All arguments are as pselect's contract says.
#[inline]
unsafe fn selected(
    count: c_int,
    sets: [*mut fd_set; 3],
    at_once: bool,
    mask: *const sigset_t,
    call: impl Fn() -> c_int,
) -> c_int {
    if !at_once || !(1..=SET_MAX).contains(&count) {
        return call();
    }
    match thread::enter() {
        // SAFETY: the caller's promise; the count fits.
        Some(thread) => unsafe { selected_in_row(thread, count, sets, mask, call) },
        None => call(),
    }
}

/// # Safety
/// As [`selected`], and the count is at most [`SET_MAX`].
unsafe fn selected_in_row(
    thread: &Thread,
    count: c_int,
    sets: [*mut fd_set; 3],
    mask: *const sigset_t,
    call: impl Fn() -> c_int,
) -> c_int {
    let words = (count as usize).div_ceil(WORD);
    let mut kept = [[0; WORDS]; 3];
    for (set, kept) in sets.iter().zip(&mut kept).filter(|(set, _)| !set.is_null()) {
        // SAFETY: a set of `count` descriptors has this number of words.
        unsafe { core::ptr::copy_nonoverlapping(set.cast::<c_ulong>(), kept.as_mut_ptr(), words) };
    }
    let call_again = || {
        for (set, kept) in sets.iter().zip(&kept).filter(|(set, _)| !set.is_null()) {
            // SAFETY: as above.
            unsafe { core::ptr::copy_nonoverlapping(kept.as_ptr(), set.cast::<c_ulong>(), words) };
        }
        call()
    };
    let asked = |wait: Wait<'_>| {
        let mut descriptors = [pollfd { fd: -1, events: 0, revents: 0 }; DESCRIPTORS_MAX];
        fill(&mut descriptors, count, &kept).is_some_and(|number| wait(&mut descriptors[..number]))
    };
    // SAFETY: the caller's promise.
    unsafe { ask(thread, asked, mask, call_again, |result| result == 0) }
}

/// The sets in poll's form; `None` if there are none or too many.
fn fill(descriptors: &mut [pollfd], count: c_int, sets: &[[c_ulong; WORDS]; 3]) -> Option<usize> {
    const EVENTS: [i16; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
    let mut number = 0;
    for word in 0..(count as usize).div_ceil(WORD) {
        let mut bits = sets[0][word] | sets[1][word] | sets[2][word];
        while bits != 0 {
            let bit = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let fd = (word * WORD + bit) as c_int;
            if fd >= count {
                break;
            }
            let asked = sets.iter().zip(EVENTS).filter(|(set, _)| set[word] >> bit & 1 == 1);
            let events = asked.fold(0, |events, (_, event)| events | event);
            *descriptors.get_mut(number)? = pollfd { fd, events, revents: 0 };
            number += 1;
        }
    }
    (number > 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_become_descriptors() {
        let mut sets = [[0; WORDS]; 3];
        sets[0][0] = 1 << 3 | 1 << 63;
        sets[1][1] = 1 << 1;
        sets[2][0] = 1 << 3;
        let mut room = [pollfd { fd: -1, events: 0, revents: 0 }; 4];
        assert_eq!(fill(&mut room, 66, &sets), Some(3));
        let got: Vec<(i32, i16)> = room[..3].iter().map(|one| (one.fd, one.events)).collect();
        assert_eq!(got, [(3, libc::POLLIN | libc::POLLPRI), (63, libc::POLLIN), (65, libc::POLLOUT)]);
        assert_eq!(fill(&mut room, 65, &sets), Some(2), "the last one is beyond the count");
        assert_eq!(fill(&mut room[..1], 66, &sets), None, "no room");
        assert_eq!(fill(&mut room, 1024, &[[0; WORDS]; 3]), None, "none");
    }
}
