//! The functions of `programs/columnsort_mpi.c`, loaded at run time. The only unsafe code of this crate: foreign functions.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cosched_pipeline::BoxError;

use crate::peers::{Parts, Peers};

/// The version of the library's interface.
const INTERFACE: c_int = 1;

type Plain = unsafe extern "C" fn() -> c_int;
type Init = unsafe extern "C" fn(*mut i32, *mut i32) -> c_int;
type AllToAll =
    unsafe extern "C" fn(*const c_void, *const i64, *const i64, *mut c_void, *const i64, *const i64, i32) -> c_int;
type SendReceive = unsafe extern "C" fn(*const c_void, i64, i32, *mut c_void, i64, i32) -> c_int;
type Broadcast = unsafe extern "C" fn(*mut c_void, i64) -> c_int;
type Sum = unsafe extern "C" fn(*mut u64) -> c_int;
type Abort = unsafe extern "C" fn(i32);
type ErrorText = unsafe extern "C" fn(i32, *mut c_char, i32);

/// The processes that `mpirun` started, by the functions of a library. It stays loaded, because MPI cannot be unloaded from a process.
pub struct Mpi {
    rank: u64,
    size: u64,
    init: Init,
    all_to_all: AllToAll,
    send_receive: SendReceive,
    barrier: Plain,
    broadcast: Broadcast,
    sum: Sum,
    abort: Abort,
    finalize: Plain,
    error: ErrorText,
}

/// The loader's last error message.
fn complaint() -> String {
    // SAFETY: dlerror returns null or a string that is valid until this thread's next call of the loader.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader does not say why".into();
    }
    // SAFETY: it is not null, and copied at once.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The address of a function.
fn symbol(handle: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: the handle was returned by dlopen and is never closed.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if address.is_null() { Err(complaint()) } else { Ok(address) }
}

/// A function of the library, with the type that the C file declares.
macro_rules! function {
    ($handle:expr, $name:literal, $type:ty) => {
        // SAFETY: the library reports interface 1, in which the function of this name has this type.
        unsafe { std::mem::transmute::<*mut c_void, $type>(symbol($handle, $name)?) }
    };
}

impl Mpi {
    /// Loads the library.
    pub(super) fn load(path: &Path) -> Result<Mpi, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| "its name has a zero in it".to_owned())?;
        // Global, because plug-ins of MPI implementations look for MPI's symbols there.
        // SAFETY: the name is a C string; the library's initialisers are MPI's, and the user has requested them.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            return Err(complaint());
        }
        // SAFETY: every version of the library has this function with this type.
        let interface = unsafe { std::mem::transmute::<*mut c_void, Plain>(symbol(handle, c"cosched_mpi_interface")?) };
        // SAFETY: it has no preconditions.
        let found = unsafe { interface() };
        if found != INTERFACE {
            return Err(format!("it has interface {found}, and {INTERFACE} is needed: rebuild it"));
        }
        Ok(Mpi {
            rank: 0,
            size: 1,
            init: function!(handle, c"cosched_mpi_init", Init),
            all_to_all: function!(handle, c"cosched_mpi_all_to_all", AllToAll),
            send_receive: function!(handle, c"cosched_mpi_send_receive", SendReceive),
            barrier: function!(handle, c"cosched_mpi_barrier", Plain),
            broadcast: function!(handle, c"cosched_mpi_broadcast", Broadcast),
            sum: function!(handle, c"cosched_mpi_sum", Sum),
            abort: function!(handle, c"cosched_mpi_abort", Abort),
            finalize: function!(handle, c"cosched_mpi_finalize", Plain),
            error: function!(handle, c"cosched_mpi_error", ErrorText),
        })
    }

    /// Converts a return code to a result.
    fn result(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        let mut text = [0u8; 512];
        // SAFETY: the buffer has the given length, and the function terminates the text with NUL.
        unsafe { (self.error)(code, text.as_mut_ptr().cast(), text.len() as i32) };
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        Err(format!("MPI: {}", String::from_utf8_lossy(&text[..end])))
    }

    /// Starts MPI.
    pub(super) fn start(&mut self) -> Result<(), String> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: both point to an integer.
        self.result(unsafe { (self.init)(&mut rank, &mut size) })?;
        (self.rank, self.size) = (rank as u64, size as u64);
        Ok(())
    }

    /// Ends MPI, when all processes are done. An error at this point has no consequences.
    pub fn finish(&self) {
        // SAFETY: all messages have been transferred.
        let _ = unsafe { (self.finalize)() };
    }
}

