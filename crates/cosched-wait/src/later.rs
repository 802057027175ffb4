//! Functions of libraries that may be loaded after the start of the program: a Python module that loads MPI, for example.

use crate::front;
use core::ffi::{CStr, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A symbol that is looked up when it is first needed.
pub(crate) struct Later {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

struct Search {
    name: &'static CStr,
    found: *mut c_void,
}

impl Later {
    pub(crate) const fn named(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(null_mut()) }
    }

    /// Its address; null if no library has it, apart from this one and its front.
    #[inline]
    pub(crate) fn get(&self) -> *mut c_void {
        let address = self.address.load(Relaxed);
        if address.is_null() { self.find() } else { address }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        // The caller was called by the library in question, so that is loaded.
        let mut address = front::next(self.name);
        if address.is_null() {
            // A library that was loaded for only one module is not in the global scope.
            let mut search = Search { name: self.name, found: null_mut() };
            // SAFETY: the callback gets `search`, which lives until the call returns.
            unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
            address = search.found;
        }
        self.address.store(address, Relaxed);
        address
    }
}

unsafe extern "C" fn look(library: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: the C library passes a valid description, and what `find` has passed.
    let (library, search) = unsafe { (&*library, &mut *search.cast::<Search>()) };
    if library.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: the name ends with a zero; nothing is loaded that is not loaded already.
    let handle = unsafe { libc::dlopen(library.dlpi_name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        return 0;
    }
    // SAFETY: the handle is open. It is closed again, but the library has other users and stays.
    let address = unsafe { libc::dlsym(handle, search.name.as_ptr()) };
    // SAFETY: as above.
    unsafe { libc::dlclose(handle) };
    if address.is_null() || front::has(address) || is_ours(address) {
        return 0;
    }
    search.found = address;
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
    base(function) == base(look as *const c_void)
}
