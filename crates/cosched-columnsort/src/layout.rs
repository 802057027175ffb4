//! Where each record goes: which parts of which file a column is read from, and where its sorted records are sent.
//!
//! Steps 2 and 4 move a block of r / s records from every column to every other. A block has a *slot* in a working file: its bytes
//! in one piece, rounded up to whole pages. The order of a column's blocks does not matter, because it is sorted next; so a block
//! is written and read in one piece of (r / s) × record bytes, however the matrix is transposed.
//!
//! The working file of process p has s / P *regions*, one for each of its columns, of s slots each:
//! - after step 2 the block from column j to column c = c' P + p is in slot (j mod P) s/P + c' of region j div P: column j's blocks
//!   for this process are contiguous, and are written in one piece;
//! - step 4 puts the block from column c = c' P + p″ to column k = k' P + p into slot p″ s/P + c' of region k'. These are the slots
//!   that this process has just read as its own column of the same round: the permutation is in place, and column k is then the
//!   whole region k', read in one piece.
//!
//! So one of the three passes has s requests for a column, the others have one; and the working file is as large as the input. If
//! there is only one process, the working file becomes the output: the last pass writes only to places that have been read already.

use std::ops::Range;

use crate::format::Format;
use crate::shape::Shape;

/// Slots and regions begin at multiples of this, so that direct I/O never has to read back bytes that it does not write.
pub const PAGE: u64 = 4096;

/// One pass over all records: each is read and written once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// The whole sort in one pass, if there is only one column.
    Single,
    /// Steps 1 and 2.
    Deal,
    /// Steps 3 and 4.
    Block,
    /// Steps 5 to 8.
    Merge,
    /// Steps 5 and 6.
    Shift,
    /// Steps 7 and 8.
    Unshift,
}

impl Pass {
    /// The passes of a sort of `columns` columns, with or without steps 5 to 8 joined in one pass.
    pub fn all(columns: u64, joined: bool) -> &'static [Pass] {
        match (columns, joined) {
            (1, _) => &[Pass::Single],
            (_, true) => &[Pass::Deal, Pass::Block, Pass::Merge],
            (_, false) => &[Pass::Deal, Pass::Block, Pass::Shift, Pass::Unshift],
        }
    }

    /// Its name in reports: the steps of the algorithm.
    pub fn name(self) -> &'static str {
        match self {
            Pass::Single => "sort",
            Pass::Deal => "steps 1-2",
            Pass::Block => "steps 3-4",
            Pass::Merge => "steps 5-8",
            Pass::Shift => "steps 5-6",
            Pass::Unshift => "steps 7-8",
        }
    }

    /// Whether it reads the input; otherwise it reads the working file.
    pub fn reads_input(self) -> bool {
        matches!(self, Pass::Single | Pass::Deal)
    }

    /// Whether it writes the output; otherwise it writes the working files.
    pub fn writes_output(self) -> bool {
        matches!(self, Pass::Single | Pass::Merge | Pass::Unshift)
    }

    /// Whether records are sent to other processes, if there are any.
    pub fn exchanges(self) -> bool {
        matches!(self, Pass::Deal | Pass::Block | Pass::Shift | Pass::Merge)
    }
}

/// A range of a file and its place in a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The offset in the file.
    pub offset: u64,
    /// The range of the buffer.
    pub range: Range<usize>,
}

/// Records that are contiguous in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Where the first one begins, in bytes.
    pub at: usize,
    /// The number of records.
    pub count: usize,
}

/// A column to read: which parts of the file, and where its records are in the buffer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Load {
    /// The parts to read.
    pub pieces: Vec<Piece>,
    /// Where the records are after the read.
    pub held: Vec<Held>,
}

/// Records of a sorted column that go to one place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The index of the first one in the column's order, which is dealt out to [`Layout::hands`]; the others follow it there.
    pub first: u64,
    /// The number of records.
    pub count: u64,
    /// Their offset in the file.
    pub offset: u64,
}

