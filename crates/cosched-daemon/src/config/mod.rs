//! The configuration: defaults < file < flags. Unknown keys are refused, with the nearest spelling.

mod adopt;
mod cluster;
mod limits;
mod place;
mod reserve;
mod traces;

pub(crate) use adopt::AdoptRule;
pub(crate) use cluster::{ClusterConfig, EtcdFile, StoreChoice, fair_share_of, queue_of};
pub(crate) use limits::{CallerCgroup, Limits};
pub(crate) use reserve::Reserve;
pub(crate) use traces::Traces;

use crate::calendar::Calendar;
use crate::privacy::{self, PrivateData};
use crate::words::{core_policy, core_sharing};
use cosched_api::{TermError, choice};
use cosched_core::{Packing, Policy, Shares, Sharing};
use serde::Deserialize;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The shortest and the longest slot.
pub(crate) const SLOT_LENGTH_MS: std::ops::RangeInclusive<u64> = 10..=30_000;

/// Everything that an operator can set; `packaging/etc/cosched.toml` shows each key with its default.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// The policy of jobs that have none of their own.
    pub(crate) policy: Policy,
    /// What gangs that are not current may do.
    pub(crate) sharing: Sharing,
    /// The length of a slot.
    pub(crate) slot_length: Duration,
    /// How often jobs under pb and dcs are sampled.
    pub(crate) boost_period: Duration,
    /// Where a new gang goes in the matrix.
    pub(crate) packing: Packing,
    /// The CPU time that is kept for processes that are not registered.
    pub(crate) reserve: Reserve,
    /// A gang that used no CPU for this long gives its slots up.
    pub(crate) idle_after: Duration,
    /// A gang that used no CPU for this long is dropped: Linux schedules it until a user resumes it.
    pub(crate) drop_after: Duration,
    /// Gangs have slots only while the wall clock is synchronised.
    pub(crate) require_synchronised_clock: bool,
    /// The TCP address on which Prometheus may read the metrics.
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// The status file: `None` is the usual place, an empty path means no file.
    pub(crate) status_file: Option<PathBuf>,
    /// The longest time that a job stays frozen after the daemon's last heartbeat.
    pub(crate) lease: Duration,
    /// A daemon that has answered no request for this long is ended by its guard; zero: never.
    pub(crate) watchdog: Duration,
    /// Gangs have CPUs of their own.
    pub(crate) places: bool,
    /// The mechanism that switches gangs, or `auto`.
    pub(crate) mechanism: String,
    /// The real-time priority of the slot thread.
    pub(crate) realtime_priority: i32,
    /// Users with root's rights in cosched.
    pub(crate) admins: Vec<String>,
    /// The directory of the state.
    pub(crate) state_dir: Option<PathBuf>,
    /// What users do not see of others' jobs.
    pub(crate) private_data: PrivateData,
    /// How many ended jobs of each user are kept.
    pub(crate) keep_ended: usize,
    /// A daemon that was started on demand ends after this long without jobs.
    pub(crate) embedded_exit_after: Duration,
    /// The shares of the classes in working hours.
    pub(crate) shares: Shares,
    /// The shares of the classes in off-hours.
    pub(crate) off_hours: Shares,
    /// The working hours.
    pub(crate) working_hours: Calendar,
    /// The memory that jobs may have in total; `None`: all of the machine's.
    pub(crate) memory_bytes: Option<u64>,
    /// The cluster that the node belongs to; one machine is a cluster of one.
    pub(crate) cluster: ClusterConfig,
    /// The limits for one user.
    pub(crate) limits: Limits,
    /// What becomes a job when it appears.
    pub(crate) adopt: Vec<AdoptRule>,
    /// What to do where there can be no cgroups.
    pub(crate) without_cgroups: WithoutCgroups,
    /// The collector that is told of ended jobs.
    pub(crate) traces: Option<Traces>,
}

/// What to do where there can be no cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithoutCgroups {
    /// Jobs are switched by signals.
    Signals,
    /// The daemon does not run.
    Refuse,
}

