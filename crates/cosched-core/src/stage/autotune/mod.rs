//! Autotune: find the limiting resource while the pipeline runs, make a change, measure whether it helped, undo it if not.
//!
//! Problem. Which setting helps depends on what limits and on which other programs use the CPUs; neither is known beforehand, both
//! change, and a wrong setting costs far more than a right one gains: nice up for I/O gained 5 % in Roysden 2004 and costs
//! 30 % beside a competing job on today's Linux. So the rule must need strong evidence.
//!
//! Rule. Before the first window, stages that compute get the incarnations that they may have, up to one for each CPU: an
//! incarnation without work costs nothing, and a stage that limits alone costs more than all priorities gain ([`Autotune::begin`]).
//! Then the rule *watches* windows. From a few of them it finds the limit (`limiting`) and whether others use the CPUs. Where
//! nothing can be gained, because a device or a stage that cannot be divided works all the time, it *rests*: it changes
//! nothing, and uses longer windows. Otherwise the first kind of change whose condition holds (`candidate.rs`) is on *trial*: new
//! and old setting in turn, in short windows, until the gain is distinct from the noise (`trial.rs`). It is kept, or
//! undone. A kind that did not help rests for `rest_ns_min` in that case of limiting resource and company, then twice as long each
//! time. A kept change is doubted when another resource limits, when others come or go, and after the same rests: then the
//! old setting is on trial, and wins ties. A change that yields to others is undone in the first window that shows some.
//!
//! Bounds. All trials together may lose `loss_ppm_max` of the time that has passed (and `credit_ns`): a trial begins only if its
//! likely loss fits. A pipeline whose case does not change has each kind tried at most 2 + log2(max / min) + t / max times.
//!
//! The host calls [`Autotune::begin`] once, then [`Autotune::window`] with what its stages did in each interval of about [`Autotune::window_ns`],
//! carries out the actions in their order, and reports what the system refused ([`Autotune::refused`]) before the next window.
//! Source of the idea: Roysden 2004, sections 1 and 5 ("experimentation may be the best way to improve pipeline performance").

mod action;
mod candidate;
mod config;
mod memory;
mod noise;
mod situation;
#[cfg(test)]
mod tests;
mod trial;

pub use action::{Action, Reason};
pub use config::{Config, Rights, StageInfo};

use super::{Change, Resource, Setting, Window};
use alloc::vec::Vec;
use candidate::Kind;
use memory::{Bars, Failures, Kept, Ledger};
use noise::Noise;
use situation::{Case, Situation, others_are_active};
use trial::{Trial, Verdict};

/// The number of windows that are evaluated together, and that must pass between two trials.
const WATCHED: usize = 3;

/// Windows are made longer if they differ by more than this.
const NOISE_WANTED: f64 = 0.02;

/// By what factor at most.
const LONGER_MOST: f64 = 2.0;

/// The factor by which the windows of a resting rule are longer.
const REST_FACTOR: u64 = 4;

/// The part that a stage that limits alone may lose with one incarnation, where two could work.
const ALONE_LOSES: f64 = 0.5;

/// The number of rounds that drain after a change, if the number of buffers is unknown.
const DRAINED: u32 = 8;

/// The rule's present activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It watches, and changes nothing.
    Watching,
    /// It tries a change: the settings alternate between windows.
    Trying,
    /// Nothing can be gained, or everything failed a short time ago.
    Resting,
}

/// What is on trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// A change.
    New(Kind),
    /// Being without a change that was kept, by its index in `kept`.
    Without(usize),
}

/// A change that was requested after the last window, and the value before it.
#[derive(Debug, Clone)]
struct Asked {
    action: Action,
    before: Change,
}

