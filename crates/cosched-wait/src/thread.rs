//! How one thread waits: its row of calls that found nothing, and the reaction to it.
//!
//! A row begins with the first call that finds nothing and ends with the first that finds something, with the end of the MPI call in which it is, or
//! with a gap in which the thread computed, or blocked by itself. A gap in which it only waited in the queue of a CPU does not end it.

use crate::crowd::{self, Crowd, Queueing};
use crate::hooks::progress;
use crate::row::Row;
use crate::{local, real, shared, sys};
use core::cell::{Cell, RefCell};
use core::ptr::null;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{compiler_fence, fence};
use cosched_core::wait::page::{self, ADAPTIVE, BLOCKED, COMPUTING, SPINNING};
use cosched_core::wait::spin::{Ended, SpinConfig, SpinRule};
use libc::{pollfd, sigset_t};

/// The number of calls that pass between two checks for a crowd.
const PASS: u32 = 255;
/// How often a thread in a crowd checks whether there still is one, in ns.
const LOOK_EVERY_NS: u64 = 10_000_000;
/// A longer computation between two calls ends the row, in ns. A thread that only yields does nothing else between two yields, and the event that it
/// waited for is not seen here; so even a short computation shows that the event has arrived.
const GAP_NS: u64 = 100_000;
const YIELD_GAP_NS: u64 = 5_000;
/// The limit of a block is this part (1/4) of the time waited so far,
const BLOCK_PART: u64 = 4;
/// within these bounds, in ns.
const BLOCK_NS_MIN: u64 = 20_000;
const BLOCK_NS_MAX: u64 = 4_000_000;

/// In an MPI call, the first part of a wait is spent yielding before the thread sleeps: a yield among ranks that all yield costs less than a sleep
/// and a wake-up. Not where others want the CPU and a descriptor can wake the thread.
const YIELD_FIRST_NS: u64 = 1_000_000;
/// After this number of waits that ended by descriptors, the lower bound of a block on them is this, in ns.
const BY_DESCRIPTOR_SURE: i8 = 4;
const BLOCK_NS_SURE: u64 = 1_000_000;
/// Outside MPI's calls the limit of a progress loop's sleep is this, in ns: not every end of a wait is seen.
const BLOCK_NS_UNSURE: u64 = 200_000;

/// What to do after a call that found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Return and be called again.
    Spin,
    /// Block.
    Block,
    /// Yield the CPU.
    Yield,
}

/// The state of a thread. It has no destructor, so that it is plain thread-local memory.
pub(crate) struct Thread {
    /// This code is running: a call from a signal handler in this state only passes.
    inside: Cell<bool>,
    mode: Cell<u32>,
    spin_ns: Cell<u64>,
    adaptive: Cell<bool>,
    crowd: Cell<Crowd>,
    look_ns: Cell<u64>,
    queueing: Queueing,
    /// The nesting depth of this thread's MPI calls.
    depth: Cell<u32>,
    rule: RefCell<SpinRule>,
    row: Row,
    counts: Counts,
}

/// Counts that are not yet in the slot, in the order of [`shared::counters`].
struct Counts([Cell<u64>; 8]);

#[derive(Clone, Copy)]
enum Count {
    Polls,
    Waits,
    Spins,
    Blocks,
    Yields,
    SpinNs,
    BlockNs,
    Timeouts,
}

impl Thread {
    /// A thread that has not waited yet.
    fn new() -> Self {
        Thread {
            inside: Cell::new(false),
            mode: Cell::new(page::BUSY),
            spin_ns: Cell::new(0),
            adaptive: Cell::new(false),
            crowd: Cell::new(Crowd::None),
            look_ns: Cell::new(0),
            queueing: Queueing::new(),
            depth: Cell::new(0),
            rule: RefCell::new(SpinRule::new(SpinConfig::LIVE)),
            row: Row::default(),
            counts: Counts([const { Cell::new(0) }; 8]),
        }
    }
}

/// The calling thread.
fn this() -> &'static Thread {
    // SAFETY: nothing else is kept, and it has no destructor.
    unsafe { local::kept(Thread::new) }
}

