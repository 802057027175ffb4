//! MPI's calls that wait or send: they show where a wait begins and ends, which the progress loop alone does not. All arguments are passed on as
//! machine words without being interpreted, so one library serves every MPI; each function is called exactly once.

use crate::later::Later;
use crate::{testing, thread};
use core::ffi::{c_int, c_void};

/// One function: its name and its arguments.
macro_rules! mark {
    (tests $($name:ident($($arg:ident)*) found by $flag:ident;)*) => {$(
        /// MPI's function of this name: it does not wait, but a program may call it repeatedly.
        ///
        /// # Safety
        /// As MPI's.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C-unwind" fn $name($($arg: usize),*) -> c_int {
            let next = mark!(@next $name ($($arg)*));
            let passes = testing::begin();
            // SAFETY: the caller keeps the function's contract.
            let result = unsafe { next($($arg),*) };
            if passes {
                testing::end();
            }
            // SAFETY: the caller's place for the answer, which the function has just written if it succeeded.
            if result == 0 && unsafe { *($flag as *const c_int) } != 0 {
                thread::found_by_test();
            }
            result
        }
    )*};
    ($($name:ident($($arg:ident)*);)*) => {$(
        /// MPI's function of this name.
        ///
        /// # Safety
        /// As MPI's.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C-unwind" fn $name($($arg: usize),*) -> c_int {
            mark!(@call $name ($($arg)*))
        }
    )*};
    (@call $name:ident ($($arg:ident)*)) => {{
        let next = mark!(@next $name ($($arg)*));
        let crowd = thread::enter_mpi();
        // SAFETY: the caller keeps the function's contract.
        let result = unsafe { next($($arg),*) };
        if crowd {
            thread::leave_mpi();
        }
        result
    }};
    (@next $name:ident ($($arg:ident)*)) => {{
        static NEXT: Later = Later::named(match core::ffi::CStr::from_bytes_with_nul(
            concat!(stringify!($name), "\0").as_bytes(),
        ) {
            Ok(name) => name,
            Err(_) => panic!(),
        });
        type Function = unsafe extern "C-unwind" fn($(mark!(@word $arg)),*) -> c_int;
        let next = NEXT.get();
        if next.is_null() {
            return OTHER_ERROR;
        }
        // SAFETY: the handles and numbers of this function each take one machine word, whatever the MPI library.
        unsafe { core::mem::transmute::<*mut c_void, Function>(next) }
    }};
    (@word $arg:ident) => { usize };
}

/// MPI_ERR_OTHER of MPICH, an error in Open MPI too. The program cannot get here, as it has no MPI library.
const OTHER_ERROR: c_int = 15;

mark! {
    MPI_Send(a b c d e f);
    MPI_Ssend(a b c d e f);
    MPI_Rsend(a b c d e f);
    MPI_Bsend(a b c d e f);
    MPI_Recv(a b c d e f g);
    MPI_Sendrecv(a b c d e f g h i j k l);
    MPI_Sendrecv_replace(a b c d e f g h i);
    MPI_Isend(a b c d e f g);
    MPI_Issend(a b c d e f g);
    MPI_Irsend(a b c d e f g);
    MPI_Ibsend(a b c d e f g);
    MPI_Start(a);
    MPI_Startall(a b);
    MPI_Wait(a b);
    MPI_Waitall(a b c);
    MPI_Waitany(a b c d);
    MPI_Waitsome(a b c d e);
    MPI_Probe(a b c d);
    MPI_Mprobe(a b c d e);
    MPI_Mrecv(a b c d e);
    MPI_Barrier(a);
    MPI_Bcast(a b c d e);
    MPI_Reduce(a b c d e f g);
    MPI_Allreduce(a b c d e f);
    MPI_Gather(a b c d e f g h);
    MPI_Gatherv(a b c d e f g h i);
    MPI_Scatter(a b c d e f g h);
    MPI_Scatterv(a b c d e f g h i);
    MPI_Allgather(a b c d e f g);
    MPI_Allgatherv(a b c d e f g h);
    MPI_Alltoall(a b c d e f g);
    MPI_Alltoallv(a b c d e f g h i);
    MPI_Alltoallw(a b c d e f g h i);
    MPI_Reduce_scatter(a b c d e f);
    MPI_Reduce_scatter_block(a b c d e f);
    MPI_Scan(a b c d e f);
    MPI_Exscan(a b c d e f);
    MPI_Win_fence(a b);
    MPI_Win_lock(a b c d);
    MPI_Win_unlock(a b);
    MPI_Win_lock_all(a b);
    MPI_Win_unlock_all(a);
    MPI_Win_flush(a b);
    MPI_Win_flush_all(a);
    MPI_Win_start(a b c);
    MPI_Win_complete(a);
    MPI_Win_post(a b c);
    MPI_Win_wait(a);
    MPI_Comm_split(a b c d);
    MPI_Comm_dup(a b);
    MPI_Comm_create(a b c);
    MPI_Comm_free(a);
    MPI_Neighbor_allgather(a b c d e f g);
    MPI_Neighbor_alltoall(a b c d e f g);
    MPI_Neighbor_alltoallv(a b c d e f g h i);
    MPI_Neighbor_allgatherv(a b c d e f g h);
}

mark! { tests
    MPI_Test(a b c) found by b;
    MPI_Testall(a b c d) found by c;
    MPI_Testany(a b c d e) found by d;
    MPI_Testsome(a b c d e) found by c;
    MPI_Iprobe(a b c d e) found by d;
    MPI_Improbe(a b c d e f) found by d;
}
