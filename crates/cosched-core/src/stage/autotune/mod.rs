//! Autotune: find the limiting resource while the pipeline runs, act, watch whether it helped, undo it if not.
//!
//! The host calls [`Autotune::window`] with what its stages did in each interval of about [`Autotune::window_ns`], and
//! does what the actions say, in their order. If the system refuses one, it says so ([`Autotune::refused`]).

mod action;
mod config;

pub use action::{Action, Reason, Refused};
pub use config::{Config, Rights, StageInfo};

use super::fixed::SLICE_US_SHORT;
use super::{Change, Resource, Setting, Window};
use alloc::vec::Vec;

/// What the rule is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It watches, and changes nothing.
    Watching,
    /// It tries something: the settings change from window to window.
    Trying,
}

/// The rule for one pipeline.
#[derive(Debug, Clone)]
pub struct Autotune {
    config: Config,
    stages: Vec<StageInfo>,
    settings: Vec<Setting>,
    /// What is on trial, and the rate before it.
    trial: Option<(Vec<Action>, f64)>,
    tried: bool,
    refused: Vec<Refused>,
    window_ns: u64,
}

impl Autotune {
    /// A pipeline whose stages are about to start, in the order of flow.
    pub fn new(config: Config, stages: &[StageInfo]) -> Autotune {
        let settings = stages.iter().map(|stage| stage.start.clone()).collect();
        let window_ns = config.window_ns_min;
        let stages = stages.to_vec();
        Autotune { config, stages, settings, trial: None, tried: false, refused: Vec::new(), window_ns }
    }

    /// How long the next window should be, ns.
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }

    /// What it is doing.
    pub fn state(&self) -> State {
        if self.trial.is_some() { State::Trying } else { State::Watching }
    }

    /// The settings that hold now, by stage.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// What it would have done, had it been allowed to.
    pub fn refusals(&self) -> &[Refused] {
        &self.refused
    }

    /// Takes a window; answers with what to change now, in this order.
    pub fn window(&mut self, window: &Window) -> Vec<Action> {
        if let Some((actions, before)) = self.trial.take() {
            let helped = window.rate() > before * (1.0 + f64::from(self.config.gain_ppm_min) / 1e6);
            return if helped { Vec::new() } else { self.undo(&actions) };
        }
        if core::mem::replace(&mut self.tried, true) {
            return Vec::new();
        }
        let change = Change::SliceUs(SLICE_US_SHORT);
        let blocks = |(_, info): &(usize, &StageInfo)| info.own_threads && info.resource != Resource::Compute;
        let action = |(stage, _)| Action { stage, change: change.clone(), why: Reason::BlocksAndWaitsForCpu };
        let actions: Vec<Action> = self.stages.iter().enumerate().filter(blocks).map(action).collect();
        if !actions.is_empty() {
            actions.iter().for_each(|action| self.settings[action.stage].apply(&action.change));
            self.trial = Some((actions.clone(), window.rate()));
        }
        actions
    }

    fn undo(&mut self, actions: &[Action]) -> Vec<Action> {
        let back = |action: &Action| {
            let change = self.stages[action.stage].start.inverse(&action.change);
            self.settings[action.stage].apply(&change);
            Action { stage: action.stage, change, why: Reason::NoGain { gain_ppm: 0 } }
        };
        actions.iter().map(back).collect()
    }

    /// The system refused this change; it is never asked for again. Answers with what has to be taken back for that.
    pub fn refused(&mut self, stage: usize, change: &Change) -> Vec<Action> {
        let Some((actions, _)) = self.trial.take() else { return Vec::new() };
        let (failed, rest): (Vec<Action>, Vec<Action>) =
            actions.into_iter().partition(|action| action.stage == stage && action.change == *change);
        for action in failed {
            self.settings[stage] = self.stages[stage].start.clone();
            self.refused.push(Refused { stage, change: action.change, why: action.why });
        }
        self.undo(&rest)
    }

    /// The pipeline is about to end: what is on trial is taken back.
    pub fn finish(&mut self) -> Vec<Action> {
        self.trial.take().map_or_else(Vec::new, |(actions, _)| self.undo(&actions))
    }
}