/// Begins a call that polls without waiting. `None`: it is to pass as it is. Otherwise [`Thread::leave`] must follow.
#[inline]
pub(crate) fn enter() -> Option<&'static Thread> {
    let passed = local::passed();
    if passed.get() < PASS {
        passed.set(passed.get() + 1);
        return None;
    }
    enter_slowly()
}

#[inline(never)]
fn enter_slowly() -> Option<&'static Thread> {
    let thread = this();
    if thread.inside.get() {
        return None;
    }
    thread.begin();
    if thread.mode.get() == page::BUSY {
        thread.add(Count::Polls, u64::from(PASS));
        if !thread.look(sys::now_ns()) {
            thread.leave();
            return None;
        }
    }
    Some(thread)
}

/// To be called when an MPI call of this thread begins. True in a crowd: then [`leave_mpi`] must follow.
#[inline]
pub(crate) fn enter_mpi() -> bool {
    local::passed().get() == local::CROWD && this().enter_mpi()
}

/// To be called when such an MPI call ends.
pub(crate) fn leave_mpi() {
    this().leave_mpi();
}

/// To be called when a test of MPI's has succeeded.
pub(crate) fn found_by_test() {
    if local::passed().get() == local::CROWD {
        let thread = this();
        if !thread.inside.get() {
            thread.begin();
            thread.end_active_row();
            thread.leave();
        }
    }
}

/// Wakes the job's threads that sleep on the doorbell.
fn ring() {
    let head = shared::head();
    fence(SeqCst);
    if head.sleepers.load(Relaxed) > 0 {
        head.doorbell.fetch_add(1, SeqCst);
        let saved = sys::errno();
        sys::futex_wake(&head.doorbell);
        sys::set_errno(saved);
    }
}

/// Resets the state in a forked child.
pub(crate) fn forget() {
    let thread = this();
    thread.row.active.set(false);
    thread.row.announced.set(false);
    thread.inside.set(false);
    local::passed().set(0);
    local::tests().set(0);
    thread.mode.set(page::BUSY);
    thread.depth.set(0);
    thread.counts.0.iter().for_each(|count| count.set(0));
}

/// At exit: writes the remaining counts to the slot.
pub(crate) fn finish() {
    if local::passed().get() == 0 && !shared::polls() {
        return;
    }
    let thread = this();
    if thread.mode.get() == page::BUSY {
        thread.add(Count::Polls, u64::from(local::passed().get().min(PASS)));
    }
    thread.flush();
    shared::slot().state.store(COMPUTING, Relaxed);
}

impl Thread {
    fn begin(&self) {
        self.inside.set(true);
        compiler_fence(SeqCst);
    }

    /// Ends what [`enter`] began.
    pub(crate) fn leave(&self) {
        compiler_fence(SeqCst);
        self.inside.set(false);
    }

    /// Decides whether to do anything at all, and how. False: the next calls pass.
    #[cold]
    fn look(&self, now_ns: u64) -> bool {
        let (mode, spin_us) = crowd::orders();
        shared::take_slot();
        let crowd = match mode {
            page::BUSY => Crowd::None,
            _ => self.queueing.crowd(now_ns),
        };
        let crowd = match crowd {
            Crowd::OwnJob if progress::yields_by_itself() => Crowd::None,
            crowd => crowd,
        };
        let on = crowd != Crowd::None;
        self.crowd.set(crowd);
        self.look_ns.set(now_ns + LOOK_EVERY_NS);
        self.mode.set(if on { mode } else { page::BUSY });
        local::passed().set(if on { local::CROWD } else { 0 });
        self.adaptive.set(spin_us == ADAPTIVE);
        self.take_spin_time(spin_us);
        progress::prefer_yields(on);
        if !on {
            self.drop_row();
            shared::slot().state.store(COMPUTING, Relaxed);
            self.flush();
        }
        on
    }

    fn end_active_row(&self) {
        if self.row.active.get() {
            self.end_row(sys::now_ns(), false);
        }
    }

    fn drop_row(&self) {
        if self.row.active.get() {
            self.row.calls.set(0);
            self.end_row(self.row.last_ns.get(), false);
        }
    }

    /// An MPI call begins: it is a new wait, whatever it waits for.
    fn enter_mpi(&self) -> bool {
        if self.inside.get() {
            return false;
        }
        self.begin();
        if self.depth.get() == 0 {
            self.drop_row();
        }
        self.depth.set(self.depth.get() + 1);
        self.leave();
        true
    }

