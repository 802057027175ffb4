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
    /// What the prolog does when no daemon answers, or it refuses the job.
    pub(super) when_down: WhenDown,
    /// Whether the prolog asks slurmctld for name, QOS and memory, which Slurm does not tell it.
    pub(super) ask_slurmctld: bool,
    /// `syslog`, or a file.
    pub(super) log: String,
    /// For jobs of partitions and QOS that are not named.
    pub(super) class: Mapped,
    /// By partition.
    pub(super) partitions: BTreeMap<String, Mapped>,
    /// By QOS; before the partition's.
    pub(super) qos: BTreeMap<String, Mapped>,
}

/// What becomes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mapped {
    Express,
    Interactive,
    Batch,
    Standby,
    /// It is no cosched job: Linux schedules it.
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
    /// Reads them; no file is no settings.
    ///
    /// # Errors
    /// When the file cannot be read, or has a key or a value that is none.
    pub(super) fn read(path: &Path) -> Result<Settings, Failure> {
        let failed = |why: String| {
            let what = format!("the settings in {} cannot be used", path.display());
            Failure::explained(
                EXIT_REFUSED,
                &what,
                &why,
                "docs/slurm.md has all keys; `cosched slurm check` tries them",
            )
        };
        match std::fs::read_to_string(path) {
            Ok(text) => toml::from_str(&text).map_err(|e| failed(e.to_string().trim().replace('\n', " "))),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Settings::default()),
            Err(e) => Err(failed(e.to_string())),
        }
    }

    /// The class of a job; none when it is not to be scheduled by cosched.
    pub(super) fn class_of(&self, job: &SlurmJob) -> Option<Class> {
        let of = |map: &BTreeMap<String, Mapped>, key: &Option<String>| map.get(key.as_ref()?).copied();
        match of(&self.qos, &job.qos).or_else(|| of(&self.partitions, &job.partition)).unwrap_or(self.class) {
            Mapped::Express => Some(Class::Express),
            Mapped::Interactive => Some(Class::Interactive),
            Mapped::Batch => Some(Class::Batch),
            Mapped::Standby => Some(Class::Standby),
            Mapped::Off => None,
        }
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
        let text =
            "class = \"standby\"\n[partitions]\nshort = \"interactive\"\nwhole = \"off\"\n[qos]\nurgent = \"express\"";
        let settings: Settings = toml::from_str(text).unwrap();
        let class = |partition: &str, qos: Option<&str>| {
            let (partition, qos) = (Some(partition.to_owned()), qos.map(str::to_owned));
            settings.class_of(&SlurmJob { partition, qos, ..SlurmJob::default() })
        };
        assert_eq!(class("main", None), Some(Class::Standby));
        assert_eq!(class("short", Some("normal")), Some(Class::Interactive));
        assert_eq!(class("whole", None), None);
        assert_eq!(class("whole", Some("urgent")), Some(Class::Express));
    }

    #[test]
    fn a_slip_of_the_pen_is_an_error_and_no_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings");
        assert_eq!(Settings::read(&file).unwrap(), Settings::default());
        for text in ["when_down = \"stop\"", "clas = \"batch\"", "[partitions]\nshort = \"bacth\""] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(Settings::read(&file).unwrap_err().code, EXIT_REFUSED, "{text}");
        }
    }
}
