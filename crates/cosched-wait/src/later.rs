//! Functions of libraries that may be loaded after the start of the program: a Python module that loads MPI, for example.

use crate::front;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

/// How often a search begins again because libraries were loaded or unloaded meanwhile.
const SEARCHES_MAX: u32 = 100;

/// A symbol that is looked up when it is first needed.
pub(crate) struct Later {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    /// No library has it.
    absent: AtomicBool,
}

/// A library that is loaded, by its number in the dynamic linker's list.
struct Library {
    number: usize,
    /// How many are to be passed over before it.
    left: usize,
    /// How many libraries have been loaded and unloaded in all.
    changes: u64,
    /// Ends with a zero.
    path: [c_char; libc::PATH_MAX as usize],
}

impl Later {
    pub(crate) const fn named(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(null_mut()), absent: AtomicBool::new(false) }
    }

    /// Its address; null if no library has it, apart from this one and its front.
    #[inline]
    pub(crate) fn get(&self) -> *mut c_void {
        let address = self.address.load(Relaxed);
        if address.is_null() { self.find() } else { address }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        if self.absent.load(Relaxed) {
            return null_mut();
        }
        // The caller was called by the library in question, so that is loaded.
        let mut address = front::next(self.name);
        if address.is_null() {
            address = self.find_in_each();
            self.absent.store(address.is_null(), Relaxed);
        }
        self.address.store(address, Relaxed);
        address
    }

    /// A library that was loaded for only one module is not in the global scope.
    #[inline(never)]
    fn find_in_each(&self) -> *mut c_void {
        let mut library = Library { number: 0, left: 0, changes: 0, path: [0; libc::PATH_MAX as usize] };
        let mut searches = 0;
        loop {
            let before = library.changes;
            library.left = library.number;
            // SAFETY: the callback gets `library`, which lives until the call returns.
            let is_last = unsafe { libc::dl_iterate_phdr(Some(copy), (&raw mut library).cast()) } == 0;
            if library.changes != before && searches < SEARCHES_MAX {
                (library.number, searches) = (0, searches + 1);
                continue;
            }
            if is_last {
                return null_mut();
            }
            let address = self.find_in(&library.path);
            if !address.is_null() {
                return address;
            }
            library.number += 1;
        }
    }

    fn find_in(&self, path: &[c_char]) -> *mut c_void {
        // SAFETY: the path ends with a zero; nothing is loaded that is not loaded already.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            return null_mut();
        }
        // SAFETY: the handle is open. It is closed again, but the library has other users and stays.
        let address = unsafe { libc::dlsym(handle, self.name.as_ptr()) };
        // SAFETY: as above.
        unsafe { libc::dlclose(handle) };
        if front::has(address) || is_ours(address) { null_mut() } else { address }
    }
}

/// Copies the path of the wanted library, and does nothing else: the linker holds a lock here that a thread which loads a library takes as its second
/// one. To open a library takes the first, and could wait for that thread for ever.
unsafe extern "C" fn copy(info: *mut libc::dl_phdr_info, _size: usize, library: *mut c_void) -> c_int {
    // SAFETY: the C library passes a valid description, and what `find_in_each` has passed.
    let (info, library) = unsafe { (&*info, &mut *library.cast::<Library>()) };
    library.changes = info.dlpi_adds + info.dlpi_subs;
    if library.left > 0 {
        library.left -= 1;
        return 0;
    }
    // SAFETY: null, or a text that ends with a zero.
    let path = if info.dlpi_name.is_null() { c"" } else { unsafe { CStr::from_ptr(info.dlpi_name) } };
    let bytes = path.to_bytes_with_nul();
    // The program itself has no path; a path that is too long is no library's that can be opened.
    library.path[0] = 0;
    if bytes.len() <= library.path.len() {
        for (place, byte) in library.path.iter_mut().zip(bytes) {
            *place = *byte as c_char;
        }
    }
    1
}

/// Whether a function is this library's. A look-up of its own address by name would give the front's, which comes first.
fn is_ours(function: *const c_void) -> bool {
    let base = |address: *const c_void| {
        // SAFETY: all fields may be zero.
        let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
        // SAFETY: it is written to a valid place.
        (unsafe { libc::dladdr(address, &raw mut info) } != 0).then_some(info.dli_fbase)
    };
    base(function) == base(copy as *const c_void)
}
