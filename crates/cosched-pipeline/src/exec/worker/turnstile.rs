//! The turnstile of a stage that takes the buffers of a path in their order, one at a time.
//!
//! Buffers have consecutive numbers. The buffer with the next number enters; any other is left here, and the worker that
//! finishes its predecessor carries it on. There are never more buffers on the way than the path has, so an array of that
//! number of slots, used cyclically, has one for each. (Taskflow's lines and TBB's serial filters do the same with counters
//! and with a lock.)
//!
//! Why a slot is free again when its next user arrives: the number of that buffer is higher at least by the path's number of
//! buffers. So one of the buffers in between has reached the end of its path and begun it again. It went through this
//! turnstile after the slot's present user, and was renumbered before the next user was.

use super::slot::Slot;
use crate::buffer::Buffer;

/// The slots of one cache line: neighbours in the order are used by the same two workers.
#[repr(align(64))]
#[derive(Default)]
struct Line([Slot; SLOTS]);

const SLOTS: usize = 8;
const _: () = assert!(size_of::<Line>() == SLOTS * size_of::<Slot>());

pub(super) struct Turnstile {
    lines: Box<[Line]>,
    mask: u64,
    /// Only one thread brings buffers and lets them in.
    is_alone: bool,
}

impl Turnstile {
    /// The turnstile of a path with this number of buffers. The buffer with number 0 may enter. `is_alone`: once the graph
    /// runs, only one thread uses it.
    pub(super) fn new(buffers: usize, is_alone: bool) -> Turnstile {
        let slots = buffers.next_power_of_two().max(SLOTS);
        let lines = (0..slots / SLOTS).map(|_| Line::default()).collect();
        let turnstile = Turnstile { lines, mask: slots as u64 - 1, is_alone };
        let waiting = turnstile.open(0);
        debug_assert!(waiting.is_none());
        turnstile
    }

    #[inline]
    fn slot(&self, number: u64) -> &Slot {
        // SAFETY: the mask is the total number of slots minus one, and that number is a power of two; the lines are
        // contiguous, and each consists of its slots and nothing else.
        unsafe { &*self.lines.as_ptr().cast::<Slot>().add((number & self.mask) as usize) }
    }

    /// A buffer arrives. Returned if it may enter now.
    #[inline]
    pub(super) fn arrive(&self, buffer: Buffer) -> Option<Buffer> {
        self.slot(buffer.token().number).arrive(buffer)
    }

    /// Lets the buffer with this number enter. Returned if it is waiting here.
    #[inline]
    pub(super) fn open(&self, number: u64) -> Option<Buffer> {
        let slot = self.slot(number);
        if self.is_alone { slot.let_go_on_alone() } else { slot.let_go_on() }
    }

    /// The number of buffers that wait here. They may come and go during the count.
    pub(super) fn waiting(&self) -> usize {
        self.lines.iter().flat_map(|line| &line.0).filter(|slot| slot.waits()).count()
    }
}
