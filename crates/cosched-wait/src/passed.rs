//! How many calls of this thread have passed since it last looked whether there is a crowd: one word of thread-local
//! memory, which every call reads.
//!
//! The compiler reaches the thread-local memory of a library by a call, as the library might be loaded late. This one is
//! loaded at the start, so its memory lies at a fixed distance from the thread's pointer, and two instructions do.

/// More than any number that passes: there is a crowd, and every call is looked at.
pub(crate) const CROWD: u32 = 1 << 31;

#[cfg(target_arch = "x86_64")]
mod word {
    use core::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss.cosched_wait_passed,\"awT\",@nobits",
        ".globl cosched_wait_passed",
        ".hidden cosched_wait_passed",
        ".type cosched_wait_passed,@object",
        ".size cosched_wait_passed,4",
        ".p2align 2",
        "cosched_wait_passed:",
        ".zero 4",
        ".popsection",
    );

    #[inline]
    pub(crate) fn get() -> u32 {
        let value;
        // SAFETY: reads a word of this thread's own memory, which is zero at the start.
        unsafe {
            asm!(
                "mov {place}, qword ptr [rip + cosched_wait_passed@gottpoff]",
                "mov {value:e}, dword ptr fs:[{place}]",
                place = out(reg) _,
                value = lateout(reg) value,
                options(nostack, preserves_flags, readonly),
            );
        }
        value
    }

    #[inline]
    pub(crate) fn set(value: u32) {
        // SAFETY: writes a word of this thread's own memory, which only this module knows.
        unsafe {
            asm!(
                "mov {place}, qword ptr [rip + cosched_wait_passed@gottpoff]",
                "mov dword ptr fs:[{place}], {value:e}",
                place = out(reg) _,
                value = in(reg) value,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod word {
    use core::cell::Cell;

    thread_local! {
        static PASSED: Cell<u32> = const { Cell::new(0) };
    }

    pub(crate) fn get() -> u32 {
        PASSED.get()
    }

    pub(crate) fn set(value: u32) {
        PASSED.set(value);
    }
}

pub(crate) use word::{get, set};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own() {
        assert_eq!(get(), 0);
        set(CROWD);
        std::thread::spawn(|| {
            assert_eq!(get(), 0);
            set(7);
            assert_eq!(get(), 7);
        })
        .join()
        .unwrap();
        assert_eq!(get(), CROWD);
    }
}
