//! Collectives. The bytes are those of one rank's part.

use super::hooks;
use crate::call::Call;
use crate::library::{handle, handle_at, is_in_place, type_bytes};

/// No root, as an argument.
const NONE: usize = -1_i32 as u32 as usize;

/// The part of a rank that sends `count` elements, unless its data are in place in the result's buffer.
fn part(buffer: usize, count: usize, datatype: usize, other_count: usize, other_type: usize) -> u64 {
    if is_in_place(buffer) { Call::bytes(other_count, other_type) } else { Call::bytes(count, datatype) }
}

/// The mean part of a function with a separate count for each rank.
///
/// # Safety
/// As [`Call::mean_bytes`].
unsafe fn mean(call: &mut Call, counts: usize, datatype: usize, comm: usize) -> u64 {
    let each = type_bytes(handle(datatype));
    // SAFETY: the caller's promise.
    unsafe { call.mean_bytes(counts, comm, |_| each) }
}

hooks! {
    MPI_Barrier(a) => |call| call.collective(a, NONE, 0);
    MPI_Bcast(a b c d e) => |call| call.collective(e, d, Call::bytes(b, c));
    MPI_Reduce(a b c d e f g) => |call| call.collective(g, f, Call::bytes(c, d));
    MPI_Allreduce(a b c d e f) => |call| call.collective(f, NONE, Call::bytes(c, d));
    MPI_Gather(a b c d e f g h) => |call| call.collective(h, g, part(a, b, c, e, f));
    MPI_Gatherv(a b c d e f g h i) => |call| call.collective(i, h, if is_in_place(a) { 0 } else { Call::bytes(b, c) });
    MPI_Scatter(a b c d e f g h) => |call| call.collective(h, g, part(d, e, f, b, c));
    MPI_Scatterv(a b c d e f g h i) => |call| {
        let bytes = if call.is_root(i, h) { mean(&mut call, b, d, i) } else { Call::bytes(f, g) };
        call.collective(i, h, bytes)
    };
    MPI_Allgather(a b c d e f g) => |call| call.collective(g, NONE, part(a, b, c, e, f));
    MPI_Allgatherv(a b c d e f g h) => |call| {
        let bytes = mean(&mut call, e, g, h);
        call.collective(h, NONE, bytes)
    };
    MPI_Alltoall(a b c d e f g) => |call| call.collective(g, NONE, part(a, b, c, e, f));
    MPI_Alltoallv(a b c d e f g h i) => |call| {
        let bytes = if is_in_place(a) { mean(&mut call, f, h, i) } else { mean(&mut call, b, d, i) };
        call.collective(i, NONE, bytes)
    };
    MPI_Alltoallw(a b c d e f g h i) => |call| {
        let (counts, types) = if is_in_place(a) { (f, h) } else { (b, d) };
        let bytes = call.mean_bytes(counts, i, |index| type_bytes(handle_at(types, index)));
        call.collective(i, NONE, bytes)
    };
    MPI_Reduce_scatter(a b c d e f) => |call| {
        let bytes = mean(&mut call, c, d, f);
        call.collective(f, NONE, bytes)
    };
    MPI_Reduce_scatter_block(a b c d e f) => |call| call.collective(f, NONE, Call::bytes(c, d));
    MPI_Scan(a b c d e f) => |call| call.collective(f, NONE, Call::bytes(c, d));
    MPI_Exscan(a b c d e f) => |call| call.collective(f, NONE, Call::bytes(c, d));
    MPI_Ibarrier(a b) => |call| call.begun(a, NONE, 0, b);
    MPI_Ibcast(a b c d e f) => |call| call.begun(e, d, Call::bytes(b, c), f);
    MPI_Ireduce(a b c d e f g h) => |call| call.begun(g, f, Call::bytes(c, d), h);
    MPI_Iallreduce(a b c d e f g) => |call| call.begun(f, NONE, Call::bytes(c, d), g);
    MPI_Igather(a b c d e f g h i) => |call| call.begun(h, g, part(a, b, c, e, f), i);
    MPI_Iscatter(a b c d e f g h i) => |call| call.begun(h, g, part(d, e, f, b, c), i);
    MPI_Iallgather(a b c d e f g h) => |call| call.begun(g, NONE, part(a, b, c, e, f), h);
    MPI_Ialltoall(a b c d e f g h) => |call| call.begun(g, NONE, part(a, b, c, e, f), h);
    MPI_Comm_split(a b c d) => |call| call.collective(a, NONE, 0);
    MPI_Comm_split_type(a b c d e) => |call| call.collective(a, NONE, 0);
    MPI_Comm_dup(a b) => |call| call.collective(a, NONE, 0);
    MPI_Comm_dup_with_info(a b c) => |call| call.collective(a, NONE, 0);
    MPI_Comm_create(a b c) => |call| call.collective(a, NONE, 0);
    MPI_Cart_create(a b c d e f) => |call| call.collective(a, NONE, 0);
    MPI_Cart_sub(a b c) => |call| call.collective(a, NONE, 0);
    MPI_Dist_graph_create_adjacent(a b c d e f g h i j) => |call| call.collective(a, NONE, 0);
}

hooks! { whole
    MPI_Comm_free(a) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        let comm = unsafe { handle_at(a, 0) };
        // SAFETY: as above.
        let result = unsafe { next(a) };
        call.stop();
        call.freed(comm);
        call.end();
        result
    };
}
