//! Boost, live: which job of a node gets the CPUs now, and for how long (PB and DCS).
//!
//! Problem: a waiting message shows which job can use a CPU well, but a job whose messages always wait would keep the CPUs
//! for ever, and a boost that changes every millisecond costs more than it gains.
//!
//! Rule. *Which job*: the candidate of Zhang et al. 2000, §2.4.4 ([`boost_candidate`]), over jobs instead of processes. *How
//! long*: a boosted job that still is a candidate keeps the CPUs at least `hold_ns_min`, and at most `quantum_ns` while others are
//! candidates (20 ms is the quantum of the paper's highest level) that are not ahead of it. *Fair over a second*, as the paper's scheduler was
//! (§2.1: all processes are raised once a second): a candidate's part of the CPU time that the table's jobs use is its
//! share over the shares of all candidates. The part that it did not get is its lag, which decays with `fair_over_ns`; a job that
//! is not a candidate accumulates none. The tolerance of a job is `tolerance_ppm` of its part of `fair_over_ns`. A candidate
//! whose lag is above its tolerance is boosted before all others until it has caught up; a job that is ahead by more than
//! its tolerance is not boosted before one that is not, nor ends the quantum of one that is not: after each quantum of a job with
//! a large share it would be held for a moment that it is not owed. All lags are forgotten when the boosted job uses no CPU
//! time for some quanta. DCS is the same machine, but there the arrival of a message chooses
//! ([`Booster::arrived`]), and the periodic call only ends a boost that must end and helps jobs that are behind.
//!
//! Bound. When the boosted job gets the CPUs: a job that is always a candidate beside n − 1 others, with the part f of
//! the shares, gets at least (1 − t) · f of them over a long time, t its tolerance, and waits for them at most
//! (t · `fair_over_ns` + n · `quantum_ns`) / f + t² / (2 − 2t) · `fair_over_ns` ([`BoostConfig::starvation_ns`]): t · `fair_over_ns`
//! / f until what it was ahead is used up and it is behind, and the rest as its lag decays meanwhile. `tests/properties_boost.rs`.
//!
//! Units: ns; millionths (ppm); shares are relative. Only [`Booster::new`] allocates.

use super::dynamic::{Endpoint, Heuristic, OnArrival, boost_candidate, interrupts};
use crate::id::JobId;
use crate::reason::Reason;
use crate::time::Time;
use alloc::vec::Vec;

const PPM: i128 = 1_000_000;

/// The largest use of CPU time between two calls: 1000 CPUs for an hour. A counter that jumps further is wrong, and lags stay far
/// from overflow.
const USED_NS_MAX: u64 = 1000 * 3600 * 1_000_000_000;

/// After this number of quanta in which the boosted job used no CPU time, no job is owed any. Its CPU time may be known only each 50 ms.
const IDLE_QUANTA: u64 = 5;

/// The parameters of boosting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoostConfig {
    /// What chooses: the periodic call (PB), or the arrival of a message (DCS). With `None`, only jobs that are behind are boosted.
    pub on_arrival: OnArrival,
    /// The order of the periodic search.
    pub heuristic: Heuristic,
    /// A boosted job that still is a candidate keeps the CPUs for at least this time.
    pub hold_ns_min: u64,
    /// And for at most this time while others are candidates.
    pub quantum_ns: u64,
    /// The time over which CPU time is divided by shares.
    pub fair_over_ns: u64,
    /// How far a job may be from its part, in millionths of it; `None`: no fairness.
    pub tolerance_ppm: Option<u32>,
    /// The maximum number of jobs in a table; jobs beyond it are never boosted.
    pub jobs_max: usize,
}

impl Default for BoostConfig {
    fn default() -> BoostConfig {
        BoostConfig {
            on_arrival: OnArrival::Periodic,
            heuristic: Heuristic::Paper,
            hold_ns_min: 2_000_000,
            quantum_ns: 20_000_000,
            fair_over_ns: 1_000_000_000,
            tolerance_ppm: Some(200_000),
            jobs_max: 1024,
        }
    }
}

