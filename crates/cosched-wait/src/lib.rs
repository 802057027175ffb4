//! `libcosched_wait.so`: loaded into an unmodified program by LD_PRELOAD, it makes the program spin for a while and then block or yield, where it
//! would only poll.
//!
//! Problem: parallel programs wait by polling without end, and so take the CPU from the partner whose message they wait for. Rule: a row of polling
//! calls that find nothing is a wait. After the spin time such a call blocks until one of the row's descriptors is ready, or yields the CPU. The
//! length of a block is a share of the time already waited, so that events from elsewhere (shared memory, a timer, a thread) are late by that share
//! at most. A program that has its CPUs to itself is left alone. Source: Zhang et al. 2000, §2.3 (spin block, spin yield); docs/waiting.md.
//!
//! A process that is not in the job that its environment names enters it first (`join`): ranks on other nodes, too.
//!
//! This code runs in other people's programs, in their threads and signal handlers. After the constructor it allocates nothing, takes no lock and
//! writes nothing; it preserves errno; the program sees the result of its own call. Exported functions may be left by a forced unwinding (a cancelled
//! thread), hence "C-unwind".

mod config;
mod crowd;
mod descriptors;
mod front;
mod hooks;
mod join;
mod later;
mod local;
mod real;
mod row;
mod shared;
mod stats;
mod sys;
mod testing;
mod text;
mod thread;
#[cfg(not(any(test, static_unwinder)))]
mod unwind;
mod work;
mod worker;

/// Runs before `main`; before it, the dynamic linker binds nothing to us that would need it.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Runs at exit; not when the process is killed, calls `_exit` or executes another program.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn start() {
    front::find();
    real::resolve();
    config::read();
    worker::spin_briefly();
    crowd::learn_the_machine();
    join::enter();
    shared::learn();
    front::ready();
}

extern "C" fn end() {
    thread::finish();
    stats::write();
}
