//! Which machine may take part under a name.
//!
//! Problem: another machine that is given the name of a node that is out of touch looks like a reboot of it, after which the node's jobs are
//! begun again while they still run there. Rule. A name's record says for which machine the plan has jobs; another machine gets the name
//! when there are none left: they have ended, were moved, or an administrator has declared the node dead.

use super::Member;
use super::types::{Notice, Settings};
use crate::wire::Node;
use cosched_core::NodeId;
use cosched_core::cluster::NEVER;

/// The interval at which a member checks whether its name has become free, in nanoseconds.
const NAME_RETRY_NS: u64 = 500_000_000;

/// The same while the name is kept for another machine.
const NAME_KEPT_RETRY_NS: u64 = 3_000_000_000;

impl Member {
    /// Whether this daemon may not have its name, now or ever: another one has it, or another machine.
    pub(super) fn is_refused(&mut self) -> bool {
        let Settings { name, home, instance, dead, .. } = &self.settings;
        let live = self.replica.nodes.get(name).map(|live| &live.value.node).filter(|node| node.instance != *instance);
        let is_dead =
            |node: &Node| node.home == *home && dead.as_ref().is_none_or(|dead| dead.contains(&node.instance));
        if let Some(other) = live.filter(|node| !is_dead(node)).map(|node| node.home.clone()) {
            self.name_is_taken(&other);
            return true;
        }
        self.session.name_taken_since = None;
        let Some(home) = self.kept_for().filter(|_| !self.is_long_alone()) else {
            self.session.name_kept_since = None;
            return false;
        };
        self.name_is_kept(&home);
        true
    }

    /// Whether no node has taken part for so long that the machine, for which the name is kept, is dead and has ended those of its jobs that others
    /// restart. Else a cluster all of whose machines were replaced would wait for ever for a node that declares one of them dead.
    fn is_long_alone(&mut self) -> bool {
        let (now, revision) = (self.now.steady, self.replica.state_revision());
        let since = match self.session.name_kept_since {
            Some((since, of)) if of == revision && self.replica.nodes.is_empty() => since,
            _ => now,
        };
        self.session.name_kept_since = Some((since, revision));
        let dead_after_ns = self.state().map_or(NEVER, |state| state.config.node_dead_after_ns);
        dead_after_ns != NEVER && now - since > dead_after_ns + self.settings.fence_margin_ns(dead_after_ns)
    }

    /// The machine whose jobs the plan has under this name, if that is another one than this: it may be out of touch, with these jobs,
    /// and a daemon that takes part under its name would be a reboot of it, after which they are begun again elsewhere.
    fn kept_for(&self) -> Option<String> {
        let own = &self.settings.name;
        let by_number = || self.replica.ids.iter().find(|(_, at)| at.value == *own).map(|(id, _)| *id);
        let id = self.replica.names.get(own).copied().or_else(by_number)?;
        if !self.settings.is_shared || !self.replica.has_jobs(NodeId(id)) {
            return None;
        }
        // Its jobs are here, wherever its state directory is now.
        if self.local.is_busy() && self.is_counted() {
            return None;
        }
        match self.replica.homes.get(own) {
            Some(home) => (*home != self.settings.home).then(|| home.clone()),
            // The name was deleted. A machine that had it once remembers that.
            None => {
                let kept =
                    self.settings.kept.as_ref().is_some_and(|kept| self.tree == Some(kept.tree) && kept.id == id);
                let was_here = kept || self.session.was_joined;
                (!was_here).then(|| "a machine that is not known".to_owned())
            }
        }
    }

    /// Tried again until the jobs are elsewhere or over.
    fn name_is_kept(&mut self, home: &str) {
        let name = &self.settings.name;
        let why = format!(
            "the name {name} is kept for another machine, {home}, which is out of touch and may still run jobs. If it is gone for \
             good, `cosched nodes --dead {name}` on another node gives its jobs up, and this machine takes its place; else give this \
             one a name of its own (`node` in cosched.toml)"
        );
        if self.session.said.as_ref() != Some(&why) {
            self.session.said = Some(why.clone());
            self.say(Notice::Unusable(why));
        }
        self.away(NAME_KEPT_RETRY_NS);
    }

    /// Another daemon has the name. If it is dead its lease expires; otherwise there are two daemons of this name.
    fn name_is_taken(&mut self, home: &str) {
        let since = *self.session.name_taken_since.get_or_insert(self.now.steady);
        if self.now.steady - since <= self.settings.grace_ns() {
            return self.away(NAME_RETRY_NS);
        }
        let name = &self.settings.name;
        if *home == self.settings.home {
            return self.give_up(format!(
                "the name {name} is taken by a copy of this machine: a running coschedd with the same machine-id and \
                 state directory, {home}, takes part in this cluster as {name}. Give this machine a machine-id and a \
                 `node` of its own, and an empty state directory; the other machine is not affected"
            ));
        }
        self.give_up(format!(
            "the name {name} is taken: another coschedd, {home}, takes part in this cluster as {name}. Give each node a \
             name of its own (`node` in cosched.toml), or stop the other daemon"
        ));
    }
}
