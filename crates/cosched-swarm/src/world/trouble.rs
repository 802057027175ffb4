//! The faults of the world, and their end.

use super::{Event, S, World};
use cosched_cluster::Moment;
use cosched_cluster::wire::Measured;
use cosched_core::cluster::Period;
use cosched_node::Request;

impl World {
    /// A single fault occurs, chosen at random.
    pub fn something_breaks(&mut self) {
        let node = self.dice.below(self.hosts.len() as u64) as usize;
        let ns = self.dice.between(1, 15) * S;
        self.counts.faults += 1;
        match self.dice.below(28) {
            // A single machine has no network, and no store but its disk.
            0..=7 | 17..=19 | 21..=24 if self.is_single => self.disk_breaks(node, ns),
            0 => self.cuts_off(node, ns),
            1 => self.cuts_off(node, 60 * S),
            2 => {
                self.note(|| format!("n{node}: receives no answers for {} s", ns / S));
                self.hosts[node].deaf_until = self.now + ns;
            }
            3 => {
                self.note(|| format!("n{node}: watches report nothing for {} s", ns / S));
                self.hosts[node].blind_until = self.now + ns;
            }
            4 => self.loses_watches(node),
            5 => self.store_hangs(ns),
            6 => self.store_goes_away(ns),
            7 => self.store_goes_away(60 * S),
            8 => {
                self.crash(node);
                self.push(self.now + ns, Event::Starts { node });
            }
            9 => {
                // Often longer than a silent node is waited for before it is considered dead.
                self.crash(node);
                self.push(self.now + 4 * ns, Event::Starts { node });
            }
            10 => {
                // Starts again at once, before any other node has noticed.
                self.crash(node);
                self.push(self.now + S / 20, Event::Starts { node });
            }
            11 => {
                self.power_off(node);
                self.push(self.now + 2 * ns, Event::Starts { node });
            }
            12 => {
                self.power_off(node);
                self.push(self.now + 2 * S, Event::Starts { node });
            }
            13 => self.hang(node, 3 * ns),
            14 => self.step_clock(node, 5 * S as i64),
            15 => self.step_clock(node, -(5 * S as i64)),
            16 => self.lose_time(node, 4 * ns),
            17 => self.weather(ns),
            18 => {
                self.compacts = !self.compacts;
                self.note(|| "store: compacts often, or no longer".to_owned());
            }
            19 => self.takes_leave(node, ns),
            20 => self.other_capacity(node),
            21 => self.store_becomes_another(ns),
            22..=24 => self.slips(ns),
            _ => self.daily_life(node),
        }
    }

    fn cuts_off(&mut self, node: usize, ns: u64) {
        self.note(|| format!("n{node}: cut off for {} s", ns / S));
        self.hosts[node].cut_until = self.now + ns;
    }

    pub(super) fn loses_watches(&mut self, node: usize) {
        self.note(|| format!("n{node}: loses its watches"));
        let life = self.hosts[node].life;
        let ids: Vec<_> = self.hosts[node].watches.keys().copied().collect();
        ids.into_iter().for_each(|watch| self.push(self.now, Event::Cuts { node, life, watch }));
    }

    fn store_hangs(&mut self, ns: u64) {
        self.note(|| format!("store: hangs for {} s", ns / S));
        self.store_stops_until = self.now + ns;
    }

    /// The store is restarted with its data: all watches end.
    pub(super) fn store_goes_away(&mut self, ns: u64) {
        self.note(|| format!("store: unreachable for {} s", ns / S));
        self.store_away_until = self.now + ns;
        self.push(self.now + ns, Event::StoreIsBack);
        (0..self.hosts.len()).for_each(|node| self.loses_watches(node));
    }

    /// Messages are lost, or late.
    fn weather(&mut self, ns: u64) {
        self.lossy = self.dice.below(60);
        self.slow = self.dice.below(60);
        let (lossy, slow) = (self.lossy, self.slow);
        self.note(|| format!("network: {lossy} of 1000 lost, {slow} of 1000 late"));
        self.push(self.now + 2 * ns, Event::Clears);
    }

    /// An operator stops a daemon in an orderly way, and restarts it later.
    fn takes_leave(&mut self, node: usize, ns: u64) {
        self.note(|| format!("n{node}: leaves the cluster"));
        self.tell(node, |member, now| member.leave(now));
        self.push(self.now + 2 * S, Event::Leaves { node, starts_after: ns });
    }

    /// A node gets more or fewer resources than before.
    fn other_capacity(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        let whole = host.memory_bytes_whole;
        host.capacity.memory_bytes = if host.capacity.memory_bytes == whole { whole / 2 } else { whole };
        let capacity = host.capacity;
        self.note(|| format!("n{node}: has {} bytes of memory", capacity.memory_bytes));
        self.tell(node, |member, now| member.capacity(now, capacity));
    }

    /// An ordinary event that is no fault, but changes the plan.
    fn daily_life(&mut self, node: usize) {
        let threads = self.dice.below(10) as u32;
        let period = self.dice.pick(&[Period::Working, Period::Off]);
        self.note(|| format!("n{node}: {threads} other threads; {period:?}"));
        self.tell(node, |member, now| {
            member.load(now, threads);
            member.measured(now, measured(now, 1000 * threads));
        });
        self.request(node, super::users::ROOT, Request::Loads(None));
        (0..self.hosts.len()).for_each(|node| self.tell(node, |member, now| member.calendar(now, period)));
    }

    /// Ends all faults.
    pub fn all_is_well_again(&mut self) {
        self.note(|| "all is well again".to_owned());
        (self.lossy, self.slow, self.compacts) = (0, 0, false);
        self.calm = true;
        if self.now < self.store_away_until {
            self.store_away_until = self.now;
            self.comes_back();
        }
        self.store_stops_until = self.store_stops_until.min(self.now);
        self.accepts_all();
        self.freezers.late_one_in = 0;
        if !self.is_single {
            self.push(self.now + S, Event::Repairs);
        }
        self.twins_go();
        for node in (0..self.hosts.len()).filter(|node| !self.hosts[*node].is_gone).collect::<Vec<_>>() {
            let host = &mut self.hosts[node];
            (host.cut_until, host.deaf_until, host.blind_until) = (0, 0, 0);
            host.hung_until = host.hung_until.min(self.now);
            self.wakes(node);
            let host = &mut self.hosts[node];
            if host.member().is_none_or(|member| member.out().is_some()) {
                self.crash(node);
                self.start(node);
            }
            if !self.hosts[node].disciplined || !self.hosts[node].clock_ok {
                self.sets_clock(node);
            }
            self.hosts[node].capacity.memory_bytes = self.hosts[node].memory_bytes_whole;
            let capacity = self.hosts[node].capacity;
            let boasts = self.broken == Some(super::Broken::Boasts);
            self.tell(node, |member, now| {
                member.load(now, 0);
                member.measured(now, measured(now, 0));
                if !boasts {
                    member.capacity(now, capacity);
                }
            });
        }
    }
}

/// A measurement with this load, in thousandths.
pub(super) fn measured(now: Moment, load_milli: u32) -> Measured {
    Measured { at_ns: now.wall.0, runnable: load_milli / 1000, load_milli: [load_milli; 3], memory_available_bytes: 0 }
}
