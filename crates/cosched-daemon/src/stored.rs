//! The forms of jobs' records and of settings in the journal: types of their own, with a version, so that the API can change independently. A form is
//! frozen: a new form gets a new version, and this one stays readable as long as journals with it may exist.

use crate::record::{Adopted, Origin, PartOf, Record, Settings};
use cosched_api as api;
use cosched_cluster::wire::{Ask, Decided};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version of new lines.
const VERSION: u32 = 1;

/// Lines from the time before versions have the first version.
fn first() -> u32 {
    1
}

/// Mirrors an enum of the API, in the same order.
macro_rules! words {
    ($name:ident: $($word:ident),+) => {
        #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        enum $name { $($word),+ }

        impl From<api::$name> for $name {
            fn from(word: api::$name) -> $name {
                match word { $(api::$name::$word => $name::$word),+ }
            }
        }

        impl From<$name> for api::$name {
            fn from(word: $name) -> api::$name {
                match word { $($name::$word => api::$name::$word),+ }
            }
        }
    };
}

/// Mirrors a struct of the API with the same field names.
macro_rules! fields {
    ($(#[$meta:meta])* $name:ident { $($(#[$of:meta])* $field:ident: $kind:ty),+ $(,)? }) => {
        #[derive(Clone, Debug, Serialize, Deserialize)]
        $(#[$meta])*
        struct $name { $($(#[$of])* $field: $kind),+ }

        impl From<api::$name> for $name {
            fn from(from: api::$name) -> $name {
                $name { $($field: from.$field.into()),+ }
            }
        }

        impl From<$name> for api::$name {
            fn from(from: $name) -> api::$name {
                api::$name { $($field: from.$field.into()),+ }
            }
        }
    };
}

words!(Class: Express, Interactive, Batch, Standby);
words!(Policy: Gang, Local, Pb, Dcs, Auto);
words!(Sharing: Strict, Paired, Soft);
words!(WaitMode: Auto, Busy, SpinBlock, SpinYield, Micro);

fields! {
    ExitStatus {
        #[serde(skip_serializing_if = "Option::is_none", default)]
        code: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        signal: Option<i32>,
    }
}

fields! {
    OutOfMemory {
        killed: u64,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        limit_bytes: Option<u64>,
    }
}

fields! {
    Event {
        unix_ms: u64,
        what: String,
        detail: String,
    }
}

fields! {
    NodeResources {
        #[serde(skip_serializing_if = "String::is_empty", default)]
        name: String,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cpus: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cpus_min: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        memory_bytes: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        disk_bytes: Option<u64>,
    }
}

fields! {
    Waiting {
        mode: WaitMode,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        spin_us: Option<u32>,
    }
}

fields! {
    JobWaiting {
        asked: Waiting,
        mode: WaitMode,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        page: Option<String>,
        processes: u32,
        polls: u64,
        waits: u64,
        spins: u64,
        blocks: u64,
        yields: u64,
        timeouts: u64,
        spin_ms: u64,
        block_ms: u64,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        spin_us: Option<(u32, u32)>,
    }
}

/// A record in a line of the journal; the fields are described at [`Record`].
#[derive(Clone, Serialize, Deserialize)]
struct StoredRecord {
    #[serde(default = "first")]
    version: u32,
    id: u64,
    name: String,
    uid: u32,
    class: Class,
    own_policy: Option<Policy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share_permille: Option<u32>,
    cpus: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    exclusive_cores: bool,
    mem_bytes: Option<u64>,
    command: Vec<String>,
    cwd: Option<String>,
    pid: i32,
    submitted_unix_ms: u64,
    detached: bool,
    log_path: Option<String>,
    boot_id: String,
    suspended: bool,
    exit: Option<ExitStatus>,
    ended_unix_ms: Option<u64>,
    lost: bool,
    cpu_time_ms: u64,
    memory_peak_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    out_of_memory: Option<OutOfMemory>,
    events: Vec<Event>,
    #[serde(default)]
    waiting: Option<JobWaiting>,
    #[serde(default)]
    boosts: u64,
    #[serde(default)]
    nodes: Vec<NodeResources>,
    #[serde(default)]
    by_api: bool,
    #[serde(default)]
    by_admin: bool,
    #[serde(default, skip_serializing_if = "Decided::is_none")]
    decided: Decided,
    #[serde(default)]
    origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    place: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    adopted: Option<Adopted>,
    #[serde(default)]
    part: Option<PartOf>,
}

impl From<Record> for StoredRecord {
    fn from(record: Record) -> StoredRecord {
        StoredRecord {
            version: VERSION,
            id: record.id,
            name: record.name,
            uid: record.uid,
            class: record.class.into(),
            own_policy: record.own_policy.map(Into::into),
            share_permille: record.share_permille,
            cpus: record.cpus,
            exclusive_cores: record.exclusive_cores,
            mem_bytes: record.mem_bytes,
            command: record.command,
            cwd: record.cwd,
            pid: record.pid,
            submitted_unix_ms: record.submitted_unix_ms,
            detached: record.detached,
            log_path: record.log_path,
            boot_id: record.boot_id,
            suspended: record.suspended,
            exit: record.exit.map(Into::into),
            ended_unix_ms: record.ended_unix_ms,
            lost: record.lost,
            cpu_time_ms: record.cpu_time_ms,
            memory_peak_bytes: record.memory_peak_bytes,
            out_of_memory: record.out_of_memory.map(Into::into),
            events: record.events.into_iter().map(Into::into).collect(),
            waiting: record.waiting.map(Into::into),
            boosts: record.boosts,
            nodes: record.nodes.into_iter().map(Into::into).collect(),
            by_api: record.by_api,
            by_admin: record.by_admin,
            decided: record.decided,
            origin: record.origin,
            place: record.place,
            adopted: record.adopted,
            part: record.part,
        }
    }
}

impl TryFrom<StoredRecord> for Record {
    type Error = String;

    fn try_from(stored: StoredRecord) -> Result<Record, String> {
        check(stored.version)?;
        Ok(Record {
            id: stored.id,
            name: stored.name,
            uid: stored.uid,
            class: stored.class.into(),
            own_policy: stored.own_policy.map(Into::into),
            share_permille: stored.share_permille,
            cpus: stored.cpus,
            exclusive_cores: stored.exclusive_cores,
            mem_bytes: stored.mem_bytes,
            command: stored.command,
            cwd: stored.cwd,
            pid: stored.pid,
            submitted_unix_ms: stored.submitted_unix_ms,
            detached: stored.detached,
            log_path: stored.log_path,
            boot_id: stored.boot_id,
            suspended: stored.suspended,
            exit: stored.exit.map(Into::into),
            ended_unix_ms: stored.ended_unix_ms,
            lost: stored.lost,
            cpu_time_ms: stored.cpu_time_ms,
            memory_peak_bytes: stored.memory_peak_bytes,
            out_of_memory: stored.out_of_memory.map(Into::into),
            events: stored.events.into_iter().map(Into::into).collect(),
            waiting: stored.waiting.map(Into::into),
            boosts: stored.boosts,
            nodes: stored.nodes.into_iter().map(Into::into).collect(),
            by_api: stored.by_api,
            by_admin: stored.by_admin,
            decided: stored.decided,
            origin: stored.origin,
            place: stored.place,
            adopted: stored.adopted,
            part: stored.part,
        })
    }
}

/// Settings in a line of the journal.
#[derive(Clone, Serialize, Deserialize)]
struct StoredSettings {
    #[serde(default = "first")]
    version: u32,
    policy: Option<Policy>,
    sharing: Option<Sharing>,
    slot_length_ms: Option<u64>,
    #[serde(default)]
    starts: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    file: Vec<Ask>,
}

impl From<Settings> for StoredSettings {
    fn from(settings: Settings) -> StoredSettings {
        StoredSettings {
            version: VERSION,
            policy: settings.policy.map(Into::into),
            sharing: settings.sharing.map(Into::into),
            slot_length_ms: settings.slot_length_ms,
            starts: settings.starts,
            file: settings.file,
        }
    }
}

impl TryFrom<StoredSettings> for Settings {
    type Error = String;

    fn try_from(stored: StoredSettings) -> Result<Settings, String> {
        check(stored.version)?;
        Ok(Settings {
            policy: stored.policy.map(Into::into),
            sharing: stored.sharing.map(Into::into),
            slot_length_ms: stored.slot_length_ms,
            starts: stored.starts,
            file: stored.file,
        })
    }
}

/// Serializes a record, for `#[serde(with)]`.
pub(crate) mod record {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(record: &Record, to: S) -> Result<S::Ok, S::Error> {
        StoredRecord::from(record.clone()).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Record>, D::Error> {
        let read = Record::try_from(StoredRecord::deserialize(from)?).map_err(serde::de::Error::custom)?;
        Ok(Box::new(read))
    }
}

/// Serializes settings, for `#[serde(with)]`.
pub(crate) mod settings {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(settings: &Settings, to: S) -> Result<S::Ok, S::Error> {
        StoredSettings::from(settings.clone()).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Settings, D::Error> {
        StoredSettings::deserialize(from)?.try_into().map_err(serde::de::Error::custom)
    }
}

/// Content of a later version may not be dropped: its journal is left unchanged.
fn check(version: u32) -> Result<(), String> {
    match version {
        VERSION => Ok(()),
        other => Err(format!("it is of version {other}, and this program reads version {VERSION}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    /// A record with a value in every field.
    fn full() -> Record {
        let mut record = example(7);
        record.event(6, "registered", "class batch");
        record.own_policy = Some(api::Policy::Pb);
        record.exit = Some(api::ExitStatus { code: None, signal: Some(9) });
        let asked = api::Waiting { mode: api::WaitMode::SpinBlock, spin_us: Some(40) };
        let waiting = api::JobWaiting { asked, mode: api::WaitMode::Busy, waits: 3, ..api::JobWaiting::default() };
        record.waiting = Some(api::JobWaiting { spin_us: Some((1, 2)), ..waiting });
        record.nodes = vec![api::NodeResources { name: "a".to_owned(), cpus: Some(2), ..Default::default() }];
        record.origin = Some(Origin { v2: "/a".to_owned(), cpu: None, memory: Some("/b".to_owned()), pids: None });
        record.part = Some(PartOf { attempt: 1, spans: false, lead: true, closing: false, tree: 5, alike: false });
        record
    }

    /// The form of the first version. A change of this text is a change of the form, which needs another version.
    const FIRST: &str = r#"{"version":1,"id":7,"name":"sleep","uid":1000,"class":"interactive","own_policy":"pb","cpus":2,"mem_bytes":null,"command":["/bin/sleep","1"],"cwd":null,"pid":77,"submitted_unix_ms":5,"detached":false,"log_path":null,"boot_id":"boot","suspended":false,"exit":{"signal":9},"ended_unix_ms":null,"lost":false,"cpu_time_ms":0,"memory_peak_bytes":null,"events":[{"unix_ms":6,"what":"registered","detail":"class batch"}],"waiting":{"asked":{"mode":"spin-block","spin_us":40},"mode":"busy","processes":0,"polls":0,"waits":3,"spins":0,"blocks":0,"yields":0,"timeouts":0,"spin_ms":0,"block_ms":0,"spin_us":[1,2]},"boosts":0,"nodes":[{"name":"a","cpus":2}],"by_api":false,"by_admin":false,"origin":{"v2":"/a","cpu":null,"memory":"/b","pids":null},"part":{"attempt":1,"spans":false,"lead":true,"closing":false,"tree":5,"alike":false}}"#;

    fn written(record: &Record) -> String {
        let mut text = Vec::new();
        record::serialize(record, &mut serde_json::Serializer::new(&mut text)).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn read(text: &str) -> Result<Record, String> {
        let read = record::deserialize(&mut serde_json::Deserializer::from_str(text));
        read.map(|record| *record).map_err(|e| e.to_string())
    }

    #[test]
    fn the_first_version_is_written_and_read_as_it_was_fixed() {
        assert_eq!(written(&full()), FIRST);
        assert_eq!(read(FIRST).unwrap(), full());
    }

    #[test]
    fn what_was_killed_for_lack_of_memory_is_kept() {
        let limited = api::OutOfMemory { killed: 2, limit_bytes: Some(1 << 20) };
        let record = Record { out_of_memory: Some(limited), ..full() };
        assert_eq!(read(&written(&record)).unwrap(), record);
    }

    #[test]
    fn lines_from_before_there_were_versions_are_read() {
        let before = FIRST.replacen("\"version\":1,", "", 1);
        assert_ne!(before, FIRST);
        assert_eq!(read(&before).unwrap(), full());
    }

    #[test]
    fn another_version_is_not_read_as_this_one() {
        let later = FIRST.replacen("\"version\":1", "\"version\":2", 1);
        let e = read(&later).unwrap_err();
        assert!(e.contains("version 2"), "{e}");
    }

    #[test]
    fn settings_are_written_and_read_as_they_were_fixed() {
        let read = |text: &str| settings::deserialize(&mut serde_json::Deserializer::from_str(text));
        let (policy, sharing) = (Some(api::Policy::Local), Some(api::Sharing::Soft));
        let set = Settings { policy, sharing, slot_length_ms: Some(20), starts: 3, file: Vec::new() };
        let text = r#"{"version":1,"policy":"local","sharing":"soft","slot_length_ms":20,"starts":3}"#;
        let mut written = Vec::new();
        settings::serialize(&set, &mut serde_json::Serializer::new(&mut written)).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), text);
        assert_eq!(read(text).unwrap(), set);
        assert_eq!(read(&text.replacen("\"version\":1,", "", 1)).unwrap(), set);
        assert!(read(&text.replacen("\"version\":1", "\"version\":2", 1)).is_err());
    }

    /// A word that is written differently could not be read by the next program.
    #[test]
    fn each_word_is_written_as_it_was_fixed() {
        fn word<T: Serialize>(word: T) -> String {
            serde_json::to_string(&word).unwrap().trim_matches('"').to_owned()
        }
        use api::{Class as C, Policy as P, Sharing as S, WaitMode as W};
        let classes = [C::Express, C::Interactive, C::Batch, C::Standby].map(|class| word(Class::from(class)));
        assert_eq!(classes, ["express", "interactive", "batch", "standby"]);
        let policies = [P::Gang, P::Local, P::Pb, P::Dcs, P::Auto].map(|policy| word(Policy::from(policy)));
        assert_eq!(policies, ["gang", "local", "pb", "dcs", "auto"]);
        let sharing = [S::Strict, S::Paired, S::Soft].map(|sharing| word(Sharing::from(sharing)));
        assert_eq!(sharing, ["strict", "paired", "soft"]);
        let modes = [W::Auto, W::Busy, W::SpinBlock, W::SpinYield, W::Micro].map(|mode| word(WaitMode::from(mode)));
        assert_eq!(modes, ["auto", "busy", "spin-block", "spin-yield", "micro"]);
        for class in [C::Express, C::Interactive, C::Batch, C::Standby] {
            assert_eq!(C::from(Class::from(class)), class);
        }
    }

    #[test]
    fn what_a_line_says_beyond_its_version_is_not_an_error_and_what_it_lacks_is() {
        let more = FIRST.replacen("\"id\":7", "\"id\":7,\"later\":true", 1);
        assert_eq!(read(&more).unwrap(), full());
        for field in ["\"uid\":1000,", "\"class\":\"interactive\",", "\"boot_id\":\"boot\","] {
            let less = FIRST.replacen(field, "", 1);
            assert_ne!(less, FIRST);
            assert!(read(&less).unwrap_err().contains("missing field"), "{field}");
        }
    }
}
