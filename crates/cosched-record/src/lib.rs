//! `libcosched_record.so`: loaded into an unmodified MPI program by LD_PRELOAD, it writes down what each rank does.
//!
//! Problem: a simulation needs a program's structure: how long each rank computes between its messages, to whom they go
//! and how large they are. Rule: every outermost MPI call of the thread that called `MPI_Init` becomes a record: the CPU
//! time before it (computation), the time off the CPU before it (I/O, or waiting for a CPU, told apart by the kernel's
//! run delay), its own time, and its messages. docs/record.md.
//!
//! This code runs in other people's programs. Without `COSCHED_RECORD_DIR` in the environment every call passes straight
//! through. The file of a rank is mapped memory, so a process that is killed loses nothing that it had recorded.

mod call;
mod comms;
mod file;
mod front;
mod hooks;
// The wait library's way to find functions of libraries that come late; both must find the same ones.
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
