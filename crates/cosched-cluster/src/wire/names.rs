//! The serialised names of core's enumerations, and of users.

use serde::{Deserialize, Serialize};

/// The user who makes a request, as the daemon that received it has found out by the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct By {
    /// The user ID.
    pub uid: u32,
    /// The user's group ID.
    pub gid: u32,
    /// Whether the user is an administrator.
    pub admin: bool,
}

/// An enumeration of the wire with the same variants as one of core; it does not compile otherwise.
macro_rules! mirror {
    ($(#[$doc:meta])* $name:ident = $core:path { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
        }

        impl From<$core> for $name {
            fn from(of_core: $core) -> $name {
                use $core as Core;
                match of_core { $(Core::$variant => $name::$variant,)+ }
            }
        }

        impl From<$name> for $core {
            fn from(of_wire: $name) -> $core {
                use $core as Core;
                match of_wire { $($name::$variant => Core::$variant,)+ }
            }
        }
    };
}

/// Converts a struct of the wire into one of core with the same fields, and back; it does not compile otherwise.
macro_rules! same_fields {
    ($name:ident = $core:path { $($field:ident),+ $(,)? }) => {
        impl From<$core> for $name {
            fn from(of_core: $core) -> $name {
                use $core as Core;
                let Core { $($field),+ } = of_core;
                $name { $($field: $field.into()),+ }
            }
        }

        impl From<$name> for $core {
            fn from(of_wire: $name) -> $core {
                use $core as Core;
                let $name { $($field),+ } = of_wire;
                Core { $($field: $field.into()),+ }
            }
        }
    };
}
pub(super) use same_fields;

mirror! {
    /// A job's class, the most urgent first.
    Class = cosched_core::Class {
        /// Mission critical.
        Express,
        /// Rapid response.
        Interactive,
        /// Throughput.
        Batch,
        /// Uses what others leave.
        Standby,
    }
}

mirror! {
    /// How a job is scheduled.
    Policy = cosched_core::Policy {
        /// All its processes in the same slots.
        Gang,
        /// By the operating system.
        Local,
        /// Periodic boost.
        Pb,
        /// Demand-based coscheduling.
        Dcs,
        /// Chosen by its observed behaviour.
        Auto,
    }
}

mirror! {
    /// What gangs that are not current may do.
    Sharing = cosched_core::Sharing {
        /// Nothing.
        Strict,
        /// The gang of the next turn runs on idle CPUs.
        Paired,
        /// All gangs run on idle CPUs.
        Soft,
    }
}

mirror! {
    /// How a gang is placed.
    Packing = cosched_core::cluster::Packing {
        /// The first row with room.
        FirstFit,
        /// The row with the least room left.
        BestFit,
        /// A block of neighbouring nodes.
        Buddy,
    }
}

mirror! {
    /// The time of day.
    Period = cosched_core::cluster::Period {
        /// Working hours.
        Working,
        /// Off-hours.
        Off,
    }
}

mirror! {
    /// What happens to a job when one of its nodes is lost.
    OnNodeLoss = cosched_core::cluster::OnNodeLoss {
        /// Its other processes are killed.
        Kill,
        /// Its other processes continue.
        Keep,
        /// It is started again from the beginning.
        Requeue,
    }
}

mirror! {
    /// Whether a job is scheduled.
    Standing = cosched_core::Standing {
        /// Scheduled by its policy.
        Scheduled,
        /// It used no CPU.
        Asleep,
        /// A user suspended it.
        Suspended,
    }
}

mirror! {
    /// The reason of an action.
    #[allow(missing_docs, reason = "core says what each means")]
    Reason = cosched_core::Reason {
        Arrival, Departure, UserRequest, Settings, NoCpuUsed, NoCpuForLong, CpuUsed, NewPlan, SlotBoundary, SampleDue, MessageWaiting,
        MessageArrived, HasWork, BehindItsShare, Boosted, NoCandidate, NotSeenYet, Alone, WaitsMuch, WaitsLittle, MaySpin,
        SpinsInVain, NodeJoined, NodeLost, WaitsForNode, WaitsForMemory, WaitsForDisk, WaitsForExclusive, RowsFull,
        BehindOthers, MemoryGrew, TimeLimit, Rebalanced, PeriodBegins, LeaseOut, ClockNotSynchronised, PlanMissed,
        TooLarge, UserLimit, WaitsForTime, WaitsForJob, JobFailed, RunTime,
    }
}
