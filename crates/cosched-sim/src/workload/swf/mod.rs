//! The Standard Workload Format (SWF) of the Parallel Workloads Archive: 18 numbers per line, −1 for unknown values,
//! comments and header after `;`. Real files violate most of its rules, so the reader is tolerant, and counts the
//! violations.

mod header;
mod packed;
mod read;
mod write;

pub use header::SwfHeader;
pub use packed::unpack;
pub use read::{BadLine, ReadReport, SwfError, SwfReader, read_records};
pub use write::{write_comment, write_header, write_record};

/// The columns of a record.
pub const FIELDS: usize = 18;

/// A record: one job (or one part of a job that was checkpointed).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    fields: [f64; FIELDS],
}

/// Accessors of one kind: the value if it is known.
macro_rules! known {
    ($($(#[$doc:meta])* $name:ident = $index:expr;)*) => {
        $($(#[$doc])* pub fn $name(&self) -> Option<f64> { self.known($index) })*
    };
}

impl Record {
    /// From the 18 fields in the format's order; negative values are unknown.
    pub fn new(fields: [f64; FIELDS]) -> Record {
        Record { fields }
    }

    /// The 18 fields in the format's order.
    pub fn fields(&self) -> &[f64; FIELDS] {
        &self.fields
    }

    fn known(&self, index: usize) -> Option<f64> {
        Some(self.fields[index]).filter(|value| *value >= 0.0)
    }

    /// The job's number, from 1; numbers may be missing.
    pub fn number(&self) -> f64 {
        self.fields[0]
    }

    /// When it was submitted, in s from the log's start; some logs have −1 for their first job.
    pub fn submit_s(&self) -> f64 {
        self.fields[1]
    }

    known! {
        /// How long it waited, s.
        wait_s = 2;
        /// How long it ran on the wall clock, s; 0 is less than half a second.
        run_s = 3;
        /// Mean CPU time per processor, s.
        cpu_s = 5;
        /// The user's estimate of the run time, s.
        estimate_s = 8;
        /// 1 completed, 0 failed, 5 cancelled; 2, 3, 4 for parts.
        status = 10;
        /// Its user's number.
        user = 11;
        /// Its queue's number.
        queue = 14;
    }

    /// Its processors: those allocated if known, otherwise those requested (for statistics). 0 counts as unknown.
    pub fn size(&self) -> Option<u32> {
        self.processors(4).or_else(|| self.processors(7))
    }

    /// The processors that it requested, otherwise those that it got (for simulation). 0 counts as unknown.
    pub fn requested(&self) -> Option<u32> {
        self.processors(7).or_else(|| self.processors(4))
    }

    /// Whether it is a part of a job that was checkpointed or swapped out (status 2, 3 or 4). The format has such a job twice: as a whole,
    /// with status 0 or 1, and in its parts, which are for studies of the logged system and no workload.
    pub fn is_part(&self) -> bool {
        self.status().is_some_and(|status| matches!(status as i64, 2..=4))
    }

    fn processors(&self, index: usize) -> Option<u32> {
        self.known(index).map(|value| value as u32).filter(|value| *value > 0)
    }
}
