//! Limits the bytes that the daemon holds on behalf of users: for each user, and for all together.
//!
//! The daemon's memory is locked and it is exempt from the OOM killer, so the memory that users make it hold is bounded: requests while they are read
//! and handled, long answers until they are read. A user over budget waits until one of the user's own requests is done, and delays no other user.
//! Administrators are not counted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of the count, in bytes.
const UNIT_BYTES: usize = 1 << 10;

/// The limit for all users together.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    all: Arc<Semaphore>,
    all_units: usize,
    user_units: usize,
    users: Arc<Mutex<BTreeMap<u32, Arc<User>>>>,
}

/// The budget of one user.
#[derive(Debug)]
struct User {
    bytes: Arc<Semaphore>,
    /// Only one long answer at a time is made for a user.
    long_answer: Arc<Semaphore>,
}

/// Bytes that are held; released when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    _permits: [OwnedSemaphorePermit; 2],
}

impl Budget {
    /// A budget in bytes for each user, and one for all users.
    pub(crate) fn new(user_bytes: u64, all_bytes: u64) -> Budget {
        let units = |bytes: u64| (bytes as usize / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        let all_units = units(all_bytes);
        Budget {
            all: Arc::new(Semaphore::new(all_units)),
            all_units,
            user_units: units(user_bytes).min(all_units),
            users: Arc::default(),
        }
    }

    /// Waits until this user may hold this number of bytes. A request larger than the user's whole budget takes all of it.
    pub(crate) async fn hold(&self, uid: u32, bytes: usize) -> Option<Held> {
        let units = bytes.div_ceil(UNIT_BYTES).clamp(1, self.user_units) as u32;
        let own = Arc::clone(&self.user(uid).bytes).acquire_many_owned(units).await.ok()?;
        let all = Arc::clone(&self.all).acquire_many_owned(units).await.ok()?;
        Some(Held { _permits: [own, all] })
    }

    /// Waits for this user's turn to have a long answer made.
    pub(crate) async fn turn(&self, uid: u32) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.user(uid).long_answer).acquire_owned().await.ok()
    }

    /// The bytes held for a user now, and the limit.
    pub(crate) fn of_user(&self, uid: u32) -> (u64, u64) {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let free = users.get(&uid).map_or(self.user_units, |user| user.bytes.available_permits());
        ((self.user_units - free) as u64 * UNIT_BYTES as u64, self.user_units as u64 * UNIT_BYTES as u64)
    }

    /// The bytes held for all users now.
    pub(crate) fn of_all(&self) -> u64 {
        (self.all_units - self.all.available_permits()) as u64 * UNIT_BYTES as u64
    }

    fn user(&self, uid: u32) -> Arc<User> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let user_units = self.user_units;
        if !users.contains_key(&uid) {
            // Users who hold or wait for nothing are removed.
            users.retain(|_, user| Arc::strong_count(user) > 1 || !user.is_idle(user_units));
        }
        let new = || {
            let (bytes, long_answer) = (Arc::new(Semaphore::new(user_units)), Arc::new(Semaphore::new(1)));
            Arc::new(User { bytes, long_answer })
        };
        Arc::clone(users.entry(uid).or_insert_with(new))
    }
}

impl User {
    /// Whether nothing is held and no request waits: a waiting one keeps a reference to the semaphore.
    fn is_idle(&self, units: usize) -> bool {
        let unused = |semaphore: &Arc<Semaphore>, all: usize| {
            semaphore.available_permits() == all && Arc::strong_count(semaphore) == 1
        };
        unused(&self.bytes, units) && unused(&self.long_answer, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// The value of a future that is ready at once.
    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_user_waits_for_himself_and_others_do_not() {
        let budget = Budget::new(10 << 10, 25 << 10);
        let first = now(budget.hold(1, 9000)).flatten();
        assert!(first.is_some());
        assert_eq!(budget.of_user(1), (9 << 10, 10 << 10));
        assert!(now(budget.hold(1, 4000)).is_none(), "over his budget he waits");
        let second = now(budget.hold(2, 1 << 30)).flatten();
        assert!(second.is_some(), "more than all of it takes all of it");
        assert!(now(budget.hold(3, 7000)).is_none(), "all together have a bound, too");
        assert_eq!(budget.of_all(), 19 << 10);
        drop(first);
        assert!(now(budget.hold(3, 7000)).flatten().is_some());
        assert_eq!((budget.of_user(1).0, budget.of_user(2).0), (0, 10 << 10));
    }

    #[test]
    fn users_who_hold_nothing_are_forgotten() {
        let budget = Budget::new(10 << 10, 20 << 10);
        let held = now(budget.hold(0, 1)).flatten();
        for uid in 1..1000 {
            drop(now(budget.hold(uid, 1)));
        }
        assert!(budget.users.lock().unwrap().len() <= 2);
        assert_eq!(budget.of_user(0).0, 1 << 10);
        drop(held);
    }

    #[test]
    fn one_long_answer_at_a_time() {
        let budget = Budget::new(1 << 20, 1 << 20);
        let turn = now(budget.turn(5)).flatten();
        assert!(turn.is_some() && now(budget.turn(5)).is_none());
        assert!(now(budget.turn(6)).flatten().is_some());
        drop(turn);
        assert!(now(budget.turn(5)).flatten().is_some());
    }
}
