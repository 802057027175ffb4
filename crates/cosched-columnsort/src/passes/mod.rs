//! The passes as pipelines.
//!
//! In one process: read → sort → permute → write, where *permute* gathers the sorted records into blocks, each of which goes to
//! one place of the file or a few. Two paths meet in it: it is the last stage for columns and the first for blocks, so that a
//! column's memory is free as soon as its records are in blocks. In the last pass it is called *merge* and holds one column while
//! the next one arrives.
//!
//! With several processes blocks have a part for each process, and a stage that communicates follows: read → sort → permute →
//! exchange → write. In the last pass half columns are exchanged: read → sort → halve → exchange → merge → write.

mod exchange;
mod merge;
mod permute;
mod read;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cosched_pipeline::file::{BlockFile, IoOptions, WriteAt};
use cosched_pipeline::{BoxError, Buffer, Graph, Kind, Path, PathId, Port, Resource, Stage};

use crate::gather::Stream;
use crate::layout::{Layout, Pass};
use crate::peers::Peers;
use crate::plan::Plan;

/// The data that all stages of a sort share.
pub(crate) struct Context {
    pub(crate) plan: Plan,
    pub(crate) layout: Layout,
    pub(crate) files: Files,
    pub(crate) io: IoOptions,
    /// The other processes; None if this one is alone.
    pub(crate) peers: Option<Arc<dyn Peers>>,
    pub(crate) kind: Kind,
    /// The number of bytes of records that have been gathered, in all passes.
    pub(crate) done_bytes: Arc<AtomicU64>,
}

/// The open files of a sort.
pub(crate) struct Files {
    pub(crate) input: Arc<BlockFile>,
    pub(crate) working: Arc<BlockFile>,
    pub(crate) output: Arc<BlockFile>,
}

impl Context {
    fn rank(&self) -> u64 {
        self.peers.as_ref().map_or(0, |peers| peers.rank())
    }

    /// Whether a pass sends records to other processes.
    fn exchanges(&self, pass: Pass) -> bool {
        self.peers.is_some() && pass.exchanges()
    }

    /// The number of processes that get a part of each block.
    fn parts(&self, pass: Pass) -> u64 {
        if self.exchanges(pass) && pass != Pass::Merge { self.layout.shape.processes } else { 1 }
    }

    /// The size of one process's part of a block in bytes.
    fn part_bytes(&self, pass: Pass) -> u64 {
        self.plan.memory.block_bytes / self.parts(pass)
    }

    /// The records that column `column` sends to process `to`, as a stream.
    fn stream(&self, pass: Pass, column: u64, to: u64) -> Stream {
        Stream::new(self.layout.format, self.layout.runs(pass, column, to), pass.writes_output())
    }

    /// The streams that this process writes in a round: one for each column of the round, or only that of its own column.
    fn incoming(&self, pass: Pass, round: u64) -> Vec<Stream> {
        let (me, layout) = (self.rank(), &self.layout);
        match self.parts(pass) {
            1 if pass == Pass::Merge => vec![merge::output(layout, layout.column(me, round))],
            1 => vec![self.stream(pass, layout.column(me, round), me)],
            _ => (0..layout.shape.processes).map(|from| self.stream(pass, layout.column(from, round), me)).collect(),
        }
    }

    fn gathered(&self, bytes: usize) {
        self.done_bytes.fetch_add(bytes as u64, Relaxed);
    }
}

/// A tag that identifies a block: the round, and the block's index in it.
fn block_tag(round: u64, block: u64) -> u64 {
    round << 32 | block
}

fn block_of(buffer: &Buffer) -> (u64, u64) {
    (buffer.tag() >> 32, buffer.tag() & 0xffff_ffff)
}

/// Ends a path that a stage begins, unless the pipeline is stopping.
fn end(port: &mut Port, path: PathId) -> Result<(), BoxError> {
    if !port.stopping() {
        port.end(path);
    }
    Ok(())
}

