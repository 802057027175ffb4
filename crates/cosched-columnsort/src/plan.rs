//! Chooses a matrix for the available memory, and computes what the sort will need: memory, disk space, bytes to move.
//!
//! The rule: one column if everything fits into memory, because then a single pass is enough. Otherwise the number of
//! columns with which a block, which is the smallest request of the middle pass, has about 1 MiB: many columns keep the
//! pipeline full (filling and draining it costs the time of a few columns in each pass), large blocks keep the disk fast.
//! All of this within the limits of the memory and of r ≥ 2 (s − 1)².

use serde::Serialize;

use crate::format::Format;
use crate::layout::{Layout, PAGE, Pass};
use crate::shape::{BadShape, Shape, rows_for};
use crate::sort::{ORDER_BYTES, Sorter, Version};

/// The requested properties of a sort.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// The number of records to sort.
    pub records: u64,
    /// The format of the records.
    pub format: Format,
    /// How columns are sorted.
    pub version: Version,
    /// Whether steps 5 to 8 are joined in one pass.
    pub joined: bool,
    /// The number of processes.
    pub processes: u64,
    /// The number of columns that each process sorts concurrently.
    pub sorters: usize,
    /// The maximum of that number, if autotune may raise it.
    pub sorters_max: usize,
    /// The number of threads for a sort in one piece.
    pub threads: usize,
    /// Memory per process in bytes.
    pub memory_bytes: u64,
    /// The number of columns in memory at once; None: as many as can be worked on.
    pub buffers: Option<usize>,
    /// The size of a block that is written, in bytes; None: depending on the column.
    pub block_bytes: Option<usize>,
    /// Rows; None: depending on the memory.
    pub rows: Option<u64>,
    /// Columns; None: depending on the memory.
    pub columns: Option<u64>,
}

/// The plan of a sort that is possible.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// The matrix.
    pub shape: Shape,
    /// The records.
    pub format: Format,
    /// How columns are sorted.
    pub version: Version,
    /// The names of the passes: their steps.
    pub passes: Vec<&'static str>,
    /// The passes.
    #[serde(skip)]
    pub pass_list: &'static [Pass],
    /// The number of sorters in each process.
    pub sorters: usize,
    /// The maximum number that autotune may activate; their memory is included.
    pub sorters_max: usize,
    /// The number of threads of each sorter.
    pub sorter_threads: usize,
    /// The memory of each process.
    pub memory: Memory,
    /// The size of each process's working file in bytes.
    pub working_bytes: u64,
    /// The size of the output in bytes.
    pub output_bytes: u64,
    /// The number of bytes that all passes read and write together.
    pub moved_bytes: u64,
}

/// The memory of one process: numbers of buffers and their sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// The number of columns.
    pub columns: usize,
    /// The size of a column's buffer in bytes: its records and their order.
    pub column_bytes: u64,
    /// The offset of the order in the buffer.
    pub order_at: u64,
    /// The number of blocks on their way to a file, or to another process and from there to a file.
    pub blocks: usize,
    /// The size of a block in bytes.
    pub block_bytes: u64,
    /// The number of half columns on their way to and from other processes.
    pub halves: usize,
    /// The size of a half column in bytes.
    pub half_bytes: u64,
    /// The sorters' own memory in bytes.
    pub sorter_bytes: u64,
    /// The total in bytes.
    pub total_bytes: u64,
}

