//! cosched's interface to Linux: cgroups, the slot thread, observation, the guard.
//!
//! - [`layout`] finds the cgroup hierarchies of this machine, [`place`] the location of our subtree in them;
//! - [`tree`] is that subtree and [`job`] one job's cgroups in it, [`origin`] where its processes came from;
//! - [`adopt`] makes a job of an existing cgroup, [`annex`] a part of a job, [`family`] a job of a process with its descendants;
//! - [`mechanism`] stops and starts gangs through the open files of a [`switch::JobSwitch`];
//! - [`keeper`] stops and continues a job where there are no cgroups, [`descent`] finds its processes;
//! - [`slots`] is the real-time thread that does so on the wall clock, [`stats`] what it measures of itself, [`probe`] how it learns of
//!   idle CPUs;
//! - [`arrivals`] detects which jobs have unread messages, [`waits`] which of their processes wait;
//! - [`guard`], [`beat`] and [`kernel_agent`] ensure that no job stays stopped, whatever dies;
//! - [`mod@file`] reads and writes whole blocks of files without the page cache, several at a time;
//! - [`thread`] controls the scheduling of single threads of this process, for the stages of a pipeline;
//! - [`neighbours`] counts the processes outside jobs that want a CPU;
//! - [`topology`] reads the caches and nodes that CPUs share, [`confine`] sets the CPUs that a job may use;
//! - [`clock`] detects steps of the wall clock, [`load`] measures the load of the CPUs, [`user`] starts programs as another user;
//! - [`pagefs`] holds a file that a user may write but not extend;
//! - [`private`] makes files and locks that no other user may change, read or hold;
//! - [`answer`] asks another program of this machine;
//! - [`observe`], [`endwatch`], [`process`] and [`realtime`] are small interfaces to the kernel.
//!
//! This crate knows neither plans nor policies: it runs the table that core compiles from a plan.

pub mod adopt;
pub mod annex;
pub mod answer;
pub mod appear;
pub mod arrivals;
pub mod beat;
pub mod blocks;
pub mod caps;
mod cgfile;
pub mod clock;
pub mod confine;
mod cpubits;
pub mod cpulist;
pub mod descent;
pub mod endwatch;
pub mod family;
pub mod fence;
pub mod file;
mod gangcpu;
pub mod guard;
pub mod histogram;
pub mod job;
pub mod keeper;
pub mod kernel_agent;
pub mod layout;
pub mod load;
mod marker;
pub mod mechanism;
mod memory_limit;
pub mod neighbours;
pub mod notify;
pub mod observe;
pub mod origin;
pub mod pagefs;
pub mod place;
pub mod private;
pub mod probe;
pub mod problem;
pub mod process;
pub mod quota;
pub mod realtime;
mod reserve;
mod shared;
pub mod slots;
pub mod stats;
pub mod subgangs;
pub mod switch;
pub mod thaw;
pub mod thread;
pub mod topology;
pub mod tree;
mod treeweight;
mod unkept;
pub mod user;
pub mod waits;

pub use adopt::Adoptee;
pub use arrivals::{ArrivalBell, Arrivals, BpfArrivals, JobSockets, Watchers};
pub use blocks::Blocks;
pub use caps::{Cap, Caps, Resource};
pub use endwatch::EndWatch;
pub use job::{JobCgroup, OutOfMemory};
pub use layout::{Layout, LayoutKind};
pub use origin::Origin;
pub use place::Place;
pub use probe::IdleProbe;
pub use problem::{Problem, TreeError};
pub use quota::Quota;
pub use slots::{
    Boost, BoostJob, BoostTiming, Choice, Chooser, Divider, Division, Entry, Seen, SlotConfig, SlotThread, Table,
};
pub use stats::{SwitchHistograms, SwitchStats};
pub use subgangs::Subgangs;
pub use switch::JobSwitch;
pub use tree::Tree;
pub use treeweight::{TreeWeight, Weights};
pub use unkept::Unkept;
pub use waits::{PageLayout, WaitPage, Waits};
