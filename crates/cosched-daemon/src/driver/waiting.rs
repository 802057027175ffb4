//! How the processes of jobs wait: the orders to them, and their counters.

use super::{Driver, Live};
use crate::clock::unix_ms;
use crate::record::Record;
use crate::refuse::{Answer, unsupported};
use crate::waitpage::{Counts, Orders, WaitPage};
use crate::words;
use cosched_api::{Chosen, JobWaiting, WaitMode, Waiting};
use cosched_core::wait::page;
use cosched_core::{Choice, JobId, Seen, Standing};
use cosched_node::{Input, Waits};

impl Live {
    /// What its processes have counted of their waits.
    pub(super) fn waits(&self) -> Waits {
        let counts = self.page.as_ref().map(WaitPage::read).unwrap_or_default();
        let Counts { processes, polls, waits, spin_ns, block_ns, .. } = counts;
        let in_turns = self.cgroup.switch_handle().programs_take_turns();
        Waits { processes, polls, waits, spin_ns, block_ns, in_turns }
    }
}

impl Driver {
    /// Makes the page of a job whose processes will have the wait library.
    pub(super) fn make_page(&mut self, record: &Record) {
        let Some(waiting) = &record.waiting else { return };
        let chosen = if record.own_policy.is_none() { WaitMode::SpinBlock } else { WaitMode::Busy };
        let orders = orders(waiting.asked, chosen, 0, self.identity.cpus_at_a_time);
        match WaitPage::create(&self.identity.wait_dir, record.id, record.uid, orders) {
            Ok(page) => self.set_page(record.id, page),
            // Without a page they still wait as their environment says.
            Err(e) => tracing::warn!(id = record.id, "the job has no wait page: {e}"),
        }
    }

    /// Opens the page that an earlier daemon made.
    pub(super) fn reopen_page(&mut self, record: &Record) {
        if record.waiting.is_none() {
            return;
        }
        match WaitPage::open(&self.identity.wait_dir, record.id, record.uid) {
            Ok(page) => self.set_page(record.id, page),
            Err(e) => tracing::warn!(id = record.id, "the job's wait page is lost: {e}"),
        }
    }

    fn set_page(&mut self, id: u64, page: WaitPage) {
        if let Some(live) = self.live.get_mut(&id) {
            live.page = Some(page);
        }
    }

    /// Orders each job's way of waiting under the present plan.
    pub(super) fn order_waits(&mut self) {
        let cpus = self.identity.cpus_at_a_time;
        let mut ticks_changed = false;
        for (id, live) in &mut self.live {
            let Some(record) = self.state.jobs.get(id) else { continue };
            let Some(asked) = record.waiting.as_ref().map(|w| w.asked) else { continue };
            let planned = self.plan.jobs.get(&JobId(*id));
            let ticks = asked.mode == WaitMode::Micro && planned.is_some_and(|job| job.standing == Standing::Scheduled);
            ticks_changed |= live.cgroup.switch_handle().want_ticks(ticks);
            if let Some(page) = &mut live.page {
                let waits = self.cluster.node.waiting(JobId(*id));
                let spin_us = asked.spin_us.or(waits.spin_ns.map(|ns| (ns / 1000) as u32));
                let cpus = if waits.in_turns { page::NO_CROWD } else { cpus };
                page.order(orders(Waiting { spin_us, ..asked }, words::wait_mode(waits.wait), waits.rivals, cpus));
            }
        }
        if ticks_changed && let Err(e) = self.machinery.slots.heed_ticks(&self.identity.cpus) {
            tracing::warn!("the CPUs cannot switch in very short turns (--wait micro): {e}");
        }
    }

    /// The jobs whose processes may be subgangs, by the present plan, with the CPUs of their places.
    pub(super) fn tell_subgangs(&mut self) {
        let Some(subgangs) = &mut self.machinery.subgangs else { return };
        let may = |(id, live): (&u64, &Live)| {
            let asked = self.state.jobs.get(id)?.waiting.as_ref()?.asked;
            let may = asked.mode == WaitMode::Auto && self.cluster.node.waiting(JobId(*id)).may_have_subgangs;
            (may && !live.cgroup.is_adopted()).then(|| (*id, (live.cgroup.clone(), live.place.cpus.len() as u32)))
        };
        subgangs.set(self.live.iter().filter_map(may).collect());
    }

    /// Very short turns need threads of real-time priority; without it the request is refused rather than ignored.
    pub(super) fn check_wait(&self, waiting: Option<Waiting>) -> Answer<()> {
        let wants_ticks = waiting.is_some_and(|waiting| waiting.mode == WaitMode::Micro);
        if !wants_ticks || self.machinery.slots.realtime_priority().is_some() {
            return Ok(());
        }
        Err(unsupported(
            "no job can use --wait micro",
            "the daemon has no real-time priority (`cosched status` says why)",
            "Choose another way to wait, or give the daemon real-time priority.",
        ))
    }

