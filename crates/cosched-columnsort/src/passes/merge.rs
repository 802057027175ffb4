//! Steps 5 to 8 in one pass. Step 5 has been done when a column arrives here: it is sorted. Steps 6 to 8 merge its first half with the
//! last half of the previous column, and write the result to their common place in the output.

use std::sync::Arc;

use cosched_pipeline::{BoxError, Buffer, PathId, Port, Resource, Stage};

use super::{Context, block_tag, end};
use crate::gather::Stream;
use crate::layout::{Layout, Pass};
use crate::merge::{Merging, Sorted};

/// The output of a shifted column.
pub(super) fn output(layout: &Layout, column: u64) -> Stream {
    let run = layout.output_run(Pass::Merge, column);
    let runs = if run.count > 0 { vec![run] } else { Vec::new() };
    Stream::new(layout.format, runs, true)
}

/// A column in a buffer, split into records and order.
struct Column<'a> {
    records: &'a [u8],
    order: &'a [u8],
    first: usize,
    last: usize,
}

impl<'a> Column<'a> {
    fn of(context: &Context, buffer: &'a mut Buffer) -> Column<'a> {
        let column = context.layout.column(context.rank(), buffer.round());
        let (first, last) = context.layout.halves(column);
        let (records, order) = buffer.storage_mut().split_at(context.plan.memory.order_at as usize);
        Column { records, order, first: first as usize, last: last as usize }
    }

    fn first_half(&self, context: &Context) -> Sorted<'a> {
        Sorted::ordered(&context.layout.format, self.records, self.order, 0, self.first)
    }

    fn last_half(&self, context: &Context) -> Sorted<'a> {
        Sorted::ordered(&context.layout.format, self.records, self.order, self.first, self.first + self.last)
    }
}

/// Writes a shifted column's records to blocks. False if the pipeline is stopping.
fn write(context: &Context, port: &mut Port, blocks: PathId, round: u64, from: Sorted, and: Sorted) -> bool {
    let layout = &context.layout;
    let stream = output(layout, layout.column(context.rank(), round));
    let mut merging = Merging::new(layout.format, from, and);
    let block_bytes = context.plan.memory.block_bytes;
    for block in 0..stream.len().div_ceil(block_bytes) {
        let Some(mut buffer) = port.accept_from(blocks) else { return false };
        let len = stream.bytes_in(block, block_bytes) as usize;
        // The first block begins at the same offset within a page as the output range does.
        let skip = if block == 0 { stream.begins_at() as usize } else { 0 };
        buffer.set_len(len);
        let filled = merging.fill(&mut buffer.bytes_mut()[skip..]);
        debug_assert_eq!(filled, len - skip);
        buffer.set_tag(block_tag(round, block));
        context.gathered(len - skip);
        port.convey(buffer);
    }
    true
}

/// With a single process the previous column is the one that arrived before.
pub(super) fn alone(context: &Arc<Context>) -> Stage {
    let context = context.clone();
    Stage::body("merge", Resource::Compute, move |port: &mut Port| {
        let [columns, blocks] = [port.paths()[0], port.paths()[1]];
        let format = context.layout.format;
        let mut before: Option<Buffer> = None;
        let mut round = 0;
        while let Some(mut now) = port.accept_from(columns) {
            let last = match &mut before {
                Some(before) => Column::of(&context, before).last_half(&context),
                None => Sorted::empty(&format),
            };
            let first = Column::of(&context, &mut now).first_half(&context);
            if !write(&context, port, blocks, round, last, first) {
                return Ok(());
            }
            before.replace(now).into_iter().for_each(|done| port.convey(done));
            round += 1;
        }
        if port.stopping() {
            return Ok(());
        }
        if let Some(mut last) = before {
            let half = Column::of(&context, &mut last).last_half(&context);
            if !write(&context, port, blocks, round, half, Sorted::empty(&format)) {
                return Ok(());
            }
            port.convey(last);
        }
        port.end(blocks);
        Ok::<(), BoxError>(())
    })
}

/// Copies the half of each column that goes to the next process.
pub(super) fn halve(context: &Arc<Context>) -> Stage {
    let context = context.clone();
    Stage::body("halve", Resource::Compute, move |port: &mut Port| {
        let [columns, halves] = [port.paths()[0], port.paths()[1]];
        let size = context.layout.format.record_bytes;
        while let Some(mut column) = port.accept_from(columns) {
            let Some(mut half) = port.accept_from(halves) else { return Ok(()) };
            let from = Column::of(&context, &mut column);
            half.set_len(from.last * size);
            let none = Sorted::empty(&context.layout.format);
            Merging::new(context.layout.format, from.last_half(&context), none).fill(half.bytes_mut());
            port.convey(half);
            port.convey(column);
        }
        end(port, halves)
    })
}

/// With several processes the previous column belongs to another process. The first process receives its one in the previous round;
/// and after its last round it writes the last half of all.
pub(super) fn with_others(context: &Arc<Context>) -> Stage {
    let context = context.clone();
    Stage::body("merge", Resource::Compute, move |port: &mut Port| {
        let [columns, halves, blocks] = [port.paths()[0], port.paths()[1], port.paths()[2]];
        let format = context.layout.format;
        let late = context.rank() == 0;
        let mut round = 0;
        while let Some(mut column) = port.accept_from(columns) {
            let mut half = None;
            if !late || round > 0 {
                half = port.accept_from(halves);
                if half.is_none() {
                    return Ok(());
                }
            }
            let before = Sorted::side_by_side(&format, half.as_ref().map_or(&[], |half| half.bytes()));
            let first = Column::of(&context, &mut column).first_half(&context);
            if !write(&context, port, blocks, round, before, first) {
                return Ok(());
            }
            half.into_iter().for_each(|half| port.convey(half));
            port.convey(column);
            round += 1;
        }
        while let Some(half) = port.accept_from(halves) {
            if late && half.carries_block() {
                let before = Sorted::side_by_side(&format, half.bytes());
                if !write(&context, port, blocks, round, before, Sorted::empty(&format)) {
                    return Ok(());
                }
            }
            port.convey(half);
        }
        end(port, blocks)
    })
}
