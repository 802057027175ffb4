use super::*;
use crate::journal;
use crate::store::{Opened, State as Records, Store};
use cosched_cluster::store::{Compare, Do, Key, LeaseId, Txn};
use cosched_cluster::wire::{Answer, Ask, By, Exit, JobAsk, Reply, Request, WantAsk, encode};
use cosched_core::JobId;
use std::path::Path;
use std::process::Command;

const FILE: &str = "journal";

/// A machine's state with its keys.
struct Own {
    store: Store,
    records: Records,
}

impl Own {
    fn call(&mut self, op: Op) -> Result<OpDone, StoreError> {
        self.store.call(&self.records, op)
    }

    fn keys(&self) -> &MemoryStore {
        &self.store.own().store
    }

    fn bytes(&mut self) -> u64 {
        self.store.journal().bytes()
    }
}

fn txn(then: Vec<Do>) -> Op {
    Op::Txn(Txn { compare: Vec::new(), then, or_else: Vec::new() })
}

fn put(key: &str, value: impl Into<Vec<u8>>, lease: Option<LeaseId>) -> Do {
    Do::Put { key: key.to_owned(), value: value.into(), lease }
}

/// All keys without a lease.
fn kept(store: &Own) -> Vec<Entry> {
    let all = Range { first: String::new(), end: Some(char::MAX.to_string()) };
    store.keys().read(&all).into_iter().filter(|entry| entry.lease.is_none()).collect()
}

fn open(dir: &Path) -> Own {
    let Opened { store, state, damaged } = Store::open(dir).unwrap();
    assert!(damaged.is_empty());
    Own { store, records: state }
}

/// Makes changes of all kinds; returns the length of the file and the keys after each.
fn life(store: &mut Own) -> Vec<(u64, Vec<Entry>)> {
    let Ok(OpDone::Granted { lease, .. }) = store.call(Op::Grant { ttl_s: 5 }) else { panic!("no lease") };
    let some = |n: u8| vec![n; 40];
    let ops = [
        txn(vec![put("/a", "one", None), put("/b", some(0xff), None)]),
        txn(vec![put("/n", "here", Some(lease))]),
        txn(vec![put("/a", "two", None), Do::Delete(Range::one("/b"))]),
        Op::Txn(Txn {
            compare: vec![Compare::absent("/a".to_owned())],
            then: vec![put("/never", "", None)],
            or_else: vec![put("/c/1", "\u{e4}\n\"", None), put("/c/2", some(7), None)],
        }),
        txn(vec![put("/a", "leased now", Some(lease))]),
        txn(vec![Do::Delete(Range::prefix("/c/")), put("/d", some(9), None)]),
        Op::Revoke(lease),
        txn(vec![put("/a", "three", None)]),
    ];
    let mut told = vec![(store.bytes(), kept(store))];
    for op in ops {
        store.call(op).unwrap();
        told.push((store.bytes(), kept(store)));
    }
    told
}

#[test]
fn a_crash_at_any_byte_loses_no_transaction_that_was_told_and_no_half_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let (told, revision) = {
        let mut store = open(dir.path());
        (life(&mut store), store.keys().revision())
    };
    let bytes = std::fs::read(dir.path().join(FILE)).unwrap();
    for cut in 0..=bytes.len() {
        std::fs::write(dir.path().join(FILE), &bytes[..cut]).unwrap();
        // The part that was cut off was never acknowledged.
        std::fs::remove_file(dir.path().join(FILE).with_extension("mark")).unwrap();
        let store = open(dir.path());
        let expected = told.iter().rev().find(|(at, _)| *at <= cut as u64).map(|(_, kept)| kept.clone());
        assert_eq!(kept(&store), expected.unwrap_or_default(), "cut at {cut}");
        if cut == bytes.len() {
            assert!(store.keys().revision() >= revision, "revisions rise");
        }
    }
}

#[test]
fn revisions_rise_over_restarts_even_when_only_keys_with_a_lease_were_changed() {
    let dir = tempfile::tempdir().unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let mut store = open(dir.path());
        let Ok(OpDone::Granted { lease, revision, .. }) = store.call(Op::Grant { ttl_s: 2 }) else {
            panic!("no lease")
        };
        assert!(revision >= last);
        for n in 0..2500 {
            let Ok(OpDone::Txn { revision, .. }) = store.call(txn(vec![put("/n", n.to_string(), Some(lease))])) else {
                panic!("not done")
            };
            assert!(revision > last);
            last = revision;
        }
        assert!(store.bytes() < 1000, "what goes with the daemon is not written");
    }
}

