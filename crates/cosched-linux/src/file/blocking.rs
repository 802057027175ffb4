//! Synchronous reads and writes at an offset, on the caller's thread: for a header, or a stage that needs no queue.

use std::io;

use rustix::io::Errno;

use super::error::{Cause, Doing, FileError};
use super::extent::{Extent, Piece, cut};
use super::open::BlockFile;

/// The limit on the bytes of one system call.
const CHUNK: usize = 1 << 30;

impl BlockFile {
    /// Fills `bytes` from `offset` of the file.
    ///
    /// # Errors
    /// The file ends before, or the kernel does not read it.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), FileError> {
        let pieces = self.pieces(bytes.as_ptr() as usize, bytes.len(), offset, Doing::Read)?;
        self.carry_out(pieces, Doing::Read, offset + bytes.len() as u64, |file, piece| {
            rustix::io::pread(file, &mut bytes[piece.start..piece.start + piece.len], piece.offset)
        })
    }

    /// Writes `bytes` at `offset` of the file.
    ///
    /// # Errors
    /// The kernel does not write them.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), FileError> {
        let pieces = self.pieces(bytes.as_ptr() as usize, bytes.len(), offset, Doing::Write)?;
        self.carry_out(pieces, Doing::Write, offset + bytes.len() as u64, |file, piece| {
            rustix::io::pwrite(file, &bytes[piece.start..piece.start + piece.len], piece.offset)
        })
    }

    fn pieces(&self, address: usize, len: usize, offset: u64, doing: Doing) -> Result<Vec<Piece>, FileError> {
        let extent = Extent::start(offset, len);
        if let Some(why) = extent.wrong(len) {
            return Err(FileError::new(doing, self.path(), Cause::Invalid(why)).at(offset));
        }
        let mut pieces = Vec::new();
        cut(&extent, address, self.alignment(), CHUNK, &mut pieces);
        pieces.reverse();
        Ok(pieces)
    }

    /// `pieces` is a stack: the rest of a partly moved piece is pushed back on top.
    fn carry_out(
        &self,
        mut pieces: Vec<Piece>,
        doing: Doing,
        end: u64,
        mut request: impl FnMut(std::os::fd::BorrowedFd<'_>, Piece) -> Result<usize, Errno>,
    ) -> Result<(), FileError> {
        while let Some(piece) = pieces.pop() {
            match request(self.borrow(piece.direct), piece) {
                Ok(0) if doing == Doing::Read => return Err(self.ended(piece.offset, end)),
                Ok(0) => return Err(self.refused(doing, piece, io::ErrorKind::WriteZero.into())),
                Ok(done) if done < piece.len => pieces.push(piece.rest(done, self.alignment())),
                Ok(_) => {}
                Err(Errno::INTR | Errno::AGAIN) => pieces.push(piece),
                Err(Errno::INVAL) if piece.direct => {
                    self.refuse_direct();
                    pieces.push(Piece { direct: false, ..piece });
                }
                Err(error) => return Err(self.refused(doing, piece, error.into())),
            }
        }
        Ok(())
    }

    /// The kernel did not move the piece.
    pub(super) fn refused(&self, doing: Doing, piece: Piece, error: io::Error) -> FileError {
        FileError::from_io(doing, self.path(), piece.len as u64, error).at(piece.offset)
    }

    /// The error for a file that ends at or before `offset`, where data up to `end` were requested: it has become shorter, or never was as long.
    pub(super) fn ended(&self, offset: u64, end: u64) -> FileError {
        match self.len_now() {
            Err(error) => error,
            Ok(now) if now < self.len() => {
                FileError::new(Doing::Read, self.path(), Cause::Shrank { expected: self.len(), now }).at(offset)
            }
            Ok(len) => FileError::new(Doing::Read, self.path(), Cause::ShortRead { end, len }).at(offset),
        }
    }
}