/// The rule for one pipeline.
#[derive(Debug, Clone)]
pub struct Autotune {
    config: Config,
    stages: Vec<StageInfo>,
    settings: Vec<Setting>,
    /// The last windows under these settings.
    watched: Vec<Window>,
    case: Option<Case>,
    noise: Noise,
    trial: Option<(Subject, Trial)>,
    kept: Vec<Kept>,
    failures: Failures,
    bars: Bars,
    ledger: Ledger,
    refusals: Vec<Action>,
    asked: Vec<Asked>,
    /// The refused part of the last request.
    part_refused: Option<(usize, Change)>,
    rests: bool,
    now_ns: u64,
    window_ns: u64,
    settle_ns: u64,
}

impl Autotune {
    /// The rule for a pipeline whose stages, given in the order of flow, are about to start.
    pub fn new(config: Config, stages: &[StageInfo]) -> Autotune {
        Autotune {
            settings: stages.iter().map(|stage| stage.start.clone()).collect(),
            stages: stages.to_vec(),
            watched: Vec::new(),
            case: None,
            noise: Noise::default(),
            trial: None,
            kept: Vec::new(),
            failures: Failures::default(),
            bars: Bars::new(config.rights),
            ledger: Ledger::default(),
            refusals: Vec::new(),
            asked: Vec::new(),
            part_refused: None,
            rests: false,
            now_ns: 0,
            window_ns: config.window_ns_min,
            settle_ns: config.window_ns_min,
            config,
        }
    }

    /// The changes to make before the first window, on this number of CPUs. They are doubted like kept changes, as soon as the ledger
    /// permits a trial without them to be as bad as `ALONE_LOSES`.
    pub fn begin(&mut self, cpus: u32) -> Vec<Action> {
        self.asked.clear();
        let mut actions = Vec::new();
        for stage in 0..self.stages.len() {
            let StageInfo { resource, replicable_to, ref start, .. } = self.stages[stage];
            let now = start.incarnations.unwrap_or(1);
            let most = replicable_to.min(cpus);
            if resource != Resource::Compute || most <= now {
                continue;
            }
            let (forward, back) = ([(stage, Change::Incarnations(most))], [(stage, Change::Incarnations(now))]);
            actions.extend(self.change(&forward, Reason::MayLimitAlone));
            self.kept.push(Kept {
                kind: Kind::Replicate(stage),
                forward: forward.into(),
                back: back.into(),
                gain: ALONE_LOSES,
                doubt_ns: 0,
                rest_ns: self.config.rest_ns_min,
                proven: Vec::new(),
            });
        }
        actions
    }

    /// The length that the next window should have, ns.
    pub fn window_ns(&self) -> u64 {
        match &self.trial {
            Some((_, trial)) if trial.settles() => self.settle_ns,
            None if self.rests => self.window_ns.saturating_mul(REST_FACTOR).min(self.config.window_ns_max),
            _ => self.window_ns,
        }
    }

    /// The present activity.
    pub fn state(&self) -> State {
        match (&self.trial, self.rests) {
            (Some(_), _) => State::Trying,
            (None, true) => State::Resting,
            (None, false) => State::Watching,
        }
    }

    /// The settings in force now, by stage.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The changes that it would have made without refusals.
    pub fn refusals(&self) -> &[Action] {
        &self.refusals
    }

    /// Takes a window; returns the changes to make now, in this order. A window that is empty, or has another number of stages,
    /// is not evaluated.
    pub fn window(&mut self, window: &Window) -> Vec<Action> {
        self.asked.clear();
        if window.length_ns == 0 || window.stages.len() != self.stages.len() {
            return Vec::new();
        }
        self.now_ns = self.now_ns.saturating_add(window.length_ns);
        self.pace(window);
        if let Some(refused) = self.part_refused.take() {
            return self.without_the_rest(&refused);
        }
        match self.trial.take() {
            Some((subject, trial)) => self.go_on(subject, trial, window),
            None => self.watch(window),
        }
    }

    /// The system refused a change of the last answer. It is never requested again; changes that belong to it are undone in the
    /// answer to the next window.
    pub fn refused(&mut self, stage: usize, change: &Change) {
        let Some(place) =
            self.asked.iter().position(|asked| asked.action.stage == stage && asked.action.change == *change)
        else {
            return;
        };
        let Asked { action, before } = self.asked.remove(place);
        self.settings[stage].apply(&before);
        self.bars.add(stage, change, &self.settings[stage]);
        self.note(action);
        self.part_refused = Some((stage, change.clone()));
    }

