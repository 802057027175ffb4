//! The file of a rank: a head that is kept up to date, and records, both in mapped memory: recorded data outlive a process that is killed, and a
//! record costs no system call.
//!
//! All numbers are in the machine's own order (little-endian on supported machines; the head's mark shows it). Records are bytes and LEB128 numbers:
//! `1 id inter count rank…` a communicator's members; `2 function compute io delay call call-cpu call-delay count event…` a call, times in
//! nanoseconds. Events: `1 peer bytes` a send, `2 peer bytes` a receive, `3|4|5 function comm root+1 bytes` a collective, the begin and the end of a
//! nonblocking one, `6 bytes` I/O, `7` a call of which only the time is known. The reader is cosched-cli's `profile::rank_file`.

use core::ptr::null_mut;
use std::ffi::CString;

/// The first eight bytes: a name and the version.
pub(crate) const MARK: u64 = u64::from_le_bytes(*b"CSREC\0\0\x01");
/// The head's size, in bytes; records begin after it.
pub(crate) const HEAD_BYTES: usize = 16 << 10;
/// The limit on the functions that are counted.
pub(crate) const FUNCTIONS_MAX: usize = 240;
/// The longest name of a function, in bytes.
pub(crate) const NAME_BYTES: usize = 40;
/// Records are mapped in pieces of this size, in bytes.
const PIECE_BYTES: usize = 1 << 20;

/// The number of calls of a function.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) calls: u64,
    pub(crate) name: [u8; NAME_BYTES],
}

/// The head of the file. Times are in nanoseconds.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) mark: u64,
    /// 1 while the program runs, 2 after `MPI_Finalize`, 3 at an exit without it.
    pub(crate) state: u64,
    pub(crate) rank: u64,
    pub(crate) ranks: u64,
    pub(crate) pid: u64,
    /// 1 Open MPI, 2 MPICH and its relatives.
    pub(crate) library: u64,
    /// Bytes of whole records.
    pub(crate) length: u64,
    /// CLOCK_MONOTONIC at the return of `MPI_Init`.
    pub(crate) begin_ns: u64,
    /// From then to the last record.
    pub(crate) elapsed_ns: u64,
    pub(crate) compute_ns: u64,
    pub(crate) io_ns: u64,
    pub(crate) delay_ns: u64,
    pub(crate) call_ns: u64,
    pub(crate) call_cpu_ns: u64,
    pub(crate) sends: u64,
    pub(crate) send_bytes: u64,
    pub(crate) receives: u64,
    pub(crate) receive_bytes: u64,
    /// Calls that were recorded, and those that were dropped at the limit of the file's size.
    pub(crate) recorded: u64,
    pub(crate) dropped: u64,
    /// Calls of threads other than the one of `MPI_Init`.
    pub(crate) other_threads: u64,
    /// CPU time of the thread before `MPI_Init` returned and after `MPI_Finalize` began.
    pub(crate) outside_cpu_ns: u64,
    /// CPU time of the whole process from the return of `MPI_Init`.
    pub(crate) process_cpu_ns: u64,
    pub(crate) host: [u8; 64],
    pub(crate) counts: [Count; FUNCTIONS_MAX],
}

const _: () = assert!(size_of::<Head>() <= HEAD_BYTES);

/// A rank's file, open for writing.
#[derive(Debug)]
pub(crate) struct File {
    fd: libc::c_int,
    head: *mut Head,
    piece: *mut u8,
    /// The offset of the present piece in the records.
    piece_at: usize,
    /// The offset of the next byte in the records.
    at: usize,
    limit_bytes: usize,
    /// The limit was reached: nothing more is recorded.
    is_full: bool,
}

