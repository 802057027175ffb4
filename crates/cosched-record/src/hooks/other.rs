//! The begin and the end; files; and calls that are only counted and timed: persistent requests, one-sided communication, neighbourhoods and
//! processes that join later.

use super::hooks;
use crate::call;
use core::ffi::c_int;

/// `MPI_Init` and its relative: recording begins when they return.
macro_rules! begins {
    ($($name:ident($($arg:ident)*);)*) => {$(
        /// MPI's function of this name.
        ///
        /// # Safety
        /// As MPI's.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C-unwind" fn $name($($arg: usize),*) -> c_int {
            let next = hooks!(@next $name ($($arg)*));
            // SAFETY: the caller keeps the function's contract.
            let result = unsafe { next($($arg),*) };
            if result == 0 {
                call::open();
            }
            result
        }
    )*};
}

begins! {
    MPI_Init(a b);
    MPI_Init_thread(a b c d);
}

/// The recording ends before MPI is shut down: the time of that is not the program's.
///
/// # Safety
/// As MPI's.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn MPI_Finalize() -> c_int {
    static NUMBER: call::Number = call::Number::new(0);
    let next = hooks!(@next MPI_Finalize ());
    if let Some(call) = call::Call::begin(&NUMBER, "MPI_Finalize") {
        call.finalize();
    }
    // SAFETY: the caller keeps the function's contract.
    unsafe { next() }
}

hooks! {
    MPI_File_read(a b c d e) => |call| call.file_moved(c, d);
    MPI_File_read_all(a b c d e) => |call| call.file_moved(c, d);
    MPI_File_read_at(a b c d e f) => |call| call.file_moved(d, e);
    MPI_File_read_at_all(a b c d e f) => |call| call.file_moved(d, e);
    MPI_File_read_ordered(a b c d e) => |call| call.file_moved(c, d);
    MPI_File_read_shared(a b c d e) => |call| call.file_moved(c, d);
    MPI_File_write(a b c d e) => |call| call.file_moved(c, d);
    MPI_File_write_all(a b c d e) => |call| call.file_moved(c, d);
    MPI_File_write_at(a b c d e f) => |call| call.file_moved(d, e);
    MPI_File_write_at_all(a b c d e f) => |call| call.file_moved(d, e);
    MPI_File_write_ordered(a b c d e) => |call| call.file_moved(c, d);
    MPI_File_write_shared(a b c d e) => |call| call.file_moved(c, d);
    MPI_File_open(a b c d e) => |call| call.file_moved(0, 0);
    MPI_File_close(a) => |call| call.file_moved(0, 0);
    MPI_File_sync(a) => |call| call.file_moved(0, 0);
    MPI_File_set_view(a b c d e f) => |call| call.file_moved(0, 0);
    MPI_File_set_size(a b) => |call| call.file_moved(0, 0);
}

hooks! { unknown
    MPI_Cancel(a);
    MPI_Send_init(a b c d e f g);
    MPI_Ssend_init(a b c d e f g);
    MPI_Bsend_init(a b c d e f g);
    MPI_Rsend_init(a b c d e f g);
    MPI_Recv_init(a b c d e f g);
    MPI_Start(a);
    MPI_Startall(a b);
    MPI_Igatherv(a b c d e f g h i j);
    MPI_Iscatterv(a b c d e f g h i j);
    MPI_Iallgatherv(a b c d e f g h i);
    MPI_Ialltoallv(a b c d e f g h i j);
    MPI_Ialltoallw(a b c d e f g h i j);
    MPI_Ireduce_scatter(a b c d e f g);
    MPI_Ireduce_scatter_block(a b c d e f g);
    MPI_Iscan(a b c d e f g);
    MPI_Iexscan(a b c d e f g);
    MPI_Neighbor_allgather(a b c d e f g);
    MPI_Neighbor_allgatherv(a b c d e f g h);
    MPI_Neighbor_alltoall(a b c d e f g);
    MPI_Neighbor_alltoallv(a b c d e f g h i);
    MPI_Neighbor_alltoallw(a b c d e f g h i);
    MPI_Ineighbor_alltoall(a b c d e f g h);
    MPI_Ineighbor_allgather(a b c d e f g h);
    MPI_Isendrecv(a b c d e f g h i j k l);
    MPI_Isendrecv_replace(a b c d e f g h i);
    MPI_Put(a b c d e f g h);
    MPI_Get(a b c d e f g h);
    MPI_Accumulate(a b c d e f g h i);
    MPI_Get_accumulate(a b c d e f g h i j k l);
    MPI_Rput(a b c d e f g h i);
    MPI_Rget(a b c d e f g h i);
    MPI_Fetch_and_op(a b c d e f g);
    MPI_Compare_and_swap(a b c d e f g);
    MPI_Win_create(a b c d e f);
    MPI_Win_allocate(a b c d e f);
    MPI_Win_allocate_shared(a b c d e f);
    MPI_Win_free(a);
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
    MPI_Comm_spawn(a b c d e f g h);
    MPI_Comm_spawn_multiple(a b c d e f g h i);
    MPI_Comm_connect(a b c d e);
    MPI_Comm_accept(a b c d e);
    MPI_Comm_disconnect(a);
    MPI_Comm_idup(a b c);
    MPI_Comm_create_group(a b c d);
    MPI_Intercomm_create(a b c d e f);
    MPI_Intercomm_merge(a b c);
    MPI_File_iread(a b c d e);
    MPI_File_iwrite(a b c d e);
    MPI_File_iread_at(a b c d e f);
    MPI_File_iwrite_at(a b c d e f);
}