/// Everything about a sort's data that is known before it starts.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The matrix.
    pub shape: Shape,
    /// The records.
    pub format: Format,
    /// Bytes of a slot.
    slot: u64,
    /// Bytes of a region.
    region: u64,
    /// Records in each column after step 2 and after step 4.
    dealt: Vec<u64>,
    blocked: Vec<u64>,
}

impl Layout {
    /// The layout of a matrix of such records.
    pub fn new(shape: Shape, format: Format) -> Layout {
        let (slot, region) = sizes(shape, format);
        let mut layout = Layout { shape, format, slot, region, dealt: Vec::new(), blocked: Vec::new() };
        let full = shape.records / shape.rows;
        let from_full = full * shape.block();
        layout.dealt = (0..shape.columns).map(|c| from_full + layout.deal_count(full, c)).collect();
        layout.blocked =
            (0..shape.columns).map(|k| (0..shape.columns).map(|c| layout.block_count(c, k)).sum()).collect();
        layout
    }

    /// The size in bytes of each process's working file; 0 if there is only one column.
    pub fn working_bytes(&self) -> u64 {
        if self.shape.columns == 1 { 0 } else { self.shape.columns_each() * self.region }
    }

    /// The size of the output in bytes.
    pub fn output_bytes(&self) -> u64 {
        self.shape.records * self.format.record_bytes as u64
    }

    /// The maximum space of a column's records in a buffer in any pass, in bytes.
    pub fn column_bytes(shape: Shape, format: Format) -> u64 {
        let input = PAGE + shape.rows.min(shape.records.max(1)) * format.record_bytes as u64;
        let working = if shape.columns == 1 { 0 } else { sizes(shape, format).1 };
        input.next_multiple_of(PAGE).max(working)
    }

    /// A process's number of rounds (columns) in a pass: the shifted matrix has one more column, which belongs to the first
    /// process.
    pub fn rounds(&self, pass: Pass, process: u64) -> u64 {
        self.shape.columns_each() + u64::from(pass == Pass::Unshift && process == 0)
    }

    /// The column that a process works on in a round.
    pub fn column(&self, process: u64, round: u64) -> u64 {
        round * self.shape.processes + process
    }

    /// The number of records of the input in column `j`.
    fn input_count(&self, j: u64) -> u64 {
        self.shape.records.saturating_sub(j * self.shape.rows).min(self.shape.rows)
    }

    /// The number of records that step 2 moves from column `j` to column `c`: those with ranks c, c + s, … .
    fn deal_count(&self, j: u64, c: u64) -> u64 {
        self.input_count(j).saturating_sub(c).div_ceil(self.shape.columns)
    }

    /// The number of records that step 4 moves from column `c` to column `k`: those with ranks k r/s to (k + 1) r/s.
    fn block_count(&self, c: u64, k: u64) -> u64 {
        let block = self.shape.block();
        self.dealt[c as usize].saturating_sub(k * block).min(block)
    }

    /// The number of records of column `k` after step 4.
    fn blocked_count(&self, k: u64) -> u64 {
        self.blocked[k as usize]
    }

    /// The numbers of records of column `k` that step 6 leaves in column `k`, and that it moves to column `k` + 1.
    pub(crate) fn halves(&self, k: u64) -> (u64, u64) {
        let upper = self.shape.rows - self.shape.half();
        let count = self.blocked_count(k);
        (count.min(upper), count.saturating_sub(upper))
    }

    fn bytes(&self, records: u64) -> u64 {
        records * self.format.record_bytes as u64
    }

    fn slot_at(&self, region: u64, slot: u64) -> u64 {
        region * self.region + slot * self.slot
    }

    /// The offset of the block from column `j` to column `c` after step 2, in the file of `c`'s process.
    fn dealt_at(&self, j: u64, c: u64) -> u64 {
        let (processes, each) = (self.shape.processes, self.shape.columns_each());
        self.slot_at(j / processes, (j % processes) * each + c / processes)
    }