fn without_cgroups(word: &str) -> Result<WithoutCgroups, ConfigError> {
    Ok(choice("without_cgroups", word, &[("signals", WithoutCgroups::Signals), ("refuse", WithoutCgroups::Refuse)])?)
}

impl Default for Config {
    fn default() -> Self {
        Config {
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            slot_length: Duration::from_millis(100),
            boost_period: Duration::from_millis(2),
            packing: Packing::FirstFit,
            reserve: Reserve::Fair,
            idle_after: Duration::from_secs(600),
            drop_after: Duration::from_secs(7200),
            require_synchronised_clock: false,
            metrics_listen: None,
            status_file: None,
            lease: Duration::from_secs(2),
            watchdog: Duration::from_secs(60),
            places: true,
            mechanism: "auto".to_owned(),
            realtime_priority: 10,
            admins: Vec::new(),
            state_dir: None,
            private_data: PrivateData { commands: true, jobs: false },
            keep_ended: 1000,
            embedded_exit_after: Duration::from_secs(60),
            shares: Shares::default(),
            off_hours: turned(Shares::default()),
            working_hours: Calendar::default(),
            memory_bytes: None,
            cluster: ClusterConfig::one_machine(),
            limits: Limits::default(),
            adopt: Vec::new(),
            without_cgroups: WithoutCgroups::Signals,
            traces: None,
        }
    }
}

