//! The engine on io_uring: one ring per user, driven by the calling thread.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use io_uring::{IoUring, Probe, opcode, types};
use rustix::io::Errno;

use super::engine::{Answer, Drive, Request};

/// The kernel's limit on the bytes of one request.
const REQUEST_BYTES_MAX: usize = 0x7fff_f000;
/// The pause when the kernel temporarily has no memory for a request.
const PATIENCE: Duration = Duration::from_millis(1);

pub(super) struct Uring {
    ring: IoUring,
    depth: usize,
}

impl Uring {
    /// Makes a ring for `depth` requests; or the reason why this machine has none.
    pub(super) fn start(depth: usize) -> Result<Uring, String> {
        let depth = depth.clamp(1, 1024);
        // Avoids an interrupt for each completion (Linux 5.19); the flag is unknown to older kernels.
        let ring = IoUring::builder().setup_coop_taskrun().build(depth as u32);
        let ring = match ring {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => IoUring::new(depth as u32),
            other => other,
        }
        .map_err(|error| why(&error))?;
        let mut probe = Probe::new();
        let known = ring.submitter().register_probe(&mut probe).is_ok();
        if !known || !probe.is_supported(opcode::Read::CODE) || !probe.is_supported(opcode::Write::CODE) {
            return Err("this kernel's io_uring has no read and write at offsets (Linux 5.6)".into());
        }
        Ok(Uring { ring, depth })
    }

    fn submit(&mut self, wait: bool) {
        loop {
            // If there are answers already, no wait is needed.
            let want = usize::from(wait && self.ring.completion().is_empty());
            match self.ring.submitter().submit_and_wait(want) {
                Ok(_) => return,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) => {}
                    // The kernel is short of memory or requires its answers to be read first: the accepted requests continue meanwhile.
                    Some(Errno::AGAIN | Errno::BUSY | Errno::NOMEM) if !self.ring.completion().is_empty() => return,
                    Some(Errno::AGAIN | Errno::BUSY | Errno::NOMEM) => sleep(PATIENCE),
                    // The descriptor and the flags are ours: only a mistake here can cause another error.
                    _ => panic!("io_uring_enter: {error}"),
                },
            }
        }
    }
}

impl Drive for Uring {
    fn depth(&self) -> usize {
        self.depth
    }

    unsafe fn push(&mut self, request: Request) {
        let (fd, len) = (types::Fd(request.fd), request.len.min(REQUEST_BYTES_MAX) as u32);
        let entry = if request.write {
            opcode::Write::new(fd, request.at, len).offset(request.offset).build()
        } else {
            opcode::Read::new(fd, request.at, len).offset(request.offset).build()
        };
        // SAFETY: the caller keeps memory and descriptor until the answer.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(request.id)) };
        pushed.expect("the ring has a place for each of `depth` requests");
    }

    fn collect(&mut self, wait: bool, answers: &mut Vec<Answer>) {
        self.submit(wait);
        answers.extend(self.ring.completion().map(|entry| Answer {
            id: entry.user_data(),
            result: usize::try_from(entry.result()).map_err(|_| io::Error::from_raw_os_error(-entry.result())),
        }));
    }
}

/// Why no ring can be made, in words.
fn why(error: &io::Error) -> String {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match (Errno::from_io_error(error), disabled.trim()) {
        (Some(Errno::NOSYS), _) => {
            "this kernel has no io_uring, or a seccomp filter hides it (containers do so)".into()
        }
        (Some(Errno::PERM | Errno::ACCESS), "2") => {
            "it is switched off: the sysctl kernel.io_uring_disabled is 2".into()
        }
        (Some(Errno::PERM | Errno::ACCESS), "1") => {
            "it is switched off for this user: the sysctl kernel.io_uring_disabled is 1, and the user is not in \
             kernel.io_uring_group"
                .into()
        }
        (Some(Errno::PERM | Errno::ACCESS), _) => {
            "a seccomp filter or a security module forbids it (containers do so)".into()
        }
        (Some(Errno::NOMEM), _) => "the limit of locked memory (ulimit -l) is too low for its rings".into(),
        _ => format!("io_uring_setup: {error}"),
    }
}
