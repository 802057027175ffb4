//! Classes of jobs and their shares.
//!
//! LLNL, "Gang Scheduler Design": express jobs are mission critical, interactive ones want rapid response, batch jobs
//! throughput, standby jobs use idle CPUs. The paper gives an order, not numbers; the numbers here are shares of
//! CPU time, relative to each other, and the operator may set them.

use alloc::format;
use alloc::string::String;

/// A job's class, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Mission critical; administrators only.
    Express,
    /// Rapid response.
    Interactive,
    /// Throughput.
    Batch,
    /// Uses what others leave.
    Standby,
}

impl Class {
    /// All of them, the most urgent first.
    pub const ALL: [Class; 4] = [Class::Express, Class::Interactive, Class::Batch, Class::Standby];

    /// Its name in messages and files.
    pub fn name(self) -> &'static str {
        ["express", "interactive", "batch", "standby"][self as usize]
    }
}

impl core::str::FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Class, String> {
        let named = Class::ALL.into_iter().find(|class| class.name() == text);
        named.ok_or_else(|| format!("no class '{text}'; the classes are express, interactive, batch and standby"))
    }
}

/// How much CPU time the classes get, relative to each other; each at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Of an express job.
    pub express: u32,
    /// Of an interactive job.
    pub interactive: u32,
    /// Of a batch job.
    pub batch: u32,
    /// Of a standby job.
    pub standby: u32,
}

impl Default for Shares {
    fn default() -> Shares {
        Shares { express: 16, interactive: 4, batch: 2, standby: 1 }
    }
}

impl Shares {
    /// The share of a class; never 0, so that no job starves.
    pub fn of(&self, class: Class) -> u32 {
        let share = match class {
            Class::Express => self.express,
            Class::Interactive => self.interactive,
            Class::Batch => self.batch,
            Class::Standby => self.standby,
        };
        share.max(1)
    }
}
