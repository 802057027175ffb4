//! The keys of a cluster in the store: everything is under `/cosched/<cluster>/`.
//!
//! All nodes watch one range, which holds what all have to know. Keys that only planners read (`acks/`) or only their own
//! node reads (`asked/`) sort before that range, so that a cluster of n nodes does not send n acknowledgements to n nodes
//! for every plan.

use crate::store::{Entry, Key, Range};
use crate::wire::{Request, decode};
use cosched_core::cluster::NUMBERS_END;
use std::str::FromStr;

/// The maximum length of a node's or a cluster's name.
const NAME_MAX: usize = 64;

/// The keys of a cluster.
#[derive(Clone, Debug)]
pub struct Keys {
    prefix: String,
}

/// The kinds of keys in the watched range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    Tree,
    Begun,
    State,
    Node(&'a str),
    Name(&'a str),
    Id(u32),
    Job(u64),
    Request(&'a str),
    Reply(&'a str),
    Other,
}

impl Place<'_> {
    /// Whether the set of jobs, or where they are, depends on this key.
    pub(crate) fn concerns_jobs(&self) -> bool {
        !matches!(self, Place::Request(_) | Place::Reply(_) | Place::Other)
    }
}

/// Why a name cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be a name: it takes 1 to 64 letters, digits, `-`, `_` and `.`")]
pub struct BadName(pub String);

/// Checks the name of a node or a cluster.
///
/// # Errors
/// It would not fit into a key.
pub fn check_name(name: &str) -> Result<(), BadName> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(good) {
        return Err(BadName(name.to_owned()));
    }
    Ok(())
}

impl Keys {
    /// The keys of this cluster.
    ///
    /// # Errors
    /// The name would not fit into a key.
    pub fn new(cluster: &str) -> Result<Keys, BadName> {
        check_name(cluster)?;
        Ok(Keys { prefix: format!("/cosched/{cluster}/") })
    }

    fn key(&self, rest: std::fmt::Arguments) -> Key {
        format!("{}{rest}", self.prefix)
    }

    /// The prefix of all keys; for the permissions of a user of the store.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The range that all nodes watch.
    pub fn watched(&self) -> Range {
        let all = Range::prefix(&self.prefix);
        Range { first: self.key(format_args!("b")), ..all }
    }

    pub(crate) fn tree(&self) -> Key {
        self.key(format_args!("format"))
    }

    /// Marks that the cluster has had a state: if this exists and the state does not, the state was deleted.
    pub(crate) fn begun(&self) -> Key {
        self.key(format_args!("begun"))
    }

    /// The planner's state.
    pub fn state(&self) -> Key {
        self.key(format_args!("state"))
    }

    /// A key that never exists: a user who may put it may put all others.
    pub fn scratch(&self) -> Key {
        self.key(format_args!("scratch"))
    }

    /// A node's record.
    pub fn node(&self, name: &str) -> Key {
        self.key(format_args!("nodes/{name}"))
    }

    pub(crate) fn name(&self, name: &str) -> Key {
        self.key(format_args!("names/{name}"))
    }

    pub(crate) fn id(&self, id: u32) -> Key {
        self.key(format_args!("ids/{id}"))
    }

    pub(crate) fn ack(&self, name: &str) -> Key {
        self.key(format_args!("acks/{name}"))
    }

    pub(crate) fn acks(&self) -> Range {
        Range::prefix(&self.key(format_args!("acks/")))
    }

    pub(crate) fn acks_name<'a>(&self, key: &'a str) -> Option<&'a str> {
        key.strip_prefix(&self.prefix)?.strip_prefix("acks/")
    }

    pub(crate) fn asked(&self, name: &str) -> Key {
        self.key(format_args!("asked/{name}"))
    }

    /// A job's record.
    pub fn job(&self, id: u64) -> Key {
        self.key(format_args!("jobs/{id}"))
    }

    /// A request.
    pub fn request(&self, id: &str) -> Key {
        self.key(format_args!("requests/{id}"))
    }

    /// The reply to a request.
    pub fn reply(&self, id: &str) -> Key {
        self.key(format_args!("replies/{id}"))
    }

    /// Whether nothing is lost with an entry when the only daemon of a store dies: answers, which only that daemon could deliver, requests
    /// whose senders are only answered when they are carried out or send them again, and the number of the last request written.
    pub fn may_be_lost(&self, entry: &Entry) -> bool {
        let is_asked = entry.key.strip_prefix(&self.prefix).is_some_and(|rest| rest.starts_with("asked/"));
        is_asked
            || match self.place(&entry.key) {
                Place::Reply(_) => true,
                Place::Request(_) => decode::<Request>(&entry.value).is_ok_and(|request| request.ask.may_be_lost()),
                _ => false,
            }
    }

    pub(crate) fn place<'a>(&self, key: &'a str) -> Place<'a> {
        let Some(rest) = key.strip_prefix(&self.prefix) else { return Place::Other };
        match rest.split_once('/') {
            None if rest == "format" => Place::Tree,
            None if rest == "begun" => Place::Begun,
            None if rest == "state" => Place::State,
            Some(("nodes", name)) if check_name(name).is_ok() => Place::Node(name),
            Some(("names", name)) if check_name(name).is_ok() => Place::Name(name),
            Some(("ids", id)) => number(id).map_or(Place::Other, Place::Id),
            Some(("jobs", id)) => number(id).filter(|id| *id < NUMBERS_END).map_or(Place::Other, Place::Job),
            Some(("requests", id)) => Place::Request(id),
            Some(("replies", id)) => Place::Reply(id),
            _ => Place::Other,
        }
    }
}