impl Peers for Mpi {
    fn rank(&self) -> u64 {
        self.rank
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn all_to_all(&self, send: &[u8], sent: &Parts, receive: &mut [u8], received: &Parts) -> Result<(), BoxError> {
        check(sent, send.len(), self.size)?;
        check(received, receive.len(), self.size)?;
        let bytes = |parts: &Parts| parts.iter().map(|(_, bytes)| *bytes as i64).collect::<Vec<_>>();
        let at = |parts: &Parts| {
            parts.iter().map(|(at, bytes)| if *bytes == 0 { 0 } else { *at as i64 }).collect::<Vec<_>>()
        };
        let (send_bytes, send_at, receive_bytes, receive_at) = (bytes(sent), at(sent), bytes(received), at(received));
        // SAFETY: the parts are inside the buffers, the four lists have an entry for each process, and all of them live until the
        // function returns, when the messages have been transferred.
        let code = unsafe {
            (self.all_to_all)(
                send.as_ptr().cast(),
                send_bytes.as_ptr(),
                send_at.as_ptr(),
                receive.as_mut_ptr().cast(),
                receive_bytes.as_ptr(),
                receive_at.as_ptr(),
                sent.len() as i32,
            )
        };
        Ok(self.result(code)?)
    }

    fn send_receive(&self, send: &[u8], to: u64, receive: &mut [u8], from: u64) -> Result<(), BoxError> {
        // SAFETY: both buffers have the given lengths, and live until the function returns, when the messages have been transferred.
        let code = unsafe {
            (self.send_receive)(
                send.as_ptr().cast(),
                send.len() as i64,
                to as i32,
                receive.as_mut_ptr().cast(),
                receive.len() as i64,
                from as i32,
            )
        };
        Ok(self.result(code)?)
    }

    fn barrier(&self) -> Result<(), BoxError> {
        // SAFETY: it has no preconditions once MPI has been started.
        Ok(self.result(unsafe { (self.barrier)() })?)
    }

    fn broadcast(&self, bytes: &mut [u8]) -> Result<(), BoxError> {
        // SAFETY: the buffer has the given length.
        Ok(self.result(unsafe { (self.broadcast)(bytes.as_mut_ptr().cast(), bytes.len() as i64) })?)
    }

    fn sum(&self, mut value: u64) -> Result<u64, BoxError> {
        // SAFETY: it points to an integer.
        self.result(unsafe { (self.sum)(&mut value) })?;
        Ok(value)
    }

    fn abort(&self, code: i32) {
        // SAFETY: it has no preconditions; it does not return.
        unsafe { (self.abort)(code) }
    }
}

/// Checks that there is one part for each process, each inside the buffer: MPI would access memory outside without an error.
fn check(parts: &Parts, len: usize, size: u64) -> Result<(), String> {
    if parts.len() as u64 != size {
        return Err(format!("{} parts for {size} processes", parts.len()));
    }
    match parts.iter().find(|(at, bytes)| *bytes > 0 && at.checked_add(*bytes).is_none_or(|end| end > len)) {
        None => Ok(()),
        Some((at, bytes)) => Err(format!("{bytes} bytes at {at} are not in a buffer of {len}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_to_be_inside() {
        assert!(check(&vec![(0, 5), (5, 5)], 10, 2).is_ok());
        assert!(check(&vec![(0, 5), (90, 0)], 10, 2).is_ok());
        assert!(check(&vec![(0, 5)], 10, 2).is_err());
        assert!(check(&vec![(0, 5), (6, 5)], 10, 2).is_err());
        assert!(check(&vec![(0, 5), (usize::MAX, 5)], 10, 2).is_err());
    }
}
