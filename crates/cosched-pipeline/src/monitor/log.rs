//! A log of the changes to the scheduling of stages, and of notes for the reader of the report.

use crate::report::{Action, StageReport};

/// Actions by stage, and notes.
#[derive(Debug)]
pub(super) struct Log {
    actions: Vec<Vec<Action>>,
    counts: Vec<u64>,
    pub(super) notes: Vec<String>,
}

impl Log {
    pub(super) fn new(stages: usize) -> Log {
        Log { actions: vec![Vec::new(); stages], counts: vec![0; stages], notes: Vec::new() }
    }

    /// Logs an action on a stage. Only the first ones are kept, because an adjusting rule may act
    /// on every buffer.
    pub(super) fn action(&mut self, stage: usize, action: Action) {
        self.counts[stage] += 1;
        if self.actions[stage].len() < StageReport::ACTIONS_MAX {
            self.actions[stage].push(action);
        }
    }

    /// Whether `by` has already requested this change of the stage.
    pub(super) fn has(&self, stage: usize, by: &str, change: &str) -> bool {
        self.actions[stage].iter().any(|action| action.by == by && action.change == change)
    }

    /// Adds a note, unless it is there already.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn actions(&self, stage: usize) -> (&[Action], u64) {
        (&self.actions[stage], self.counts[stage])
    }
}