/// A number in its canonical spelling; another spelling of it is another key.
fn number<N: FromStr + ToString>(text: &str) -> Option<N> {
    text.parse().ok().filter(|number: &N| number.to_string() == text)
}

/// The name of a request; the requests of one node sort by their numbers.
pub fn request_id(node: &str, instance: u64, sequence: u64) -> String {
    format!("{node}.{instance:016x}.{sequence:010}")
}

/// The node, the daemon's instance and the sequence number of a request.
pub(crate) fn request_parts(id: &str) -> Option<(&str, u64, u64)> {
    let (rest, sequence) = id.rsplit_once('.')?;
    let (node, instance) = rest.rsplit_once('.')?;
    Some((node, u64::from_str_radix(instance, 16).ok()?, sequence.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_watch_is_everything_but_acknowledgements() {
        let keys = Keys::new("c").unwrap();
        let watched = keys.watched();
        for key in [
            keys.tree(),
            keys.begun(),
            keys.state(),
            keys.node("a"),
            keys.name("a"),
            keys.id(3),
            keys.job(1),
            keys.request("r"),
            keys.reply("r"),
        ] {
            assert!(watched.contains(&key), "{key}");
        }
        for key in [keys.ack("a"), keys.asked("a"), "/cosched/c0/state".to_owned(), "/cosched/b/state".to_owned()] {
            assert!(!watched.contains(&key), "{key}");
        }
    }

    #[test]
    fn keys_are_recognised() {
        let keys = Keys::new("c").unwrap();
        assert_eq!(keys.place(&keys.job(12)), Place::Job(12));
        assert_eq!(keys.place(&keys.node("a.b")), Place::Node("a.b"));
        assert_eq!(keys.place(&keys.state()), Place::State);
        assert_eq!(keys.place("/cosched/d/state"), Place::Other);
        assert_eq!(keys.place("/cosched/c/names/a b"), Place::Other);
        assert_eq!(keys.place("/cosched/c/jobs/012"), Place::Other);
        let id = request_id("n.1", 0xabc, 7);
        assert_eq!(request_parts(&id), Some(("n.1", 0xabc, 7)));
    }

    #[test]
    fn names_that_would_break_keys_are_refused() {
        for name in ["", "a/b", "a b", "\u{e4}", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("node-01.example_x").is_ok());
    }

    /// A machine that has queues keeps its own store, and does not wait for the disk for entries whose loss does no harm.
    #[test]
    fn only_what_its_asker_would_miss_may_be_lost() {
        use crate::store::Entry;
        use crate::wire::{Ask, Exit, KillHow, PartEnd, encode};
        let keys = Keys::new("c").unwrap();
        let lost = |key: Key, value: Vec<u8>| {
            keys.may_be_lost(&Entry { key, value, create_revision: 1, mod_revision: 1, lease: None })
        };
        let request = |ask| {
            let request = Request { origin: "n".to_owned(), by: None, at_ns: 0, ask };
            lost(keys.request("r"), encode(&request))
        };
        assert!(lost(keys.asked("n"), Vec::new()) && lost(keys.reply("r"), Vec::new()));
        for key in [keys.state(), keys.tree(), keys.begun(), keys.node("n"), keys.name("n"), keys.id(1), keys.job(1)] {
            assert!(!lost(key.clone(), Vec::new()), "{key}");
        }
        assert!(request(Ask::Kill { job: 1, how: KillHow::FORCE }) && request(Ask::Suspend { job: 1 }));
        assert!(request(Ask::PartEnded { job: 1, attempt: 0, end: PartEnd::default() }), "it is reported again");
        // It is acknowledged before it is carried out, and is not sent again.
        assert!(!request(Ask::MainEnded { job: 1, attempt: 0, exit: Exit::default() }));
        assert!(!request(Ask::Drain { node: "n".to_owned(), drains: true }));
        assert!(!lost(keys.request("r"), b"{".to_vec()), "nor what cannot be read");
    }
}
