//! Containers whose labels say how they are adopted.
//!
//! Labels are known to the container engine alone, so it is asked, as the daemon's user. An image may have brought them: they can only ask for less than
//! the rule gives.

use cosched_api::{Asking, TermError, Terms};
use cosched_linux::answer::answer;
use cosched_linux::kernel_agent::begin_outside;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The labels that are meant.
const PREFIX: &str = "cosched.";
/// While a container is started its engine does not answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Where root's daemon finds the programs that it asks: it trusts no path that others could change.
pub(crate) const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The length of an id, in hexadecimal digits.
const ID_DIGITS: usize = 64;

/// A container, as its cgroup is called.
#[derive(Debug, PartialEq)]
pub(crate) struct Container<'a> {
    engine: &'static str,
    id: &'a str,
}

/// What its engine says of it.
pub(crate) struct Described {
    /// Its name, for display.
    pub(crate) name: String,
    /// It and its engine, for display.
    pub(crate) from: String,
    labels: BTreeMap<String, String>,
}

impl<'a> Container<'a> {
    /// The container that has this cgroup, by the names that podman and docker give to cgroups.
    pub(crate) fn of(path: &'a Path) -> Option<Container<'a>> {
        let text = path.file_name()?.to_str()?;
        let scope = text.strip_suffix(".scope").unwrap_or(text);
        let in_docker = || path.parent().is_some_and(|dir| dir.ends_with("docker")).then_some(("docker", text));
        let of = |prefix: &str, engine| Some((engine, scope.strip_prefix(prefix)?));
        let found =
            of("libpod-payload-", "podman").or_else(|| of("libpod-", "podman")).or_else(|| of("docker-", "docker"));
        let (engine, id) = found.or_else(in_docker)?;
        (id.len() == ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(Container { engine, id })
    }

    fn ask(&self, run_dir: &Path) -> io::Result<Vec<u8>> {
        let words = ["inspect", "--type", "container", "--format", "[{{json .Name}},{{json .Config.Labels}}]", self.id];
        let mut command = Command::new(self.engine);
        command.args(words).current_dir("/");
        if rustix::process::geteuid().is_root() {
            command.env("PATH", SYSTEM_PATH);
        }
        begin_outside(run_dir, &mut command)?;
        answer(&mut command, ANSWER_TIME_MAX, ANSWER_BYTES_MAX)
    }

    fn read(&self, text: &[u8]) -> Result<Described, String> {
        #[derive(Deserialize)]
        struct Answer(String, Option<BTreeMap<String, String>>);
        let Answer(name, labels) = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        let name: String = name.trim_start_matches('/').chars().filter(|letter| !letter.is_control()).collect();
        let from = format!("container {name} ({})", self.engine);
        Ok(Described { name, from, labels: labels.unwrap_or_default() })
    }
}

/// The engines of this machine, which are asked for containers.
pub(crate) struct Engines {
    run_dir: PathBuf,
    /// Those that have not answered in time in this round.
    silent: BTreeSet<&'static str>,
}

impl Engines {
    /// `run_dir` is the daemon's, in which the kernel's last resort is.
    pub(crate) fn new(run_dir: PathBuf) -> Engines {
        Engines { run_dir, silent: BTreeSet::new() }
    }

    /// Begins a round: each engine that does not answer holds it up once.
    pub(crate) fn begin_round(&mut self) {
        self.silent.clear();
    }

    /// Asks the engine of a container.
    pub(crate) fn describe(&mut self, container: &Container<'_>) -> Result<Described, String> {
        let (engine, id) = (container.engine, container.id);
        let answer = match self.silent.contains(engine) {
            true => Err("it has not answered in time for another container".to_owned()),
            false => container.ask(&self.run_dir).map_err(|e| {
                if e.kind() == io::ErrorKind::TimedOut {
                    self.silent.insert(engine);
                }
                e.to_string()
            }),
        };
        answer.and_then(|text| container.read(&text)).map_err(|why| {
            format!(
                "`{engine} inspect {id}` does not say which labels it has: {why}. Adopt it by `cosched adopt --container`, or \
                 start it again"
            )
        })
    }
}

/// Whether podman and docker put containers directly below it.
pub(crate) fn has_containers(path: &Path) -> bool {
    let first = path.iter().nth(1).and_then(|part| part.to_str());
    let of_systemd = path.extension().is_some_and(|word| word == "slice" || word == "service");
    (of_systemd || matches!(first, Some("libpod_parent" | "docker"))) && Container::of(path).is_none()
}

impl Described {
    /// How its labels say that it is adopted, within what the rule gives; `None` without such labels.
    pub(crate) fn terms(&self, rule: &Terms) -> Result<Option<Terms>, TermError> {
        let asking = Asking {
            prefix: PREFIX,
            kind: "labels",
            giver: "their rule gives",
            hint: "Change the label, or the rule of `[[adopt]]`.",
            most: rule,
            // An image may have brought the label: a queue is named by the rule alone.
            queues: &[],
        };
        asking.terms(self.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_api::{Class, Policy};

    fn id() -> String {
        "0123456789abcdef".repeat(4)
    }

    fn terms(labels: &[(&str, &str)], rule: &Terms) -> Result<Option<Terms>, String> {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let described = Described { name: "web".into(), from: String::new(), labels };
        described.terms(rule).map_err(|e| e.to_string())
    }

    #[test]
    fn containers_are_known_by_their_cgroups() {
        let id = id();
        for (path, engine) in [
            (format!("/machine.slice/libpod-{id}.scope"), "podman"),
            (format!("/libpod_parent/libpod-{id}"), "podman"),
            (format!("/system.slice/web.service/libpod-payload-{id}"), "podman"),
            (format!("/system.slice/docker-{id}.scope"), "docker"),
            (format!("/docker/{id}"), "docker"),
        ] {
            assert_eq!(Container::of(Path::new(&path)), Some(Container { engine, id: &id }), "{path}");
            assert!(has_containers(Path::new(&path).parent().unwrap()) && !has_containers(Path::new(&path)), "{path}");
        }
        for path in [
            format!("/machine.slice/libpod-conmon-{id}.scope"),
            format!("/libpod_parent/libpod-{}", &id[1..]),
            format!("/libpod_parent/libpod-{}z", &id[1..]),
            format!("/other/{id}"),
            "/".to_owned(),
        ] {
            assert_eq!(Container::of(Path::new(&path)), None, "{path}");
        }
        assert!(!has_containers(Path::new("/")) && !has_containers(Path::new("/other")));
    }

    #[test]
    fn what_engines_say_is_read() {
        let container = Container { engine: "docker", id: "" };
        let described = container.read(b"[\"/web\",{\"cosched.share\":\"50%\",\"x\":\"y\"}]\n").unwrap();
        assert_eq!((described.name.as_str(), described.from.as_str()), ("web", "container web (docker)"));
        assert_eq!(described.terms(&Terms::default()).unwrap().unwrap().share, Some(0.5));
        assert!(container.read(b"[\"web\",null]").unwrap().terms(&Terms::default()).unwrap().is_none());
        assert!(container.read(b"<no value>").is_err());
    }

    #[test]
    fn labels_say_how_and_the_rule_says_the_rest() {
        let rule = Terms { class: Some(Class::Batch), cpus: Some(4), queue: Some("q".into()), ..Terms::default() };
        let labels = [("cosched.share", "25%"), ("cosched.policy", "gang"), ("cosched.cpus", "2"), ("other", "x")];
        let (share, policy) = (Some(0.25), Some(Policy::Gang));
        let wanted = Terms { share, policy, cpus: Some(2), ..rule.clone() };
        assert_eq!(terms(&labels, &rule), Ok(Some(wanted)));
        let rule = Terms { share_from_quota: true, ..rule };
        let quota = terms(&[("cosched.share", "from-quota"), ("cosched.class", "standby")], &rule).unwrap().unwrap();
        assert_eq!((quota.class, quota.share, quota.share_from_quota), (Some(Class::Standby), None, true));
        assert!(terms(&[("cosched.cpus", "1")], &rule).unwrap().unwrap().share_from_quota);
        let own = terms(&[("cosched.share", "5%")], &rule).unwrap().unwrap();
        assert_eq!((own.share, own.share_from_quota), (Some(0.05), false), "the quota stays");
        assert_eq!(terms(&[("cosched", "x"), ("coscheduled.class", "x")], &rule), Ok(None));
    }

    #[test]
    fn labels_that_are_wrong_or_ask_for_more_are_refused() {
        let policy = Some(Policy::Local);
        let rule = Terms { share: Some(0.5), cpus: Some(2), policy, ..Terms::default() };
        for (key, value, why) in [
            ("cosched.class", "express", "which is interactive"),
            ("cosched.class", "bach", "it takes one of"),
            ("cosched.share", "60%", "which is 50%"),
            ("cosched.share", "from-quota", "which is 50%"),
            ("cosched.share", "0%", "more than 0%"),
            ("cosched.cpus", "3", "which is 2"),
            ("cosched.cpus", "0", "it could never run"),
            ("cosched.cpus", "-1", "no number of CPUs"),
            ("cosched.policy", "gangs", "it takes one of"),
            ("cosched.queue", "night", "labels of cosched are cosched.… with class, cpus, policy and share"),
            ("cosched.class", "\u{1b}[2J", "control characters"),
            ("cosched.class", &"x".repeat(65), "longer than 64"),
            ("cosched.policy", "gang", "which is local"),
        ] {
            let error = terms(&[(key, value)], &rule).unwrap_err();
            assert!(error.contains(why) && !error.contains('\u{1b}'), "{key}={value}: {error}");
        }
        let error = terms(&[("cosched.share", "from-quota")], &Terms::default()).unwrap_err();
        assert!(error.contains("its quota as it is"), "{error}");
    }
}