/// An error in a configuration file, in the three parts that every message of cosched has.
#[derive(Debug, Default, thiserror::Error, PartialEq)]
#[error("{place}{what}\n{line}  why: {why}\n  hint: {hint}")]
pub(crate) struct ConfigError {
    /// The file with line and column, as far as they are known: `/etc/cosched.toml:3:1: `.
    place: Box<str>,
    /// The source line, with carets below the wrong part.
    line: Box<str>,
    /// The byte range in the text.
    at: Option<Box<Range<usize>>>,
    /// What happened.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: String,
    /// What to do.
    pub(crate) hint: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    policy: Option<String>,
    sharing: Option<String>,
    slot_length: Option<String>,
    boost_period: Option<String>,
    packing: Option<String>,
    reserve: Option<reserve::FileReserve>,
    idle_after: Option<String>,
    drop_after: Option<String>,
    require_synchronised_clock: Option<bool>,
    metrics_listen: Option<String>,
    status_file: Option<PathBuf>,
    lease: Option<String>,
    watchdog: Option<String>,
    places: Option<bool>,
    mechanism: Option<String>,
    realtime_priority: Option<i32>,
    admins: Option<Vec<String>>,
    state_dir: Option<PathBuf>,
    private_data: Option<Vec<String>>,
    keep_ended: Option<usize>,
    embedded_exit_after: Option<String>,
    shares: Option<FileShares>,
    off_hours: Option<FileShares>,
    working_hours: Option<Vec<String>>,
    memory: Option<String>,
    store: Option<String>,
    cluster: Option<String>,
    node: Option<String>,
    etcd: Option<EtcdFile>,
    node_lease: Option<String>,
    node_dead_after: Option<String>,
    rebalance_period: Option<String>,
    rows_max: Option<u32>,
    ceiling: Option<f64>,
    queue: Option<Vec<cosched_api::QueueTable>>,
    limits: Option<limits::FileLimits>,
    adopt: Option<Vec<adopt::FileAdopt>>,
    fair_share: Option<cosched_api::FairShareTable>,
    without_cgroups: Option<String>,
    traces: Option<Traces>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileShares {
    express: Option<u32>,
    interactive: Option<u32>,
    batch: Option<u32>,
    standby: Option<u32>,
}

impl Config {
    /// Reads the file at `path`.
    pub(crate) fn load(path: &Path) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            let hint = "Check the path and its permissions, or leave --config out to use the defaults.";
            error(format!("cannot read the configuration {}", path.display()), e.to_string(), hint)
        })?;
        Config::parse(&text).map_err(|e| {
            let colon = if e.place.is_empty() { ": " } else { ":" };
            ConfigError { place: format!("{}{colon}{}", path.display(), e.place).into(), ..e }
        })
    }

    /// Reads a configuration from text; keys that are not set have their defaults.
    pub(crate) fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::read(text).map_err(|e| {
            let of_value = || place::of_value(text, &e.what).map(Box::new);
            let Some(span) = e.at.clone().or_else(of_value) else { return e };
            let (place, line) = place::shown(text, &span);
            ConfigError { place: format!("{place}: ").into(), line: format!("{line}\n").into(), ..e }
        })
    }

    fn read(text: &str) -> Result<Config, ConfigError> {
        let mut file: File = toml::from_str(text).map_err(|e| place::syntax(text, &e))?;
        let mut c = Config::default();
        if let Some(v) = &file.policy {
            c.policy = choice("policy", v, &cosched_api::Policy::ALL.map(|p| (p.name(), core_policy(p))))?;
        }
        if let Some(v) = &file.sharing {
            c.sharing = choice("sharing", v, &cosched_api::Sharing::ALL.map(|s| (s.name(), core_sharing(s))))?;
        }
        c.memory_bytes = file.memory.as_deref().map(|text| size("memory", text)).transpose()?;
        c.cluster = cluster::read(&mut file, c.memory_bytes.is_some())?;
        let alone = c.cluster.is_alone();
        if let Some(v) = file.packing.filter(|_| alone) {
            let names = [("first-fit", Packing::FirstFit), ("best-fit", Packing::BestFit)];
            c.packing = choice("packing", &v, &names)?;
        }
        set_duration(&mut c.slot_length, "slot_length", file.slot_length)?;
        set_duration(&mut c.boost_period, "boost_period", file.boost_period)?;
        set_duration(&mut c.idle_after, "idle_after", file.idle_after)?;
        set_duration(&mut c.drop_after, "drop_after", file.drop_after)?;
        set_duration(&mut c.lease, "lease", file.lease)?;
        set_duration(&mut c.watchdog, "watchdog", file.watchdog)?;
        set_duration(&mut c.embedded_exit_after, "embedded_exit_after", file.embedded_exit_after)?;
        // Slots that span nodes depend on the nodes' clocks.
        c.require_synchronised_clock = file.require_synchronised_clock.unwrap_or(!alone);
        c.metrics_listen = file.metrics_listen.map(|text| address("metrics_listen", &text)).transpose()?;
        c.status_file = file.status_file.or(c.status_file);
        c.reserve = file.reserve.map_or(Ok(c.reserve), reserve::FileReserve::read)?;
        c.places = file.places.unwrap_or(c.places);
        c.mechanism = file.mechanism.unwrap_or(c.mechanism);
        c.realtime_priority = file.realtime_priority.unwrap_or(c.realtime_priority);
        c.admins = file.admins.unwrap_or(c.admins);
        c.state_dir = file.state_dir.or(c.state_dir);
        c.keep_ended = file.keep_ended.unwrap_or(c.keep_ended);
        if let Some(words) = file.private_data {
            c.private_data = private_data(&words)?;
        }
        if let Some(shares) = file.shares {
            c.shares = shares.over(c.shares);
            c.off_hours = turned(c.shares);
        }
        if let Some(shares) = file.off_hours {
            c.off_hours = shares.over(c.off_hours);
        }
        if let Some(texts) = file.working_hours {
            c.working_hours = working_hours(&texts)?;
        }
        c.without_cgroups = file.without_cgroups.map_or(Ok(c.without_cgroups), |word| without_cgroups(&word))?;
        c.limits = file.limits.unwrap_or_default().read()?;
        let rules = file.adopt.unwrap_or_default().into_iter();
        c.adopt = rules.map(adopt::FileAdopt::read).collect::<Result<_, _>>()?;
        c.traces = file.traces.map(Traces::check).transpose()?;
        c.check()?;
        Ok(c)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let ms = self.slot_length.as_millis() as u64;
        if !SLOT_LENGTH_MS.contains(&ms) {
            return Err(range("slot_length", &format!("{ms}ms"), "10ms to 30s"));
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(1)).contains(&self.boost_period) {
            return Err(range("boost_period", &format!("{}us", self.boost_period.as_micros()), "1ms to 1s"));
        }
        if !(1..=90).contains(&self.realtime_priority) {
            return Err(range("realtime_priority", &self.realtime_priority.to_string(), "1 to 90"));
        }
        if !(Duration::from_millis(500)..=Duration::from_secs(60)).contains(&self.lease) {
            return Err(range("lease", &format!("{}ms", self.lease.as_millis()), "500ms to 60s"));
        }
        if !self.watchdog.is_zero() && !(self.lease * 2..=Duration::from_secs(3600)).contains(&self.watchdog) {
            let value = format!("{}ms", self.watchdog.as_millis());
            return Err(range("watchdog", &value, "two leases to 60min, or 0s for never"));
        }
        if self.idle_after < Duration::from_millis(100) {
            return Err(range("idle_after", &format!("{}ms", self.idle_after.as_millis()), "100ms or more"));
        }
        if self.drop_after < self.idle_after {
            let value = format!("{}s", self.drop_after.as_secs_f64());
            return Err(range("drop_after", &value, "not less than idle_after"));
        }
        check_shares("shares", &self.shares)?;
        check_shares("off_hours", &self.off_hours)
    }
}