    /// The offset of the block from column `c` to column `k` after step 4, in the file of `k`'s process.
    fn blocked_at(&self, c: u64, k: u64) -> u64 {
        let (processes, each) = (self.shape.processes, self.shape.columns_each());
        self.slot_at(k / processes, (c % processes) * each + c / processes)
    }

    /// After step 6: the offset of the half of column `k` that stays; and, below, of the half that `k`'s process receives in the
    /// same round.
    fn upper_at(&self, k: u64) -> u64 {
        k / self.shape.processes * self.region
    }

    fn lower_at(&self, k: u64) -> u64 {
        self.upper_at(k) + self.bytes(self.shape.rows - self.shape.half()).next_multiple_of(PAGE)
    }

    /// The number of hands to which the order of a column is dealt: step 2 gives each column every s-th record.
    pub fn hands(&self, pass: Pass) -> u64 {
        if pass == Pass::Deal { self.shape.columns } else { 1 }
    }

    /// What to read for a column in a pass.
    pub fn load(&self, pass: Pass, column: u64) -> Load {
        match pass {
            Pass::Single | Pass::Deal => self.load_input(column),
            Pass::Block => {
                self.load_slots((0..self.shape.columns).map(|j| (self.dealt_at(j, column), self.deal_count(j, column))))
            }
            Pass::Merge | Pass::Shift => self
                .load_slots((0..self.shape.columns).map(|c| (self.blocked_at(c, column), self.block_count(c, column)))),
            Pass::Unshift => self.load_shifted(column),
        }
    }

    /// The offset in the buffer has the same distance from a page as that in the file, as direct I/O requires.
    fn load_input(&self, column: u64) -> Load {
        let (offset, count) = (self.bytes(column * self.shape.rows), self.input_count(column));
        if count == 0 {
            return Load::default();
        }
        let at = (offset % PAGE) as usize;
        let held = vec![Held { at, count: count as usize }];
        Load { pieces: vec![Piece { offset, range: at..at + self.bytes(count) as usize }], held }
    }

    /// Reads slots in the order of the file, so that adjacent ones become one piece.
    fn load_slots(&self, slots: impl Iterator<Item = (u64, u64)>) -> Load {
        let mut slots: Vec<(u64, u64)> = slots.filter(|(_, count)| *count > 0).collect();
        slots.sort_unstable();
        let mut load = Load::default();
        let mut at = 0;
        for (offset, count) in slots {
            let len = self.bytes(count).next_multiple_of(PAGE) as usize;
            load.held.push(Held { at, count: count as usize });
            push_piece(&mut load.pieces, Piece { offset, range: at..at + len });
            at += len;
        }
        load
    }

    /// Reads the half that came from the previous column, and the half that stayed. The first process received it in the previous
    /// round.
    fn load_shifted(&self, column: u64) -> Load {
        let mut parts = Vec::new();
        if column > 0 {
            let came_with =
                if column.is_multiple_of(self.shape.processes) { column - self.shape.processes } else { column };
            parts.push((self.lower_at(came_with), self.halves(column - 1).1));
        }
        if column < self.shape.columns {
            parts.push((self.upper_at(column), self.halves(column).0));
        }
        self.load_slots(parts.into_iter())
    }

    /// Where the records of a sorted column go: in the working file of process `to`, or in the output if `to` is the column's own
    /// process.
    pub fn runs(&self, pass: Pass, column: u64, to: u64) -> Vec<Run> {
        let shape = &self.shape;
        let own = column % shape.processes == to;
        let mine = (0..shape.columns_each()).map(|round| self.column(to, round));
        let mut runs: Vec<Run> = match pass {
            Pass::Deal => mine
                .map(|c| Run {
                    first: hand_begins(self.input_count(column), shape.columns, c),
                    count: self.deal_count(column, c),
                    offset: self.dealt_at(column, c),
                })
                .collect(),
            Pass::Block => mine
                .map(|k| Run {
                    first: k * shape.block(),
                    count: self.block_count(column, k),
                    offset: self.blocked_at(column, k),
                })
                .collect(),
            Pass::Shift => self.shifted_runs(column, to),
            Pass::Single | Pass::Unshift | Pass::Merge if own => vec![self.output_run(pass, column)],
            Pass::Single | Pass::Unshift | Pass::Merge => Vec::new(),
        };
        runs.retain(|run| run.count > 0);
        runs
    }

