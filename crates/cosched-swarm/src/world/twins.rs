//! Another machine is given the name of a node, by mistake or in its place.

use super::{Event, ROOT, S, World};
use cosched_cluster::Member;
use cosched_cluster::wire::Ask;

/// The first boot of such a machine.
const TWINS_BOOTS: u64 = 1000;

impl World {
    /// Adds a machine that has a node's name, and starts it at some time within `ns`.
    pub(crate) fn will_have_twin(&mut self, ns: u64) {
        let of = self.twins.below(self.hosts.len() as u64) as usize;
        let twin = self.add_host(&self.hosts[of].name.clone());
        let [copy, original] = self.hosts.get_disjoint_mut([twin, of]).unwrap_or_else(|e| unreachable!("{e}"));
        let home = std::mem::take(&mut copy.settings.home);
        copy.settings = cosched_cluster::Settings { home, ..original.settings.clone() };
        copy.settings.kept = None;
        copy.set_capacity(original.capacity);
        copy.twin_of = Some(of);
        // No two machines have had the same boot.
        copy.boots = TWINS_BOOTS;
        let mut boots = self.twins.between(1, 3);
        // Often just after the original has gone.
        while boots > 0 {
            let at = self.now + self.twins.below(ns);
            self.push(at, Event::Starts { node: twin });
            if self.twins.one_in(2) {
                let before = at.saturating_sub(self.twins.below(20 * S)).max(self.now);
                self.push(before, Event::Fails { node: of });
            }
            boots -= 1;
        }
    }

    /// A machine fails, and is back after a while that is often longer than its lease.
    pub(super) fn fails(&mut self, node: usize) {
        let ns = self.twins.between(1, 60) * S;
        match self.twins.below(3) {
            0 => {
                self.power_off(node);
                self.push(self.now + ns, Event::Starts { node });
            }
            1 => {
                self.crash(node);
                self.push(self.now + ns, Event::Starts { node });
            }
            _ => {
                self.note(|| format!("n{node}: cut off for {} s", ns / S));
                self.hosts[node].cut_until = self.now + ns;
            }
        }
    }

    /// An operator sees the mistake: the machine is switched off for ever, and the jobs that it had are given up.
    pub(super) fn twins_go(&mut self) {
        for twin in (0..self.hosts.len()).filter(|node| self.hosts[*node].twin_of.is_some()).collect::<Vec<_>>() {
            self.power_off(twin);
            self.hosts[twin].is_gone = true;
            self.push(self.now + S, Event::DeclaresDead { twin });
        }
    }

    /// Until the original takes part again.
    pub(super) fn declares_dead(&mut self, twin: usize) {
        let Some(of) = self.hosts[twin].twin_of else { return };
        if self.hosts[of].member().is_some_and(Member::is_joined) {
            return;
        }
        // What it said when it gave up: the other daemon is stopped now.
        if self.hosts[of].member().is_some_and(|member| member.out().is_some()) {
            self.crash(of);
            self.start(of);
        }
        let node = self.hosts[twin].name.clone();
        if let Some(other) = (0..self.hosts.len()).find(|other| ![of, twin].contains(other)) {
            self.ask(other, ROOT, Ask::Dead { node });
        }
        self.push(self.now + 5 * S, Event::DeclaresDead { twin });
    }
}