/// Why a sort is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    /// The requested matrix does not sort.
    #[error(transparent)]
    Shape(BadShape),
    /// The requested matrix needs more memory than is available.
    #[error(
        "{} rows x {} columns take {needs_bytes} bytes of memory, more than the {memory_bytes} allowed", asked.0, asked.1
    )]
    Memory {
        /// Rows and columns.
        asked: (u64, u64),
        /// The memory that it needs.
        needs_bytes: u64,
        /// The available memory.
        memory_bytes: u64,
    },
    /// No matrix fits into the memory.
    #[error("no matrix sorts this number of records in {memory_bytes} bytes of memory: {needs_bytes} are needed")]
    TooMuch {
        /// The least memory with which a matrix fits.
        needs_bytes: u64,
        /// The available memory.
        memory_bytes: u64,
    },
    /// A column would have 4 GiB or more.
    #[error(
        "a column of {} rows x {} columns has 4 GiB or more: places in a column are 32 bits wide", asked.0, asked.1
    )]
    LongColumn {
        /// Rows and columns.
        asked: (u64, u64),
    },
    /// Fewer buffers than the passes need.
    #[error("{0} columns in memory are too few: one is held while the next one comes, so at least {BUFFERS_MIN}")]
    FewBuffers(usize),
    /// The block size is not a whole number of pages for each process.
    #[error("blocks of {bytes} bytes are not a whole number of pages for each process: {nearest} are")]
    BadBlock {
        /// The requested size.
        bytes: usize,
        /// The nearest possible size.
        nearest: u64,
    },
}

/// The largest block unless requested otherwise: enough for a disk, and small compared with columns.
const BLOCK_BYTES_MAX: u64 = 4 << 20;
/// The smallest block: each block has the overhead of a hand-off and of a few requests.
const BLOCK_BYTES_MIN: u64 = 64 << 10;
/// The number of blocks in memory between two stages.
const BLOCKS: usize = 6;
/// The wanted size of the part of a column that is for one other column: what the middle pass reads in one request.
const GOOD_PIECE_BYTES: u64 = 1 << 20;
/// More columns than this gain nothing.
const GOOD_COLUMNS_MAX: u64 = 256;
/// The paper's pipeline and the last pass hold one column while they wait for the next.
const BUFFERS_MIN: usize = 2;
/// Offsets in a column have 32 bits.
const COLUMN_BYTES_MAX: u64 = u32::MAX as u64;
/// The limit of the search: no machine has the memory for the columns of a larger matrix, which has 2 s³ records.
const COLUMNS_MAX: u64 = 1 << 14;

impl Plan {
    /// A plan for the requested properties.
    ///
    /// # Errors
    /// Why it is not possible, and what would be.
    pub fn new(wish: &Wish) -> Result<Plan, NoPlan> {
        if let Some(buffers) = wish.buffers.filter(|buffers| *buffers < BUFFERS_MIN) {
            return Err(NoPlan::FewBuffers(buffers));
        }
        wish.check_block()?;
        let shape = match (wish.rows, wish.columns) {
            (None, None) => wish.choose()?,
            (rows, columns) => wish.asked(rows, columns)?,
        };
        let layout = Layout::new(shape, wish.format);
        let pass_list = Pass::all(shape.columns, wish.joined);
        let working_bytes = layout.working_bytes();
        let output_bytes = layout.output_bytes();
        Ok(Plan {
            shape,
            format: wish.format,
            version: wish.version,
            passes: pass_list.iter().map(|pass| pass.name()).collect(),
            pass_list,
            sorters: wish.sorters_for(shape.columns, wish.sorters),
            sorters_max: wish.sorters_for(shape.columns, wish.sorters_max),
            sorter_threads: if shape.columns == 1 { wish.threads.max(1) } else { 1 },
            memory: wish.memory(shape),
            working_bytes,
            output_bytes,
            moved_bytes: 2 * output_bytes * pass_list.len() as u64,
        })
    }

    /// The places of all records.
    pub fn layout(&self) -> Layout {
        Layout::new(self.shape, self.format)
    }
}

impl Wish {
    /// The number of sorters that have work: with one column there is a single one, which uses several threads.
    fn sorters_for(&self, columns: u64, wanted: usize) -> usize {
        wanted.clamp(1, columns.div_ceil(self.processes).max(1) as usize)
    }

    fn check_block(&self) -> Result<(), NoPlan> {
        let granule = PAGE * self.processes.max(1);
        match self.block_bytes {
            Some(bytes) if bytes == 0 || !(bytes as u64).is_multiple_of(granule) => {
                Err(NoPlan::BadBlock { bytes, nearest: (bytes as u64).max(1).next_multiple_of(granule) })
            }
            _ => Ok(()),
        }
    }