#[test]
fn reading_renewing_and_watching_write_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    store.call(txn(vec![put("/a", "x", None)])).unwrap();
    let Ok(OpDone::Granted { lease, .. }) = store.call(Op::Grant { ttl_s: 2 }) else { panic!("no lease") };
    let before = store.bytes();
    for _ in 0..5000 {
        store.call(txn(vec![Do::Get(Range::prefix("/"))])).unwrap();
        assert!(matches!(store.call(Op::KeepAlive(lease)), Ok(OpDone::KeptAlive { ttl_s: 2 })));
    }
    assert_eq!(store.bytes(), before);
}

#[test]
fn a_watch_hears_everything_although_old_changes_are_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let range = Range::prefix("/");
    let mut from = store.keys().revision() + 1;
    for n in 0..200 {
        store.call(txn(vec![put("/a", n.to_string(), None)])).unwrap();
        let news = store.store.news(&range, from).unwrap();
        assert_eq!(news.events.len(), 1);
        from = news.revision + 1;
    }
    assert!(matches!(store.store.news(&range, 2), Err(StoreError::Compacted(_))));
}

#[test]
fn the_file_does_not_grow_without_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    store.store.journal().compact_beyond(10_000);
    for n in 0..500 {
        store.call(txn(vec![put("/a", vec![n as u8; 100], None), put("/b", n.to_string(), None)])).unwrap();
        assert!(store.bytes() < 20_000);
    }
    let before = kept(&store);
    drop(store);
    assert_eq!(kept(&open(dir.path())), before, "revisions of creation and change included");
}

fn job(id: u64) -> Job {
    let ask = JobAsk {
        want: WantAsk::Total { cpus: 1, memory_per_cpu_bytes: 0, disk_bytes: 0 },
        name: "j".to_owned(),
        command: vec!["j".to_owned()],
        cwd: None,
        environment: Vec::new(),
        log_path: None,
        class: cosched_cluster::wire::Class::Batch,
        policy: None,
        share_permille: None,
        queue: None,
        on_node_loss: cosched_cluster::wire::OnNodeLoss::Kill,
        waiting: None,
        lead: None,
        main: None,
        groups: Vec::new(),
        once: false,
        terms: Default::default(),
    };
    Job::new(id, By { uid: 0, gid: 0, admin: true }, ask, 1)
}

fn planned(ids: &[u64]) -> State {
    use cosched_core::cluster::{JobRecord, JobSpec, Stage, Want};
    let record = |id: u64| JobRecord {
        spec: JobSpec::new(
            JobId(id),
            cosched_core::Class::Batch,
            Want::Total { cpus: 1, memory_per_cpu_bytes: 0, disk_bytes: 0 },
        ),
        order: id,
        standing: cosched_core::Standing::Scheduled,
        choice: cosched_core::Policy::Gang,
        stage: Stage::Waiting(cosched_core::Reason::Arrival),
        place: None,
        ready_since: Time(0),
        suspended: Default::default(),
    };
    let next_order = ids.iter().copied().max().unwrap_or(0);
    State { jobs: ids.iter().map(|id| (JobId(*id), record(*id))).collect(), next_order, ..State::default() }
}

