//! The forms in the journal of what jobs' records and settings have of the API: types of their own, so that the API can change
//! independently. A form is frozen: a new form gets a new version, and this one stays readable as long as journals with it may exist.

use cosched_api as api;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::marker::PhantomData;

/// The version of new lines.
const VERSION: u32 = 1;

/// The version of a record or of settings. Lines from the time before versions have the first one. Content of a later version may not be
/// dropped: its journal is left unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "u32", try_from = "u32")]
pub(crate) struct Version;

impl From<Version> for u32 {
    fn from(_: Version) -> u32 {
        VERSION
    }
}

impl TryFrom<u32> for Version {
    type Error = String;

    fn try_from(version: u32) -> Result<Version, String> {
        match version {
            VERSION => Ok(Version),
            other => Err(format!("it is of version {other}, and this program reads version {VERSION}")),
        }
    }
}

/// A value of the API in its form `F`, for `#[serde(with)]`.
pub(crate) struct As<F>(PhantomData<F>);

impl<F: Serialize + DeserializeOwned> As<F> {
    pub(crate) fn serialize<A: Clone + Into<F>, S: Serializer>(value: &A, to: S) -> Result<S::Ok, S::Error> {
        value.clone().into().serialize(to)
    }

    pub(crate) fn deserialize<'de, A: From<F>, D: Deserializer<'de>>(from: D) -> Result<A, D::Error> {
        F::deserialize(from).map(A::from)
    }
}

/// The same for a value that may be missing.
pub(crate) struct Maybe<F>(PhantomData<F>);

impl<F: Serialize + DeserializeOwned> Maybe<F> {
    pub(crate) fn serialize<A: Clone + Into<F>, S: Serializer>(value: &Option<A>, to: S) -> Result<S::Ok, S::Error> {
        value.clone().map(Into::into).serialize(to)
    }

    pub(crate) fn deserialize<'de, A: From<F>, D: Deserializer<'de>>(from: D) -> Result<Option<A>, D::Error> {
        Ok(Option::<F>::deserialize(from)?.map(A::from))
    }
}

/// The same for each value of a list.
pub(crate) struct Each<F>(PhantomData<F>);

impl<F: Serialize + DeserializeOwned> Each<F> {
    pub(crate) fn serialize<A: Clone + Into<F>, S: Serializer>(values: &[A], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().cloned().map(Into::into))
    }

    pub(crate) fn deserialize<'de, A: From<F>, D: Deserializer<'de>>(from: D) -> Result<Vec<A>, D::Error> {
        Ok(Vec::<F>::deserialize(from)?.into_iter().map(A::from).collect())
    }
}

/// Mirrors an enum of the API, in the same order.
macro_rules! words {
    ($name:ident: $($word:ident),+) => {
        #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub(crate) enum $name { $($word),+ }

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
        pub(crate) struct $name { $($(#[$of])* $field: $kind),+ }

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
        #[serde(skip)]
        subgangs: u32,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ALONE, Origin, PartOf, Record, Settings, example};

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
        record.part = Some(PartOf { attempt: 1, tree: 5, ..ALONE });
        record
    }

    /// The form of the first version. A change of this text is a change of the form, which needs another version.
    const FIRST: &str = r#"{"version":1,"id":7,"name":"sleep","uid":1000,"class":"interactive","own_policy":"pb","cpus":2,"mem_bytes":null,"command":["/bin/sleep","1"],"cwd":null,"pid":77,"submitted_unix_ms":5,"detached":false,"log_path":null,"boot_id":"boot","suspended":false,"exit":{"signal":9},"ended_unix_ms":null,"lost":false,"cpu_time_ms":0,"memory_peak_bytes":null,"events":[{"unix_ms":6,"what":"registered","detail":"class batch"}],"waiting":{"asked":{"mode":"spin-block","spin_us":40},"mode":"busy","processes":0,"polls":0,"waits":3,"spins":0,"blocks":0,"yields":0,"timeouts":0,"spin_ms":0,"block_ms":0,"spin_us":[1,2]},"boosts":0,"nodes":[{"name":"a","cpus":2}],"by_api":false,"by_admin":false,"origin":{"v2":"/a","cpu":null,"memory":"/b","pids":null},"part":{"attempt":1,"spans":false,"lead":true,"closing":false,"tree":5,"alike":false}}"#;

    fn written(record: &Record) -> String {
        serde_json::to_string(record).unwrap()
    }

    fn read(text: &str) -> Result<Record, String> {
        serde_json::from_str(text).map_err(|e| e.to_string())
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
        let read = |text: &str| serde_json::from_str::<Settings>(text);
        let (policy, sharing) = (Some(api::Policy::Local), Some(api::Sharing::Soft));
        let set = Settings { policy, sharing, slot_length_ms: Some(20), starts: 3, ..Settings::default() };
        let text = r#"{"version":1,"policy":"local","sharing":"soft","slot_length_ms":20,"starts":3}"#;
        assert_eq!(serde_json::to_string(&set).unwrap(), text);
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
