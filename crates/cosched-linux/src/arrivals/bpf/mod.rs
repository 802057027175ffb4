//! Messages announced by a BPF program instead of epoll sets.
//!
//! The problem: with epoll a new socket is watched only after the next scan of its process, and every watched socket wakes the slot thread's set at
//! every message. The rule: a program at the trace point where the kernel tells a socket's reader that there is data (`sk_data_ready`) looks up the
//! socket's cgroup among our gangs and writes the job to a ring buffer, at most once in the given pause. A socket belongs to the cgroup of the
//! process that created it, at that time: sockets created before the process entered its job, and in cgroups that a job made itself, are not seen.
//!
//! It needs CAP_BPF and CAP_PERFMON, a kernel with BTF and that trace point (6.3), and the cargo feature `bpf`.

#[cfg(feature = "bpf")]
mod loaded;
#[cfg(feature = "bpf")]
pub use loaded::BpfArrivals;
#[cfg(feature = "bpf")]
pub(super) use loaded::Ring;

#[cfg(not(feature = "bpf"))]
mod absent {
    use std::sync::Arc;
    use std::time::Duration;

    use crate::arrivals::ArrivalBell;
    use crate::job::JobCgroup;
    use crate::problem::Problem;

    /// Replaces the BPF program in a build without it.
    #[derive(Debug)]
    pub enum BpfArrivals {}

    impl BpfArrivals {
        /// Always fails.
        ///
        /// # Errors
        /// This build has no BPF program.
        pub fn load() -> Result<BpfArrivals, Problem> {
            let hint = "build cosched with the cargo feature `bpf`; until then epoll sets are used instead";
            Err(Problem::new(super::WHAT, "this build has no BPF program", hint))
        }

        /// Cannot be called.
        ///
        /// # Errors
        /// None.
        pub fn watch(&mut self, _job: &JobCgroup, _pause: Duration) -> Result<(), Problem> {
            match *self {}
        }

        /// Cannot be called.
        pub fn forget(&mut self, _job: u64) {
            match *self {}
        }

        /// Cannot be called.
        pub fn bell(&self) -> Arc<ArrivalBell> {
            match *self {}
        }
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn a_build_without_it_says_so() {
            let problem = super::BpfArrivals::load().unwrap_err();
            assert!(problem.hint.contains("feature"), "{problem}");
        }
    }
}
#[cfg(not(feature = "bpf"))]
pub use absent::BpfArrivals;

const WHAT: &str = "arriving messages cannot be announced by BPF";
