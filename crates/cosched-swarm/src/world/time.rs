//! How time passes: the earliest event is handled, then the next.

use super::{Broken, Event, S, World};
use crate::invariants::Seen;
use cosched_cluster::Member;
use cosched_cluster::wire::Exit;
use cosched_core::{Disposition, JobId, Standing, Time};
use cosched_node::{Input, Node};

impl World {
    /// Lets time pass for `ns` nanoseconds, or until an invariant is violated.
    pub fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        // Tests modify nodes between two runs.
        (0..self.hosts.len()).for_each(|node| self.set_wake(node));
        let mut steps = 0_u64;
        while self.violation.is_none() {
            let wake = self.wakes.iter().enumerate().filter_map(|(node, at)| Some(((*at)?.max(self.now), node))).min();
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let up = self.now >= self.store_stops_until && self.now >= self.store_away_until && !self.is_single;
            let expiry = self.store.next_expiry().map(|at| at.0.max(self.now)).filter(|_| up);
            let Some(next) = [wake.map(|(at, _)| at), event, expiry].into_iter().flatten().min() else { break };
            if next > end {
                break;
            }
            steps = if next > self.now { 0 } else { steps + 1 };
            assert!(steps < 100_000, "time stands still at {next}: {wake:?} {event:?} {expiry:?}");
            self.now = self.now.max(next);
            self.counts.events += 1;
            if expiry.is_some_and(|at| at <= self.now) {
                self.store.expire(Time(self.now));
                self.look_at_store();
            } else if event.is_some_and(|at| at <= self.now) {
                if let Some((_, event)) = self.events.pop_first() {
                    self.happens(event);
                }
            } else if let Some((_, node)) = wake {
                self.handle(node, Input::Timeout);
            }
            if self.compacts && self.dice.one_in(200) && self.store.revision() > 1 {
                let _ = self.store.compact(self.store.revision());
            }
        }
        self.now = self.now.max(if self.violation.is_none() { end } else { 0 });
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Arrives { node, life, store, op, what } => self.arrives((node, life, store), op, what),
            Event::Answers { node, life, op, done } => self.answers(node, life, op, done),
            Event::Tells { node, life, watch } => self.tells(node, life, watch),
            Event::Cuts { node, life, watch } => self.cuts(node, life, watch),
            Event::Starts { node } if self.cannot_start(node) => self.push(self.now + S, Event::Starts { node }),
            Event::Starts { node } if self.hosts[node].node.is_none() && !self.hosts[node].is_gone => self.start(node),
            Event::Starts { .. } => (),
            Event::LooksAtClock { node } => self.looks_at_clock(node),
            Event::SetsClock { node } => self.sets_clock(node),
            Event::Guards { node } => self.guards(node),
            Event::Wakes { node } => self.wakes(node),
            Event::StoreIsBack => {
                self.comes_back();
                self.forget_writes();
            }
            Event::Clears => (self.lossy, self.slow) = (0, 0),
            Event::Leaves { node, starts_after } => {
                self.crash(node);
                self.push(self.now + starts_after, Event::Starts { node });
            }
            Event::Repairs => self.repairs(),
            Event::Fails { node } if !self.calm => self.fails(node),
            Event::Fails { .. } => (),
            Event::DeclaresDead { twin } => self.declares_dead(twin),
            Event::Ticks => self.ticks(),
        }
    }

    /// Computes when a node's daemon or its processes next have something to do.
    pub(super) fn set_wake(&mut self, node: usize) {
        let host = &self.hosts[node];
        let clock = &host.clock;
        let steady = host.node.as_ref().and_then(Node::poll_timeout).map(|at| clock.when_steady(at));
        let wall = host.node.as_ref().and_then(Node::poll_wall_timeout).map(|at| clock.when_wall(at));
        let daemon = steady.into_iter().chain(wall).min().map(|at| at.max(host.hung_until));
        self.wakes[node] = daemon.into_iter().chain(host.processes.next()).min();
    }

    fn ticks(&mut self) {
        self.push(self.now + S, Event::Ticks);
        let second = self.now / S;
        if self.dice.one_in(20) {
            self.copy = Some(self.store.clone());
        }
        for node in 0..self.hosts.len() {
            self.note_capacity(node);
            if second.is_multiple_of(8) {
                self.corrects_rate(node);
            }
            if self.lively && second.is_multiple_of(3) {
                self.samples_memory(node);
            }
            self.comes_late(node);
            self.looks_at_mains(node);
            self.guard_fences(node);
            self.look_for_stopped(node);
            self.look_at_effects(node);
            self.look_at_requests(node);
            // For the invariants that check how long a plan is in use.
            self.hosts[node].shown = None;
            self.tell(node, |_, _| ());
        }
    }

    /// Clocks drift, and a time service adjusts their rates so that the error disappears.
    fn corrects_rate(&mut self, node: usize) {
        if !self.lively {
            return;
        }
        let host = &mut self.hosts[node];
        let noise = self.dice.between(0, 40_000) as i64 - 20_000;
        if host.disciplined {
            let rate = (-host.clock.error_ns(self.now) / 8).clamp(-400_000, 400_000);
            host.clock.set_rate(self.now, rate + noise);
        } else {
            host.clock.set_rate(self.now, 15 * noise);
        }
        self.set_wake(node);
    }

    /// A daemon samples the memory of its jobs, and reports what exceeds the known values.
    fn samples_memory(&mut self, node: usize) {
        if self.now < self.hosts[node].hung_until || self.hosts[node].node.is_none() {
            return;
        }
        let parts = self.hosts[node].processes.parts.iter_mut();
        let mut more = Vec::new();
        for (job, part) in parts.filter(|(_, part)| part.is_alive() && part.memory_bytes > part.told_bytes) {
            part.told_bytes = part.memory_bytes;
            more.push((*job, part.memory_bytes));
        }
        for (job, bytes) in more {
            self.tell(node, |member, now| member.memory(now, job, bytes));
        }
    }

    /// At times a launcher of a job without a main process comes late, or again.
    fn comes_late(&mut self, node: usize) {
        if !self.lively || self.calm || self.now < self.hosts[node].hung_until || self.hosts[node].node.is_none() {
            return;
        }
        let parts = self.hosts[node].processes.parts.iter_mut();
        let mut came = Vec::new();
        for (job, part) in parts.filter(|(_, part)| part.of.alike && !part.ended && !part.of.closing) {
            if !part.is_alive() && self.dice.one_in(20) {
                part.phases.push_back(crate::host::Phase::Computes(S / 10));
                came.push(*job);
            }
        }
        came.into_iter().for_each(|job| self.handle(node, Input::Populated(job, true)));
    }

    /// A daemon sees that main processes outside their jobs' nodes have ended.
    fn looks_at_mains(&mut self, node: usize) {
        let now = self.now;
        let host = &mut self.hosts[node];
        host.mains.retain(|_, ends| *ends > now);
        let Some(member) = host.member().filter(|_| now >= host.hung_until) else { return };
        if self.broken == Some(Broken::MainsUntold) {
            return;
        }
        let gone = member.mains().filter(|(_, main)| !host.mains.contains_key(&main.pid));
        let gone: Vec<JobId> = gone.map(|(id, _)| id).collect();
        for id in gone {
            self.tell(node, |member, now| member.main_ended(now, id, 0, Exit::default()));
        }
    }

    /// Reports how long each stopped process has been stopped without a reason.
    fn look_for_stopped(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        let most_ns = 2 * host.cycle_ns_max + crate::invariants::STOPPED_REST_NS;
        // A node that is out of touch keeps holding a job that waited for memory when it last heard, but only while another
        // job uses the memory: a job that is alone there continues, unless its other nodes may have no room or a user has
        // suspended it.
        let out = host.member().is_none_or(|member| !member.is_joined());
        let alone = out && host.processes.parts.values().filter(|part| part.is_alive()).count() == 1;
        let member = host.node.as_ref().map(Node::member);
        let known = member.and_then(Member::state);
        let alarm = member.is_some_and(|member| member.alarm().is_some());
        let suspended = |id: &JobId| {
            let mut states = known.into_iter().chain(&self.state);
            states.any(|state| state.jobs.get(id).is_some_and(|job| job.standing == Standing::Suspended))
        };
        let was_held = |id: &JobId| out && known.is_some_and(|state| super::look::is_held(state, *id));
        let mut stopped = Vec::new();
        for (id, part) in host.processes.parts.iter_mut().filter(|(_, part)| part.is_alive()) {
            let planned = host.node.as_ref().and_then(|node| node.local().plan().jobs.get(id));
            let suspended_now = planned.is_some_and(|job| job.standing == Standing::Suspended);
            // During an alarm a user's suspension stays in force, although the keys that recorded it are lost.
            let excused = !alone || part.job.spans || part.job.suspended || suspended(id) || alarm && suspended_now;
            let held = excused
                && (suspended_now
                    || was_held(id)
                    || self.state.as_ref().is_some_and(|state| super::look::is_held(state, *id)));
            match part.stopped_since {
                Some(_) if held => part.stopped_since = Some(self.now),
                Some(since) if part.to == Disposition::Stop => stopped.push((*id, self.now - since)),
                _ => (),
            }
        }
        for (job, for_ns) in stopped {
            self.see(&Seen::Stopped { node, job, for_ns, most_ns });
        }
    }
}
