//! The unwinder is the program's, looked up when it is first needed, and not a library that every program has to load.
//!
//! The standard library refers to libgcc_s, for panics and for another component's exceptions that pass frames of ours. Loading it costs each short
//! program more than all the rest of this library, and neither happens there. A program that throws has loaded it.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// One function of libgcc_s.
struct Unwinder {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Unwinder {
    const fn named(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(core::ptr::null_mut()) }
    }

    fn get(&self) -> *mut c_void {
        let known = self.address.load(Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: both texts end with a zero; without the library the only remedy is to abort.
        let found = unsafe {
            let library = libc::dlopen(c"libgcc_s.so.1".as_ptr(), libc::RTLD_NOW);
            if library.is_null() { core::ptr::null_mut() } else { libc::dlsym(library, self.name.as_ptr()) }
        };
        if found.is_null() {
            // SAFETY: no arguments.
            unsafe { libc::abort() };
        }
        self.address.store(found, Relaxed);
        found
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp {}"
    };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! jump {
    () => {
        "b {}"
    };
}

/// A function of this name for this library alone: if it were exported, it would interpose the program's own.
macro_rules! unwinder {
    ($(fn $symbol:literal $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {
        $(
            unsafe extern "C-unwind" fn $name($($arg: $ty),*) $(-> $ret)? {
                static FUNCTION: Unwinder = Unwinder::named({
                    match CStr::from_bytes_with_nul(concat!($symbol, "\0").as_bytes()) { Ok(name) => name, Err(_) => panic!() }
                });
                type Function = unsafe extern "C-unwind" fn($($ty),*) $(-> $ret)?;
                // SAFETY: libgcc_s has a function of this name and type.
                let function = unsafe { core::mem::transmute::<*mut c_void, Function>(FUNCTION.get()) };
                // SAFETY: the caller keeps the function's contract.
                unsafe { function($($arg),*) }
            }
            core::arch::global_asm!(
                concat!(".pushsection .text.", $symbol, ",\"ax\",@progbits"),
                concat!(".globl ", $symbol),
                concat!(".hidden ", $symbol),
                concat!(".type ", $symbol, ",@function"),
                concat!($symbol, ":"),
                jump!(),
                ".popsection",
                sym $name,
            );
        )*
    };
}

unwinder! {
    fn "_Unwind_RaiseException" raise_exception(exception: *mut c_void) -> c_int;
    fn "_Unwind_Resume" resume(exception: *mut c_void);
    fn "_Unwind_DeleteException" delete_exception(exception: *mut c_void);
    fn "_Unwind_Backtrace" backtrace(visit: *mut c_void, argument: *mut c_void) -> c_int;
    fn "_Unwind_GetLanguageSpecificData" language_specific_data(context: *mut c_void) -> *mut c_void;
    fn "_Unwind_GetRegionStart" region_start(context: *mut c_void) -> usize;
    fn "_Unwind_GetTextRelBase" text_rel_base(context: *mut c_void) -> usize;
    fn "_Unwind_GetDataRelBase" data_rel_base(context: *mut c_void) -> usize;
    fn "_Unwind_GetIP" ip(context: *mut c_void) -> usize;
    fn "_Unwind_GetIPInfo" ip_info(context: *mut c_void, before: *mut c_int) -> usize;
    fn "_Unwind_SetIP" set_ip(context: *mut c_void, value: usize);
    fn "_Unwind_SetGR" set_gr(context: *mut c_void, index: c_int, value: usize);
}
