//! The run queue of one CPU: earliest eligible virtual deadline first, with weights, slices and classes.
//!
//! Rule. A thread's virtual time grows by its CPU time, times 1024 over its weight. A thread whose virtual time is not
//! above the weighted mean of all is eligible; the eligible thread with the earliest deadline (virtual time plus slice
//! over weight at its last renewal) runs. A thread that has just got the CPU keeps it for the shortest slice in the queue
//! as long as it is eligible; a shorter slice than its own ends that when its owner wakes up. `SCHED_FIFO` takes
//! precedence over all of them. Source: Linux 6.17, `kernel/sched/fair.c` (`pick_eevdf`, `place_entity`,
//! `update_deadline`, `set_protect_slice`, `do_preempt_short`, `check_preempt_wakeup_fair`), `sched_prio_to_weight` in
//! `core.c`. Simplifications are listed in docs/pipeline-rules.md. Units: ns.

use cosched_core::stage::Class;

/// `sched_prio_to_weight`: the weight of nice −20 to 19.
const WEIGHTS: [i64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// The weight of `SCHED_IDLE`.
const WEIGHT_IDLE: i64 = 3;

/// The unit of weights: that of nice 0.
const UNIT: i64 = 1024;

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attr {
    pub(crate) nice: i8,
    pub(crate) slice_ns: i64,
    pub(crate) class: Class,
    /// How far it can be ahead or behind when it sleeps: two slices, at least a tick (`entity_lag`).
    pub(crate) lag_ns_max: i64,
}

impl Attr {
    pub(crate) fn weight(&self) -> i64 {
        match self.class {
            Class::Idle => WEIGHT_IDLE,
            _ => WEIGHTS[(i64::from(self.nice).clamp(-20, 19) + 20) as usize],
        }
    }

    fn real_time(&self) -> Option<u8> {
        if let Class::Fifo(priority) = self.class { Some(priority) } else { None }
    }

    /// Converts a time of a thread of this weight to virtual time.
    fn virtual_ns(&self, ns: i64) -> i64 {
        (i128::from(ns) * i128::from(UNIT) / i128::from(self.weight())) as i64
    }
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    thread: usize,
    attr: Attr,
    virtual_ns: i64,
    deadline_ns: i64,
    /// Until its virtual time is past this, others do not get its CPU.
    protected_ns: i64,
}

/// The runnable threads of one CPU, including the running one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    entities: Vec<Entity>,
    current: Option<usize>,
    /// The mean virtual time when the last thread left.
    base_ns: i64,
}

impl Queue {
    pub(crate) fn current(&self) -> Option<usize> {
        self.current
    }

    /// The number of threads on this CPU, running or not.
    pub(crate) fn len(&self) -> usize {
        self.entities.len()
    }

