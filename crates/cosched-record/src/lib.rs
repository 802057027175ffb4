//! `libcosched_record.so`: loaded into an unmodified MPI program by LD_PRELOAD, it records the structure of each rank.
//!
//! Problem: a simulation needs a program's structure: how long each rank computes between its messages, and their destinations and sizes. Rule: every
//! outermost MPI call of the thread that called `MPI_Init` becomes a record: the CPU time before it (computation), the time off the CPU before it
//! (I/O, or waiting for a CPU, distinguished by the kernel's run delay), its own time, and its messages. docs/record.md.
//!
//! This code runs in other people's programs. Without `COSCHED_RECORD_DIR` in the environment every call passes straight through. The file of a rank
//! is mapped memory, so a process that is killed loses no recorded data.

mod call;
mod comms;
mod file;
mod front;
mod hooks;
// The wait library's look-up of functions of libraries that are loaded late; both must find the same ones.
#[path = "../../cosched-wait/src/later.rs"]
mod later;
mod library;
mod requests;
mod sys;

/// Runs before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Runs at exit; not when the process is killed, calls `_exit` or executes another program.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn start() {
    call::read_environment();
}

extern "C" fn end() {
    call::process_ends();
}
