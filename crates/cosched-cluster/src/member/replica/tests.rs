//! A copy of the store, and its changes.

use super::*;
use crate::store::Event;
use crate::wire::{Clock, encode};

fn keys() -> Keys {
    Keys::new("t").unwrap()
}

fn entry(key: Key, value: Vec<u8>, revision: Revision) -> Entry {
    Entry { key, value, create_revision: revision, mod_revision: revision, lease: None }
}

fn state(generation: u64, revision: Revision) -> Entry {
    entry(keys().state(), encode(&State { generation, ..State::default() }), revision)
}

fn name(name: &str, id: u32, revision: Revision) -> Entry {
    entry(
        keys().name(name),
        encode(&Name { id, boot: "b".to_owned(), home: None, left_ns: None, tree: Some(5) }),
        revision,
    )
}

fn node(name: &str, id: u32, boot: &str) -> Entry {
    let clock = Clock { synchronised: true, error_ns: 0 };
    let (home, boot, version) = (name.to_owned(), boot.to_owned(), String::new());
    let node =
        Node { id, instance: 1, home, boot, cpus: 1, memory_bytes: 1, disk_bytes: 1, clock, version, jobs_known: 0 };
    entry(keys().node(name), encode(&node), 1)
}

fn deleted(key: Key, revision: Revision) -> Event {
    Event { entry: entry(key, Vec::new(), revision), deleted: true }
}

fn put(entry: Entry) -> Event {
    Event { entry, deleted: false }
}

fn tell(replica: &mut Replica, revision: Revision, events: Vec<Event>) {
    replica.take(&keys(), News { revision, events });
}

#[test]
fn an_older_state_does_not_replace_a_newer_one() {
    let mut replica = Replica::read(&keys(), 9, vec![state(4, 9)]);
    tell(&mut replica, 9, vec![put(state(3, 8))]);
    tell(&mut replica, 9, vec![put(state(5, 9))]);
    assert_eq!((replica.generation(), replica.state_revision()), (4, 9));
    tell(&mut replica, 10, vec![put(state(5, 10))]);
    assert_eq!((replica.generation(), replica.state_revision()), (5, 10));
    let earlier: Vec<u64> = replica.earlier.iter().map(|state| state.generation).collect();
    assert_eq!(earlier, [4], "each plan is seen, also those that were replaced before anybody looked");
}

#[test]
fn what_was_committed_here_is_not_read_again_and_only_what_is_the_same() {
    let mut replica = Replica::read(&keys(), 9, vec![state(4, 9)]);
    let committed = || Some((b"not to be read".to_vec(), State { generation: 5, ..State::default() }));
    replica.committed = committed();
    tell(&mut replica, 10, vec![put(entry(keys().state(), b"not to be read".to_vec(), 10))]);
    assert_eq!((replica.generation(), replica.state_revision(), replica.unreadable()), (5, 10, None));
    // A restored copy of the store may have another state at the revision of ours.
    replica.committed = committed();
    tell(&mut replica, 11, vec![put(state(6, 11))]);
    assert_eq!((replica.generation(), replica.state_revision()), (6, 11));
}

#[test]
fn requests_and_answers_are_no_news_of_jobs() {
    let mut replica = Replica::read(&keys(), 9, vec![state(4, 9)]);
    assert!(std::mem::take(&mut replica.is_news_of_jobs));
    tell(&mut replica, 10, vec![put(entry(keys().request("r"), Vec::new(), 10)), deleted(keys().reply("r"), 10)]);
    assert!(!replica.is_news_of_jobs);
    tell(&mut replica, 11, vec![deleted(keys().job(1), 11)]);
    assert!(replica.is_news_of_jobs);
}

#[test]
fn a_state_that_was_read_alone_is_ahead_of_what_belongs_to_it() {
    let mut replica = Replica::read(&keys(), 9, vec![state(4, 9)]);
    assert!(!replica.is_ahead());
    replica.put(&keys(), state(5, 12));
    assert!(replica.is_ahead());
    tell(&mut replica, 11, Vec::new());
    assert!(replica.is_ahead());
    tell(&mut replica, 12, Vec::new());
    assert!(!replica.is_ahead());
    tell(&mut replica, 3, Vec::new());
    assert_eq!(replica.revision, 12, "it never goes back");
}

#[test]
fn a_state_that_is_gone_is_remembered_and_missed() {
    let mut replica = Replica::read(&keys(), 9, vec![state(4, 9)]);
    tell(&mut replica, 10, vec![deleted(keys().state(), 10)]);
    assert_eq!(replica.generation(), 0);
    assert!(replica.has_lost_state());
    assert_eq!(replica.lost.as_ref().map(|state| state.value.generation), Some(4));
    tell(&mut replica, 11, vec![deleted(keys().state(), 11)]);
    assert!(replica.lost.is_some(), "twice is no matter");
    tell(&mut replica, 12, vec![put(state(5, 12))]);
    assert!(!replica.has_lost_state() && replica.lost.is_none());
    assert!(!Replica::read(&keys(), 1, Vec::new()).has_lost_state(), "a new cluster has lost nothing");
}

/// The state and the mark are deleted one after the other.
#[test]
fn a_tree_that_was_seen_to_have_begun_is_no_new_one_without_its_mark() {
    let tree = |made_ns| encode(&Tree { made_by: String::new(), made_ns });
    let read = |made_ns| Replica::read(&keys(), 4, vec![entry(keys().tree(), tree(made_ns), 1)]);
    let mut before = read(5);
    tell(&mut before, 5, vec![put(entry(keys().begun(), tree(5), 5))]);
    let mut then = read(5);
    assert!(!then.has_lost_state());
    then.remember_begun(&before);
    assert!(then.has_lost_state());
    let mut last = read(5);
    last.remember_begun(&then);
    assert!(last.has_lost_state(), "however often it is read");
    let mut another = read(6);
    another.remember_begun(&last);
    assert!(!another.has_lost_state(), "another tree is another cluster");
}