    /// A call that asks for events begins.
    pub(crate) fn asks(&self) {
        if !self.in_mpi() {
            self.row.called_ns.set(sys::now_ns());
        }
    }

    /// Marks the row as one of a progress loop that reports what it finds.
    pub(crate) fn loop_tells(&self) {
        self.row.tells.set(true);
    }

    /// Whether it is in an MPI call.
    pub(crate) fn in_mpi(&self) -> bool {
        self.depth.get() > 0
    }

    /// Whether an MPI call spins without yielding: with a fixed spin time, if only others are the crowd. A gang has its CPUs for itself.
    pub(crate) fn spins_out(&self) -> bool {
        self.in_mpi() && !self.adaptive.get() && self.crowd.get() == Crowd::Others
    }

    /// Whether only this job's own processes want the CPUs.
    fn own_crowd(&self) -> bool {
        self.crowd.get() == Crowd::OwnJob
    }

    /// An MPI call ends, and with it the wait. It may have sent something.
    fn leave_mpi(&self) {
        self.begin();
        self.depth.set(self.depth.get().saturating_sub(1));
        if self.depth.get() == 0 {
            self.end_active_row();
            ring();
        }
        self.leave();
    }

    fn take_spin_time(&self, spin_us: u32) {
        let spin_ns = if self.adaptive.get() { self.rule.borrow().spin_ns() } else { u64::from(spin_us) * 1_000 };
        self.spin_ns.set(spin_ns);
        shared::slot().spin_us.store((spin_ns / 1_000) as u32, Relaxed);
    }

    /// A call found something, or failed: the wait is over. A failure gives no information about descriptors.
    pub(crate) fn found(&self, failed: bool) {
        self.add(Count::Polls, 1);
        if self.row.active.get() {
            self.end_row(sys::now_ns(), !failed && self.row.asks.get());
        }
    }

    /// A call found nothing.
    pub(crate) fn nothing(&self, is_yield: bool) -> Verdict {
        let verdict = self.judge(is_yield);
        // What this code did itself is not the program's work: a row's begin alone takes 2 us where system calls are slow.
        self.row.last_ns.set(sys::now_ns());
        verdict
    }

    fn judge(&self, is_yield: bool) -> Verdict {
        let now_ns = sys::now_ns();
        self.add(Count::Polls, 1);
        if now_ns >= self.look_ns.get() && !self.look(now_ns) {
            return Verdict::Spin;
        }
        let works = !is_yield && self.works();
        if self.row.active.get() && (works || self.gap_ends_row(now_ns)) {
            self.end_row(self.row.last_ns.get(), false);
        }
        if works {
            return Verdict::Spin;
        }
        if !self.row.active.get() {
            self.begin_row(now_ns);
        }
        self.row.calls.set(self.row.calls.get().saturating_add(1));
        if is_yield {
            self.row.yields.set(true);
        } else {
            self.row.asks.set(true);
        }
        if now_ns - self.row.start_ns.get() < self.spin_ns.get() {
            return Verdict::Spin;
        }
        if self.mode.get() == page::SPIN_YIELD { Verdict::Yield } else { Verdict::Block }
    }

    /// Whether the thread has work between its calls. A progress loop that tells what it finds is asked by a program that waits for it.
    fn works(&self) -> bool {
        let row = &self.row;
        if self.in_mpi() || row.tells.get() {
            return false;
        }
        row.work.after(row.called_ns.get().saturating_sub(row.last_ns.get()))
    }

    fn gap_ends_row(&self, now_ns: u64) -> bool {
        let row = &self.row;
        let gap_ns = if row.asks.get() { GAP_NS } else { YIELD_GAP_NS };
        if self.depth.get() > 0 || now_ns - row.last_ns.get() <= gap_ns {
            return false;
        }
        if sys::voluntary() != row.voluntary.get() {
            // It waited for something else by itself: a server that sleeps in epoll_wait and then asks once does not poll.
            return true;
        }
        let cpu_ns = sys::cpu_ns();
        // Up to the last call it only polled, so it used at most that much.
        let polled_ns = (row.last_ns.get() - row.cpu_at_ns.get()).saturating_sub(row.asleep_ns.get());
        let computed = cpu_ns - row.cpu_ns.get() > polled_ns + gap_ns;
        row.cpu_ns.set(cpu_ns);
        row.cpu_at_ns.set(now_ns);
        row.asleep_ns.set(0);
        computed
    }

