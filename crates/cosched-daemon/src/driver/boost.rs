//! Boosting (policies pb and dcs): the jobs that the slot thread samples, and core's rule in the form that the slot thread calls.

use super::Driver;
use crate::waitpage;
use cosched_api::Boosting;
use cosched_core::{BoostConfig, BoostView, Booster, Endpoint, JobId, OnArrival, Plan, Policy, Standing, Time};
use cosched_linux::arrivals::{ArrivalBell, BpfArrivals, Watchers};
use cosched_linux::problem::Problem;
use cosched_linux::slots::{Boost, BoostJob, BoostTiming, Choice, Chooser, Seen};
use cosched_linux::waits;
use std::sync::Arc;
use std::time::Duration;

/// A process of the job that sleeps for its message runs within this time; holding the others back longer wastes CPU time.
const WAKE_HOLD_NS: u64 = 300_000;

/// The driver's state of boosting.
#[derive(Default)]
pub(super) struct Boosts {
    /// The jobs that the slot thread samples: id, policy, share.
    jobs: Vec<(u64, Policy, u32)>,
    /// `None` until a job needs it.
    arrivals: Option<Result<Watchers, Problem>>,
    /// The BPF program that announces messages for dcs, where the kernel, the rights and this build allow it; `None` until a job needs it.
    bpf: Option<Result<BpfArrivals, Problem>>,
}

impl Boosts {
    /// The job has another switch: the slot thread is told again.
    pub(super) fn forget_switch(&mut self, id: u64) {
        self.jobs.retain(|job| job.0 != id);
    }

    /// Why arriving messages are not seen, or not those of some jobs, if that is so.
    pub(super) fn problem(&self) -> Option<Problem> {
        match self.arrivals.as_ref()? {
            Ok(watchers) => watchers.problem(),
            Err(problem) => Some(problem.clone()).filter(|_| !self.jobs.is_empty()),
        }
    }
}

impl Driver {
    /// After a new plan: tells the slot thread to sample the jobs that are under pb or dcs now.
    pub(super) fn install_boost(&mut self) {
        let jobs = boostable(&self.plan);
        if jobs == self.boosts.jobs {
            return;
        }
        let boost = if jobs.is_empty() { Boost::none() } else { self.boost_of(&jobs) };
        self.machinery.slots.set_boost(boost);
        if let Some(Ok(arrivals)) = &mut self.boosts.arrivals {
            let gone = |old: &&(u64, Policy, u32)| jobs.iter().all(|new| new.0 != old.0);
            self.boosts.jobs.iter().filter(gone).for_each(|old| arrivals.forget(old.0));
            if let Some(Ok(bpf)) = &mut self.boosts.bpf {
                self.boosts.jobs.iter().filter(gone).for_each(|old| bpf.forget(old.0));
            }
        }
        self.boosts.jobs = jobs;
    }

    fn boost_of(&mut self, jobs: &[(u64, Policy, u32)]) -> Boost {
        let arrivals = self.boosts.arrivals.get_or_insert_with(Watchers::new);
        if let Err(e) = arrivals {
            tracing::warn!("pb and dcs cannot see pending messages: {e}");
        }
        let mut arrivals = arrivals.as_mut().ok();
        let (mut all, mut rule) = (Vec::new(), Rule::new(jobs));
        for &(id, policy, share) in jobs {
            let (Some(live), Some(record)) = (self.live.get(&id), self.state.jobs.get(&id)) else { continue };
            let ring = policy == Policy::Dcs;
            let watched = arrivals.as_mut().map(|arrivals| arrivals.watch(record.uid, &live.cgroup, ring));
            let sockets = watched.and_then(|sockets| sockets.inspect_err(|e| tracing::warn!(id, "{e}")).ok());
            let page = live.page.as_ref().and_then(|page| page.reader().ok());
            let page = page.map(|file| waits::WaitPage::new(file, waitpage::layout()));
            match BoostJob::new(&live.cgroup, sockets, page, policy == Policy::Pb) {
                Ok(job) => {
                    all.push(job);
                    rule.shares.push((share, policy));
                }
                Err(e) => tracing::warn!(id, "a job cannot be boosted: {e}"),
            }
        }
        let period_ns = self.config.boost_period.as_nanos() as u64;
        let timing = BoostTiming { period_ns, quiet_period_ns: 8 * period_ns, ..BoostTiming::default() };
        let sets = arrivals.map(|arrivals| arrivals.bell());
        let bell = if jobs.iter().any(|job| job.1 == Policy::Dcs) { self.bell(jobs, sets) } else { None };
        Boost::new(all, Box::new(rule), bell, timing)
    }

