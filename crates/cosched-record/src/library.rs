//! The differences between the MPI libraries, known without their header files.
//!
//! Open MPI's handles are pointers, MPICH's (and those of its relatives, which share its binary interface) are `int`. A
//! library is Open MPI if it has Open MPI's world communicator as a symbol.

use crate::later::Later;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The binary interface of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Library {
    /// Open MPI.
    Open = 1,
    /// MPICH, Intel MPI, MVAPICH.
    Mpich = 2,
}

static LIBRARY: AtomicU8 = AtomicU8::new(Library::Mpich as u8);
static OPEN_WORLD: Later = Later::named(c"ompi_mpi_comm_world");

/// MPICH's `MPI_COMM_WORLD`.
const MPICH_WORLD: usize = 0x4400_0000;
/// The largest status of both, in bytes, rounded up.
pub(crate) const STATUS_BYTES: usize = 24;

/// Detects which library is loaded.
pub(crate) fn find() {
    let open = open_world() != 0;
    LIBRARY.store(if open { Library::Open } else { Library::Mpich } as u8, Relaxed);
}

/// Open MPI's world. The program may have a copy of this variable (a copy relocation), and then that copy is valid: hence the search from the program
/// on, and only then among libraries that were loaded for only one module.
fn open_world() -> usize {
    // SAFETY: the name ends with a zero.
    let copy = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"ompi_mpi_comm_world".as_ptr()) };
    if copy.is_null() { OPEN_WORLD.get() as usize } else { copy as usize }
}

/// The detected library.
pub(crate) fn library() -> Library {
    if LIBRARY.load(Relaxed) == Library::Open as u8 { Library::Open } else { Library::Mpich }
}

/// `MPI_COMM_WORLD`.
pub(crate) fn world() -> usize {
    match library() {
        Library::Open => open_world(),
        Library::Mpich => MPICH_WORLD,
    }
}

/// A handle that was passed as an argument: for an `int`, the upper half of the register is undefined.
pub(crate) fn handle(argument: usize) -> usize {
    match library() {
        Library::Open => argument,
        Library::Mpich => argument as u32 as usize,
    }
}

/// The `index`th handle of an array; 0 without an array.
///
/// # Safety
/// The array has more than `index` handles, or is null.
pub(crate) unsafe fn handle_at(array: usize, index: usize) -> usize {
    match (array, library()) {
        (0, _) => 0,
        // SAFETY: the caller's promise.
        (_, Library::Open) => unsafe { *(array as *const usize).add(index) },
        // SAFETY: the caller's promise.
        (_, Library::Mpich) => unsafe { *(array as *const u32).add(index) as usize },
    }
}

/// Whether a buffer is `MPI_IN_PLACE`.
pub(crate) fn is_in_place(buffer: usize) -> bool {
    buffer == if library() == Library::Open { 1 } else { usize::MAX }
}

/// Whether a status is `MPI_STATUS_IGNORE` or `MPI_STATUSES_IGNORE`.
pub(crate) fn is_ignored(status: usize) -> bool {
    status == if library() == Library::Open { 0 } else { 1 }
}

/// `MPI_PROC_NULL`.
pub(crate) fn proc_null() -> c_int {
    if library() == Library::Open { -2 } else { -1 }
}

/// The size of one status, in bytes.
fn status_bytes() -> usize {
    if library() == Library::Open { 24 } else { 20 }
}

/// The content of a status: the source and the number of bytes received.
///
/// # Safety
/// `statuses` is an array of more than `index` statuses that the library has written.
pub(crate) unsafe fn status_at(statuses: usize, index: usize) -> (c_int, u64) {
    let status = statuses + index * status_bytes();
    let number = |offset: usize| {
        // SAFETY: within the status, and aligned as the library's own.
        unsafe { *((status + offset) as *const u32) }
    };
    match library() {
        // { int source, tag, error, cancelled; size_t bytes }
        Library::Open => (number(0) as c_int, u64::from(number(16)) | u64::from(number(20)) << 32),
        // { int bytes_low, bytes_high_and_cancelled, source, tag, error }
        Library::Mpich => (number(8) as c_int, u64::from(number(0)) | u64::from(number(4) >> 1) << 32),
    }
}

/// Calls a function of MPI by its profiling name with machine words.
macro_rules! pmpi {
    ($name:literal, $($arg:expr),*) => {{
        static FUNCTION: Later = Later::named($name);
        let function = FUNCTION.get();
        if function.is_null() {
            -1
        } else {
            type Function = unsafe extern "C-unwind" fn($(pmpi!(@word $arg)),*) -> c_int;
            // SAFETY: the arguments of this function each take one machine word, whatever the MPI library.
            let function = unsafe { core::mem::transmute::<*mut c_void, Function>(function) };
            // SAFETY: the handles are the program's own or of this library's calls, and outputs have room for a word.
            unsafe { function($($arg),*) }
        }
    }};
    (@word $arg:expr) => { usize };
}

/// The size of a type, in bytes; 0 if it is unknown.
pub(crate) fn type_bytes(datatype: usize) -> u64 {
    let mut bytes: c_int = 0;
    let result = pmpi!(c"PMPI_Type_size", datatype, &raw mut bytes as usize);
    if result == 0 { u64::try_from(bytes).unwrap_or(0) } else { 0 }
}

/// This process's rank and the number of ranks in a communicator.
pub(crate) fn rank_and_size(comm: usize) -> Option<(c_int, c_int)> {
    let (mut rank, mut size): (c_int, c_int) = (0, 0);
    let results = [
        pmpi!(c"PMPI_Comm_rank", comm, &raw mut rank as usize),
        pmpi!(c"PMPI_Comm_size", comm, &raw mut size as usize),
    ];
    (results == [0, 0]).then_some((rank, size))
}

/// Whether a communicator is an intercommunicator.
pub(crate) fn is_inter(comm: usize) -> bool {
    let mut flag: c_int = 0;
    pmpi!(c"PMPI_Comm_test_inter", comm, &raw mut flag as usize) != 0 || flag != 0
}

/// The world ranks of a communicator's `size` members; a negative one is not in the world.
pub(crate) fn members(comm: usize, size: c_int) -> Option<Vec<c_int>> {
    let own: Vec<c_int> = (0..size).collect();
    let mut there = vec![-1; own.len()];
    // Room for a pointer; an `int` uses the lower half.
    let (mut group, mut all) = (0_usize, 0_usize);
    if pmpi!(c"PMPI_Comm_group", comm, &raw mut group as usize) != 0 {
        return None;
    }
    let mut result = pmpi!(c"PMPI_Comm_group", world(), &raw mut all as usize);
    if result == 0 {
        let (from, to) = (own.as_ptr() as usize, there.as_mut_ptr() as usize);
        result = pmpi!(c"PMPI_Group_translate_ranks", group, size as usize, from, all, to);
        pmpi!(c"PMPI_Group_free", &raw mut all as usize);
    }
    pmpi!(c"PMPI_Group_free", &raw mut group as usize);
    (result == 0).then_some(there)
}