    /// The memory of a process for such a matrix: the maximum over all passes.
    pub fn memory(&self, shape: Shape) -> Memory {
        let order_at = Layout::column_bytes(shape, self.format);
        let rows = shape.rows.min(shape.records.max(1));
        let column_bytes = (order_at + rows * ORDER_BYTES as u64).next_multiple_of(PAGE);
        let sorters = self.sorters_for(shape.columns, self.sorters_max);
        // One column is being read, each sorter has one, one is being gathered from; and the last pass holds one more.
        let useful = if shape.columns == 1 { 1 } else { sorters + 3 };
        let columns = self.buffers.unwrap_or(useful).min(shape.columns_each().max(1) as usize + 1);
        let granule = PAGE * self.processes;
        let by_column = (column_bytes / 8).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX) / granule * granule;
        let block_bytes = self.block_bytes.map_or(by_column.max(granule), |bytes| bytes as u64);
        let (blocks, halves) = if self.processes > 1 { (2 * BLOCKS, 5) } else { (BLOCKS, 0) };
        let half_bytes = (shape.half() * self.format.record_bytes as u64).next_multiple_of(PAGE);
        let sorter_bytes = Sorter::memory_bytes(self.version, rows) * sorters as u64;
        let total_bytes =
            columns as u64 * column_bytes + blocks as u64 * block_bytes + halves as u64 * half_bytes + sorter_bytes;
        Memory { columns, column_bytes, order_at, blocks, block_bytes, halves, half_bytes, sorter_bytes, total_bytes }
    }

    /// The matrix with this number of columns that takes the least memory.
    fn with_columns(&self, columns: u64) -> Option<Shape> {
        let shape = Shape::new(self.records, rows_for(self.records, columns), columns, self.processes).ok()?;
        self.column_fits(shape).then_some(shape)
    }

    fn column_fits(&self, shape: Shape) -> bool {
        Layout::column_bytes(shape, self.format) <= COLUMN_BYTES_MAX
    }

    /// The matrix that was requested.
    fn asked(&self, rows: Option<u64>, columns: Option<u64>) -> Result<Shape, NoPlan> {
        let columns = columns.unwrap_or_else(|| {
            let least = self.records.div_ceil(rows.unwrap_or(1).max(1)).max(1);
            least.next_multiple_of(self.processes)
        });
        let rows = rows.unwrap_or_else(|| rows_for(self.records, columns.max(1)));
        let shape = Shape::new(self.records, rows, columns, self.processes).map_err(NoPlan::Shape)?;
        if !self.column_fits(shape) {
            return Err(NoPlan::LongColumn { asked: (rows, columns) });
        }
        let needs_bytes = self.memory(shape).total_bytes;
        if needs_bytes > self.memory_bytes {
            return Err(NoPlan::Memory { asked: (rows, columns), needs_bytes, memory_bytes: self.memory_bytes });
        }
        Ok(shape)
    }

    /// The matrix according to the rule above.
    fn choose(&self) -> Result<Shape, NoPlan> {
        let bytes = self.records * self.format.record_bytes as u64;
        let wanted = (bytes / GOOD_PIECE_BYTES).isqrt().clamp(2, GOOD_COLUMNS_MAX);
        let mut best: Option<(u64, Shape)> = None;
        let mut needs_bytes = u64::MAX;
        for columns in (self.processes..=COLUMNS_MAX).step_by(self.processes as usize) {
            let Some(shape) = self.with_columns(columns) else { continue };
            let needs = self.memory(shape).total_bytes;
            needs_bytes = needs_bytes.min(needs);
            if needs <= self.memory_bytes {
                // One column is one pass instead of three.
                if columns == 1 {
                    return Ok(shape);
                }
                let distance = columns.abs_diff(wanted);
                if best.is_none_or(|(nearest, _)| distance < nearest) {
                    best = Some((distance, shape));
                }
            }
            // From here on the condition on 2 (s - 1)^2 makes columns longer again.
            if columns > wanted && 2 * (columns - 1).pow(2) > self.records.div_ceil(columns) {
                break;
            }
        }
        best.map(|(_, shape)| shape).ok_or(NoPlan::TooMuch { needs_bytes, memory_bytes: self.memory_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Wrong;
    use proptest::prelude::*;

    fn wish(records: u64, memory_bytes: u64) -> Wish {
        Wish {
            records,
            format: Format::default(),
            version: Version::Io,
            joined: true,
            processes: 1,
            sorters: 2,
            sorters_max: 2,
            threads: 2,
            memory_bytes,
            buffers: None,
            block_bytes: None,
            rows: None,
            columns: None,
        }
    }

    #[test]
    fn what_fits_is_sorted_in_one_pass() {
        let plan = Plan::new(&wish(1_000_000, 1 << 30)).unwrap();
        assert_eq!((plan.shape.columns, plan.pass_list, plan.working_bytes), (1, &[Pass::Single][..], 0));
        assert_eq!((plan.sorters, plan.sorter_threads), (1, 2));
    }

    #[test]
    fn eight_gigabytes_in_one() {
        let plan = Plan::new(&wish(80_000_000, 1 << 30)).unwrap();
        assert_eq!((plan.shape.columns, plan.pass_list.len()), (87, 3));
        assert!(plan.memory.total_bytes <= 1 << 30, "{:?}", plan.memory);
        assert_eq!(plan.moved_bytes, 48_000_000_000);
    }

    #[test]
    fn too_little_memory_says_how_much_is_needed() {
        let Err(NoPlan::TooMuch { needs_bytes, .. }) = Plan::new(&wish(80_000_000, 1 << 20)) else { panic!() };
        assert!(Plan::new(&wish(80_000_000, needs_bytes)).is_ok());
        assert!(Plan::new(&wish(80_000_000, needs_bytes - 1)).is_err());
    }

    #[test]
    fn a_matrix_that_was_asked_for() {
        let ask = |rows, columns| Plan::new(&Wish { rows, columns, ..wish(1_000_000, 1 << 30) });
        assert_eq!(ask(None, Some(10)).unwrap().shape.rows, 100_000);
        assert_eq!(ask(Some(100_000), Some(10)).unwrap().shape.columns, 10);
        assert_eq!(ask(Some(100_000), None).unwrap().shape.columns, 10);
        assert!(matches!(ask(Some(99_999), Some(11)), Err(NoPlan::Shape(BadShape { why: Wrong::Division, .. }))));
        assert!(matches!(ask(Some(1000), Some(1000)), Err(NoPlan::Shape(_))));
        let tight = Plan::new(&Wish { columns: Some(2), ..wish(1_000_000, 1 << 20) });
        assert!(matches!(tight, Err(NoPlan::Memory { .. })));
        let few = Plan::new(&Wish { buffers: Some(1), ..wish(1_000_000, 1 << 30) });
        assert_eq!(few.unwrap_err(), NoPlan::FewBuffers(1));
        let block = Plan::new(&Wish { block_bytes: Some(5000), ..wish(1_000_000, 1 << 30) });
        assert_eq!(block.unwrap_err(), NoPlan::BadBlock { bytes: 5000, nearest: 8192 });
    }

    proptest! {
        /// A plan never exceeds the given memory, and more memory never makes it impossible.
        #[test]
        fn plans_keep_to_the_memory(records in 0u64..50_000_000, mib in 1u64..4000, processes in 1u64..5) {
            let wish = Wish { processes, ..wish(records, mib << 20) };
            match Plan::new(&wish) {
                Ok(plan) => {
                    prop_assert!(plan.memory.total_bytes <= mib << 20);
                    prop_assert!(plan.memory.columns >= BUFFERS_MIN || plan.shape.columns == 1);
                }
                Err(NoPlan::TooMuch { needs_bytes, .. }) => {
                    prop_assert!(needs_bytes > mib << 20);
                    let needs = Wish { memory_bytes: needs_bytes, ..wish };
                    prop_assert!(Plan::new(&needs).is_ok());
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