/// Builds the graph of a pass.
pub(crate) fn graph(context: &Arc<Context>, pass: Pass) -> Graph {
    let mut graph = Graph::new(pass.name());
    let memory = context.plan.memory;
    let columns = Path::new("columns").buffers(memory.columns, memory.column_bytes as usize);
    let read = graph.stage(read::stage(context, pass));
    let sort = graph.stage(sort_stage(context, pass));
    let write = write_stage(context, pass);
    let blocks = |name, buffers| Path::new(name).buffers(buffers, memory.block_bytes as usize);
    let halves = |name, buffers| Path::new(name).buffers(buffers, memory.half_bytes as usize);
    match (pass, context.exchanges(pass)) {
        (Pass::Merge, false) => {
            let merge = graph.stage(merge::alone(context));
            let write = graph.stage(write);
            graph.path(columns.through([read, sort, merge]));
            graph.path(blocks("blocks", memory.blocks).through([merge, write]));
        }
        (Pass::Merge, true) => {
            let halve = graph.stage(merge::halve(context));
            let exchange = graph.stage(exchange::halves(context));
            let merge = graph.stage(merge::with_others(context));
            let write = graph.stage(write);
            graph.path(columns.through([read, sort, halve, merge]));
            // The first process merges a half one round after receiving it, so it needs one more buffer.
            graph.path(halves("halves sent", 2).through([halve, exchange]));
            graph.path(halves("halves received", 3).through([exchange, merge]));
            graph.path(blocks("blocks", memory.blocks).through([merge, write]));
        }
        (_, false) => {
            let permute = graph.stage(permute::stage(context, pass));
            let write = graph.stage(write);
            graph.path(columns.through([read, sort, permute]));
            graph.path(blocks("blocks", memory.blocks).through([permute, write]));
        }
        (_, true) => {
            let permute = graph.stage(permute::stage(context, pass));
            let exchange = graph.stage(exchange::blocks(context, pass));
            let write = graph.stage(write);
            graph.path(columns.through([read, sort, permute]));
            graph.path(blocks("blocks sent", memory.blocks / 2).through([permute, exchange]));
            graph.path(blocks("blocks received", memory.blocks / 2).through([exchange, write]));
        }
    }
    graph
}

/// The stage of steps 1, 3, 5 and 7.
fn sort_stage(context: &Arc<Context>, pass: Pass) -> Stage {
    let (shared, kind) = (context.clone(), context.kind);
    Stage::replicated("sort", context.plan.sorters, Resource::Compute, move |_| {
        let context = shared.clone();
        let plan = &context.plan;
        let mut sorter = crate::sort::Sorter::new(plan.format, plan.version, plan.sorter_threads);
        move |buffer: &mut Buffer| -> Result<cosched_pipeline::Flow, BoxError> {
            let column = context.layout.column(context.rank(), buffer.round());
            let held = context.layout.load(pass, column).held;
            let count: usize = held.iter().map(|held| held.count).sum();
            let (records, order) = buffer.storage_mut().split_at_mut(context.plan.memory.order_at as usize);
            sorter.sort(records, &held, &mut order[..count * crate::sort::ORDER_BYTES], context.layout.hands(pass));
            Ok(cosched_pipeline::Flow::Continue)
        }
    })
    .replicable(context.plan.sorters_max)
    .kind(kind)
}

/// The stage that writes blocks to their places.
fn write_stage(context: &Arc<Context>, pass: Pass) -> Stage {
    let file = if pass.writes_output() { &context.files.output } else { &context.files.working };
    let context_of_plan = context.clone();
    let part_bytes = context.part_bytes(pass);
    // The streams of the current round, which contain the places of all its blocks.
    let mut round_known = u64::MAX;
    let mut streams = Vec::new();
    WriteAt::new(file, move |buffer, places| {
        let (round, block) = block_of(buffer);
        if round != round_known {
            streams = context_of_plan.incoming(pass, round);
            round_known = round;
        }
        for (part, stream) in streams.iter().enumerate() {
            for piece in stream.pieces(block, part_bytes, part * part_bytes as usize) {
                places.extent(piece.offset, piece.range);
            }
        }
        Ok(())
    })
    .io(&context.io)
    .stage("write")
}
