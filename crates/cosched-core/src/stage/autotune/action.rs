//! The changes that the rule requests, and their reasons.

use crate::stage::Change;
use core::fmt;

/// One change to one stage, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The stage, by its index in the order of flow.
    pub stage: usize,
    /// The change.
    pub change: Change,
    /// The reason.
    pub why: Reason,
}

/// Why something is tried, kept or undone. Gains are millionths (ppm) of the rounds per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Done before the first window: the stage computes and may have more incarnations.
    MayLimitAlone,
    /// Tried: the stage alone has work all the time, CPUs are idle, and it may have more incarnations.
    LimitsAlone,
    /// Tried: the stage blocks on a device or the network, and waits for a CPU when it could continue.
    BlocksAndWaitsForCpu,
    /// Tried: the stage does not limit, and takes CPU time from stages that do.
    DoesNotLimit,
    /// Tried: the stage computes, and is interrupted by stages that wake up.
    Interrupted,
    /// Tried: the threads that compute migrate between the CPUs.
    Wanders,
    /// Tried: back to the setting before, because another resource limits now, or because much time has passed.
    Doubted,
    /// The old setting for a while, for comparison.
    Comparing,
    /// The new setting again, for comparison.
    ComparingAgain,
    /// Kept: it helped.
    Helped {
        /// The gain.
        gain_ppm: i32,
    },
    /// Undone: no gain that is distinct from the noise.
    NoGain {
        /// The gain.
        gain_ppm: i32,
    },
    /// Undone at once: it made things worse.
    Harmed {
        /// The gain, below 0.
        gain_ppm: i32,
    },
    /// Undone: a part of it was refused.
    PartRefused,
    /// Undone: the pipeline changed or ends during the trial.
    CutShort,
    /// Tried: the stage limits, and others take CPU time from it.
    LimitsBesideOthers,
    /// Undone: others use the CPUs now, and it would yield to them.
    OthersCame,
}

impl Reason {
    /// Whether it is a step within a trial: there are many such actions, and they carry no new information.
    pub const fn compares(&self) -> bool {
        matches!(self, Reason::Comparing | Reason::ComparingAgain)
    }

    /// The name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Reason::MayLimitAlone => "may-limit-alone",
            Reason::LimitsAlone => "limits-alone",
            Reason::BlocksAndWaitsForCpu => "blocks-and-waits-for-cpu",
            Reason::DoesNotLimit => "does-not-limit",
            Reason::Interrupted => "interrupted",
            Reason::Wanders => "wanders",
            Reason::Doubted => "doubted",
            Reason::Comparing => "comparing",
            Reason::ComparingAgain => "comparing-again",
            Reason::Helped { .. } => "helped",
            Reason::NoGain { .. } => "no-gain",
            Reason::Harmed { .. } => "harmed",
            Reason::PartRefused => "part-refused",
            Reason::CutShort => "cut-short",
            Reason::LimitsBesideOthers => "limits-beside-others",
            Reason::OthersCame => "others-came",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |gain_ppm: i32| f64::from(gain_ppm) / 1e4;
        match self {
            Reason::MayLimitAlone => f.write_str("it computes, and may limit alone"),
            Reason::LimitsAlone => f.write_str("it limits alone and CPUs are idle"),
            Reason::BlocksAndWaitsForCpu => f.write_str("it blocks, and waits for a CPU when it could continue"),
            Reason::DoesNotLimit => f.write_str("it does not limit, and takes CPU time from what does"),
            Reason::Interrupted => f.write_str("it computes and is interrupted"),
            Reason::Wanders => f.write_str("its threads may move between the CPUs"),
            Reason::Doubted => f.write_str("the kept setting may have become useless"),
            Reason::Comparing => f.write_str("to compare with the old setting"),
            Reason::ComparingAgain => f.write_str("to compare with the new setting"),
            Reason::Helped { gain_ppm } => write!(f, "it helped: {:+.1} %", percent(*gain_ppm)),
            Reason::NoGain { gain_ppm } => write!(f, "no gain beyond the noise: {:+.1} %", percent(*gain_ppm)),
            Reason::Harmed { gain_ppm } => write!(f, "it harmed: {:+.1} %", percent(*gain_ppm)),
            Reason::PartRefused => f.write_str("a part of it was refused"),
            Reason::CutShort => f.write_str("the trial was cut short"),
            Reason::LimitsBesideOthers => f.write_str("it limits, and others take CPU time from it"),
            Reason::OthersCame => f.write_str("others use the CPUs now, and it gives way to them"),
        }
    }
}