    /// The threads that wait for this CPU.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = usize> {
        self.entities.iter().map(|e| e.thread).filter(|thread| Some(*thread) != self.current)
    }

    /// Whether a thread waits.
    pub(crate) fn is_wanted(&self) -> bool {
        self.entities.len() > usize::from(self.current.is_some())
    }

    /// The total weight of its threads.
    pub(crate) fn load(&self) -> i64 {
        self.entities.iter().map(|e| e.attr.weight()).sum()
    }

    fn fair(&self) -> impl Iterator<Item = &Entity> {
        self.entities.iter().filter(|e| e.attr.real_time().is_none())
    }

    /// The weighted mean virtual time.
    pub(crate) fn mean_ns(&self) -> i64 {
        let (sum, weights) = self.fair().fold((0_i128, 0_i128), |(sum, weights), e| {
            let weight = i128::from(e.attr.weight());
            (sum + weight * i128::from(e.virtual_ns - self.base_ns), weights + weight)
        });
        if weights == 0 { self.base_ns } else { self.base_ns + sum.div_euclid(weights) as i64 }
    }

    fn find(&mut self, thread: usize) -> Option<&mut Entity> {
        self.entities.iter_mut().find(|e| e.thread == thread)
    }

    /// A thread becomes runnable, and is behind the mean by `lag_ns` of virtual time. The mean moves when it comes, so the
    /// lag is scaled so that it is the same afterwards.
    pub(crate) fn add(&mut self, thread: usize, attr: Attr, lag_ns: i64) {
        let weight = attr.weight();
        let load: i64 = self.fair().map(|e| e.attr.weight()).sum();
        let lag_ns =
            if load == 0 { 0 } else { (i128::from(lag_ns) * i128::from(load + weight) / i128::from(load)) as i64 };
        let virtual_ns = self.mean_ns() - lag_ns;
        let deadline_ns = virtual_ns + attr.virtual_ns(attr.slice_ns);
        self.entities.push(Entity { thread, attr, virtual_ns, deadline_ns, protected_ns: virtual_ns });
    }

    /// A thread sleeps, ends or moves to another CPU. Returns its lag, within its bounds.
    pub(crate) fn remove(&mut self, thread: usize) -> i64 {
        let mean_ns = self.mean_ns();
        let Some(place) = self.entities.iter().position(|e| e.thread == thread) else { return 0 };
        let gone = self.entities.remove(place);
        self.base_ns = mean_ns;
        if self.current == Some(thread) {
            self.current = None;
        }
        if gone.attr.real_time().is_some() {
            return 0;
        }
        let bound_ns = gone.attr.virtual_ns(gone.attr.lag_ns_max);
        (mean_ns - gone.virtual_ns).clamp(-bound_ns, bound_ns)
    }

    /// Accounts for CPU time of the running thread.
    pub(crate) fn charge(&mut self, ns: u64) {
        let Some(thread) = self.current else { return };
        if let Some(entity) = self.find(thread) {
            entity.virtual_ns += entity.attr.virtual_ns(ns as i64);
            if entity.virtual_ns >= entity.deadline_ns {
                entity.deadline_ns = entity.virtual_ns + entity.attr.virtual_ns(entity.attr.slice_ns);
                entity.protected_ns = entity.virtual_ns;
            }
        }
    }

    /// Sets new attributes: the lag stays the same, in the thread's own time.
    pub(crate) fn change(&mut self, thread: usize, attr: Attr) {
        let is_current = self.current == Some(thread);
        let Some(entity) = self.find(thread).copied() else { return };
        let lag_ns = self.remove(thread) * entity.attr.weight() / attr.weight();
        self.add(thread, attr, lag_ns);
        if is_current {
            self.begin(thread);
        }
    }

    fn eligible(&self, entity: &Entity) -> bool {
        entity.virtual_ns <= self.mean_ns()
    }

    /// Whether a thread that has just woken up takes the CPU from the running one.
    pub(crate) fn preempts(&mut self, woken: usize) -> bool {
        let Some(current) = self.current else { return true };
        let (Some(new), Some(old)) = (self.find(woken).copied(), self.find(current).copied()) else { return false };
        match (new.attr.real_time(), old.attr.real_time()) {
            (Some(new), Some(old)) => return new > old,
            (Some(_), None) => return true,
            (None, Some(_)) => return false,
            (None, None) => {}
        }
        match (old.attr.class == Class::Idle, new.attr.class == Class::Idle) {
            (true, false) => return true,
            (false, true) => return false,
            _ if new.attr.class != Class::Normal => return false,
            _ => {}
        }
        let shorter = new.attr.slice_ns < old.attr.slice_ns && self.eligible(&new);
        if shorter
            && (new.deadline_ns < old.deadline_ns || !self.eligible(&old))
            && let Some(old) = self.find(current)
        {
            old.protected_ns = old.virtual_ns;
        }
        self.choose() == Some(woken)
    }

    /// The thread that should run now, which may be the running one.
    pub(crate) fn choose(&self) -> Option<usize> {
        let urgent = self.entities.iter().filter_map(|e| Some((e.attr.real_time()?, e.thread)));
        // Among equals the running one, then the one that came first.
        let most = urgent.reduce(|best, next| {
            let runs = |(_, thread): (u8, usize)| self.current == Some(thread);
            if next.0 > best.0 || (next.0 == best.0 && runs(next)) { next } else { best }
        });
        if let Some((_, thread)) = most {
            return Some(thread);
        }
        let held = self.fair().find(|e| self.current == Some(e.thread)).filter(|e| self.eligible(e));
        if let Some(held) = held.filter(|e| e.virtual_ns < e.protected_ns) {
            return Some(held.thread);
        }
        let mean_ns = self.mean_ns();
        let eligible = self.fair().filter(|e| e.virtual_ns <= mean_ns);
        eligible.min_by_key(|e| (e.deadline_ns, self.current != Some(e.thread))).map(|e| e.thread)
    }

    /// This thread runs from now on.
    pub(crate) fn begin(&mut self, thread: usize) {
        self.current = Some(thread);
        let shortest_ns = self.fair().map(|e| e.attr.slice_ns).min().unwrap_or(0);
        if let Some(entity) = self.find(thread) {
            let slice_ns = entity.attr.virtual_ns(shortest_ns.min(entity.attr.slice_ns));
            entity.protected_ns = entity.deadline_ns.min(entity.virtual_ns + slice_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: i64 = 1_000_000;

    fn attr(nice: i8, slice_ns: i64, class: Class) -> Attr {
        Attr { nice, slice_ns, class, lag_ns_max: 2 * SLICE }
    }

    fn normal() -> Attr {
        attr(0, SLICE, Class::Normal)
    }

    /// Thread 0 runs and has had `ran_ns`; thread 1 with these attributes woke up, without lag.
    fn pair(ran_ns: u64, woken: Attr) -> Queue {
        let mut queue = Queue::default();
        queue.add(0, normal(), 0);
        queue.begin(0);
        queue.charge(ran_ns);
        queue.add(1, woken, 0);
        queue
    }

    /// CPU time of threads with these attributes that never sleep, with a check every `tick_ns`.
    fn shares(attrs: &[Attr], tick_ns: u64, ticks: u32) -> Vec<u64> {
        let mut queue = Queue::default();
        attrs.iter().enumerate().for_each(|(thread, attr)| queue.add(thread, *attr, 0));
        let mut had = vec![0; attrs.len()];
        for _ in 0..ticks {
            let next = queue.choose().unwrap();
            if queue.current() != Some(next) {
                queue.begin(next);
            }
            queue.charge(tick_ns);
            had[next] += tick_ns;
        }
        had
    }

    #[test]
    fn cpu_time_goes_by_weight() {
        let had = shares(&[normal(), attr(5, SLICE, Class::Normal), attr(-5, SLICE, Class::Normal)], 100_000, 100_000);
        let of = |thread: usize| had[thread] as f64 / had[0] as f64;
        assert!((of(1) - 335.0 / 1024.0).abs() < 0.01 && (of(2) - 3121.0 / 1024.0).abs() < 0.01, "{had:?}");
        let had = shares(&[normal(), attr(0, SLICE, Class::Idle)], 100_000, 100_000);
        assert!((had[1] as f64 / had[0] as f64 - 3.0 / 1024.0).abs() < 0.001, "{had:?}");
        let had = shares(&[normal(), attr(0, 10 * SLICE, Class::Batch)], 100_000, 100_000);
        assert!((had[1] as f64 / had[0] as f64 - 1.0).abs() < 0.01, "a slice is no share: {had:?}");
    }

    #[test]
    fn who_wakes_up_waits_for_the_slice_of_who_runs() {
        // Both came without lag: the running one is eligible until it has had more than the mean.
        assert!(!pair(0, normal()).preempts(1));
        let mut queue = pair(0, normal());
        queue.charge(500_000);
        assert!(queue.preempts(1), "it is behind, and the other is not eligible");
    }

    #[test]
    fn a_shorter_slice_does_not_wait() {
        assert!(pair(0, attr(0, SLICE / 10, Class::Normal)).preempts(1));
        assert!(!pair(0, attr(0, SLICE * 10, Class::Normal)).preempts(1));
    }

    #[test]
    fn batch_never_preempts_and_idle_is_always_preempted() {
        let mut queue = pair(0, attr(0, SLICE / 10, Class::Batch));
        queue.charge(500_000);
        assert!(!queue.preempts(1));
        assert_eq!(queue.choose(), Some(1), "it comes at the next look");
        let mut queue = Queue::default();
        queue.add(0, attr(0, SLICE, Class::Idle), 0);
        queue.begin(0);
        queue.add(1, attr(0, SLICE, Class::Batch), 0);
        assert!(queue.preempts(1));
    }

    #[test]
    fn fifo_goes_first_and_is_left_alone() {
        let fifo = |priority| attr(0, SLICE, Class::Fifo(priority));
        let mut queue = pair(0, fifo(1));
        assert!(queue.preempts(1));
        queue.begin(1);
        queue.charge(1_000_000_000);
        assert_eq!(queue.choose(), Some(1));
        queue.add(2, fifo(1), 0);
        assert!(!queue.preempts(2), "equals wait");
        queue.add(3, fifo(2), 0);
        assert!(queue.preempts(3));
    }

    #[test]
    fn lag_survives_sleep_within_bounds() {
        let mut queue = pair(0, normal());
        queue.charge(600_000);
        assert_eq!(queue.remove(0), -300_000);
        queue.add(0, normal(), -300_000);
        let of_0 = queue.find(0).unwrap().virtual_ns;
        assert_eq!(queue.mean_ns() - of_0, -300_000);
        let mut queue = pair(0, normal());
        queue.charge(100_000_000);
        assert_eq!(queue.remove(0), -2 * SLICE);
    }

    #[test]
    fn a_change_keeps_the_lag_in_the_threads_own_time() {
        let mut queue = pair(0, normal());
        queue.charge(600_000);
        queue.change(0, attr(5, SLICE, Class::Normal));
        assert_eq!(queue.current(), Some(0));
        let of_0 = queue.find(0).unwrap().virtual_ns;
        let lag_ns = (queue.mean_ns() - of_0) * 335 / 1024;
        assert!((lag_ns + 300_000).abs() < 1_000, "{lag_ns}");
    }
}