    /// The pipeline is about to end: a change on trial is undone.
    pub fn finish(&mut self) -> Vec<Action> {
        self.asked.clear();
        let trial = self.trial.take().map(|(_, trial)| trial);
        trial.map_or_else(Vec::new, |trial| self.change(&trial.back, Reason::CutShort))
    }

    /// Chooses windows long enough for some rounds; the first one after a change is as long as the buffers take to drain.
    fn pace(&mut self, window: &Window) {
        let rate = window.rate();
        if rate <= 0.0 {
            return;
        }
        let time_of = |rounds: f64| (rounds / rate * 1e9) as u64;
        let Config { window_ns_min, window_ns_max, window_rounds, .. } = self.config;
        // Longer windows are less noisy, and have more time to show a lasting effect.
        let of_trial = self.trial.as_ref().and_then(|(_, trial)| trial.spread()).unwrap_or(0.0);
        let sigma = self.noise.sigma().unwrap_or(0.0).max(of_trial);
        let noisy = (sigma / NOISE_WANTED).clamp(1.0, LONGER_MOST);
        let quiet_ns = time_of(f64::from(window_rounds)).max(window_ns_min);
        self.window_ns = ((quiet_ns as f64 * noisy) as u64).clamp(window_ns_min, window_ns_max.max(window_ns_min));
        let buffers = window.stages.iter().map(|stage| stage.queue_in_max).max().unwrap_or(0);
        let drained = if buffers == 0 { DRAINED } else { buffers };
        self.settle_ns = time_of(f64::from(drained)).clamp(self.window_ns / 8, self.window_ns);
    }

    fn watch(&mut self, window: &Window) -> Vec<Action> {
        self.noise.add(window.rate());
        if self.watched.len() == WATCHED {
            self.watched.remove(0);
        }
        self.watched.push(window.clone());
        if others_are_active(window, self.case) {
            let actions = self.give_up_what_gives_way();
            if !actions.is_empty() {
                return actions;
            }
        }
        if self.watched.len() < WATCHED || self.noise.sigma().is_none() {
            return Vec::new();
        }
        let Some(now) = Situation::new(&self.watched, self.case) else { return Vec::new() };
        self.case = Some(now.case);
        let begun = self.doubt(&now, window).or_else(|| self.try_something(&now, window));
        self.rests = begun.is_none();
        begun.unwrap_or_default()
    }

    /// Others use the CPUs now: undoes what yields to them, without a trial.
    fn give_up_what_gives_way(&mut self) -> Vec<Action> {
        let kept = core::mem::take(&mut self.kept);
        let (gone, kept): (Vec<Kept>, Vec<Kept>) = kept.into_iter().partition(|kept| kept.kind.suffers_from_others());
        self.kept = kept;
        gone.iter().rev().flat_map(|gone| self.change(&gone.back, Reason::OthersCame)).collect()
    }

    /// Puts a change on trial that was kept in another case, or a long time ago; the last of them first.
    fn doubt(&mut self, now: &Situation, window: &Window) -> Option<Vec<Action>> {
        let is_due = |kept: &Kept| !kept.proven.contains(&now.case) || self.now_ns >= kept.doubt_ns;
        let is_built_upon = |place: usize| self.kept[place + 1..].iter().any(|kept| kept.builds_on(&self.kept[place]));
        let place = (0..self.kept.len()).rev().find(|place| is_due(&self.kept[*place]) && !is_built_upon(*place))?;
        let kept = &self.kept[place];
        if !self.may_lose(kept.gain.max(kept.kind.risk())) {
            return None;
        }
        let trial = Trial::new(kept.back.clone(), kept.forward.clone(), true, window.rate());
        Some(self.try_out(Subject::Without(place), trial, Reason::Doubted))
    }

