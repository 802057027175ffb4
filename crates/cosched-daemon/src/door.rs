//! Admission of connections to the Unix socket, counted for each user and in total.
//!
//! Every user may connect, and each connection takes a descriptor and memory. So the connections of one user are limited such that enough is left for
//! the others and for the daemon's own work. Administrators are not counted.

use crate::config::Limits;
use crate::guest::{Caller, Guest};
use crate::pace;
use crate::rights::{Peer, Rights};
use cosched_api::{ErrorBody, ErrorCode};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};

/// The pause after a failure that is not the connection's own, such as having no descriptor left.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// The present number of connections.
#[derive(Debug, Default)]
struct Counts {
    all: usize,
    of: BTreeMap<u32, usize>,
}

/// Counts the present connections, of all users and of each, against their limits.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    inside: Arc<Mutex<Counts>>,
    user_max: usize,
    all_max: usize,
}

/// The place of one connection; released when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    inside: Arc<Mutex<Counts>>,
    uid: u32,
}

/// The listening socket.
pub(crate) struct Door {
    listener: UnixListener,
    rights: Rights,
    places: Places,
    patience: Duration,
}

impl Places {
    /// As configured, but for one user at most an eighth of the files that the process may open, and for all users a half.
    pub(crate) fn new(limits: &Limits, open_files_max: u64) -> Places {
        let at_most = |wanted: u64, part: u64| wanted.min(open_files_max / part).max(1) as usize;
        let (user_max, all_max) = (at_most(limits.connections, 8), at_most(limits.connections_all, 2));
        Places { inside: Arc::default(), user_max, all_max }
    }

    /// A user's present number of connections, and the limit.
    pub(crate) fn of_user(&self, uid: u32) -> (usize, usize) {
        let inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        (inside.of.get(&uid).copied().unwrap_or(0), self.user_max)
    }

    /// The present number of connections of all users.
    pub(crate) fn of_all(&self) -> usize {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner).all
    }

    /// Takes a place, or says why there is none.
    fn take(&self, uid: u32) -> Result<Place, String> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.of.get(&uid).is_some_and(|count| *count >= self.user_max) {
            return Err(format!("you may have {} at a time", self.user_max));
        }
        if inside.all >= self.all_max {
            return Err(format!("all users together may have {} at a time", self.all_max));
        }
        inside.all += 1;
        *inside.of.entry(uid).or_default() += 1;
        Ok(Place { inside: Arc::clone(&self.inside), uid })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.all -= 1;
        if let Some(count) = inside.of.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                inside.of.remove(&self.uid);
            }
        }
    }
}

impl Door {
    /// Accepts connections from `listener` as long as there are places.
    pub(crate) fn new(listener: UnixListener, rights: Rights, places: Places, patience: Duration) -> Door {
        Door { listener, rights, places, patience }
    }

    /// The next connection that is admitted.
    pub(crate) async fn next(&self) -> Guest<UnixStream> {
        loop {
            pace::heed();
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    if let Some(guest) = self.let_in(stream) {
                        return guest;
                    }
                }
                Err(e) => {
                    tracing::warn!("a connection could not be accepted: {e}");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// `None` when there are too many connections.
    fn let_in(&self, stream: UnixStream) -> Option<Guest<UnixStream>> {
        let caller = Caller::of(&stream);
        let peer = caller.peer;
        if self.rights.is_admin(peer) {
            return Some(Guest::new(stream, caller, self.patience, None));
        }
        match self.places.take(peer.uid) {
            Ok(place) => Some(Guest::new(stream, caller, self.patience, Some(place))),
            Err(why) => {
                turn_away(&stream, peer, why);
                None
            }
        }
    }
}

/// Sends the reason if that is possible without blocking; whether the client reads it does not matter.
fn turn_away(stream: &UnixStream, peer: Peer, why: String) {
    tracing::debug!(uid = peer.uid, "there are too many connections: {why}");
    let body = ErrorBody {
        code: ErrorCode::Limit,
        what: "the daemon accepts no more connections from you".to_owned(),
        why,
        hint: "End programs that wait for jobs, or close connections that are not in use.".to_owned(),
    };
    let body = serde_json::to_string(&body).unwrap_or_default();
    let head =
        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ";
    let _ = stream.try_write(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_for_one_user_and_for_all() {
        let limits = Limits { connections: 2, connections_all: 3, ..Limits::default() };
        let places = Places::new(&limits, 1000);
        let first = places.take(1).unwrap();
        let _second = places.take(1).unwrap();
        assert!(places.take(1).unwrap_err().contains("you may have 2"));
        let _third = places.take(2).unwrap();
        assert!(places.take(3).unwrap_err().contains("all users together may have 3"));
        drop(first);
        assert_eq!((places.of_user(1), places.of_all()), ((1, 2), 2));
        assert!(places.take(3).is_ok());
        assert_eq!(Places::new(&Limits::default(), 80).user_max, 10, "the process must keep most of its descriptors");
    }
}