    fn begin_row(&self, now_ns: u64) {
        let row = &self.row;
        // All messages that this process sent have been delivered by now; a thread that sleeps on the doorbell may find one.
        ring();
        row.active.set(true);
        row.calls.set(0);
        row.start_ns.set(now_ns);
        row.cpu_ns.set(sys::cpu_ns());
        row.cpu_at_ns.set(now_ns);
        row.asleep_ns.set(0);
        row.voluntary.set(sys::voluntary());
        row.blocked.set(false);
        row.timed_out.set(false);
        row.tells.set(false);
        row.grace.set(0);
        row.yields.set(false);
        row.asks.set(false);
        row.descriptors.borrow_mut().clear();
        self.state(SPINNING, now_ns);
    }

    fn end_row(&self, now_ns: u64, by_descriptor: bool) {
        let row = &self.row;
        row.active.set(false);
        if row.announced.replace(false) {
            shared::head().sleepers.fetch_sub(1, SeqCst);
        }
        if row.calls.get() < 2 {
            // A single poll is not a wait.
            return self.state(COMPUTING, now_ns);
        }
        let waited_ns = now_ns - row.start_ns.get();
        let ended = match (row.blocked.get(), row.timed_out.get()) {
            (false, _) => Ended::Spinning,
            (true, false) => Ended::Blocked,
            (true, true) => Ended::TimedOut,
        };
        self.rule.borrow_mut().waited(waited_ns, ended);
        if self.adaptive.get() {
            self.take_spin_time(ADAPTIVE);
        }
        if row.asks.get() {
            // A wait that ended otherwise while the thread slept cost it time, so it counts more.
            let step = if by_descriptor {
                1
            } else if ended == Ended::TimedOut {
                -4
            } else {
                -1
            };
            row.by_descriptor.set((row.by_descriptor.get() + step).clamp(-8, 8));
        }
        self.add(Count::Waits, 1);
        if ended == Ended::Spinning {
            self.add(Count::Spins, 1);
            self.add(Count::SpinNs, waited_ns);
        }
        self.state(COMPUTING, now_ns);
        self.flush();
    }

    fn state(&self, state: u32, now_ns: u64) {
        let slot = shared::slot();
        slot.since_us.store((now_ns / 1_000) as u32, Relaxed);
        slot.state.store(state, Relaxed);
    }

    fn waited_ns(&self) -> u64 {
        self.row.last_ns.get() - self.row.start_ns.get()
    }

    fn yields_first(&self) -> bool {
        // Measured with MPICH over TCP, 4 and 8 ranks on 2 CPUs: with yields no run was completed within 4 s, with blocks half of them were;
        // docs/waiting.md says what prevents the others.
        let by_ucx = self.row.tells.get() && self.row.by_descriptor.get() > 0;
        self.in_mpi() && !by_ucx && self.waited_ns() < YIELD_FIRST_NS
    }

    /// The length of the next block.
    fn block_ns(&self) -> u64 {
        let sure = self.row.by_descriptor.get() >= BY_DESCRIPTOR_SURE;
        let max_ns = if self.row.tells.get() && !self.in_mpi() { BLOCK_NS_UNSURE } else { BLOCK_NS_MAX };
        (self.waited_ns() / BLOCK_PART)
            .clamp(if sure { BLOCK_NS_SURE } else { BLOCK_NS_MIN }, max_ns.max(BLOCK_NS_SURE * u64::from(sure)))
    }

    /// Adds the descriptors of a call to the row. True if the row had all of them already; `None` if they do not fit.
    pub(crate) fn remember(&self, asked: &[pollfd]) -> Option<bool> {
        self.row.descriptors.borrow_mut().add(asked)
    }