    fn try_something(&mut self, now: &Situation, window: &Window) -> Option<Vec<Action>> {
        for kind in Kind::for_situation(now, &self.stages, &self.config) {
            if self.failures.rests(kind, now.case, self.now_ns) || self.is_covered(kind) {
                continue;
            }
            let mut forward = kind.changes(now, &self.stages, &self.config);
            forward.retain(|(stage, change)| !self.settings[*stage].has(change));
            if forward.is_empty() || self.is_barred(kind, &forward) || !self.may_lose(kind.risk()) {
                continue;
            }
            let back = forward.iter().map(|(stage, change)| (*stage, self.settings[*stage].inverse(change))).collect();
            let trial = Trial::new(forward, back, false, window.rate());
            return Some(self.try_out(Subject::New(kind), trial, kind.why()));
        }
        None
    }

    /// Whether a kept change has the same purpose.
    fn is_covered(&self, kind: Kind) -> bool {
        self.kept.iter().any(|kept| kept.kind.stands_in_for(kind))
    }

    /// Whether a part of it must not be requested; then records what would have been done.
    fn is_barred(&mut self, kind: Kind, forward: &[(usize, Change)]) -> bool {
        let barred = self.bars.lacks(kind.needs())
            || forward.iter().any(|(stage, change)| self.bars.has(*stage, change, &self.settings[*stage]));
        if barred {
            for (stage, change) in forward {
                self.note(Action { stage: *stage, change: change.clone(), why: kind.why() });
            }
        }
        barred
    }

    fn note(&mut self, refused: Action) {
        let same = |other: &Action| other.stage == refused.stage && other.change == refused.change;
        if !self.refusals.iter().any(same) {
            self.refusals.push(refused);
        }
    }

    /// Whether a trial that loses this part of the rounds in its windows fits into the permitted loss.
    fn may_lose(&self, part: f64) -> bool {
        let each_ns = (self.window_ns + self.settle_ns) as f64;
        let likely_ns = each_ns * f64::from(self.config.pairs_min) * part;
        self.ledger.allows(likely_ns, self.now_ns, &self.config)
    }

    fn try_out(&mut self, subject: Subject, trial: Trial, why: Reason) -> Vec<Action> {
        let actions = self.change(&trial.forward, why);
        self.trial = Some((subject, trial));
        actions
    }

    /// A window of a trial has ended.
    fn go_on(&mut self, subject: Subject, mut trial: Trial, window: &Window) -> Vec<Action> {
        if self.others_changed(subject, &trial, window) {
            self.ledger.spend(trial.lost_ns());
            let why = if trial.has_new() { Reason::OthersCame } else { Reason::CutShort };
            return self.change(&trial.back, why);
        }
        let verdict = trial.window(window.rate(), window.length_ns, self.noise.sigma(), &self.config);
        let actions = match (verdict, subject) {
            (Verdict::GoOn, _) => Vec::new(),
            (Verdict::ShowOld, _) => self.change(&trial.back, Reason::Comparing),
            (Verdict::ShowNew, _) => self.change(&trial.forward, Reason::ComparingAgain),
            (Verdict::TakeNew { gain }, Subject::New(kind)) => return self.keep(kind, trial, gain),
            (Verdict::TakeNew { gain }, Subject::Without(place)) => return self.drop_kept(place, trial, gain),
            (Verdict::TakeOld { gain, harmed }, Subject::New(kind)) => return self.reject(kind, trial, gain, harmed),
            (Verdict::TakeOld { gain, .. }, Subject::Without(place)) => return self.prove(place, trial, gain),
        };
        self.trial = Some((subject, trial));
        actions
    }

    /// Whether others came or went while the old setting was in force, or came while one was in force that yields to them.
    fn others_changed(&self, subject: Subject, trial: &Trial, window: &Window) -> bool {
        let others = others_are_active(window, self.case);
        let gives_way = matches!(subject, Subject::New(kind) if kind.suffers_from_others());
        let differs = self.case.is_some_and(|case| case.others != others);
        if trial.has_new() { gives_way && others } else { differs && !trial.settles() }
    }

