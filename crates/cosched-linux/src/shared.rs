//! A page of atomics that several processes map.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const SIZE: usize = 4096;

/// A type that may be mapped to a shared page: only atomics, and all zero is a valid value.
///
/// # Safety
/// The type must consist of nothing but atomics, in a fixed layout (`repr(C)`), and fit into 4096 bytes.
pub(crate) unsafe trait Shareable {}

/// A mapped page with its file.
#[derive(Debug)]
pub(crate) struct SharedPage<T: Shareable> {
    page: NonNull<T>,
    file: OwnedFd,
}

// SAFETY: the page holds atomics only, and the mapping lives as long as the SharedPage.
unsafe impl<T: Shareable> Send for SharedPage<T> {}
// SAFETY: as above.
unsafe impl<T: Shareable> Sync for SharedPage<T> {}

impl<T: Shareable> SharedPage<T> {
    /// Makes `file` one page long and maps it.
    pub(crate) fn fresh(file: OwnedFd) -> io::Result<SharedPage<T>> {
        rustix::fs::ftruncate(&file, SIZE as u64)?;
        SharedPage::open(file)
    }

    /// Maps the page of another process.
    pub(crate) fn open(file: OwnedFd) -> io::Result<SharedPage<T>> {
        const { assert!(size_of::<T>() <= SIZE) };
        if rustix::fs::fstat(&file)?.st_size < SIZE as i64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a shared page: the file is too short"));
        }
        // SAFETY: a new shared mapping at an address that the kernel chooses; it aliases no Rust object, and the file is at least as
        // long as the mapping.
        let address = unsafe {
            mmap(std::ptr::null_mut(), SIZE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)?
        };
        let page = NonNull::new(address.cast::<T>()).ok_or_else(|| io::Error::other("mmap gave no address"))?;
        Ok(SharedPage { page, file })
    }
}

impl<T: Shareable> std::ops::Deref for SharedPage<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: mapped and aligned to a page for as long as self lives; T consists of atomics, which other processes may change meanwhile.
        unsafe { self.page.as_ref() }
    }
}

impl<T: Shareable> Drop for SharedPage<T> {
    fn drop(&mut self) {
        // SAFETY: this is the mapping of open, and no reference into it is left.
        let _ = unsafe { munmap(self.page.as_ptr().cast(), SIZE) };
    }
}

impl<T: Shareable> AsFd for SharedPage<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
