//! Daemons and machines start, die and hang, and their clocks are set.

use super::{Broken, Event, MS, S, World};
use crate::host::{Mangle, Processes};
use cosched_cluster::Member;
use cosched_cluster::wire::Clock;
use cosched_core::cluster::LocalConfig;
use cosched_core::{AgentConfig, JobId, Plan};
use cosched_node::{FoundPart, Input, Node};

/// How long a guard waits for a sign of life, in nanoseconds.
const GUARD_NS: u64 = 2 * S;

impl World {
    /// Starts the daemon of a node; its jobs are unchanged.
    pub fn start(&mut self, node: usize) {
        let now = self.moment(node);
        self.note(|| format!("n{node}: the daemon starts"));
        let untold = self.broken == Some(Broken::NumbersUntold);
        let boasts = self.broken == Some(Broken::Boasts);
        let alter = self.alters(node);
        let agent = AgentConfig { ..self.agent.clone() };
        let is_single = self.is_single;
        if is_single {
            self.reopens_store();
        }
        let host = &mut self.hosts[node];
        host.life += 1;
        if !is_single {
            host.settings.dead.get_or_insert_default().insert(host.settings.instance);
        }
        host.settings.instance = host.life << 32 | self.dice.below(1 << 32);
        host.settings.capacity = host.capacity;
        // The daemon finds this in its own files.
        let newest = host.processes.parts.keys().last().map_or(0, |job| job.0);
        host.settings.jobs_known = if untold { 0 } else { host.settings.jobs_known.max(newest) };
        if boasts {
            host.settings.capacity.memory_bytes *= 2;
        }
        host.settings.boot = format!("boot {}", host.boots);
        (host.clock_ok, host.clock_seen) = (host.disciplined, true);
        host.settings.clock.synchronised = host.clock_ok;
        (host.shown, host.behind) = (None, 0);
        let local = LocalConfig { agent, is_single, ..LocalConfig::new(host.capacity.cpus) };
        let memory_bytes = host.capacity.memory_bytes;
        let mut daemon = Node::new(now, host.settings.clone(), local, memory_bytes, &host.found()).altered_by(alter);
        for (id, part) in host.processes.parts.iter().filter(|(_, part)| !part.ended) {
            let (of, job, populated) = (part.of, part.job, part.is_alive());
            daemon.find(*id, &FoundPart { of, job, has_begun: true, populated });
        }
        host.node = Some(daemon);
        self.tell(node, |_, _| ());
        self.launchers_report(node);
    }

    /// How the node's plan is altered on purpose.
    fn alters(&self, node: usize) -> fn(&mut Plan) {
        match self.broken {
            Some(Broken::Mangle(Mangle::OneLate)) if node + 1 < self.hosts.len() => |_| (),
            Some(Broken::Mangle(mangle)) => mangle.alter(),
            _ => |_| (),
        }
    }

    /// The daemon dies; its lease and its jobs do not. A guard thaws all processes.
    pub fn crash(&mut self, node: usize) {
        self.note(|| format!("n{node}: the daemon dies"));
        let is_single = self.is_single;
        let host = &mut self.hosts[node];
        host.processes.advance(self.now);
        // What a daemon knows of the state is on its disk.
        if let Some(kept) = host.member().and_then(Member::kept).filter(|_| !is_single) {
            host.settings.kept = Some(kept);
        }
        (host.node, host.plan, host.heard_plan) = (None, None, None);
        host.watches.clear();
        (host.hung_until, host.thawed) = (0, false);
        // No user waits for answers any more.
        host.asked.clear();
        host.requests.clear();
        self.tell(node, |_, _| ());
    }

    /// The whole machine dies with all its processes, and loses all record of them.
    pub fn power_off(&mut self, node: usize) {
        self.note(|| format!("n{node}: the machine dies"));
        self.crash(node);
        let host = &mut self.hosts[node];
        host.boots += 1;
        host.fences.clear();
        host.processes = Processes::new(host.capacity.cpus);
        host.processes.advance(self.now);
        host.mains.clear();
        self.set_wake(node);
    }

    /// The daemon hangs; a guard notices after a while.
    pub(super) fn hang(&mut self, node: usize, ns: u64) {
        self.note(|| format!("n{node}: the daemon hangs for {} ms", ns / MS));
        self.hosts[node].hung_until = self.now + ns;
        self.push(self.now + GUARD_NS, Event::Guards { node });
        self.push(self.now + ns, Event::Wakes { node });
    }

