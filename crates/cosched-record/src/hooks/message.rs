//! Point-to-point calls. A send is recorded when it is called, a receive when it is complete: a received message had been sent before, so a replay in
//! this order cannot deadlock.

use super::hooks;
use crate::call::Call;
use core::ffi::c_int;

hooks! {
    MPI_Send(a b c d e f) => |call| call.sent(b, c, d, f);
    MPI_Ssend(a b c d e f) => |call| call.sent(b, c, d, f);
    MPI_Rsend(a b c d e f) => |call| call.sent(b, c, d, f);
    MPI_Bsend(a b c d e f) => |call| call.sent(b, c, d, f);
    MPI_Isend(a b c d e f g) => |call| call.sent(b, c, d, f);
    MPI_Issend(a b c d e f g) => |call| call.sent(b, c, d, f);
    MPI_Irsend(a b c d e f g) => |call| call.sent(b, c, d, f);
    MPI_Ibsend(a b c d e f g) => |call| call.sent(b, c, d, f);
    MPI_Irecv(a b c d e f g) => |call| call.posted(d, f, g);
    // Only probed: the receive that follows is recorded.
    MPI_Probe(a b c d) => |call| ();
    MPI_Mprobe(a b c d e) => |call| call.posted(a, c, d);
}

/// Calls that write statuses: the library gets our buffer if the program passes none. A call that `asks` saves its requests first.
/// The number at `found` is 0 if the call found nothing: then it gets no record of its own.
macro_rules! with_statuses {
    ($($name:ident($($arg:ident)*) $status:ident of $count:expr
       $(, asks $requests:ident of $number:expr)? $(, found $found:ident)? => |$call:ident| $describe:expr;)*) => {
        hooks! { whole $($name($($arg)*) |$call, next| {
            $(
                // SAFETY: the caller keeps the function's contract.
                unsafe { $call.ask($requests, $number) };
            )?
            let $status = $call.statuses($status, $count);
            // SAFETY: the caller keeps the function's contract; the status is the program's or has enough room.
            let result = unsafe { next($($arg),*) };
            $call.stop();
            // SAFETY: after a success the library has written its outputs.
            let found = result == 0 $(&& unsafe { number_at($found) } != 0)?;
            if found {
                // SAFETY: as above, and the caller keeps the function's contract.
                #[allow(unused_unsafe)]
                unsafe { $describe };
            }
            if found || result != 0 { $call.end() } else { $call.end_poll() }
            result
        };)* }
    };
}

/// # Safety
/// The library has written the number there.
unsafe fn number_at(place: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { *(place as *const c_int) }
}

/// An index in an array; "undefined" is negative, and no index.
///
/// # Safety
/// The library has written the array up to there.
unsafe fn index_at(indices: usize, place: usize) -> usize {
    // SAFETY: the caller's promise.
    usize::try_from(unsafe { *(indices as *const c_int).add(place) }).unwrap_or(usize::MAX)
}

/// Records that the requests of these indices are complete, if any are.
///
/// # Safety
/// The library has written this number of indices and statuses.
unsafe fn completed_some(call: &mut Call, count: usize, indices: usize, statuses: usize) {
    // SAFETY: the caller's promise. "Undefined" is negative: there was no active request.
    let count = usize::try_from(unsafe { number_at(count) }).unwrap_or(0);
    for place in 0..count {
        // SAFETY: as above.
        unsafe { call.completed(index_at(indices, place), statuses, place) };
    }
}

/// Records that the request of this index is complete, if any is.
///
/// # Safety
/// The library has written the index and the status.
unsafe fn completed_one(call: &mut Call, index: usize, status: usize) {
    // SAFETY: the caller's promise.
    unsafe { call.completed(index_at(index, 0), status, 0) };
}

with_statuses! {
    MPI_Recv(a b c d e f g) g of 1 => |call| call.received(f, g, 0);
    MPI_Sendrecv(a b c d e f g h i j k l) l of 1 => |call| {
        call.sent(b, c, d, k);
        call.received(k, l, 0);
    };
    MPI_Sendrecv_replace(a b c d e f g h i) i of 1 => |call| {
        call.sent(b, c, d, h);
        call.received(h, i, 0);
    };
    MPI_Mrecv(a b c d e) e of 1, asks d of 1 => |call| call.completed(0, e, 0);
    MPI_Wait(a b) b of 1, asks a of 1 => |call| call.completed(0, b, 0);
    MPI_Waitall(a b c) c of a, asks b of a => |call| call.completed_all(c);
    MPI_Waitany(a b c d) d of 1, asks b of a => |call| completed_one(&mut call, c, d);
    MPI_Waitsome(a b c d e) e of a, asks b of a => |call| completed_some(&mut call, c, d, e);
    MPI_Test(a b c) c of 1, asks a of 1, found b => |call| call.completed(0, c, 0);
    MPI_Testall(a b c d) d of a, asks b of a, found c => |call| call.completed_all(d);
    MPI_Testany(a b c d e) e of 1, asks b of a, found d => |call| completed_one(&mut call, c, e);
    MPI_Testsome(a b c d e) e of a, asks b of a, found c => |call| completed_some(&mut call, c, d, e);
    MPI_Iprobe(a b c d e) e of 1, found d => |call| ();
    MPI_Improbe(a b c d e f) f of 1, found d => |call| call.posted(a, c, e);
}

hooks! { whole
    MPI_Imrecv(a b c d e) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(d, 1) };
        // SAFETY: as above.
        let result = unsafe { next(a, b, c, d, e) };
        call.stop();
        // SAFETY: as above, and the library has written the request.
        unsafe { call.passed_on(e) };
        call.end();
        result
    };
    MPI_Request_free(a) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(a, 1) };
        // SAFETY: as above.
        let result = unsafe { next(a) };
        call.stop();
        call.given_up();
        call.end();
        result
    };
}
