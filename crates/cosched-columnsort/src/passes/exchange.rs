//! Exchanges between processes: each of them gets a part of each block; in the last pass, half columns go to the
//! next one.

use std::sync::Arc;

use cosched_pipeline::{BoxError, Port, Resource, Stage};

use super::permute::blocks_in_round;
use super::{Context, block_of, block_tag, end};
use crate::layout::Pass;
use crate::peers::Parts;

/// Exchanges blocks: accepts blocks of this process, conveys blocks with parts from all processes.
pub(super) fn blocks(context: &Arc<Context>, pass: Pass) -> Stage {
    let context = context.clone();
    Stage::body("exchange", Resource::Communicate, move |port: &mut Port| {
        let [sent, received] = [port.paths()[0], port.paths()[1]];
        let peers = context.peers.clone().expect("only sorts with processes have this stage");
        let part_bytes = context.part_bytes(pass);
        let parts = |bytes: Vec<u64>| -> Parts {
            bytes.into_iter().enumerate().map(|(i, len)| (i * part_bytes as usize, len as usize)).collect()
        };
        for round in 0..context.layout.rounds(pass, context.rank()) {
            let streams = context.incoming(pass, round);
            let outgoing: Vec<_> = (0..peers.size())
                .map(|to| context.stream(pass, context.layout.column(peers.rank(), round), to))
                .collect();
            for block in 0..blocks_in_round(&context, pass, round) {
                let Some(from_own) = port.accept_from(sent) else { return Ok(()) };
                let Some(mut from_all) = port.accept_from(received) else { return Ok(()) };
                debug_assert_eq!(block_of(&from_own), (round, block));
                let sends = parts(outgoing.iter().map(|stream| stream.bytes_in(block, part_bytes)).collect());
                let comes = parts(streams.iter().map(|stream| stream.bytes_in(block, part_bytes)).collect());
                peers.all_to_all(from_own.bytes(), &sends, from_all.storage_mut(), &comes)?;
                from_all.set_len(comes.iter().filter(|part| part.1 > 0).map(|part| part.0 + part.1).max().unwrap_or(0));
                from_all.set_tag(block_tag(round, block));
                port.convey(from_own);
                port.convey(from_all);
            }
        }
        finish(port, sent, received)
    })
}

/// Step 6 in the pass that joins steps 5 to 8: the half that belongs to the next column is sent to the next process.
pub(super) fn halves(context: &Arc<Context>) -> Stage {
    let context = context.clone();
    Stage::body("exchange", Resource::Communicate, move |port: &mut Port| {
        let [sent, received] = [port.paths()[0], port.paths()[1]];
        let peers = context.peers.clone().expect("only sorts with processes have this stage");
        let (me, all) = (peers.rank(), peers.size());
        let (before, behind) = ((me + all - 1) % all, (me + 1) % all);
        for round in 0..context.layout.rounds(Pass::Merge, me) {
            let Some(mine) = port.accept_from(sent) else { return Ok(()) };
            let Some(mut theirs) = port.accept_from(received) else { return Ok(()) };
            let comes = context.layout.halves(context.layout.column(before, round)).1 as usize;
            theirs.set_len(comes * context.layout.format.record_bytes);
            peers.send_receive(mine.bytes(), behind, theirs.bytes_mut(), before)?;
            port.convey(mine);
            port.convey(theirs);
        }
        finish(port, sent, received)
    })
}

/// When the sent buffers have ended, ends the path of the received ones too.
fn finish(port: &mut Port, sent: cosched_pipeline::PathId, received: cosched_pipeline::PathId) -> Result<(), BoxError> {
    while let Some(caboose) = port.accept_from(sent) {
        port.convey(caboose);
    }
    end(port, received)
}