    /// The node wants to know how often a job's threads have blocked since the last such question.
    pub(super) fn count_blocks(&mut self, job: JobId) {
        if let Some(live) = self.live.get_mut(&job.0) {
            let blocks = live.blocks.look(&live.cgroup);
            self.cluster.handle(Input::Blocks(job, blocks));
        }
    }

    /// Auto has chosen another policy for a job.
    pub(super) fn chose(&mut self, job: JobId, choice: Choice, seen: &Seen) {
        let told = format!("{}: {}", words::wire_policy(choice.policy).name(), choice.reason);
        tracing::info!(id = job.0, to = told, ?seen, "auto");
        self.remember(job.0, |record| record.event(unix_ms(), "auto", told));
    }

    /// What auto has chosen for a job.
    pub(super) fn view_choice(&self, id: u64) -> Option<Chosen> {
        let watch = self.cluster.node.watch(JobId(id))?;
        let choice = watch.choice();
        Some(Chosen {
            policy: words::wire_policy(choice.policy),
            mode: words::wait_mode(choice.wait),
            since_unix_ms: watch.since.0 / 1_000_000,
            why: choice.reason.to_string(),
            changes: watch.changes,
        })
    }

    /// How a job's processes wait, with the newest counts.
    pub(super) fn view_waiting(&self, record: &Record, live: Option<&Live>) -> Option<JobWaiting> {
        let mut waiting = record.waiting.clone()?;
        waiting.subgangs = live.map_or(0, |live| live.cgroup.switch_handle().subgangs());
        let Some(page) = live.and_then(|l| l.page.as_ref()) else { return Some(waiting) };
        fill(&mut waiting, page);
        waiting.page = Some(page.path.display().to_string());
        Some(waiting)
    }
}

/// Reads the last counts of a job that ends, and removes its page.
pub(super) fn close_page(live: &Live, waiting: &mut Option<JobWaiting>) {
    let (Some(page), Some(waiting)) = (&live.page, waiting) else { return };
    fill(waiting, page);
    waiting.processes = 0;
    waiting.spin_us = None;
    page.remove();
}

fn fill(waiting: &mut JobWaiting, page: &WaitPage) {
    let counts = page.read();
    waiting.mode = match waiting.asked.mode {
        WaitMode::Micro => WaitMode::Micro,
        _ => page.ordered.map_or(WaitMode::Busy, |orders| mode_of(orders.mode)),
    };
    waiting.processes = counts.processes;
    waiting.polls = counts.polls;
    waiting.waits = counts.waits;
    waiting.spins = counts.spins;
    waiting.blocks = counts.blocks;
    waiting.yields = counts.yields;
    waiting.timeouts = counts.timeouts;
    waiting.spin_ms = counts.spin_ns / 1_000_000;
    waiting.block_ms = counts.block_ns / 1_000_000;
    waiting.spin_us = counts.spin_us;
}

/// The orders for a request; `chosen` is used for auto.
fn orders(asked: Waiting, chosen: WaitMode, rivals: u32, cpus: u32) -> Orders {
    let mode = match asked.mode {
        WaitMode::Auto => chosen,
        mode => mode,
    };
    let mode = match mode {
        WaitMode::SpinBlock => page::SPIN_BLOCK,
        WaitMode::SpinYield => page::SPIN_YIELD,
        WaitMode::Busy | WaitMode::Auto | WaitMode::Micro => page::BUSY,
    };
    Orders { mode, spin_us: asked.spin_us.unwrap_or(page::ADAPTIVE), rivals, cpus }
}

fn mode_of(word: u32) -> WaitMode {
    match word {
        page::SPIN_BLOCK => WaitMode::SpinBlock,
        page::SPIN_YIELD => WaitMode::SpinYield,
        _ => WaitMode::Busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_ordered_and_auto_is_what_is_chosen() {
        let ask = |mode, spin_us, chosen| orders(Waiting { mode, spin_us }, chosen, 3, 8);
        let ordered = ask(WaitMode::Auto, None, WaitMode::SpinBlock);
        let expected = Orders { mode: page::SPIN_BLOCK, spin_us: page::ADAPTIVE, rivals: 3, cpus: 8 };
        assert_eq!(ordered, expected);
        assert_eq!(ask(WaitMode::Auto, None, WaitMode::Busy).mode, page::BUSY);
        for (asked, mode) in [
            (WaitMode::Busy, page::BUSY),
            (WaitMode::SpinBlock, page::SPIN_BLOCK),
            (WaitMode::SpinYield, page::SPIN_YIELD),
        ] {
            let ordered = ask(asked, Some(50), WaitMode::SpinBlock);
            assert_eq!((ordered.mode, ordered.spin_us), (mode, 50));
            assert_eq!(mode_of(mode), asked, "and is shown so");
        }
    }
}