    /// The source that announces messages of jobs under dcs: the BPF program, otherwise the epoll sets.
    fn bell(&mut self, jobs: &[(u64, Policy, u32)], sets: Option<Arc<ArrivalBell>>) -> Option<Arc<ArrivalBell>> {
        let bpf = self.boosts.bpf.get_or_insert_with(BpfArrivals::load);
        let bpf = bpf.as_mut().inspect_err(|e| tracing::info!("dcs by epoll sets: {e}")).ok();
        let Some(bpf) = bpf else { return sets };
        for &(id, ..) in jobs.iter().filter(|job| job.1 == Policy::Dcs) {
            let Some(live) = self.live.get(&id) else { continue };
            if let Err(e) = bpf.watch(&live.cgroup, Duration::from_nanos(BoostTiming::default().ring_pause_ns)) {
                tracing::warn!(id, "{e}");
            }
        }
        Some(bpf.bell())
    }

    /// For `cosched status`.
    pub(super) fn view_boosting(&self) -> Boosting {
        let stats = self.machinery.slots.stats();
        let arrivals = self.boosts.arrivals.as_ref().and_then(|arrivals| arrivals.as_ref().ok());
        Boosting {
            jobs: self.boosts.jobs.len() as u32,
            sockets: arrivals.map_or(0, |arrivals| arrivals.sockets() as u32),
            sensor: match (&self.boosts.bpf, arrivals) {
                (Some(Ok(_)), _) => "bpf",
                (_, Some(_)) => "epoll",
                _ => "off",
            }
            .to_owned(),
            without_bpf: self.boosts.bpf.as_ref().and_then(|bpf| bpf.as_ref().err()).map(ToString::to_string),
            looks: stats.looks,
            rings: stats.rings,
            boosts: stats.boosts,
            cost_ms: stats.look_ns / 1_000_000,
        }
    }
}

/// The scheduled jobs under pb or dcs, with their shares.
fn boostable(plan: &Plan) -> Vec<(u64, Policy, u32)> {
    let running = plan.jobs.iter().filter(|(_, job)| job.standing == Standing::Scheduled);
    let boosted = running.filter(|(_, job)| matches!(job.policy, Policy::Pb | Policy::Dcs));
    boosted.map(|(id, job)| (id.0, job.policy, job.weight)).collect()
}

/// Core's rule, called by the slot thread.
struct Rule {
    booster: Booster,
    /// In the order of the jobs.
    shares: Vec<(u32, Policy)>,
    table: Vec<BoostView>,
}

impl Rule {
    fn new(jobs: &[(u64, Policy, u32)]) -> Rule {
        let periodic = jobs.iter().any(|job| job.1 == Policy::Pb);
        let config = BoostConfig {
            on_arrival: if periodic { OnArrival::Periodic } else { OnArrival::Interrupt },
            jobs_max: jobs.len(),
            ..BoostConfig::default()
        };
        // All memory is allocated here: the slot thread allocates nothing.
        Rule {
            booster: Booster::new(config),
            shares: Vec::with_capacity(jobs.len()),
            table: Vec::with_capacity(jobs.len()),
        }
    }
}