impl BoostConfig {
    /// The longest time for which a job that is always a candidate can be without the CPUs, among `jobs` jobs in total, with
    /// `share` of the `total` of their shares; `None` if it is unbounded.
    pub fn starvation_ns(&self, jobs: u64, share: u32, total: u32) -> Option<u64> {
        let (fair, ppm) = (u128::from(self.fair_over_ns), u128::from(self.tolerance_ppm?));
        let unit = PPM as u128;
        let rest = unit.checked_sub(ppm).filter(|rest| *rest > 0)?;
        let quanta = u128::from(jobs) * u128::from(self.quantum_ns.max(self.hold_ns_min));
        let caught_up = (fair * ppm / unit + quanta) * u128::from(total) / u128::from(share.max(1));
        // ln(1/(1 - t)) - t, from above: meanwhile its lag decays.
        let decay = fair * ppm * ppm / (2 * unit * rest);
        u64::try_from(caught_up + decay).ok()
    }
}

/// The node's view of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoostView {
    /// Its identifier; its position in the table may change.
    pub job: JobId,
    /// The most urgent state of its processes: served before computing, waiting, blocked.
    pub endpoint: Endpoint,
    /// Its share of the CPU time.
    pub share: u32,
    /// Its CPU time on this node, counted from any starting point.
    pub cpu_ns: u64,
}

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boost {
    /// The index in the table of the only job that is boosted from now on; `None`: no job is.
    pub candidate: Option<usize>,
    /// The reason.
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug)]
struct Account {
    job: JobId,
    cpu_ns: u64,
    /// CPU time that it should have had and did not get; negative if it is ahead.
    lag_ns: i64,
    tolerance_ns: i64,
    /// As of the last call.
    candidate: bool,
    share: u32,
    /// CPU time since the previous call.
    used_ns: u64,
    /// For how long it has been boosted since it used any.
    idle_ns: u64,
}

impl Account {
    fn owe(&mut self, ns: i128) {
        self.lag_ns = self.lag_ns.saturating_add(ns as i64);
    }
}

#[derive(Clone, Copy, Debug)]
struct Held {
    job: JobId,
    since: Time,
    /// It is boosted because it was behind, until it has caught up.
    catches_up: bool,
}

/// The booster of a node.
#[derive(Debug)]
pub struct Booster {
    config: BoostConfig,
    accounts: Vec<Account>,
    last: Option<Time>,
    held: Option<Held>,
}

impl Booster {
    /// A booster without history. All its memory is allocated here.
    pub fn new(config: BoostConfig) -> Booster {
        // Twice, because for a moment the accounts of two tables exist side by side.
        Booster { config, accounts: Vec::with_capacity(2 * config.jobs_max), last: None, held: None }
    }

    /// Evaluates the table and returns the job to boost. `current` is the job that has the CPU, where the search begins;
    /// `None`: no job.
    pub fn look(&mut self, now: Time, current: Option<usize>, table: &[BoostView]) -> Boost {
        let table = self.settle(now, table);
        let boosted = self.boosted();
        if let Some((place, held)) = boosted
            && self.keeps_boost(now, place, held)
        {
            return Boost { candidate: Some(place), reason: Reason::Boosted };
        }
        let tired = boosted.filter(|(_, held)| now - held.since >= self.config.quantum_ns);
        let tired = tired.map(|(place, _)| place).filter(|place| self.gives_way(*place));
        let found = self.behind(tired).map(|place| (place, Reason::BehindItsShare));
        let found = found.or_else(|| match self.config.on_arrival {
            OnArrival::Periodic => self.search(current.unwrap_or(0), tired, table),
            // The job that a message raised keeps the boost until its quantum ends or it waits again.
            OnArrival::Interrupt | OnArrival::None => {
                let same = boosted.map(|(place, _)| place).filter(|place| tired != Some(*place));
                same.filter(|place| self.accounts[*place].candidate).map(|place| (place, Reason::Boosted))
            }
        });
        let Some((place, reason)) = found else {
            self.held = None;
            return Boost { candidate: None, reason: Reason::NoCandidate };
        };
        self.hold(now, place, reason == Reason::BehindItsShare);
        Boost { candidate: Some(place), reason }
    }

