//! Pieces of work on several threads.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{Builder, scope};

/// Calls `work` with 0, 1, … below `count`, each once and begun in this order, until it returns false, on up to `threads`
/// threads. The caller's is one of them, and does all where no other can be started (in a browser).
pub(crate) fn share_out(count: usize, threads: usize, work: &(dyn Fn(usize) -> bool + Sync)) {
    let next = AtomicUsize::new(0);
    let work_off = || loop {
        let piece = next.fetch_add(1, Relaxed);
        if piece >= count {
            return;
        }
        if !work(piece) {
            next.store(count, Relaxed);
        }
    };
    scope(|scope| {
        for _ in 1..threads.min(count) {
            if Builder::new().spawn_scoped(scope, work_off).is_err() {
                break;
            }
        }
        work_off();
    });
}

#[cfg(test)]
mod tests {
    use super::share_out;
    use std::sync::Mutex;

    fn begun(count: usize, threads: usize, last: usize) -> Vec<usize> {
        let begun = Mutex::new(Vec::new());
        share_out(count, threads, &|piece| {
            begun.lock().unwrap().push(piece);
            piece != last
        });
        let mut begun = begun.into_inner().unwrap();
        begun.sort_unstable();
        begun
    }

    #[test]
    fn every_piece_is_done_once() {
        for (count, threads) in [(0, 0), (0, 3), (1, 8), (9, 0), (9, 1), (9, 2), (100, 7)] {
            assert_eq!(begun(count, threads, count), (0..count).collect::<Vec<_>>(), "{count} on {threads}");
        }
    }

    #[test]
    fn what_precedes_the_last_is_done_too() {
        assert_eq!(begun(9, 1, 3), [0, 1, 2, 3]);
        for threads in [2, 3] {
            assert!(begun(9, threads, 3).starts_with(&[0, 1, 2, 3]), "{threads}");
        }
    }
}