    fn shifted_runs(&self, column: u64, to: u64) -> Vec<Run> {
        let (stay, go) = self.halves(column);
        let mut runs = Vec::new();
        if column % self.shape.processes == to {
            runs.push(Run { first: 0, count: stay, offset: self.upper_at(column) });
        }
        if (column + 1) % self.shape.processes == to {
            runs.push(Run { first: stay, count: go, offset: self.lower_at(column) });
        }
        runs
    }

    /// The range of the output to which a shifted column is written (a whole column, if nothing was shifted).
    pub(crate) fn output_run(&self, pass: Pass, column: u64) -> Run {
        let (rows, half) = (self.shape.rows, self.shape.half());
        let (begin, end) = match pass {
            Pass::Single => (0, rows),
            _ => ((column * rows).saturating_sub(half), ((column + 1) * rows - half).min(self.shape.columns * rows)),
        };
        let (begin, end) = (begin.min(self.shape.records), end.min(self.shape.records));
        Run { first: 0, count: end - begin, offset: self.bytes(begin) }
    }
}

/// The sizes of a slot and of a region in bytes.
/// Where each hand's entries begin, if `count` entries are dealt to `hands` hands.
pub fn hand_begins(count: u64, hands: u64, hand: u64) -> u64 {
    hand * (count / hands) + hand.min(count % hands)
}

fn sizes(shape: Shape, format: Format) -> (u64, u64) {
    let size = format.record_bytes as u64;
    let slot = (shape.block() * size).next_multiple_of(PAGE);
    let upper = ((shape.rows - shape.half()) * size).next_multiple_of(PAGE);
    let lower = (shape.half() * size).next_multiple_of(PAGE);
    (slot, (shape.columns * slot).max(upper + lower))
}