/// Makes a store with three jobs; returns the file's bytes, line by line.
fn three_jobs(dir: &Path) -> Vec<Vec<u8>> {
    let mut store = open(dir);
    let keys = keys();
    let lines = [
        put(&format!("{}format", keys.prefix()), "f", None),
        put(&format!("{}names/host", keys.prefix()), "0", None),
        put(&format!("{}ids/0", keys.prefix()), "host", None),
        put(&keys.job(1), encode(&job(1)), None),
        put(&keys.job(2), encode(&job(2)), None),
        put(&keys.job(3), encode(&job(3)), None),
        put(&keys.state(), encode(&planned(&[1, 2, 3])), None),
        put("/z", "last", None),
    ];
    for line in lines {
        store.call(txn(vec![line])).unwrap();
    }
    let bytes = std::fs::read(dir.join(FILE)).unwrap();
    bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

#[test]
fn a_damaged_line_is_set_aside_and_what_is_left_agrees_with_itself() {
    let lines = three_jobs(tempfile::tempdir().unwrap().path());
    for bad in 0..lines.len() {
        let dir = tempfile::tempdir().unwrap();
        let mut broken = lines.clone();
        let middle = broken[bad].len() / 2;
        broken[bad][middle] ^= 0x11;
        std::fs::write(dir.path().join(FILE), broken.concat()).unwrap();
        let Opened { store, state, damaged } = Store::open(dir.path()).unwrap();
        let [(aside, count)] = &damaged[..] else { panic!("it is not noticed") };
        assert_eq!((std::fs::read(aside).unwrap(), *count), (broken.concat(), 1), "line {bad}");
        let own = store.own();
        let planned: Vec<u64> = own.state().unwrap().unwrap_or_default().jobs.keys().map(|id| id.0).collect();
        let known: Vec<u64> = own.jobs().iter().map(|job| job.id).collect();
        assert_eq!(planned, known, "line {bad}");
        assert!(state.last_id >= 2, "line {bad}: numbers are not given twice");
        let of_node = own.node_name().is_some();
        assert_eq!(
            known.len(),
            if !of_node || bad == lines.len() - 2 {
                0
            } else if (8..11).contains(&bad) {
                2
            } else {
                3
            }
        );
        drop(store);
        open(dir.path());
    }
}

#[test]
fn a_job_that_has_ended_survives_damage_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    three_jobs(dir.path());
    let mut store = open(dir.path());
    let mut over = job(1);
    let end = cosched_cluster::wire::End {
        at_ns: 5,
        why: cosched_cluster::wire::Why::Finished,
        exit: Some(Exit { code: Some(0), signal: None }),
        cpu_time_ns: 0,
        memory_peak_bytes: 0,
        out_of_memory: None,
    };
    over.end = Some(end);
    let then = vec![put(&keys().job(1), encode(&over), None), put(&keys().state(), encode(&planned(&[2, 3])), None)];
    store.call(txn(then)).unwrap();
    drop(store);
    let bytes = std::fs::read(dir.path().join(FILE)).unwrap();
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    lines[2][30] ^= 1;
    std::fs::write(dir.path().join(FILE), lines.concat()).unwrap();
    let Opened { store, damaged, .. } = Store::open(dir.path()).unwrap();
    assert!(!damaged.is_empty());
    assert!(store.own().jobs().iter().any(|job| job.id == 1 && job.end.is_some()));
}

/// A file system of a few kilobytes.
struct Tiny(tempfile::TempDir);

impl Tiny {
    fn new(bytes: &str) -> Option<Tiny> {
        let dir = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "cst-tiny"]).arg(dir.path());
        mount.stderr(std::process::Stdio::null());
        let ok = rustix::process::geteuid().is_root() && mount.status().is_ok_and(|status| status.success());
        if !ok {
            println!("SKIPPED: a file system cannot be mounted here");
        }
        ok.then_some(Tiny(dir))
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_a_store_that_does_not_answer_until_there_is_room() {
    let Some(tiny) = Tiny::new("1m") else { return };
    let dir = tiny.0.path();
    let mut store = open(dir);
    let ballast = dir.join("ballast");
    let mut told: Vec<Key> = Vec::new();
    std::fs::write(&ballast, vec![1; 800 << 10]).unwrap();
    let fill = |store: &mut Own, told: &mut Vec<Key>, most: usize| {
        for n in 0..most {
            let key = format!("/k{:04}-{n}", told.len());
            match store.call(txn(vec![put(&key, vec![b'x'; 3000], None)])) {
                Ok(_) => told.push(key),
                Err(StoreError::Unavailable(why)) => return Some(why),
                Err(other) => panic!("{other}"),
            }
        }
        None
    };
    let why = fill(&mut store, &mut told, 1000).expect("the disk gets full");
    assert!(why.contains("space"), "{why}");
    // No partial state: reads are refused, too, and what was acknowledged is on the disk.
    assert!(store.call(txn(vec![Do::Get(Range::prefix("/"))])).is_err());
    assert_eq!(kept(&store).iter().map(|entry| entry.key.clone()).collect::<Vec<_>>(), told);
    let (changes, damaged) = crate::store::keys_in(&dir.join(FILE));
    assert_eq!((folded(changes).1.into_keys().collect::<Vec<_>>(), damaged), (told.clone(), 0));
    // There is room again.
    std::fs::remove_file(&ballast).unwrap();
    assert_eq!(fill(&mut store, &mut told, 20), None);
    drop(store);
    assert_eq!(kept(&open(dir)).into_iter().map(|entry| entry.key).collect::<Vec<_>>(), told);
}