    /// A message arrived for the job at index `job`: whether that raises it (DCS). `current` is the job that is believed to have
    /// the CPU.
    pub fn arrived(&mut self, now: Time, job: usize, current: Option<usize>, table: &[BoostView]) -> Option<Boost> {
        let table = self.settle(now, table);
        let endpoint = table.get(job)?.endpoint;
        if !interrupts(current == Some(job), endpoint == Endpoint::Blocked) {
            return None;
        }
        let kept = |(place, held): (usize, Held)| place != job && self.keeps_boost(now, place, held);
        let kept = self.boosted().is_some_and(kept);
        let unfair = self.ahead(job) && (0..table.len()).any(|i| self.accounts[i].candidate && !self.ahead(i));
        if kept || unfair {
            return None;
        }
        self.hold(now, job, false);
        Some(Boost { candidate: Some(job), reason: Reason::MessageArrived })
    }

    /// Gives the boost to a job; if it has it already, its start time is kept.
    fn hold(&mut self, now: Time, place: usize, catches_up: bool) {
        let job = self.accounts[place].job;
        match &mut self.held {
            // A quantum that is over starts again: no other job may have the CPUs.
            Some(held) if held.job == job && now - held.since < self.config.quantum_ns => held.catches_up = catches_up,
            _ => self.held = Some(Held { job, since: now, catches_up }),
        }
    }

    /// A boosted job that leaves the CPUs idle would wait for what it is owed, and all others for it.
    fn forgive(&mut self, elapsed_ns: u64) {
        let Some((place, _)) = self.boosted() else { return };
        let boosted = &mut self.accounts[place];
        boosted.idle_ns = if boosted.used_ns > 0 { 0 } else { boosted.idle_ns.saturating_add(elapsed_ns) };
        if boosted.idle_ns >= self.config.quantum_ns.saturating_mul(IDLE_QUANTA) {
            self.accounts.iter_mut().for_each(|account| account.lag_ns = 0);
        }
    }

    fn boosted(&self) -> Option<(usize, Held)> {
        let held = self.held?;
        self.accounts.iter().position(|a| a.job == held.job).map(|place| (place, held))
    }

    /// Whether the boosted job keeps the CPUs without a search.
    fn keeps_boost(&self, now: Time, place: usize, held: Held) -> bool {
        let account = &self.accounts[place];
        let had_ns = now - held.since;
        let behind = held.catches_up && account.lag_ns > 0 && had_ns < self.config.quantum_ns;
        account.candidate && (had_ns < self.config.hold_ns_min || behind)
    }

    /// Whether others may have the CPUs when the quantum of this one is over.
    fn gives_way(&self, place: usize) -> bool {
        let ahead = self.ahead(place);
        self.accounts.iter().enumerate().any(|(i, a)| i != place && a.candidate && (ahead || !self.ahead(i)))
    }

    /// Of the candidates that are too far behind, the one that is furthest behind for its share.
    fn behind(&self, tired: Option<usize>) -> Option<usize> {
        self.config.tolerance_ppm?;
        let late = |(i, a): &(usize, &Account)| a.candidate && Some(*i) != tired && a.lag_ns > a.tolerance_ns;
        let late = self.accounts.iter().enumerate().filter(late);
        let times = |a: &Account, b: &Account| i128::from(a.lag_ns) * i128::from(b.share);
        late.max_by(|(i, a), (k, b)| times(a, b).cmp(&times(b, a)).then(k.cmp(i))).map(|(place, _)| place)
    }

    fn ahead(&self, place: usize) -> bool {
        let account = &self.accounts[place];
        self.config.tolerance_ppm.is_some() && account.lag_ns < -account.tolerance_ns
    }

    /// The paper's search among the jobs that are not ahead; among all if it finds none.
    fn search(&self, current: usize, tired: Option<usize>, table: &[BoostView]) -> Option<(usize, Reason)> {
        let current = tired.unwrap_or(current).min(table.len().saturating_sub(1));
        let search = |may: &dyn Fn(usize) -> bool| {
            let endpoint = |i: usize| if may(i) { table[i].endpoint } else { Endpoint::Blocked };
            boost_candidate(self.config.heuristic, table.len(), current, tired.is_some(), endpoint).candidate
        };
        let place = search(&|i| !self.ahead(i)).or_else(|| search(&|_| true))?;
        let served = table[place].endpoint == Endpoint::Served;
        Some((place, if served { Reason::MessageWaiting } else { Reason::HasWork }))
    }

