//! What the rule asks for, and why.

use crate::stage::Change;
use core::fmt;

/// One change to one stage, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The stage, by its place in the order of flow.
    pub stage: usize,
    /// What to change.
    pub change: Change,
    /// Why.
    pub why: Reason,
}

/// A change that the system refused: what the rule would have done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The stage.
    pub stage: usize,
    /// What was asked for.
    pub change: Change,
    /// Why it was asked for.
    pub why: Reason,
}

/// Why something is tried, kept or taken back. Gains are millionths (ppm) of the rounds per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Done before the first window: the stage computes and may have more incarnations.
    MayLimitAlone,
    /// Tried: the stage alone has work all the time, CPUs are idle, and it may have more incarnations.
    LimitsAlone,
    /// Tried: the stage blocks on a device or the network, and waits for a CPU when it could go on.
    BlocksAndWaitsForCpu,
    /// Tried: the stage does not limit, and takes CPU time from those that do.
    DoesNotLimit,
    /// Tried: the stage computes, and is interrupted by those that woke up.
    Interrupted,
    /// Tried: the threads that compute may move between the CPUs.
    Wanders,
    /// Tried: back to what held before, as another resource limits now, or as a long time went by.
    Doubted,
    /// The old setting for a while, to compare with.
    Comparing,
    /// The new setting again, to compare with.
    ComparingAgain,
    /// Kept: it helped.
    Helped {
        /// The gain.
        gain_ppm: i32,
    },
    /// Taken back: no gain that stands out from the noise.
    NoGain {
        /// The gain.
        gain_ppm: i32,
    },
    /// Taken back at once: it made things worse.
    Harmed {
        /// The gain, below 0.
        gain_ppm: i32,
    },
    /// Taken back: a part of it was refused.
    PartRefused,
    /// Taken back: the pipeline changed or ends while it was on trial.
    CutShort,
    /// Tried: the stage limits, and others take CPU time from it.
    LimitsBesideOthers,
    /// Taken back: others use the CPUs now, and it gives way to them.
    OthersCame,
}

impl Reason {
    /// Whether it is a step within a trial: such actions are many, and say nothing new.
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
            Reason::BlocksAndWaitsForCpu => f.write_str("it blocks, and waits for a CPU when it could go on"),
            Reason::DoesNotLimit => f.write_str("it does not limit, and takes CPU time from what does"),
            Reason::Interrupted => f.write_str("it computes and is interrupted"),
            Reason::Wanders => f.write_str("its threads may move between the CPUs"),
            Reason::Doubted => f.write_str("what was kept may have become useless"),
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