    /// Blocks until a descriptor of the row is ready or the time is over. Not if the program has just polled a new descriptor (more may follow), nor
    /// where it also calls sched_yield and its waits do not end by descriptors: that call blocks then. True if it did block.
    ///
    /// # Safety
    /// `mask` is null or a valid set of signals; `asked` are the descriptors of the call.
    pub(crate) unsafe fn block(&self, asked: &mut [pollfd], known: Option<bool>, mask: *const sigset_t) -> bool {
        let row = &self.row;
        let by_yield = row.yields.get() && (row.by_descriptor.get() <= 0 || self.own_crowd() && self.yields_first());
        if known == Some(false) || by_yield {
            return false;
        }
        if row.grace.get() > 0 {
            row.grace.set(row.grace.get() - 1);
            return false;
        }
        if known.is_some() {
            // SAFETY: the caller's promise.
            unsafe { self.block_on_row(mask) };
        } else {
            let ready = self.asleep(|time| {
                // SAFETY: the descriptors are a valid slice; the rest is the caller's promise.
                unsafe { real::ppoll(asked.as_mut_ptr(), asked.len() as u64, time, mask) }
            });
            row.timed_out.set(ready == 0);
        }
        true
    }

    /// # Safety
    /// `mask` is null or a valid set of signals.
    unsafe fn block_on_row(&self, mask: *const sigset_t) {
        let (mut all, count) = self.row.descriptors.borrow().copy();
        let ready = self.asleep(|time| {
            // SAFETY: `all` holds `count` descriptors; the mask is the caller's promise.
            unsafe { real::ppoll(all.as_mut_ptr(), count as u64, time, mask) }
        });
        if ready > 0 {
            self.row.grace.set(2 * count as u32);
        }
        self.row.timed_out.set(ready == 0);
    }

    /// In place of a sched_yield: sleeps until the doorbell rings or the time is over.
    pub(crate) fn block_for_bell(&self) {
        let row = &self.row;
        if self.own_crowd() && self.yields_first() {
            return self.give_way();
        }
        if row.by_descriptor.get() > 0 && row.descriptors.borrow().count() > 0 {
            if row.grace.get() == 0 {
                // SAFETY: no mask.
                unsafe { self.block_on_row(null()) };
            }
            return;
        }
        if self.depth.get() == 0 && !row.tells.get() {
            // The event that a thread waits for by sched_yield alone is not seen, so its row may be many short waits. It yields, as the program
            // intended.
            return self.give_way();
        }
        if self.yields_first() {
            return self.give_way();
        }
        let head = shared::head();
        if !row.announced.replace(true) {
            // A thread that rings sees it from here on; the program must poll once more for earlier events.
            head.sleepers.fetch_add(1, SeqCst);
            return row.bell.set(head.doorbell.load(SeqCst));
        }
        let time_ns = self.block_ns();
        let rung = self.asleep(|_| i32::from(sys::futex_wait(&head.doorbell, row.bell.get(), time_ns)));
        row.timed_out.set(rung == 0);
        row.bell.set(head.doorbell.load(SeqCst));
    }

    fn asleep(&self, block: impl FnOnce(*const libc::timespec) -> i32) -> i32 {
        let row = &self.row;
        let before_ns = row.last_ns.get();
        if !row.blocked.replace(true) {
            self.add(Count::SpinNs, before_ns - row.start_ns.get());
        }
        self.state(BLOCKED, before_ns);
        let time = sys::timespec(self.block_ns());
        let result = block(&raw const time);
        let now_ns = sys::now_ns();
        row.last_ns.set(now_ns);
        row.asleep_ns.set(row.asleep_ns.get() + now_ns - before_ns);
        row.voluntary.set(sys::voluntary());
        self.add(Count::Blocks, 1);
        self.add(Count::BlockNs, now_ns - before_ns);
        self.add(Count::Timeouts, u64::from(result == 0));
        self.state(SPINNING, now_ns);
        result
    }

    /// Yields the CPU once.
    pub(crate) fn give_way(&self) {
        self.add(Count::Yields, 1);
        // SAFETY: no arguments.
        unsafe { real::sched_yield() };
        self.row.last_ns.set(sys::now_ns());
    }

    fn add(&self, count: Count, number: u64) {
        let cell = &self.counts.0[count as usize];
        cell.set(cell.get() + number);
    }

    fn flush(&self) {
        for (count, counter) in self.counts.0.iter().zip(shared::counters(shared::slot())) {
            let number = count.take();
            if number > 0 {
                counter.fetch_add(number, Relaxed);
            }
        }
    }
}
