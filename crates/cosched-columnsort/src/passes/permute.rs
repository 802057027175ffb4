//! Steps 2, 4, 6 and 8: sorted columns are copied into blocks.

use std::sync::Arc;

use cosched_pipeline::{Buffer, Port, Resource, Stage};

use super::{Context, block_tag, end};
use crate::gather::Stream;
use crate::layout::Pass;

/// The stage that is the last for columns and the first for blocks.
pub(super) fn stage(context: &Arc<Context>, pass: Pass) -> Stage {
    let context = context.clone();
    Stage::body("permute", Resource::Compute, move |port: &mut Port| {
        let [columns, blocks] = [port.paths()[0], port.paths()[1]];
        while let Some(mut column) = port.accept_from(columns) {
            let (order_at, round) = (context.plan.memory.order_at as usize, column.round());
            let streams = outgoing(&context, pass, round);
            let (records, order) = column.storage_mut().split_at(order_at);
            for block in 0..blocks_in_round(&context, pass, round) {
                let Some(mut buffer) = port.accept_from(blocks) else { return Ok(()) };
                let bytes = fill(&context, pass, &streams, block, &mut buffer, records, order);
                buffer.set_tag(block_tag(round, block));
                context.gathered(bytes);
                port.convey(buffer);
            }
            port.convey(column);
        }
        end(port, blocks)
    })
}

/// The streams that this process's column of a round sends, one for each process that gets a part.
fn outgoing(context: &Context, pass: Pass, round: u64) -> Vec<Stream> {
    let me = context.rank();
    let column = context.layout.column(me, round);
    match context.parts(pass) {
        1 => vec![context.stream(pass, column, me)],
        parts => (0..parts).map(|to| context.stream(pass, column, to)).collect(),
    }
}

/// The number of blocks of a round. If processes exchange blocks, all have as many as the one with the most.
pub(super) fn blocks_in_round(context: &Context, pass: Pass, round: u64) -> u64 {
    let part_bytes = context.part_bytes(pass);
    let parts = context.parts(pass);
    let len = match parts {
        1 => context.stream(pass, context.layout.column(context.rank(), round), context.rank()).len(),
        _ => (0..parts)
            .flat_map(|from| (0..parts).map(move |to| (from, to)))
            .map(|(from, to)| context.stream(pass, context.layout.column(from, round), to).len())
            .max()
            .unwrap_or(0),
    };
    len.div_ceil(part_bytes)
}

/// Fills a block's parts; returns the number of bytes in it.
fn fill(
    context: &Context,
    pass: Pass,
    streams: &[Stream],
    block: u64,
    buffer: &mut Buffer,
    records: &[u8],
    order: &[u8],
) -> usize {
    let part_bytes = context.part_bytes(pass) as usize;
    let (mut bytes, mut end) = (0, 0);
    let parts = buffer.storage_mut().chunks_exact_mut(part_bytes);
    for ((part, dest), stream) in parts.enumerate().zip(streams) {
        let len = stream.bytes_in(block, part_bytes as u64) as usize;
        if len > 0 {
            stream.fill(block, dest, records, order);
            bytes += len;
            end = part * part_bytes + len;
        }
    }
    buffer.set_len(end);
    bytes
}
