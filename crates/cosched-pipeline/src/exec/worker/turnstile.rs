//! The turnstile of a stage that takes the buffers of a path in their order, one at a time.
//!
//! Buffers have numbers without gaps. A buffer whose number is next goes in; any other is left here, and whoever finishes its
//! predecessor carries it on. Never more than the path's buffers are on the way, so a row of that many slots, used round and
//! round, has one for each. (Taskflow's lines and TBB's serial filters do the same with counters and with a lock.)
//!
//! Why a slot is free again when its next user comes: that is a buffer whose number is higher by at least the path's buffers.
//! So one of the buffers between has come to the end of its path and begun it again. It went through this turnstile behind the
//! slot's present user, and was numbered again before the next user was.

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
    /// One thread alone brings buffers and lets them in.
    is_alone: bool,
}

impl Turnstile {
    /// The turnstile of a path with so many buffers. The one with number 0 may go in. `is_alone`: once the graph runs, one
    /// thread alone comes here.
    pub(super) fn new(buffers: usize, is_alone: bool) -> Turnstile {
        let slots = buffers.next_power_of_two().max(SLOTS);
        let lines = (0..slots / SLOTS).map(|_| Line::default()).collect();
        let turnstile = Turnstile { lines, mask: slots as u64 - 1, is_alone };
        let nobody = turnstile.open(0);
        debug_assert!(nobody.is_none());
        turnstile
    }

    #[inline]
    fn slot(&self, number: u64) -> &Slot {
        // SAFETY: the mask is the number of slots in all lines less one, which is a power of two less one; lines lie without
        // gaps, and each is its slots and nothing else.
        unsafe { &*self.lines.as_ptr().cast::<Slot>().add((number & self.mask) as usize) }
    }

    /// A buffer comes. It is returned if it may go in now.
    #[inline]
    pub(super) fn arrive(&self, buffer: Buffer) -> Option<Buffer> {
        self.slot(buffer.token().number).arrive(buffer)
    }

    /// The buffer with this number may go in. It is returned if it waits here.
    #[inline]
    pub(super) fn open(&self, number: u64) -> Option<Buffer> {
        let slot = self.slot(number);
        if self.is_alone { slot.let_go_on_alone() } else { slot.let_go_on() }
    }

    /// How many wait here now. They come and go meanwhile.
    pub(super) fn waiting(&self) -> usize {
        self.lines.iter().flat_map(|line| &line.0).filter(|slot| slot.waits()).count()
    }
}
