//! The wire types of waiting and boosting; see docs/waiting.md.

use crate::policy::Policy;
use crate::wire::wire;
use serde::{Deserialize, Serialize};

wire! {
    /// How the processes of a job wait for messages; see docs/waiting.md.
    #[derive(Default)]
    pub enum WaitMode {
        /// As the policy says: under `auto` as that chooses, under any other they spin.
        #[default]
        Auto,
        /// They spin until the message is there.
        Busy,
        /// They spin for the spin time, then block.
        SpinBlock,
        /// They spin for the spin time, then give way, and spin again.
        SpinYield,
        /// They spin, and the CPUs change threads every quarter of a millisecond while they run: for threads that only spin and are
        /// more than the CPUs.
        Micro,
    }
}

impl WaitMode {
    /// Every way to wait.
    pub const ALL: [WaitMode; 5] =
        [WaitMode::Auto, WaitMode::Busy, WaitMode::SpinBlock, WaitMode::SpinYield, WaitMode::Micro];
}

wire! {
    /// How the processes of a job wait, as it was asked for.
    #[derive(Copy, Eq, Default)]
    #[serde(deny_unknown_fields)]
    pub struct Waiting {
        /// How.
        pub mode: WaitMode,
        /// The spin time in µs; absent: each process finds its own.
        pub spin_us: Option<u32>,
    }

    /// How the processes of a job wait for messages. The counts are since its start, of all its processes.
    #[derive(Default)]
    pub struct JobWaiting {
        /// What was asked for.
        pub asked: Waiting,
        /// What is in force; never `auto`.
        pub mode: WaitMode,
        /// The file that they share with the daemon, while the job lives.
        pub page: Option<String>,
        /// Processes that have the library and use it now.
        pub processes: u32,
        /// Its subgangs, which take turns: processes with several busy threads, or programs of several ranks; 0: there are none.
        #[serde(default)]
        pub subgangs: u32,
        /// Calls that asked for a message without waiting.
        pub polls: u64,
        /// Rows of such calls.
        pub waits: u64,
        /// Waits that ended while the process still spun.
        pub spins: u64,
        /// Times that a process blocked.
        pub blocks: u64,
        /// Times that a process gave way.
        pub yields: u64,
        /// Blocks that ended by their time limit.
        pub timeouts: u64,
        /// Time spent spinning.
        pub spin_ms: u64,
        /// Time spent blocked.
        pub block_ms: u64,
        /// The spin times in force in µs, the shortest and the longest, while there are processes.
        pub spin_us: Option<(u32, u32)>,
    }

    /// What `auto` has chosen for a job.
    pub struct Chosen {
        /// The policy in force.
        pub policy: Policy,
        /// How its processes wait, where they can be told.
        pub mode: WaitMode,
        /// Since when.
        pub since_unix_ms: u64,
        /// Why, for people.
        pub why: String,
        /// How often the choice has changed.
        pub changes: u32,
    }

    /// What was done for jobs that have a message waiting (policies `pb` and `dcs`).
    #[derive(Default)]
    pub struct Boosting {
        /// Jobs under these policies now.
        pub jobs: u32,
        /// Sockets of theirs that are watched.
        pub sockets: u32,
        /// How arrivals are seen: `epoll`, `bpf` (the arrivals for dcs; the rest by epoll), or `off` with the reason in the
        /// warnings.
        pub sensor: String,
        /// Why it is not `bpf`, once a job has wanted dcs.
        pub without_bpf: Option<String>,
        /// Checks for processes with a message.
        pub looks: u64,
        /// Messages that rang (dcs).
        pub rings: u64,
        /// Times that a job was raised.
        pub boosts: u64,
        /// CPU time that the looks took.
        pub cost_ms: u64,
    }
}