#[test]
fn what_only_the_asker_would_miss_costs_no_sync_and_what_was_acknowledged_does() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let key = |id: &str| keys().request(&cosched_cluster::request_id("n", 1, id.parse().unwrap()));
    let request = |ask| encode(&Request { origin: "n".to_owned(), by: None, at_ns: 1, ask });
    store.call(txn(vec![put("/a", "promises revisions", None)])).unwrap();
    let before = store.bytes();
    let asked = format!("{}asked/n", keys().prefix());
    store.call(txn(vec![put(&key("1"), request(Ask::Suspend { job: 7 }), None), put(&asked, "1", None)])).unwrap();
    store.call(txn(vec![put(&keys().reply("n.1"), encode(&Reply { at_ns: 1, answer: Answer::Done }), None)])).unwrap();
    store.call(txn(vec![Do::Delete(Range::one(keys().reply("n.1")))])).unwrap();
    assert_eq!(store.bytes(), before);
    assert_eq!(store.keys().read(&Range::one(key("1"))).len(), 1, "whoever plans finds it");
    let exit = Exit { code: Some(3), signal: None };
    store.call(txn(vec![put(&key("2"), request(Ask::MainEnded { job: 7, attempt: 0, exit }), None)])).unwrap();
    assert!(store.bytes() > before, "its launcher does not wait until it is carried out");
    store.call(txn(vec![put("/a", "carried out", None), Do::Delete(Range::one(key("1")))])).unwrap();
    drop(store);
    let found = open(dir.path());
    let left: Vec<Key> = kept(&found).into_iter().map(|entry| entry.key).collect();
    assert_eq!(left, ["/a".to_owned(), key("2")]);
}

/// The files of an earlier version: records in the journal, keys in a separate file.
fn of_earlier_version(dir: &Path) -> Vec<Entry> {
    let mut store = open(dir);
    store.store.put(&mut store.records, &crate::record::example(4)).unwrap();
    life(&mut store);
    let (left, keys) = (kept(&store), store.store.own().changes().collect::<Vec<_>>());
    drop(store);
    let journal = dir.join(FILE);
    let bytes = std::fs::read(&journal).unwrap();
    std::fs::remove_file(&journal).unwrap();
    std::fs::remove_file(journal.with_extension("mark")).unwrap();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(|line| String::from_utf8_lossy(line).into_owned());
    let records: Vec<serde_json::Value> = lines
        .filter(|line| ["put", "last-id", "settings"].iter().any(|word| line.contains(&format!(" {{\"{word}\""))))
        .filter(|line| !line.contains("/cosched/") && !line.contains("\"keys\""))
        .map(|line| serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap())
        .collect();
    journal::Journal::open::<serde_json::Value>(&journal).unwrap().0.append(records.iter()).unwrap();
    let (mut old, _) = journal::Journal::open::<Change>(&dir.join("keys")).unwrap();
    old.append(keys.iter()).unwrap();
    left
}

#[test]
fn keys_of_an_earlier_version_are_taken_over_once_wherever_that_is_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let left = of_earlier_version(dir.path());
    assert!(!left.is_empty());
    let files = ["journal", "journal.mark", "keys", "keys.mark"];
    let before: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(dir.path().join(file)).unwrap()).collect();
    drop(open(dir.path()));
    assert!(!dir.path().join("keys").exists() && !dir.path().join("keys.mark").exists());
    let after: Vec<Vec<u8>> = files[..2].iter().map(|file| std::fs::read(dir.path().join(file)).unwrap()).collect();
    // The machine or the daemon died: before the new journal was renamed, before its mark was written, before the old file was removed.
    for (journal, mark, has_keys, has_mark) in [
        (&before[0], &before[1], true, true),
        (&after[0], &before[1], true, true),
        (&after[0], &after[1], true, true),
        (&after[0], &after[1], false, true),
        (&after[0], &after[1], false, false),
    ] {
        std::fs::write(dir.path().join("journal"), journal).unwrap();
        std::fs::write(dir.path().join("journal.mark"), mark).unwrap();
        for (at, _) in [(2, has_keys), (3, has_mark)].into_iter().filter(|(_, is_there)| *is_there) {
            std::fs::write(dir.path().join(files[at]), &before[at]).unwrap();
        }
        let store = open(dir.path());
        assert_eq!((kept(&store), store.records.jobs.keys().copied().collect::<Vec<_>>()), (left.clone(), vec![4]));
        assert!(!dir.path().join("keys").exists() && !dir.path().join("keys.mark").exists());
    }
    // The import does not undo later changes.
    let mut store = open(dir.path());
    store.call(txn(vec![put("/a", "newer", None)])).unwrap();
    let newer = kept(&store);
    drop(store);
    std::fs::write(dir.path().join("keys"), &before[2]).unwrap();
    assert_eq!(kept(&open(dir.path())), newer);
}
