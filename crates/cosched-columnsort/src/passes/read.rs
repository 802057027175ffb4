//! The stage that reads columns from the input or from the working file.

use std::sync::Arc;

use cosched_pipeline::file::ReadAt;
use cosched_pipeline::{Flow, Stage};

use super::Context;
use crate::layout::Pass;

/// The first stage for columns.
pub(super) fn stage(context: &Arc<Context>, pass: Pass) -> Stage {
    let file = if pass.reads_input() { &context.files.input } else { &context.files.working };
    let (layout, me) = (context.layout.clone(), context.rank());
    let rounds = layout.rounds(pass, me);
    ReadAt::new(file, move |_, places| {
        let round = places.round();
        for piece in layout.load(pass, layout.column(me, round)).pieces {
            places.extent(piece.offset, piece.range);
        }
        Ok(if round + 1 == rounds { Flow::Last } else { Flow::Continue })
    })
    .io(&context.io)
    .stage("read")
}
