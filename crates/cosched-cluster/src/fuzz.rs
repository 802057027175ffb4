//! Fuzz targets: the values of a store, imports of a backup, and repairs of a damaged store.

use crate::backup::{self, Texts};
use crate::keys::Keys;
use crate::repair::{Known, repair};
use crate::store::{Do, MemoryStore, Op, OpDone, Range, Txn};
use crate::wire::{Ack, Job, Name, Node, Reply, Request, Stored, Tree, Written, decode, encode};
use cosched_core::Time;
use cosched_core::cluster::{Planner, State};

/// A plausible time, in nanoseconds since the Unix epoch.
const NOW: Time = Time(1_700_000_000_000_000_000);

/// A value of any kind: a value that was decoded must survive encoding and decoding.
pub fn stored(data: &[u8]) {
    fn again<T: Stored + PartialEq + std::fmt::Debug>(data: &[u8]) {
        if let Ok(value) = decode::<T>(data) {
            assert_eq!(decode::<T>(&encode(&value)).unwrap(), value);
        }
    }
    again::<Ack>(data);
    again::<Job>(data);
    again::<Name>(data);
    again::<Node>(data);
    again::<Reply>(data);
    again::<Request>(data);
    again::<State>(data);
    again::<Tree>(data);
    again::<Written>(data);
}

/// A backup's keys: what is imported into an empty store, or into one with other keys, is also what is exported from it.
pub fn backup(data: &[u8]) {
    let Ok(texts) = serde_json::from_slice::<Texts>(data) else { return };
    let mut store = MemoryStore::new();
    bring_back(&mut store, &texts);
    let mut others = texts.clone();
    others.retain(|key, _| !key.starts_with("jobs/1"));
    bring_back(&mut store, &others);
}

fn bring_back(store: &mut MemoryStore, texts: &Texts) {
    let known = known(None);
    let Ok(import) = backup::import(&known, texts, &all(store)) else { return };
    import.ops.into_iter().for_each(|op| carry_out(store, op));
    let (mut exported, damaged) = backup::export(&known.keys, &all(store));
    assert_eq!(damaged, Vec::<String>::new());
    let state = exported.remove("state").unwrap();
    let State { next_order, .. } = decode(state.as_bytes()).unwrap();
    let meant = decode::<State>(texts["state"].as_bytes()).unwrap();
    assert_eq!(decode::<State>(state.as_bytes()).unwrap(), State { next_order, ..meant });
    assert_eq!(exported.remove("begun").as_ref(), texts.get("begun").or(texts.get("format")));
    for (key, text) in texts.iter().filter(|(key, _)| !["state", "begun"].contains(&key.as_str())) {
        assert_eq!(exported.remove(key).as_ref(), Some(text), "{key}");
    }
    assert!(exported.keys().all(|key| key.starts_with("names/") || key.starts_with("ids/")), "{exported:?}");
}

/// Any content of a store, and under `known` the state that a node knows: a repair does what it says, after
/// it nothing is wrong, and a planner can continue.
pub fn repairs(data: &[u8]) {
    let Ok(texts) = serde_json::from_slice::<Texts>(data) else { return };
    let known = known(texts.get("known").and_then(|text| decode(text.as_bytes()).ok()));
    let mut store = MemoryStore::new();
    for (key, text) in &texts {
        let key = format!("{}{key}", known.keys.prefix());
        let put = Do::Put { key, value: text.clone().into_bytes(), lease: None };
        carry_out(&mut store, Op::Txn(Txn { then: vec![put], ..Txn::default() }));
    }
    let Ok(found) = repair(&known, NOW, &all(&store)) else { return };
    assert!(!found.says.is_empty() || found.ops.is_empty(), "{found:?}");
    found.ops.into_iter().for_each(|op| carry_out(&mut store, op));
    let again = repair(&known, NOW, &all(&store)).unwrap();
    assert!(again.says.is_empty() && again.ops.is_empty(), "{again:?}");
    let state = store.read(&Range::one(known.keys.state()));
    Planner::new(decode::<State>(&state[0].value).unwrap()).unwrap();
}

fn known(state: Option<State>) -> Known {
    let keys = Keys::new("c").expect("a name");
    let initial = State::default().config;
    let (node, version) = ("a".to_owned(), "1".to_owned());
    Known { keys, node, tree: Some(5), begun: None, state, initial, jobs_known: 3, version, lease_ns: 10_000_000_000 }
}

fn all(store: &MemoryStore) -> Vec<crate::store::Entry> {
    store.read(&Range::prefix(known(None).keys.prefix()))
}

fn carry_out(store: &mut MemoryStore, op: Op) {
    let done = store.call(NOW, op).unwrap();
    assert!(matches!(done, OpDone::Txn { succeeded: true, .. }), "{done:?}");
}