    /// Brings the accounts up to date with the table, and returns the part of the table that has accounts.
    fn settle<'a>(&mut self, now: Time, table: &'a [BoostView]) -> &'a [BoostView] {
        let table = &table[..table.len().min(self.config.jobs_max)];
        self.line_up(table);
        self.charge();
        let fair_ns = self.config.fair_over_ns.max(1);
        let elapsed_ns = self.last.map_or(0, |last| now - last).min(fair_ns);
        self.last = Some(now);
        self.forgive(elapsed_ns);
        for (account, view) in self.accounts.iter_mut().zip(table) {
            account.lag_ns -= (i128::from(account.lag_ns) * i128::from(elapsed_ns) / i128::from(fair_ns)) as i64;
            account.candidate = matches!(view.endpoint, Endpoint::Computing | Endpoint::Served);
            account.share = view.share.max(1);
        }
        let total: u64 = self.accounts.iter().filter(|a| a.candidate).map(|a| u64::from(a.share)).sum();
        let tolerance = i128::from(fair_ns) * i128::from(self.config.tolerance_ppm.unwrap_or(0)) / PPM;
        for account in self.accounts.iter_mut().filter(|a| a.candidate) {
            account.tolerance_ns = (tolerance * i128::from(account.share) / i128::from(total)) as i64;
        }
        table
    }

    /// Puts the accounts into the order of the table: new jobs get one, and those of missing jobs are removed.
    fn line_up(&mut self, table: &[BoostView]) {
        for (place, view) in table.iter().enumerate() {
            let found = self.accounts[place..].iter().position(|a| a.job == view.job);
            let at = found.map_or(self.accounts.len(), |at| place + at);
            if found.is_none() {
                let (job, cpu_ns, share) = (view.job, view.cpu_ns, view.share.max(1));
                let new = Account {
                    job,
                    cpu_ns,
                    lag_ns: 0,
                    tolerance_ns: 0,
                    candidate: false,
                    share,
                    used_ns: 0,
                    idle_ns: 0,
                };
                self.accounts.push(new);
            }
            self.accounts.swap(place, at);
            let account = &mut self.accounts[place];
            account.used_ns = view.cpu_ns.saturating_sub(account.cpu_ns).min(USED_NS_MAX);
            account.cpu_ns = view.cpu_ns;
        }
        self.accounts.truncate(table.len());
    }

    /// Distributes the CPU time since the last call among the jobs that were candidates then. What other jobs used up to their
    /// share is theirs; what they used beyond it they owe.
    fn charge(&mut self) {
        let wanted = |a: &&mut Account| a.candidate || a.used_ns > 0;
        let used: i128 = self.accounts.iter().map(|a| i128::from(a.used_ns)).sum();
        let all: i128 = self.accounts.iter_mut().filter(wanted).map(|a| i128::from(a.share)).sum();
        let candidates: i128 = self.accounts.iter().filter(|a| a.candidate).map(|a| i128::from(a.share)).sum();
        if used == 0 || candidates == 0 {
            return;
        }
        let mut left = used;
        for account in self.accounts.iter_mut().filter(|a| !a.candidate) {
            let own = i128::from(account.used_ns).min(used * i128::from(account.share) / all);
            account.owe(own - i128::from(account.used_ns));
            left -= own;
        }
        for account in self.accounts.iter_mut().filter(|a| a.candidate) {
            let part = left * i128::from(account.share) / candidates;
            account.owe(part - i128::from(account.used_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Endpoint::{Blocked as B, Computing as C, Served as S, Waiting as W};
    use super::*;

    const MS: u64 = 1_000_000;

    /// A node whose boosted job has its one CPU.
    struct Rig {
        booster: Booster,
        now: Time,
        used: Vec<u64>,
        current: Option<usize>,
    }

    impl Rig {
        fn new(config: BoostConfig, jobs: usize) -> Rig {
            Rig { booster: Booster::new(config), now: Time(0), used: alloc::vec![0; jobs], current: None }
        }

        fn table(&self, endpoints: &[Endpoint]) -> Vec<BoostView> {
            let view = |(i, e): (usize, &Endpoint)| {
                let (job, cpu_ns) = (JobId(i as u64), self.used[i]);
                BoostView { job, endpoint: *e, share: 1, cpu_ns }
            };
            endpoints.iter().enumerate().map(view).collect()
        }

        /// Time passes, then `look` is called.
        fn after(&mut self, ns: u64, endpoints: &[Endpoint]) -> (Option<usize>, Reason) {
            self.now = self.now + ns;
            if let Some(current) = self.current {
                self.used[current] += ns;
            }
            let table = self.table(endpoints);
            let boost = self.booster.look(self.now, self.current, &table);
            self.current = boost.candidate;
            (boost.candidate, boost.reason)
        }
    }

    #[test]
    fn a_waiting_message_gets_the_cpu_and_keeps_it_a_while() {
        let mut rig = Rig::new(BoostConfig::default(), 3);
        assert_eq!(rig.after(0, &[W, B, W]), (None, Reason::NoCandidate));
        assert_eq!(rig.after(2 * MS, &[W, S, C]), (Some(1), Reason::MessageWaiting));
        assert_eq!(rig.after(MS, &[S, C, C]), (Some(1), Reason::Boosted), "not yet two milliseconds");
        assert_eq!(rig.after(MS, &[S, C, C]), (Some(0), Reason::MessageWaiting));
        assert_eq!(rig.after(MS, &[W, C, B]), (Some(1), Reason::HasWork), "one that waits again gives way at once");
        assert_eq!(rig.after(MS, &[B, B, W]), (None, Reason::NoCandidate));
    }

    #[test]
    fn nobody_keeps_the_cpu_longer_than_a_quantum_while_others_want_it() {
        let mut rig = Rig::new(BoostConfig { tolerance_ppm: Some(1_000_000), ..BoostConfig::default() }, 2);
        let mine = |(place, _): (Option<usize>, Reason)| place;
        assert!((0..10).all(|_| mine(rig.after(2 * MS, &[S, C])) == Some(0)));
        assert_eq!(rig.after(2 * MS, &[S, C]), (Some(1), Reason::HasWork));
        let mut alone = Rig::new(BoostConfig::default(), 2);
        assert!((0..100).all(|_| mine(alone.after(2 * MS, &[S, W])) == Some(0)), "nobody else is a candidate");
    }

    #[test]
    fn one_that_is_behind_catches_up() {
        let mut rig = Rig::new(BoostConfig { quantum_ns: u64::MAX, ..BoostConfig::default() }, 2);
        // A fifth of half a second: after 200 ms the other job is 100 ms behind.
        let first = (0..300).position(|_| rig.after(MS, &[S, C]) == (Some(1), Reason::BehindItsShare));
        assert!(first.is_some_and(|ms| (200..260).contains(&ms)), "{first:?}");
        let until = (0..300).position(|_| rig.after(MS, &[S, C]).0 == Some(0));
        assert!(until.is_some_and(|ms| (50..260).contains(&ms)), "{until:?}");
    }

    #[test]
    fn a_large_share_holds_with_short_quanta() {
        let config = BoostConfig { quantum_ns: 5 * MS, tolerance_ppm: Some(50_000), ..BoostConfig::default() };
        let mut rig = Rig::new(config, 2);
        for _ in 0..5000 {
            let mut table = rig.table(&[S, S]);
            table[0].share = 9;
            rig.current = rig.booster.look(rig.now, rig.current, &table).candidate;
            rig.now = rig.now + MS;
            rig.used[rig.current.unwrap()] += MS;
        }
        let had = rig.used[0] as f64 / rig.now.0 as f64;
        assert!((0.88..=0.92).contains(&had), "{had} of 0.9");
    }

    /// Eight CPUs; the first job is a candidate and uses none of them.
    #[test]
    fn one_that_uses_nothing_does_not_keep_the_cpus_from_others() {
        let mut rig = Rig::new(BoostConfig::default(), 2);
        let mut had_ms = 0;
        for _ in 0..5000 {
            rig.now = rig.now + MS;
            rig.used[1] += if rig.current == Some(1) { 8 * MS } else { 0 };
            let table = rig.table(&[C, C]);
            rig.current = rig.booster.look(rig.now, rig.current, &table).candidate;
            had_ms += u64::from(rig.current == Some(1));
        }
        assert!(had_ms > 2000, "{had_ms} ms of 5000");
    }

    #[test]
    fn waiting_earns_nothing() {
        let mut rig = Rig::new(BoostConfig { quantum_ns: u64::MAX, ..BoostConfig::default() }, 2);
        (0..3000).for_each(|_| assert_eq!(rig.after(MS, &[C, W]).0, Some(0)));
        assert_eq!(rig.after(MS, &[S, C]), (Some(0), Reason::MessageWaiting), "it is not behind");
    }

    #[test]
    fn a_job_keeps_its_account_when_it_changes_its_place() {
        let mut rig = Rig::new(BoostConfig { hold_ns_min: 0, ..BoostConfig::default() }, 2);
        (0..100).for_each(|_| {
            rig.after(MS, &[C, S]);
        });
        let before = rig.booster.accounts[0].lag_ns;
        let mut table = rig.table(&[C, S]);
        table.insert(0, BoostView { job: JobId(9), endpoint: C, share: 1, cpu_ns: 77 });
        table.swap(1, 2);
        rig.booster.look(rig.now, None, &table);
        let found: Vec<(JobId, i64)> = rig.booster.accounts.iter().map(|a| (a.job, a.lag_ns)).collect();
        assert_eq!(found, [(JobId(9), 0), (JobId(1), -before), (JobId(0), before)]);
    }

    #[test]
    fn tables_that_change_and_are_too_long_need_no_more_memory() {
        let mut booster = Booster::new(BoostConfig { jobs_max: 4, ..BoostConfig::default() });
        let capacity = booster.accounts.capacity();
        let view = |job| BoostView { job: JobId(job), endpoint: C, share: 1, cpu_ns: job };
        for round in 0..10 {
            let table: Vec<BoostView> = (round * 6..round * 6 + 6).map(view).collect();
            let boost = booster.look(Time(round * MS), Some(5), &table);
            assert!(boost.candidate.is_some_and(|place| place < 4), "{boost:?}");
        }
        assert_eq!(booster.accounts.capacity(), capacity);
        assert_eq!(booster.look(Time(0), Some(3), &[]).candidate, None);
    }

    #[test]
    fn a_message_raises_one_that_does_not_run() {
        let config = BoostConfig { on_arrival: OnArrival::Interrupt, ..BoostConfig::default() };
        let mut rig = Rig::new(config, 3);
        let arrived = |rig: &mut Rig, job, current, table: &[Endpoint]| {
            let table = rig.table(table);
            rig.booster.arrived(rig.now, job, current, &table).map(|boost| (boost.candidate, boost.reason))
        };
        assert_eq!(rig.after(0, &[C, W, W]), (None, Reason::NoCandidate), "a look raises nobody");
        assert_eq!(arrived(&mut rig, 0, Some(0), &[S, W, W]), None, "it runs");
        assert_eq!(arrived(&mut rig, 1, Some(0), &[C, B, W]), None, "it wakes by itself");
        assert_eq!(arrived(&mut rig, 1, Some(0), &[C, S, W]), Some((Some(1), Reason::MessageArrived)));
        assert_eq!(arrived(&mut rig, 2, Some(1), &[C, C, S]), None, "the other has just got it");
        assert_eq!(rig.after(MS, &[C, C, S]), (Some(1), Reason::Boosted));
        assert_eq!(rig.after(MS, &[C, C, S]), (Some(1), Reason::Boosted));
        assert_eq!(arrived(&mut rig, 2, Some(1), &[C, C, S]), Some((Some(2), Reason::MessageArrived)));
        assert_eq!(rig.after(MS, &[C, C, W]), (None, Reason::NoCandidate), "it waits again");
        assert_eq!(arrived(&mut rig, 7, None, &[C, C, W]), None, "no such job");
    }
}