impl File {
    /// Makes the file; `limit_bytes` bounds its records. `None` if that fails.
    pub(crate) fn create(path: &CString, limit_bytes: usize) -> Option<File> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero.
        let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
        if fd < 0 {
            return None;
        }
        let head = map(fd, 0, HEAD_BYTES)?.cast();
        let piece_at = PIECE_BYTES.wrapping_neg();
        Some(File { fd, head, piece: null_mut(), piece_at, at: 0, limit_bytes, is_full: false })
    }

    pub(crate) fn head(&mut self) -> &mut Head {
        // SAFETY: mapped for as long as the file lives, page-aligned, of this size, and of plain numbers; only this process writes to it, and `&mut
        // self` makes the reference the only one.
        // writes to it, and `&mut self` makes the reference the only one.
        unsafe { &mut *self.head }
    }

    /// Adds a record. False if it did not fit: then no part of it is in the file, and no later one will be.
    pub(crate) fn add(&mut self, record: &[u8]) -> bool {
        if self.is_full || record.len() > self.limit_bytes - self.at {
            self.is_full = true;
            return false;
        }
        let mut rest = record;
        while !rest.is_empty() {
            if self.at >= self.piece_at.wrapping_add(PIECE_BYTES) && !self.next_piece() {
                self.is_full = true;
                return false;
            }
            let within = self.at - self.piece_at;
            let count = rest.len().min(PIECE_BYTES - within);
            // SAFETY: `count` bytes from `within` on are in the mapped piece.
            unsafe { core::ptr::copy_nonoverlapping(rest.as_ptr(), self.piece.add(within), count) };
            self.at += count;
            rest = &rest[count..];
        }
        self.head().length = self.at as u64;
        true
    }

    fn next_piece(&mut self) -> bool {
        let next_at = self.piece_at.wrapping_add(PIECE_BYTES);
        let Some(piece) = map(self.fd, HEAD_BYTES + next_at, PIECE_BYTES) else { return false };
        self.unmap_piece();
        self.piece = piece;
        self.piece_at = next_at;
        true
    }

    fn unmap_piece(&mut self) {
        if !self.piece.is_null() {
            // SAFETY: mapped by `next_piece`, and no longer used.
            unsafe { libc::munmap(self.piece.cast(), PIECE_BYTES) };
        }
        self.piece = null_mut();
    }

    /// Truncates the file to the used length and closes it.
    pub(crate) fn close(mut self) {
        let length = HEAD_BYTES as u64 + self.head().length;
        self.unmap_piece();
        // SAFETY: the mapping and the descriptor are this file's own, and no longer used.
        unsafe {
            libc::munmap(self.head.cast(), HEAD_BYTES);
            libc::ftruncate(self.fd, length as libc::off_t);
            libc::close(self.fd);
        }
    }
}

/// Maps a part of the file. The disk space is reserved first: a full disk must not kill the program at a later write.
fn map(fd: libc::c_int, offset: usize, length: usize) -> Option<*mut u8> {
    // SAFETY: changes the file only.
    if unsafe { libc::posix_fallocate(fd, offset as libc::off_t, length as libc::off_t) } != 0 {
        return None;
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at a place that the kernel chooses.
    let place = unsafe { libc::mmap(null_mut(), length, access, libc::MAP_SHARED, fd, offset as libc::off_t) };
    (place != libc::MAP_FAILED).then_some(place.cast())
}

/// Appends a number in LEB128: seven bits per byte, the lowest first.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(name: &str, limit_bytes: usize) -> (tempfile::TempDir, std::path::PathBuf, File) {
        let dir = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
        let path = dir.path().join(name);
        let file = File::create(&CString::new(path.to_str().unwrap()).unwrap(), limit_bytes).unwrap();
        (dir, path, file)
    }

    #[test]
    fn records_cross_pieces_and_the_rest_is_cut() {
        let (_dir, path, mut file) = create("0", 1 << 30);
        file.head().mark = MARK;
        let record: Vec<u8> = (0..=250).collect();
        let times = 3 * PIECE_BYTES / record.len();
        assert!((0..times).all(|_| file.add(&record)));
        file.close();
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(bytes[..8], MARK.to_ne_bytes());
        assert_eq!(bytes.len(), HEAD_BYTES + times * record.len());
        assert!(bytes[HEAD_BYTES..].chunks(record.len()).all(|chunk| chunk == record));
    }

    #[test]
    fn what_does_not_fit_is_left_out_whole() {
        let (_dir, path, mut file) = create("0", 10);
        assert!(file.add(&[1; 6]) && !file.add(&[2; 6]) && !file.add(&[3; 1]));
        file.close();
        assert_eq!(std::fs::read(path).unwrap()[HEAD_BYTES..], [1; 6]);
    }

    #[test]
    fn numbers_take_as_few_bytes_as_they_need() {
        let mut bytes = Vec::new();
        [0, 127, 128, u64::MAX].into_iter().for_each(|number| put(&mut bytes, number));
        assert_eq!(bytes[..4], [0, 127, 128, 1]);
        assert_eq!(bytes.len(), 4 + 10);
    }
}
