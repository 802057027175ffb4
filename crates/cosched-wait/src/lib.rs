//! `libcosched_wait.so`: loaded into an unmodified program by LD_PRELOAD, it makes it spin for a while and then block or
//! yield, where the program only polls.
//!
//! Problem: parallel programs wait by asking again and again, without end, and so take the CPU from the partner whose
//! message they wait for. Rule: a row of calls that ask without waiting and find nothing is a wait. Past the spin time
//! such a call blocks until one of the row's descriptors is ready, or gives the CPU away. The time of a block is a
//! share of what was waited already, so that what comes in another way (shared memory, a timer, a thread) comes late by
//! that share at most. Who is alone on his CPUs is left alone. Source: Zhang et al. 2000, §2.3 (spin block, spin yield);
//! docs/waiting.md.
//!
//! A process that is not in the job that its environment names enters it first (`join`): so do ranks on other nodes.
//!
//! This code runs in other people's programs, in their threads and signal handlers. After the constructor it
//! allocates nothing, takes no lock and writes nothing; it keeps errno; what the program sees is what its own call
//! returned. Exported functions may be left by a forced unwinding (a cancelled thread), hence "C-unwind".

mod config;
mod crowd;
mod descriptors;
mod front;
mod hooks;
mod join;
mod later;
mod local;
mod real;
mod shared;
mod stats;
mod sys;
mod testing;
mod text;
mod thread;
#[cfg(not(any(test, static_unwinder)))]
mod unwind;

/// Runs before `main`, and before it the dynamic linker resolves nothing to us that we could not do without.
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
    crowd::learn_the_machine();
    join::enter();
    shared::learn();
    front::ready();
}

extern "C" fn end() {
    thread::finish();
    stats::write();
}
