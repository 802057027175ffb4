//! The site's settings: which class a Slurm job gets, and what to do without a daemon. `packaging/slurm/cosched-slurm.toml`
//! is the commented example.

use super::environment::SlurmJob;
use crate::out::{EXIT_REFUSED, Failure};
use cosched_api::Class;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    /// The daemon's socket; the system's when absent.
    pub(super) socket: Option<PathBuf>,
    /// What the prolog does when no daemon answers, or the daemon refuses the job.
    pub(super) when_down: WhenDown,
    /// Whether the prolog asks slurmctld for name, QOS and memory, which Slurm does not pass to it.
    pub(super) ask_slurmctld: bool,
    /// `syslog`, or a file.
    pub(super) log: String,
    /// For jobs of partitions and QOS that are not listed.
    pub(super) class: Mapped,
    /// By partition.
    pub(super) partitions: BTreeMap<String, Rule>,
    /// By QOS; takes precedence over the partition.
    pub(super) qos: BTreeMap<String, Rule>,
}

/// The setting for the jobs of a partition or QOS.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a class (`express`, `interactive`, `batch`, `standby` or `off`), or { class = …, queue = … }"
)]
pub(super) enum Rule {
    /// A class, with the first queue.
    Class(Mapped),
    /// A class and a queue of cosched's cluster.
    Queue {
        /// The class.
        class: Mapped,
        /// The queue's name.
        queue: String,
    },
}

/// How a job is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) class: Class,
    pub(super) queue: Option<String>,
}

/// The class of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mapped {
    Express,
    Interactive,
    Batch,
    Standby,
    /// Not a cosched job: Linux schedules it.
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WhenDown {
    /// The job runs, and Linux schedules it.
    Run,
    /// The prolog fails: Slurm requeues the job and drains the node.
    Fail,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            socket: None,
            when_down: WhenDown::Run,
            ask_slurmctld: true,
            log: "syslog".into(),
            class: Mapped::Batch,
            partitions: BTreeMap::new(),
            qos: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Reads the settings; a missing file means the defaults.
    ///
    /// # Errors
    /// When the file cannot be read, or has an invalid key or value.
    pub(super) fn read(path: &Path) -> Result<Settings, Failure> {
        let failed = |why: String| {
            let what = format!("the settings in {} cannot be used", path.display());
            Failure::explained_in_lines(
                EXIT_REFUSED,
                &what,
                &why,
                "docs/slurm.md has all keys; `cosched slurm check` tries them",
            )
        };
        match std::fs::read_to_string(path) {
            Ok(text) => toml::from_str(&text).map_err(|e| failed(e.to_string())),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Settings::default()),
            Err(e) => Err(failed(e.to_string())),
        }
    }

    /// Class and queue of a job; `None` when cosched is not to schedule it.
    pub(super) fn target_of(&self, job: &SlurmJob) -> Option<Target> {
        let of = |map: &BTreeMap<String, Rule>, key: &Option<String>| map.get(key.as_ref()?).cloned();
        let rule = of(&self.qos, &job.qos).or_else(|| of(&self.partitions, &job.partition));
        let (class, queue) = match rule {
            Some(Rule::Queue { class, queue }) => (class, Some(queue)),
            Some(Rule::Class(class)) => (class, None),
            None => (self.class, None),
        };
        let class = match class {
            Mapped::Express => Class::Express,
            Mapped::Interactive => Class::Interactive,
            Mapped::Batch => Class::Batch,
            Mapped::Standby => Class::Standby,
            Mapped::Off => return None,
        };
        Some(Target { class, queue })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../../../packaging/slurm/cosched-slurm.toml");

    #[test]
    fn the_example_has_every_key_with_its_default() {
        assert_eq!(toml::from_str::<Settings>(EXAMPLE).unwrap(), Settings::default());
        let all: String = EXAMPLE
            .lines()
            .filter_map(|line| line.strip_prefix('#'))
            .filter(|line| !line.starts_with(' ') && !line.is_empty())
            .map(|line| format!("{line}\n"))
            .collect();
        let mut set: Settings = toml::from_str(&all).unwrap();
        assert!(!set.partitions.is_empty() && !set.qos.is_empty());
        assert_eq!(set.socket.take().as_deref(), Some(Path::new(cosched_api::SYSTEM_SOCKET)));
        (set.partitions, set.qos) = Default::default();
        assert_eq!(set, Settings::default());
    }

    #[test]
    fn the_qos_goes_before_the_partition() {
        let text = "class = \"standby\"\n[partitions]\nshort = \"interactive\"\nwhole = \"off\"\n\
             long = { class = \"batch\", queue = \"night\" }\n[qos]\nurgent = \"express\"";
        let settings: Settings = toml::from_str(text).unwrap();
        let class = |partition: &str, qos: Option<&str>| {
            let (partition, qos) = (Some(partition.to_owned()), qos.map(str::to_owned));
            settings.target_of(&SlurmJob { partition, qos, ..SlurmJob::default() })
        };
        let first_queue = |class| Some(Target { class, queue: None });
        assert_eq!(class("main", None), first_queue(Class::Standby));
        assert_eq!(class("short", Some("normal")), first_queue(Class::Interactive));
        assert_eq!(class("whole", None), None);
        assert_eq!(class("whole", Some("urgent")), first_queue(Class::Express));
        assert_eq!(class("long", None), Some(Target { class: Class::Batch, queue: Some("night".into()) }));
    }

    #[test]
    fn a_slip_of_the_pen_is_an_error_and_no_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings");
        assert_eq!(Settings::read(&file).unwrap(), Settings::default());
        let partitions = ["\"bacth\"", "{ class = \"batch\" }", "{ class = \"batch\", queue = \"a\", cpus = 1 }"];
        let partitions = partitions.map(|value| format!("[partitions]\nshort = {value}"));
        let keys = ["when_down = \"stop\"", "clas = \"batch\""].map(str::to_owned);
        for text in keys.iter().chain(&partitions) {
            std::fs::write(&file, text).unwrap();
            let refused = Settings::read(&file).unwrap_err();
            assert_eq!(refused.code, EXIT_REFUSED, "{text}");
            assert!(
                !refused.message.contains("\\n") && refused.message.contains("\n         |\n"),
                "{}",
                refused.message
            );
        }
    }
}