#[test]
fn what_cannot_be_read_is_named_until_it_can() {
    let mut replica = Replica::read(&keys(), 9, vec![entry(keys().state(), b"{".to_vec(), 9), name("a", 1, 3)]);
    assert!(
        replica.unreadable().is_some_and(|why| why.starts_with("/cosched/t/state: ")),
        "{:?}",
        replica.unreadable()
    );
    tell(&mut replica, 10, vec![put(entry(keys().name("a"), b"x".to_vec(), 10))]);
    assert!(replica.unreadable().is_some_and(|why| why.contains("(and 1 more)")), "{:?}", replica.unreadable());
    assert_eq!(replica.names["a"], 1, "what was known of it holds");
    tell(&mut replica, 12, vec![put(state(5, 12)), deleted(keys().name("a"), 12)]);
    assert_eq!(replica.unreadable(), None);
    let mut replica = Replica::read(&keys(), 9, Vec::new());
    let reply = entry(keys().reply("n0.0000000000000001.0000000001"), b"x".to_vec(), 9);
    replica.put(&keys(), reply);
    assert_eq!(replica.unreadable(), None, "nobody needs a reply");
}

#[test]
fn a_name_whose_key_is_gone_is_known_while_its_node_is_there() {
    let mut replica = Replica::read(&keys(), 9, vec![node("a", 1, "b"), name("a", 1, 2), name("c", 2, 2)]);
    tell(&mut replica, 10, vec![deleted(keys().name("a"), 10), deleted(keys().name("c"), 10)]);
    assert_eq!((replica.names.get("a"), replica.names.get("c")), (Some(&1), None));
    assert!(replica.nameless.contains("a"));
    assert_eq!((replica.name_of(NodeId(1)), replica.name_of(NodeId(2))), ("a", "?"));
    tell(&mut replica, 11, vec![put(name("a", 1, 11))]);
    assert!(replica.nameless.is_empty());
    let read = Replica::read(&keys(), 9, vec![node("a", 1, "b")]);
    assert_eq!((read.names["a"], read.nameless.contains("a")), (1, true), "the node's record has its number");
}

#[test]
fn two_names_of_one_number_are_seen() {
    let mut replica = Replica::read(&keys(), 9, vec![name("a", 1, 1), name("b", 2, 1), name("c", 3, 1)]);
    assert_eq!(replica.twins(), None);
    tell(&mut replica, 10, vec![put(name("c", 1, 10))]);
    assert_eq!(replica.twins(), Some((1, "a", "c")));
    tell(&mut replica, 11, vec![deleted(keys().name("a"), 11)]);
    assert_eq!(replica.twins(), None);
}

#[test]
fn a_machine_that_was_started_anew_is_told_by_its_boot() {
    let replica =
        Replica::read(&keys(), 9, vec![name("a", 1, 1), node("a", 1, "b"), name("c", 2, 1), node("c", 2, "later")]);
    let is_new = |name: &str| replica.is_new_boot(name, &replica.nodes[name].value.node);
    assert_eq!((is_new("a"), is_new("c")), (false, true));
    assert!(!replica.is_new_boot("unknown", &replica.nodes["a"].value.node));
    let mut unknown = name("a", 1, 1);
    unknown.value = encode(&Name { id: 1, boot: UNKNOWN_BOOT.to_owned(), home: None, left_ns: None, tree: None });
    let replica = Replica::read(&keys(), 9, vec![unknown, node("a", 1, "b")]);
    assert!(!replica.is_new_boot("a", &replica.nodes["a"].value.node) && replica.lacks_boot("a"));
}

#[test]
fn which_tree_it_is_stands_in_three_places() {
    let tree = |made_ns| encode(&Tree { made_by: String::new(), made_ns });
    let all = || vec![entry(keys().tree(), tree(5), 1), entry(keys().begun(), tree(6), 1), name("a", 1, 1)];
    for (left_out, made_ns) in [(None, Some(5)), (Some("format"), Some(6)), (Some("begun"), Some(5))] {
        let entries = all().into_iter().filter(|entry| left_out.is_none_or(|end| !entry.key.ends_with(end))).collect();
        assert_eq!(Replica::read(&keys(), 9, entries).made_ns(), made_ns, "{left_out:?}");
    }
    let names_only = Replica::read(&keys(), 9, vec![name("a", 1, 1)]);
    assert_eq!(names_only.made_ns(), Some(5));
    assert!(names_only.is_of(Some(5)) && !names_only.is_of(Some(6)) && !names_only.is_of(None));
    assert!(Replica::read(&keys(), 9, Vec::new()).is_of(Some(6)), "as far as can be told");
}

#[test]
fn requests_are_in_the_order_in_which_they_were_made() {
    let mut replica = Replica::default();
    for (id, revision) in [("b.1", 3), ("a.1", 5), ("a.2", 3)] {
        tell(&mut replica, revision, vec![put(entry(keys().request(id), b"{".to_vec(), revision))]);
    }
    let order = |replica: &Replica| replica.requests.keys().map(|(_, id)| id.clone()).collect::<Vec<_>>();
    assert_eq!(order(&replica), ["a.2", "b.1", "a.1"]);
    tell(&mut replica, 6, vec![deleted(keys().request("b.1"), 6)]);
    assert_eq!(order(&replica), ["a.2", "a.1"]);
}
