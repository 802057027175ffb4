//! How long the threads of OpenBLAS spin in a worker, which a program has started of itself to share its work.
//!
//! Problem: they spin for the 0.4 ms that `cosched run` sets, as that costs a program which is alone nothing. Workers on the same CPUs spin against each other, and
//! OpenBLAS reads the time once, when it is loaded. Rule: a process that runs the program of its parent, and code of its command line (`-c`), is a worker (multiprocessing's spawn and forkserver,
//! execnet and so pytest-xdist), and its threads spin as briefly as under spin-block. Measured: docs/waiting.md, chapter 5.

use crate::sys;
use crate::text::Text;
use core::ffi::CStr;
use core::fmt::Write;

const TIMEOUT: &CStr = c"OPENBLAS_THREAD_TIMEOUT";
/// What `cosched run` has set it to, where the user has not, and the value for workers: 20/16.
const SET_AND_SHORT: &CStr = c"COSCHED_WAIT_OPENBLAS";

/// Sets the time of a worker; for the constructor only, before OpenBLAS is loaded.
pub(crate) fn spin_briefly() {
    let Some(both) = sys::variable(SET_AND_SHORT) else { return };
    let Some(slash) = both.to_bytes().iter().position(|byte| *byte == b'/') else { return };
    let is_ours = sys::variable(TIMEOUT).is_some_and(|value| value.to_bytes() == &both.to_bytes()[..slash]);
    let saved = sys::errno();
    if is_ours && runs_code() && runs_its_parents_program() {
        // SAFETY: both texts end with a zero, this one where `both` does; in the constructor no other thread uses the environment.
        unsafe { libc::setenv(TIMEOUT.as_ptr(), both.as_ptr().add(slash + 1), 1) };
    }
    sys::set_errno(saved);
}

/// Whether `-c` is among the options before the first other word.
fn runs_code() -> bool {
    let mut bytes = [0; 1024];
    let words = sys::read_file(c"/proc/self/cmdline", &mut bytes).split(|byte| *byte == 0).skip(1);
    words.take_while(|word| word.first() == Some(&b'-')).any(|word| word == b"-c")
}

fn runs_its_parents_program() -> bool {
    let mut path = Text::<32>::new();
    // SAFETY: no memory is passed.
    let written = write!(path, "/proc/{}/exe\0", unsafe { libc::getppid() });
    let file_of = |path| sys::look(path, libc::stat).map(|facts| (facts.st_dev, facts.st_ino));
    let own = file_of(c"/proc/self/exe");
    written.is_ok() && own.is_some() && CStr::from_bytes_with_nul(path.bytes()).is_ok_and(|path| own == file_of(path))
}