/// Appends a piece; merges it with the last one if it is adjacent to that both in the file and in the buffer.
pub(crate) fn push_piece(pieces: &mut Vec<Piece>, piece: Piece) {
    let continues = |last: &&mut Piece| {
        last.offset + last.range.len() as u64 == piece.offset && last.range.end == piece.range.start
    };
    if let Some(last) = pieces.last_mut().filter(continues) {
        last.range.end = piece.range.end;
        return;
    }
    pieces.push(piece);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape;
    use proptest::prelude::*;

    fn layout(records: u64, columns: u64, processes: u64, record_bytes: usize) -> Layout {
        let rows = shape::rows_for(records, columns);
        let format = Format::new(record_bytes, 0, 1).unwrap();
        Layout::new(Shape::new(records, rows, columns, processes).unwrap(), format)
    }

    /// Whether no two pieces overlap, and all are inside the file.
    fn apart(mut pieces: Vec<(u64, u64)>, end: u64) -> bool {
        pieces.sort_unstable();
        pieces.iter().all(|(_, to)| *to <= end) && pieces.windows(2).all(|two| two[0].1 <= two[1].0)
    }

    proptest! {
        /// What one pass writes is what the next one reads: the same records, and no two at the same place.
        #[test]
        fn passes_fit_together(each in 1u64..6, processes in 1u64..4, records in 0u64..3000, bytes in 1usize..300) {
            prop_assume!(each * processes > 1);
            let layout = layout(records, each * processes, processes, bytes);
            for (pass, next) in [(Pass::Deal, Pass::Block), (Pass::Block, Pass::Merge), (Pass::Block, Pass::Shift), (Pass::Shift, Pass::Unshift)] {
                for process in 0..processes {
                    let mut written = Vec::new();
                    let mut count = 0;
                    for column in 0..layout.shape.columns {
                        for run in layout.runs(pass, column, process) {
                            written.push((run.offset, run.offset + layout.bytes(run.count).next_multiple_of(PAGE)));
                            count += run.count;
                        }
                    }
                    prop_assert!(apart(written.clone(), layout.working_bytes()));
                    let mut read = 0;
                    for round in 0..layout.rounds(next, process) {
                        let load = layout.load(next, layout.column(process, round));
                        read += load.held.iter().map(|held| held.count as u64).sum::<u64>();
                        prop_assert!(load.pieces.iter().all(|piece| piece.range.end as u64 <= Layout::column_bytes(layout.shape, layout.format)));
                        for piece in load.pieces {
                            let (from, to) = (piece.offset, piece.offset + piece.range.len() as u64);
                            let inside: u64 = written.iter().filter(|w| w.0 >= from && w.1 <= to).map(|w| w.1 - w.0).sum();
                            prop_assert_eq!(inside, to - from);
                        }
                    }
                    prop_assert_eq!(count, read);
                    prop_assert!(pass != Pass::Deal || process > 0 || layout.dealt.iter().sum::<u64>() == records);
                }
            }
        }

        /// The output is written exactly once, from start to end, and each record of a column goes to one place.
        #[test]
        fn every_record_goes_once(each in 1u64..6, processes in 1u64..4, records in 0u64..3000) {
            prop_assume!(each * processes > 1);
            let layout = layout(records, each * processes, processes, 10);
            let mut out = Vec::new();
            for column in 0..=layout.shape.columns {
                let run = layout.output_run(Pass::Merge, column);
                out.push((run.offset, run.offset + layout.bytes(run.count)));
                if column == layout.shape.columns { break; }
                for pass in [Pass::Deal, Pass::Block, Pass::Shift] {
                    let held: usize = layout.load(pass, column).held.iter().map(|held| held.count).sum();
                    let mut ranks: Vec<u64> = (0..processes)
                        .flat_map(|to| layout.runs(pass, column, to))
                        .flat_map(|run| (0..run.count).map(move |i| run.first + i))
                        .collect();
                    ranks.sort_unstable();
                    prop_assert_eq!(ranks, (0..held as u64).collect::<Vec<_>>());
                }
            }
            prop_assert_eq!(out.iter().map(|o| o.1 - o.0).sum::<u64>(), layout.output_bytes());
            prop_assert!(apart(out, layout.output_bytes()));
        }

        /// A single process writes the output over the working file: never where something has not been read yet.
        #[test]
        fn the_output_may_lie_on_the_working_file(columns in 2u64..9, records in 0u64..3000, bytes in 1usize..300) {
            let layout = layout(records, columns, 1, bytes);
            for pass in [Pass::Merge, Pass::Unshift] {
                // Step 8 shifts back by half a column, so the last half is written when everything has been read.
                for column in 0..columns - 1 {
                    let run = layout.output_run(pass, column);
                    let written = run.offset + layout.bytes(run.count);
                    let unread = (column + 1..=columns).filter(|later| pass == Pass::Unshift || *later < columns);
                    for later in unread {
                        let first = layout.load(pass, later).pieces.iter().map(|piece| piece.offset).min();
                        prop_assert!(first.is_none_or(|first| written <= first), "{pass:?} {column} {later}");
                    }
                }
            }
        }

        #[test]
        fn a_sort_in_one_piece(records in 0u64..100) {
            let layout = layout(records, 1, 1, 7);
            prop_assert_eq!(layout.working_bytes(), 0);
            let held: usize = layout.load(Pass::Single, 0).held.iter().map(|held| held.count).sum();
            prop_assert_eq!(held as u64, records);
        }
    }
}
