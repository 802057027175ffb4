//! What the operator gives: a file of the plug-in, or what the runtime has for it (`/etc/nri/conf.d/10-cosched.conf`). TOML, as the rules of `[[adopt]]`.

use crate::pods::{GANG, PREFIX, Pod};
use cosched_api::{Asking, Policy, TermError, Terms, wrong_value};
use serde::Deserialize;
use std::path::PathBuf;

const SHARE: &str = "cosched.io/share";

/// How pods are adopted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// What a pod has that asks for nothing, and at most.
    most: Terms,
    /// The queues that pods may name; the first one is that of those which name none.
    queues: Vec<String>,
    /// coschedd's socket. A runtime that starts the plug-in gives it no options.
    pub(crate) socket: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    class: Option<String>,
    share: Option<String>,
    cpus: Option<u32>,
    policy: Option<String>,
    #[serde(default)]
    queues: Vec<String>,
    socket: Option<PathBuf>,
}

/// What becomes of a pod.
#[derive(Debug, PartialEq)]
pub(crate) struct Wish {
    /// The gang's name, with its namespace.
    pub(crate) gang: String,
    pub(crate) terms: Terms,
}

impl Settings {
    /// Reads the settings; an empty text has the defaults.
    ///
    /// # Errors
    /// What is wrong in it.
    pub(crate) fn parse(text: &str) -> Result<Settings, String> {
        let File { class, share, cpus, policy, queues, socket } = toml::from_str(text).map_err(|e| e.to_string())?;
        let most = Terms::read(class.as_deref(), share.as_deref(), cpus, policy.as_deref());
        let most = most.map_err(|e| e.to_string())?;
        if most.share_from_quota {
            return Err(no_quota("share").to_string());
        }
        Ok(Settings { most: Terms { queue: queues.first().cloned(), ..most }, queues, socket })
    }

    /// What a pod asks for, within these settings. A gang's policy is gang, where neither says otherwise.
    ///
    /// # Errors
    /// An annotation is wrong, or asks for more.
    pub(crate) fn wish(&self, pod: &Pod) -> Result<Wish, TermError> {
        let asking = Asking {
            prefix: PREFIX,
            kind: "annotations",
            giver: "the operator gives to pods",
            hint: "Change the annotation, or the settings of cosched-nri.",
            most: &self.most,
            queues: &self.queues,
        };
        let name = pod.annotations.get(GANG).cloned().unwrap_or_default();
        asking.check_text(GANG, &name)?;
        if name.is_empty() {
            return Err(wrong_value(GANG, "", "a gang has a name", "Give it one."));
        }
        if pod.annotations.get(SHARE).is_some_and(|share| share == "from-quota") {
            return Err(no_quota(SHARE));
        }
        let others = pod.annotations.iter().filter(|(key, _)| *key != GANG);
        let asked = asking.terms(others.map(|(key, value)| (key.as_str(), value.as_str())))?;
        let terms = asked.unwrap_or_else(|| self.most.clone());
        let gang = format!("{}/{name}", pod.namespace);
        Ok(Wish { gang, terms: Terms { policy: terms.policy.or(Some(Policy::Gang)), ..terms } })
    }
}

/// The quota of a pod's cgroup is the sum of those of its containers, which would stay.
fn no_quota(key: &str) -> TermError {
    let why = "each container with a CPU limit has a quota of its own, and would still be stopped by it";
    wrong_value(key, "from-quota", why, "Write a percentage, and leave out the limits of CPUs.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::Pods;
    use crate::pods::tests::{sandbox, started};
    use cosched_api::Class;

    fn wish(settings: &str, annotations: &[(&str, &str)]) -> Result<Wish, String> {
        let mut pods = Pods::default();
        pods.apply(started(&sandbox("a", annotations), "1"));
        let (_, pod) = pods.gangs().next().unwrap();
        Settings::parse(settings).unwrap().wish(pod).map_err(|e| e.to_string())
    }

    #[test]
    fn annotations_say_how_a_pod_is_adopted_within_the_settings() {
        let gang = wish("", &[(GANG, "solver"), ("other", "x")]).unwrap();
        assert_eq!((gang.gang.as_str(), gang.terms.policy), ("default/solver", Some(Policy::Gang)));
        let settings = "class = \"batch\"\nshare = \"50%\"\nqueues = [\"day\", \"night\"]";
        let gang = wish(settings, &[(GANG, "g"), ("cosched.io/share", "25%"), ("cosched.io/queue", "night")]).unwrap();
        let Terms { class, share, queue, .. } = gang.terms;
        assert_eq!((class, share, queue.as_deref()), (Some(Class::Batch), Some(0.25), Some("night")));
        assert_eq!(wish(settings, &[(GANG, "g")]).unwrap().terms.queue.as_deref(), Some("day"));
        let local = wish("policy = \"pb\"", &[(GANG, "g")]).unwrap();
        assert_eq!(local.terms.policy, Some(Policy::Pb));
    }

    #[test]
    fn what_a_pod_may_not_ask_is_refused() {
        let settings = "share = \"50%\"";
        for (key, value, why) in [
            ("cosched.io/class", "express", "no more than the operator gives to pods, which is interactive"),
            ("cosched.io/share", "60%", "which is 50%"),
            ("cosched.io/share", "from-quota", "a quota of its own"),
            ("cosched.io/queue", "night", "class, cpus, policy and share"),
            ("cosched.io/shar", "10%", "class, cpus, policy and share"),
            ("cosched.io/class", "\u{1b}[2J", "control characters"),
            (GANG, "", "a gang has a name"),
            (GANG, "\u{1b}]0;x\u{7}", "control characters"),
            (GANG, &"x".repeat(65), "longer than 64"),
        ] {
            let mut annotations = vec![(GANG, "g")];
            annotations.retain(|(name, _)| *name != key);
            annotations.push((key, value));
            let refused = wish(settings, &annotations).unwrap_err();
            assert!(refused.contains(why) && !refused.contains(char::is_control), "{key}={value:?}: {refused}");
        }
    }

    #[test]
    fn the_manifests_name_settings_and_annotations_that_exist() {
        let manifest = include_str!("../../../packaging/kubernetes/daemonset.yaml");
        let lines = manifest.lines().filter_map(|line| line.strip_prefix("    #"));
        let text: Vec<&str> = lines.filter(|line| line.contains(" = ")).collect();
        assert_eq!(text.len(), 5);
        Settings::parse(&text.join("\n")).unwrap();
        let example = include_str!("../../../packaging/kubernetes/gang-pod.yaml");
        let pairs = example.lines().filter_map(|line| line.trim().split_once(": "));
        let clean = pairs.map(|(key, value)| (key, value.trim_matches('"')));
        let annotations: Vec<_> =
            clean.filter(|(key, _)| key.starts_with(PREFIX) && *key != "cosched.io/node").collect();
        let gang = wish("", &annotations).unwrap();
        let terms = gang.terms;
        assert_eq!((gang.gang.as_str(), terms.share, terms.class), ("default/solver", Some(0.5), Some(Class::Batch)));
    }

    #[test]
    fn wrong_settings_are_named() {
        for (text, why) in [
            ("clas = \"batch\"", "clas"),
            ("share = \"from-quota\"", "a quota of its own"),
            ("class = \"bach\"", "it takes one of"),
            ("cpus = 0", "it could never run"),
        ] {
            assert!(Settings::parse(text).unwrap_err().contains(why), "{text}");
        }
    }
}