    fn keep(&mut self, kind: Kind, trial: Trial, gain: f64) -> Vec<Action> {
        self.ledger.spend(trial.lost_ns());
        let rest_ns = self.config.rest_ns_min;
        let doubt_ns = self.now_ns.saturating_add(rest_ns);
        let proven = self.case.into_iter().collect();
        let actions = self.change(&trial.forward, Reason::Helped { gain_ppm: ppm(gain) });
        self.kept.push(Kept { kind, forward: trial.forward, back: trial.back, gain, doubt_ns, rest_ns, proven });
        actions
    }

    fn reject(&mut self, kind: Kind, trial: Trial, gain: f64, harmed: bool) -> Vec<Action> {
        self.ledger.spend(trial.lost_ns());
        if let Some(case) = self.case {
            self.failures.add(kind, case, self.now_ns, &self.config);
        }
        let gain_ppm = ppm(gain);
        self.change(&trial.back, if harmed { Reason::Harmed { gain_ppm } } else { Reason::NoGain { gain_ppm } })
    }

    /// It is as good without the change: it is undone, and rests as if it had failed.
    fn drop_kept(&mut self, place: usize, trial: Trial, gain: f64) -> Vec<Action> {
        self.ledger.spend(trial.lost_ns());
        let kept = self.kept.remove(place);
        if let Some(case) = self.case {
            self.failures.add(kept.kind, case, self.now_ns, &self.config);
        }
        self.change(&trial.forward, Reason::NoGain { gain_ppm: ppm(-gain) })
    }

    /// It is worse without the change: it stays.
    fn prove(&mut self, place: usize, trial: Trial, gain: f64) -> Vec<Action> {
        self.ledger.spend(trial.lost_ns());
        let kept = &mut self.kept[place];
        kept.gain = (-gain).max(0.0);
        kept.rest_ns = kept.rest_ns.saturating_mul(2).min(self.config.rest_ns_max);
        kept.doubt_ns = self.now_ns.saturating_add(kept.rest_ns);
        kept.proven.extend(self.case.filter(|case| !kept.proven.contains(case)));
        self.change(&trial.back, Reason::Helped { gain_ppm: ppm(-gain) })
    }

    /// A part of the requested changes was refused: the rest of them is undone, too.
    fn without_the_rest(&mut self, refused: &(usize, Change)) -> Vec<Action> {
        if let Some((subject, trial)) = self.trial.take() {
            self.ledger.spend(trial.lost_ns());
            if let (Subject::New(kind), Some(case)) = (subject, self.case) {
                self.failures.add(kind, case, self.now_ns, &self.config);
            }
            return self.change(&trial.back, Reason::PartRefused);
        }
        let has_it = |kept: &Kept| kept.forward.contains(refused);
        let Some(place) = self.kept.iter().rposition(has_it) else { return Vec::new() };
        let gone = self.kept.remove(place);
        self.change(&gone.back, Reason::PartRefused)
    }

    /// Requests these changes, except for those without effect and those that must not be requested.
    fn change(&mut self, changes: &[(usize, Change)], why: Reason) -> Vec<Action> {
        let mut actions = Vec::new();
        for (stage, change) in changes {
            let (stage, change) = (*stage, change.clone());
            if self.settings[stage].has(&change) || self.bars.has(stage, &change, &self.settings[stage]) {
                continue;
            }
            let before = self.settings[stage].inverse(&change);
            self.settings[stage].apply(&change);
            let action = Action { stage, change, why };
            self.asked.push(Asked { action: action.clone(), before });
            actions.push(action);
        }
        if !actions.is_empty() {
            self.watched.clear();
            self.noise.cut();
        }
        actions
    }
}

fn ppm(part: f64) -> i32 {
    (part * 1e6).clamp(-1e9, 1e9) as i32
}
