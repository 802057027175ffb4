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

/// Calls that write a status: the library gets our buffer if the program passes none.
macro_rules! with_status {
    ($call:ident, $next:ident($($arg:expr),*), $status:ident of $count:expr, $describe:expr) => {{
        let $status = $call.statuses($status, $count);
        // SAFETY: the caller keeps the function's contract; the status is the program's or has enough room.
        let result = unsafe { $next($($arg),*) };
        $call.stop();
        if result == 0 {
            // SAFETY: as above, and after a success the library has written its outputs.
            #[allow(unused_unsafe)]
            unsafe { $describe };
        }
        (result, result == 0)
    }};
}

/// A call that may find nothing, according to the number at `found`: then it gets no record of its own.
fn end_if(call: Call, (result, succeeded): (c_int, bool), found: usize) -> c_int {
    // SAFETY: after a success the library has written the program's place for the answer.
    if succeeded && unsafe { *(found as *const c_int) } == 0 {
        call.end_poll();
    } else {
        call.end();
    }
    result
}

fn end(call: Call, (result, _): (c_int, bool)) -> c_int {
    call.end();
    result
}

/// # Safety
/// The library has written the number there.
unsafe fn number_at(place: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { *(place as *const c_int) }
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
        unsafe {
            let index = *(indices as *const c_int).add(place);
            call.completed(usize::try_from(index).unwrap_or(usize::MAX), statuses, place);
        }
    }
}

hooks! { whole
    MPI_Recv(a b c d e f g) |call, next| {
        let done = with_status!(call, next(a, b, c, d, e, f, g), g of 1, call.received(f, g, 0));
        end(call, done)
    };
    MPI_Sendrecv(a b c d e f g h i j k l) |call, next| {
        let done = with_status!(call, next(a, b, c, d, e, f, g, h, i, j, k, l), l of 1, {
            call.sent(b, c, d, k);
            call.received(k, l, 0);
        });
        end(call, done)
    };
    MPI_Sendrecv_replace(a b c d e f g h i) |call, next| {
        let done = with_status!(call, next(a, b, c, d, e, f, g, h, i), i of 1, {
            call.sent(b, c, d, h);
            call.received(h, i, 0);
        });
        end(call, done)
    };
    MPI_Mrecv(a b c d e) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(d, 1) };
        let done = with_status!(call, next(a, b, c, d, e), e of 1, call.completed(0, e, 0));
        end(call, done)
    };
    MPI_Wait(a b) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(a, 1) };
        let done = with_status!(call, next(a, b), b of 1, call.completed(0, b, 0));
        end(call, done)
    };
    MPI_Waitall(a b c) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(b, a) };
        let done = with_status!(call, next(a, b, c), c of a, call.completed_all(c));
        end(call, done)
    };
    MPI_Waitany(a b c d) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(b, a) };
        let done = with_status!(call, next(a, b, c, d), d of 1, {
            let index = number_at(c);
            call.completed(usize::try_from(index).unwrap_or(usize::MAX), d, 0)
        });
        end(call, done)
    };
    MPI_Waitsome(a b c d e) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(b, a) };
        let done = with_status!(call, next(a, b, c, d, e), e of a, completed_some(&mut call, c, d, e));
        end(call, done)
    };
    MPI_Test(a b c) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(a, 1) };
        let done = with_status!(call, next(a, b, c), c of 1, if number_at(b) != 0 {
            call.completed(0, c, 0);
        });
        end_if(call, done, b)
    };
    MPI_Testall(a b c d) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(b, a) };
        let done = with_status!(call, next(a, b, c, d), d of a, if number_at(c) != 0 {
            call.completed_all(d);
        });
        end_if(call, done, c)
    };
    MPI_Testany(a b c d e) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(b, a) };
        let done = with_status!(call, next(a, b, c, d, e), e of 1, if number_at(d) != 0 {
            let index = number_at(c);
            call.completed(usize::try_from(index).unwrap_or(usize::MAX), e, 0);
        });
        end_if(call, done, d)
    };
    MPI_Testsome(a b c d e) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(b, a) };
        let done = with_status!(call, next(a, b, c, d, e), e of a, completed_some(&mut call, c, d, e));
        end_if(call, done, c)
    };
    MPI_Iprobe(a b c d e) |call, next| {
        let done = with_status!(call, next(a, b, c, d, e), e of 1, ());
        end_if(call, done, d)
    };
    MPI_Improbe(a b c d e f) |call, next| {
        let done = with_status!(call, next(a, b, c, d, e, f), f of 1, if number_at(d) != 0 {
            call.posted(a, c, e);
        });
        end_if(call, done, d)
    };
    MPI_Imrecv(a b c d e) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(d, 1) };
        // SAFETY: as above.
        let result = unsafe { next(a, b, c, d, e) };
        call.stop();
        // SAFETY: as above, and the library has written the request.
        unsafe { call.passed_on(e) };
        end(call, (result, true))
    };
    MPI_Request_free(a) |call, next| {
        // SAFETY: the caller keeps the function's contract.
        unsafe { call.ask(a, 1) };
        // SAFETY: as above.
        let result = unsafe { next(a) };
        call.stop();
        call.given_up();
        end(call, (result, true))
    };
}
