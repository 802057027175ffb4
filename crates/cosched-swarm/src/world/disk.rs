//! The disks of nodes: slow, full, or with errors; and the store of a single machine, which is a file on such a disk.
//!
//! As the daemon does it: the whole daemon waits for its disk. A write that fails, or takes longer than [`PATIENCE_NS`], has changed
//! nothing, and the store does not answer. On a full disk it answers nothing at all, and no daemon starts. Its leases end with the
//! daemon, and so do requests and answers that only their client would miss.

use super::{Event, MS, S, World};
use cosched_cluster::OpId;
use cosched_cluster::store::{Do, Event as Change, Key, MemoryStore, Op, Range, StoreError, Txn};
use cosched_core::Time;
use cosched_node::Input;

/// How long a daemon waits for its disk: a fifth of its lease.
const PATIENCE_NS: u64 = S;

impl World {
    /// A node's disk is full, bad or slow for a while.
    pub(super) fn disk_breaks(&mut self, node: usize, ns: u64) {
        let until = self.now + ns;
        let disk = &mut self.hosts[node].disk;
        match self.more.below(3) {
            0 => disk.full_until = until,
            1 => disk.errs_until = until,
            _ => disk.slow_until = until,
        }
        let disk = *disk;
        self.note(|| format!("n{node}: {disk:?}"));
    }

    /// A write to a node's disk, for which the daemon waits. Returns whether it succeeds.
    pub(super) fn writes_to_disk(&mut self, node: usize) -> bool {
        let (now, disk) = (self.now, self.hosts[node].disk);
        if now < disk.slow_until {
            let takes_ns = self.more.between(MS, 2 * PATIENCE_NS);
            self.hang(node, takes_ns.min(PATIENCE_NS));
            if takes_ns > PATIENCE_NS {
                return false;
            }
        }
        now >= disk.full_until && !(now < disk.errs_until && self.more.one_in(3))
    }

    /// A daemon cannot start: it cannot write its state.
    pub(super) fn cannot_start(&mut self, node: usize) -> bool {
        self.is_single && self.now < self.hosts[node].disk.full_until
    }

    /// An operation of a single machine's store.
    pub(super) fn asks_own(&mut self, node: usize, op: OpId, what: Op) {
        let life = self.hosts[node].life;
        let lasts = |change: &Change| change.entry.lease.is_none() && !self.keys.may_be_lost(&change.entry);
        let writes = match &what {
            Op::Txn(txn) => self.store.preview(txn).is_ok_and(|changes| changes.iter().any(lasts)),
            _ => false,
        };
        let is_full = self.now < self.hosts[node].disk.full_until;
        let done = match is_full || writes && !self.writes_to_disk(node) {
            true => Err(StoreError::Unavailable("the state cannot be written".to_owned())),
            false => self.carries_out_op((node, life), op, what),
        };
        self.push(self.now, Event::Answers { node, life, op, done });
    }

    /// A request that has no reply is not carried out.
    pub(super) fn withdraws(&mut self, node: usize, (request, reply): (Key, Key), then: Input) {
        if self.store.read(&Range::one(reply)).is_empty() {
            let txn = Txn { then: vec![Do::Delete(Range::one(request))], ..Txn::default() };
            let _ = self.store.call(self.store_time(), Op::Txn(txn));
            self.look_at_store();
            self.reply(node, then);
        }
    }

    /// What a single machine's store still has when the next daemon opens it.
    pub(super) fn reopens_store(&mut self) {
        let all = self.store.read(&Range::prefix(self.keys.prefix()));
        let lasting = all.into_iter().filter(|entry| entry.lease.is_none() && !self.keys.may_be_lost(entry));
        self.store = MemoryStore::restored(self.store.revision(), lasting.collect());
    }

    /// The time by which the store's leases expire: never, where they end with the daemon.
    pub(super) fn store_time(&self) -> Time {
        Time(if self.is_single { 0 } else { self.now })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{job, user};
    use cosched_node::Request;

    fn machine() -> World {
        let mut world = World::new(1, 1);
        world.is_single = true;
        let settings = &mut world.hosts[0].settings;
        (settings.is_shared, settings.fences) = (false, false);
        world.start(0);
        world.run(3 * S);
        world
    }

    fn asks_for_a_job(world: &mut World, name: &str) {
        let job = Box::new(job(name, 1));
        world.request(0, user(1), Request::Submit { owner: user(1), job, has_process: false });
        world.run(S);
    }

    fn names(world: &World) -> Vec<String> {
        world.jobs().into_iter().map(|job| job.ask.name).collect()
    }

    #[test]
    fn on_a_full_disk_jobs_are_refused_and_no_daemon_starts() {
        let mut world = machine();
        world.hosts[0].disk.full_until = world.now + 10 * S;
        asks_for_a_job(&mut world, "a");
        assert!(world.hosts[0].requests.is_empty(), "it is answered at once");
        world.crash(0);
        world.push(world.now, Event::Starts { node: 0 });
        world.run(5 * S);
        assert!(world.hosts[0].node.is_none());
        world.run(10 * S);
        asks_for_a_job(&mut world, "b");
        assert_eq!(names(&world), ["b"], "and what was refused is not done later");
        world.check();
    }

    #[test]
    fn a_daemon_waits_for_a_slow_disk_and_takes_a_slower_one_for_full() {
        let mut world = machine();
        world.hosts[0].disk.slow_until = world.now + 60 * S;
        for at in 0..20 {
            asks_for_a_job(&mut world, &format!("job {at}"));
            world.run(2 * S);
        }
        let done = names(&world).len();
        assert!((2..19).contains(&done), "{done} of 20");
        world.check();
    }
}