impl Chooser for Rule {
    fn choose(&mut self, now_ns: u64, current: Option<usize>, jobs: &[Seen]) -> Option<Choice> {
        self.table.clear();
        let view = |(seen, (share, _)): (&Seen, &(u32, Policy))| BoostView {
            job: JobId(seen.job),
            endpoint: endpoint(seen),
            share: *share,
            cpu_ns: seen.cpu_ns,
        };
        self.table.extend(jobs.iter().zip(&self.shares).map(view));
        let now = Time(now_ns);
        let rang = (0..self.table.len()).find(|i| jobs[*i].rang && self.shares[*i].1 == Policy::Dcs);
        let arrived = rang.and_then(|job| self.booster.arrived(now, job, current, &self.table));
        let boost = arrived.unwrap_or_else(|| self.booster.look(now, current, &self.table));
        let job = boost.candidate?;
        let hold_ns = if jobs[job].sleeping > 0 { WAKE_HOLD_NS } else { Choice::UNTIL_NEXT_LOOK };
        Some(Choice { job, hold_ns })
    }
}

/// The state of a job: that of the most urgent of its processes.
fn endpoint(seen: &Seen) -> Endpoint {
    // Of processes without the library only waiting messages are known.
    let receives = seen.processes == 0 || seen.spinning + seen.sleeping > 0;
    match seen {
        Seen { eligible: false, .. } => Endpoint::Blocked,
        Seen { unread: true, .. } if receives => Endpoint::Served,
        Seen { blocked: true, .. } => Endpoint::Blocked,
        Seen { waiting: true, .. } => Endpoint::Waiting,
        _ => Endpoint::Computing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_does_is_the_most_urgent_of_its_processes() {
        let seen = Seen { eligible: true, processes: 2, ..Seen::default() };
        assert_eq!(endpoint(&Seen { eligible: false, unread: true, ..seen }), Endpoint::Blocked);
        assert_eq!(endpoint(&seen), Endpoint::Computing);
        assert_eq!(endpoint(&Seen { unread: true, ..seen }), Endpoint::Computing, "it is in no receive");
        assert_eq!(endpoint(&Seen { unread: true, spinning: 1, ..seen }), Endpoint::Served);
        assert_eq!(endpoint(&Seen { unread: true, processes: 0, ..seen }), Endpoint::Served, "nothing is known of it");
        assert_eq!(endpoint(&Seen { spinning: 2, waiting: true, ..seen }), Endpoint::Waiting);
        assert_eq!(endpoint(&Seen { sleeping: 2, blocked: true, ..seen }), Endpoint::Blocked);
        assert_eq!(endpoint(&Seen { sleeping: 2, blocked: true, unread: true, ..seen }), Endpoint::Served);
    }

    #[test]
    fn the_rule_raises_who_has_a_message_and_holds_shortly_who_sleeps() {
        let jobs = [(1, Policy::Pb, 100), (2, Policy::Pb, 100)];
        let mut rule = Rule::new(&jobs);
        rule.shares.extend(jobs.iter().map(|(_, policy, share)| (*share, *policy)));
        let waiting = Seen { eligible: true, processes: 2, spinning: 2, waiting: true, ..Seen::default() };
        let mut seen = [Seen { job: 1, ..waiting }, Seen { job: 2, unread: true, ..waiting }];
        let choice = rule.choose(1_000_000, None, &seen);
        assert_eq!(choice, Some(Choice { job: 1, hold_ns: Choice::UNTIL_NEXT_LOOK }));
        seen[1] = Seen { sleeping: 2, spinning: 0, waiting: false, ..seen[1] };
        assert_eq!(rule.choose(2_000_000, Some(1), &seen).map(|choice| choice.hold_ns), Some(WAKE_HOLD_NS));
    }

    #[test]
    fn under_dcs_the_arrival_raises() {
        let jobs = [(1, Policy::Dcs, 100), (2, Policy::Dcs, 100)];
        let mut rule = Rule::new(&jobs);
        rule.shares.extend(jobs.iter().map(|(_, policy, share)| (*share, *policy)));
        let seen = |rang| {
            let other = Seen { job: 2, eligible: true, unread: true, rang, ..Seen::default() };
            [Seen { job: 1, eligible: true, ..Seen::default() }, other]
        };
        assert_eq!(rule.choose(1_000_000, None, &seen(false)), None, "a message that is there raises nobody");
        assert_eq!(rule.choose(2_000_000, None, &seen(true)).map(|choice| choice.job), Some(1));
    }
}
