//! The functions that interpose MPI's. All arguments are passed on as machine words, so one library serves every MPI.

mod collective;
mod message;
mod other;

/// MPI_ERR_OTHER of MPICH, an error in Open MPI too. The program cannot get here, as it has no MPI library.
pub(crate) const OTHER_ERROR: core::ffi::c_int = 15;

/// Functions: the name, the arguments, and what to record of a call that succeeded (`=>`) or, for a `whole` one, the whole body:
/// it gets the library's function, which may have other arguments than the program's.
macro_rules! hooks {
    ($($name:ident($($arg:ident)*) => |$call:ident| $describe:expr;)*) => {$(
        hooks!(@function $name($($arg)*) |$call, next| {
            // SAFETY: the caller keeps the function's contract.
            let result = unsafe { next($($arg),*) };
            $call.stop();
            if result == 0 {
                // SAFETY: the caller keeps the function's contract, so the arguments are what MPI says, and after a
                // success the library has written its outputs.
                #[allow(unused_unsafe)]
                unsafe {
                    $describe
                };
            }
            $call.end();
            result
        });
    )*};
    (whole $($name:ident($($arg:ident)*) |$call:ident, $next:ident| $body:expr;)*) => {
        $(hooks!(@function $name($($arg)*) |$call, $next| $body);)*
    };
    (unknown $($name:ident($($arg:ident)*);)*) => {
        hooks! { $($name($($arg)*) => |call| call.unknown();)* }
    };
    (@function $name:ident($($arg:ident)*) |$call:ident, $next:ident| $body:expr) => {
        /// MPI's function of this name.
        ///
        /// # Safety
        /// As MPI's.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C-unwind" fn $name($($arg: usize),*) -> core::ffi::c_int {
            let function = $crate::hooks::hooks!(@next $name ($($arg)*));
            static NUMBER: $crate::call::Number = $crate::call::Number::new(0);
            #[allow(unused_mut)]
            let Some(mut $call) = $crate::call::Call::begin(&NUMBER, stringify!($name)) else {
                // SAFETY: the caller keeps the function's contract.
                return unsafe { function($($arg),*) };
            };
            let $next = function;
            $body
        }
    };
    (@next $name:ident ($($arg:ident)*)) => {{
        static NEXT: $crate::later::Later = $crate::later::Later::named(match core::ffi::CStr::from_bytes_with_nul(
            concat!(stringify!($name), "\0").as_bytes(),
        ) {
            Ok(name) => name,
            Err(_) => panic!(),
        });
        type Function = unsafe extern "C-unwind" fn($($crate::hooks::hooks!(@word $arg)),*) -> core::ffi::c_int;
        let next = NEXT.get();
        if next.is_null() {
            return $crate::hooks::OTHER_ERROR;
        }
        // SAFETY: the handles and numbers of this function each take one machine word, whatever the MPI library.
        unsafe { core::mem::transmute::<*mut core::ffi::c_void, Function>(next) }
    }};
    (@word $arg:ident) => { usize };
}
pub(crate) use hooks;