    pub(super) fn guards(&mut self, node: usize) {
        if self.now < self.hosts[node].hung_until && self.broken != Some(Broken::NoThaw) {
            self.hosts[node].thawed = true;
            self.tell(node, |_, _| ());
        }
    }

    /// The daemon continues, and sees what it missed.
    pub(super) fn wakes(&mut self, node: usize) {
        if self.now < self.hosts[node].hung_until {
            return;
        }
        self.handle(node, Input::Timeout);
        let parts = self.hosts[node].processes.parts.iter().filter(|(_, part)| !part.ended);
        let news: Vec<(JobId, bool)> = parts.map(|(job, part)| (*job, part.is_alive())).collect();
        for (job, populated) in news {
            self.handle(node, Input::Populated(job, populated));
        }
        self.launchers_report(node);
    }

    /// The clock is set. The kernel reports that it is not synchronised, and the daemon is notified.
    pub(super) fn step_clock(&mut self, node: usize, ns: i64) {
        self.note(|| format!("n{node}: the clock is set by {} ms", ns / MS as i64));
        let slow = self.dice.one_in(8);
        let looks = self.now + self.dice.between(MS, if slow { S } else { 20 * MS });
        let right = self.now + self.dice.between(2 * S, 20 * S);
        let host = &mut self.hosts[node];
        host.clock.step(ns);
        (host.disciplined, host.clock_seen) = (false, false);
        self.set_wake(node);
        self.push(looks, Event::LooksAtClock { node });
        self.push(right, Event::SetsClock { node });
    }

    /// The time service is lost: the clock drifts, and the kernel reports it.
    pub(super) fn lose_time(&mut self, node: usize, ns: u64) {
        self.note(|| format!("n{node}: no time service for {} ms", ns / MS));
        self.hosts[node].disciplined = false;
        self.push(self.now + S, Event::LooksAtClock { node });
        self.push(self.now + ns.max(2 * S), Event::SetsClock { node });
    }

    pub(super) fn sets_clock(&mut self, node: usize) {
        self.note(|| format!("n{node}: the clock is right again"));
        let host = &mut self.hosts[node];
        host.clock.set_right(self.now);
        (host.disciplined, host.clock_seen) = (true, false);
        self.set_wake(node);
        let looks = self.now + self.dice.between(100 * MS, 2 * S);
        self.push(looks, Event::LooksAtClock { node });
    }

    /// The daemon sees the present clock: if it hung while the clock was first set wrong and then corrected, it sees a correct
    /// clock.
    pub(super) fn looks_at_clock(&mut self, node: usize) {
        let hung_until = self.hosts[node].hung_until;
        if self.now < hung_until {
            return self.push(hung_until, Event::LooksAtClock { node });
        }
        let synchronised = self.hosts[node].disciplined;
        let clock = Clock { synchronised, error_ns: if synchronised { MS } else { S } };
        (self.hosts[node].clock_ok, self.hosts[node].clock_seen) = (synchronised, true);
        self.handle(node, Input::Clock(clock));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds 1051 and 2701: the check that found a wrong clock was delayed for longer than the one that found it correct again.
    #[test]
    fn a_daemon_that_hung_while_its_clock_was_set_sees_what_the_clock_is_then() {
        for seed in 0..4 {
            let mut world = World::started(seed, 2);
            world.hang(1, 15 * S);
            world.step_clock(1, -(5 * S as i64));
            world.run(3 * S);
            world.sets_clock(1);
            world.hosts[1].hung_until = world.now;
            world.wakes(1);
            world.run(60 * S);
            let in_use = world.hosts[1].member().and_then(Member::in_use);
            assert!(in_use.is_some(), "seed {seed}: no slots for ever");
        }
    }

    /// Seeds 9188 and 16852: slots were compared before the daemon had checked the clock, or by what an earlier daemon had seen.
    #[test]
    fn slots_count_when_the_daemon_has_seen_what_the_clock_is() {
        let mut world = World::started(0, 2);
        world.step_clock(1, 5 * S as i64);
        world.sets_clock(1);
        assert!(!world.hosts[1].is_sound(world.now), "it has not looked");
        world.run(5 * S);
        assert!(world.hosts[1].is_sound(world.now));
        world.hang(1, 15 * S);
        world.step_clock(1, 5 * S as i64);
        world.crash(1);
        world.start(1);
        assert!(!world.hosts[1].clock_ok, "it looks when it starts");
    }
}