impl FileShares {
    /// Values that are not set are taken from `other`.
    fn over(&self, other: Shares) -> Shares {
        Shares {
            express: self.express.unwrap_or(other.express),
            interactive: self.interactive.unwrap_or(other.interactive),
            batch: self.batch.unwrap_or(other.batch),
            standby: self.standby.unwrap_or(other.standby),
        }
    }
}

/// By default, batch and interactive jobs exchange their shares at night.
fn turned(day: Shares) -> Shares {
    Shares { interactive: day.batch, batch: day.interactive, ..day }
}

fn check_shares(table: &str, s: &Shares) -> Result<(), ConfigError> {
    let all = [("express", s.express), ("interactive", s.interactive), ("batch", s.batch), ("standby", s.standby)];
    match all.into_iter().find(|(_, v)| !(1..=1000).contains(v)) {
        Some((key, v)) => Err(range(&format!("{table}.{key}"), &v.to_string(), "1 to 1000")),
        None => Ok(()),
    }
}

fn error(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> ConfigError {
    ConfigError { what: what.into(), why: why.into(), hint: hint.into(), ..ConfigError::default() }
}

fn range(key: &str, value: &str, valid: &str) -> ConfigError {
    let hint = "Correct the value, or remove the key for its default.";
    error(format!("`{key} = {value}` is not possible"), format!("it is out of range: {valid}"), hint)
}

impl From<TermError> for ConfigError {
    fn from(TermError { what, why, hint }: TermError) -> ConfigError {
        ConfigError { what, why, hint, ..ConfigError::default() }
    }
}

fn working_hours(texts: &[String]) -> Result<Calendar, ConfigError> {
    let hint = "Write a list, as [\"Mon-Fri 08:00-18:00\"].";
    Calendar::parse(texts).map_err(|why| error("`working_hours` is not valid", why, hint))
}

fn private_data(words: &[String]) -> Result<PrivateData, ConfigError> {
    let mut data = PrivateData { commands: false, jobs: false };
    for word in words {
        choice("private_data", word, &privacy::WORDS.map(|word| (word, ())))?;
        data.commands |= word == "commands";
        data.jobs |= word == "jobs";
    }
    Ok(data)
}

fn address(key: &str, text: &str) -> Result<SocketAddr, ConfigError> {
    text.parse().map_err(|_| {
        let hint = "Write \"127.0.0.1:9464\" for this machine only, or \"[::1]:9464\".";
        error(format!("`{key} = \"{text}\"` is not an address"), "it takes an IP address and a port", hint)
    })
}

fn size(key: &str, text: &str) -> Result<u64, ConfigError> {
    cosched_api::parse::size_bytes(text).map_err(|e| {
        let hint = "Write a number with a unit, as in \"64G\".";
        error(format!("`{key} = \"{text}\"` is not a size"), e.to_string(), hint)
    })
}

fn set_duration(target: &mut Duration, key: &str, text: Option<String>) -> Result<(), ConfigError> {
    let Some(text) = text else { return Ok(()) };
    *target = cosched_api::parse::duration(&text).map_err(|e| {
        let hint = "Write a number with a unit, as in \"100ms\", \"2s\" or \"5min\".";
        error(format!("`{key} = \"{text}\"` is not a time"), e.to_string(), hint)
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(Config::parse("").unwrap(), Config::default());
    }

    #[test]
    fn every_key_is_read() {
        let c = Config::parse(
            "policy = \"local\"\nsharing = \"strict\"\nslot_length = \"20ms\"\nboost_period = \"5ms\"\npacking = \"best-fit\"\nreserve = 0.2\n\
             idle_after = \"3s\"\ndrop_after = \"9s\"\nrequire_synchronised_clock = true\nmetrics_listen = \"127.0.0.1:1\"\n\
             status_file = \"/x/status\"\nlease = \"1s\"\nwatchdog = \"9s\"\nmechanism = \"signals\"\nplaces = false\nrealtime_priority = 20\nadmins = [\"a\"]\n\
             state_dir = \"/x\"\nkeep_ended = 7\nprivate_data = [\"jobs\"]\nmemory = \"3G\"\nembedded_exit_after = \"5s\"\nworking_hours = [\"Mon 8:00-9:00\"]\n\
             [shares]\nexpress = 9\nbatch = 3\n[off_hours]\nstandby = 2\n\
             [limits]\njobs = 5\nwaiting_jobs = 6\nprocesses = 7\nmemory = \"1G\"\nrecord_bytes = \"1M\"\nconnections = 9\nconnections_all = 99\nbuffered_bytes = \"20M\"\nbuffered_bytes_all = \"30M\"\nrequest_time = \"2s\"\ntasks_per_job = 11\ncaller_cgroup = \"per-job\"\n",
        )
        .unwrap();
        assert_eq!(c.policy, Policy::Local);
        assert_eq!((c.slot_length, c.boost_period), (Duration::from_millis(20), Duration::from_millis(5)));
        assert_eq!((c.shares.express, c.shares.batch), (9, 3));
        assert_eq!(c.shares.standby, Shares::default().standby);
        assert_eq!(c.off_hours, Shares { express: 9, interactive: 3, batch: 4, standby: 2 }, "turned, then set");
        assert!(!c.working_hours.is_empty());
        assert_eq!((c.idle_after, c.drop_after), (Duration::from_secs(3), Duration::from_secs(9)));
        assert_eq!((c.lease, c.watchdog), (Duration::from_secs(1), Duration::from_secs(9)));
        assert_eq!(c.metrics_listen, Some("127.0.0.1:1".parse().unwrap()));
        assert_eq!((c.require_synchronised_clock, c.status_file), (true, Some("/x/status".into())));
        assert_eq!(c.private_data, PrivateData { commands: false, jobs: true });
        assert_eq!(c.limits, limits_of_the_test());
        assert_eq!((c.keep_ended, c.realtime_priority, c.memory_bytes), (7, 20, Some(3 << 30)));
    }

    fn limits_of_the_test() -> Limits {
        Limits {
            jobs: 5,
            waiting_jobs: 6,
            processes: 7,
            memory_bytes: Some(1 << 30),
            record_bytes: 1 << 20,
            connections: 9,
            connections_all: 99,
            buffered_bytes: 20 << 20,
            buffered_bytes_all: 30 << 20,
            request_time: Duration::from_secs(2),
            tasks_per_job: 11,
            caller_cgroup: CallerCgroup::PerJob,
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_spelling() {
        let e = Config::parse("slot_lenght = \"20ms\"").unwrap_err();
        assert!(e.what.contains("slot_lenght"), "{e}");
        assert!(e.hint.contains("slot_length"), "{e}");
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for text in [
            "slot_length = \"9ms\"",
            "slot_length = \"31s\"",
            "reserve = 0.95",
            "boost_period = \"0.1ms\"",
            "reserve = -0.1",
            "lease = \"1ms\"",
            "watchdog = \"3s\"",
            "watchdog = \"2h\"",
            "drop_after = \"9min\"",
            "metrics_listen = \"9464\"",
            "working_hours = [\"Mon\"]",
            "[off_hours]\nbatch = 0",
            "memory = \"lots\"",
            "metrics_listen = \"localhost:http\"",
            "[limits]\nconnections = 0",
            "[limits]\ntasks_per_job = 0",
            "[limits]\ncaller_cgroup = \"keep\"",
            "private_data = [\"commands\", \"names\"]",
            "[limits]\nbuffered_bytes = \"1M\"",
            "[limits]\nrequest_time = \"1ms\"",
            "[limits]\nconections = 1",
        ] {
            assert!(Config::parse(text).is_err(), "{text}");
        }
        let e = Config::parse("policy = \"gangs\"").unwrap_err();
        assert!(e.hint.contains("gang"), "{e}");
    }

    #[test]
    fn a_file_that_cannot_be_read_or_is_wrong_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cosched.toml");
        let told = || Config::load(&path).unwrap_err().to_string();
        assert!(told().contains("cannot read the configuration") && told().contains("cosched.toml"), "{}", told());
        std::fs::write(&path, "policy = \"gangs\"").unwrap();
        assert!(told().contains("cosched.toml:1:1: `policy = \"gangs\"`"), "{}", told());
        std::fs::write(&path, "policy = ").unwrap();
        assert!(told().contains("the value of `policy` cannot be read"), "{}", told());
        std::fs::write(&path, "policy = \"local\"").unwrap();
        assert_eq!(Config::load(&path).unwrap().policy, Policy::Local);
    }

    /// The bounds themselves are allowed.
    #[test]
    fn values_at_the_ends_of_their_ranges_are_taken() {
        for text in [
            "slot_length = \"10ms\"",
            "slot_length = \"30s\"",
            "boost_period = \"1ms\"",
            "boost_period = \"1s\"",
            "reserve = 0",
            "reserve = 0.9",
            "realtime_priority = 1",
            "realtime_priority = 90",
            "lease = \"500ms\"",
            "lease = \"60s\"\nwatchdog = \"2min\"",
            "watchdog = \"0s\"",
            "watchdog = \"4s\"",
            "watchdog = \"60min\"",
            "idle_after = \"100ms\"",
            "idle_after = \"9s\"\ndrop_after = \"9s\"",
            "[shares]\nbatch = 1\nexpress = 1000",
            "private_data = []",
            "[limits]\nbuffered_bytes = \"16M\"\nrequest_time = \"100ms\"",
        ] {
            assert!(Config::parse(text).is_ok(), "{text}: {:?}", Config::parse(text));
        }
        for (text, range) in [
            ("lease = \"61s\"", "500ms to 60s"),
            ("realtime_priority = 91", "1 to 90"),
            ("boost_period = \"1001ms\"", "1ms to 1s"),
            ("idle_after = \"99ms\"", "100ms or more"),
            ("[shares]\nexpress = 1001", "1 to 1000"),
            ("reserve = 0.901", "0 to 0.9"),
        ] {
            let e = Config::parse(text).unwrap_err().to_string();
            assert!(e.contains(range), "{text}: {e}");
        }
    }

    #[test]
    fn what_is_private_is_what_the_list_says() {
        let private = |text: &str| Config::parse(text).unwrap().private_data;
        assert_eq!(private(""), PrivateData { commands: true, jobs: false });
        assert_eq!(private("private_data = []"), PrivateData { commands: false, jobs: false });
        assert_eq!(private("private_data = [\"jobs\", \"commands\"]"), PrivateData { commands: true, jobs: true });
    }
}
