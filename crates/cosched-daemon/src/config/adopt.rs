//! `[[adopt]]`: what becomes a job when it appears.

use super::{ConfigError, error};
use cosched_api::{Terms, wrong_value};
use serde::Deserialize;
use std::path::PathBuf;

/// A rule. What it names must all hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AdoptRule {
    /// The name of a unit, that is of a cgroup: a pattern.
    pub(crate) unit: Option<String>,
    /// A slice that it is in, at any depth.
    pub(crate) slice: Option<String>,
    /// Its path below the root: a pattern, in which `*` does not go beyond a `/`.
    pub(crate) cgroup: Option<String>,
    /// The program of one of its processes.
    pub(crate) executable: Option<PathBuf>,
    /// It is a container with labels that begin with `cosched.`.
    pub(crate) container_labels: bool,
    /// How it is adopted; for a container with labels, at most.
    pub(crate) terms: Terms,
}

/// The table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileAdopt {
    unit: Option<String>,
    slice: Option<String>,
    cgroup: Option<String>,
    executable: Option<PathBuf>,
    #[serde(default)]
    container_labels: bool,
    class: Option<String>,
    share: Option<String>,
    cpus: Option<u32>,
    policy: Option<String>,
    queue: Option<String>,
}

impl FileAdopt {
    pub(super) fn read(self) -> Result<AdoptRule, ConfigError> {
        let FileAdopt { unit, slice, cgroup, executable, container_labels, class, share, cpus, policy, queue } = self;
        if unit.is_none() && slice.is_none() && cgroup.is_none() && !container_labels {
            let why = "a rule has one of unit, slice, cgroup and container_labels, also beside executable";
            let hint = "Write for example unit = \"llama@*.service\".";
            return Err(error("`[[adopt]]` names nothing that could appear", why, hint));
        }
        for (key, name) in [("unit", &unit), ("slice", &slice)] {
            if let Some(name) = name.as_ref().filter(|name| name.is_empty() || name.contains('/')) {
                return Err(
                    wrong_value(key, name, "it is the name of a unit, and no path", "`cgroup` takes a path.").into()
                );
            }
        }
        if let Some(name) = unit.as_ref().filter(|name| container_labels && name.ends_with(".service")) {
            let why = "the unit of a container is named by its id, not by the service that starts it";
            return Err(wrong_value("unit", name, why, "Use slice or cgroup beside container_labels.").into());
        }
        if let Some(name) = slice.as_ref().filter(|name| !name.ends_with(".slice")) {
            return Err(
                wrong_value("slice", name, "the name of a slice ends in .slice", "Write it as systemd does.").into()
            );
        }
        let is_path = |path: &&String| path.len() > 1 && path.starts_with('/') && !path.contains("//");
        if let Some(path) = cgroup.as_ref().filter(|path| !is_path(path)) {
            let why = "it is a path below the root of the cgroups, as in /proc/PID/cgroup";
            return Err(
                wrong_value("cgroup", path, why, "Write for example \"/system.slice/render-*.service\".").into()
            );
        }
        if let Some(path) = executable.as_ref().filter(|path| !path.is_absolute()) {
            return Err(
                wrong_value("executable", &path.to_string_lossy(), "it is no full path", "Begin it with a /.").into()
            );
        }
        let terms = Terms::read(class.as_deref(), share.as_deref(), cpus, policy.as_deref())?;
        let terms = Terms { queue, ..terms };
        Ok(AdoptRule { unit, slice, cgroup, executable, container_labels, terms })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;
    use cosched_api::{Class, Policy};

    #[test]
    fn a_rule_says_what_is_adopted_and_how() {
        let text = "[[adopt]]\nunit = \"llama@*.service\"\nclass = \"batch\"\nshare = \"50%\"\ncpus = 2\npolicy = \"gang\"\n\
                    [[adopt]]\ncgroup = \"/a.slice/*\"\nexecutable = \"/usr/bin/x\"\nshare = \"from-quota\"\n";
        let rules = Config::parse(text).unwrap().adopt;
        assert_eq!(rules.len(), 2);
        let (class, policy) = (Some(Class::Batch), Some(Policy::Gang));
        assert_eq!(rules[0].terms, Terms { class, share: Some(0.5), cpus: Some(2), policy, ..Terms::default() });
        assert!(rules[1].terms.share_from_quota && rules[1].terms.share.is_none());
        assert!(Config::parse("[[adopt]]\ncontainer_labels = true\n").unwrap().adopt[0].container_labels);
    }

    #[test]
    fn what_is_wrong_in_a_rule_is_shown_where_it_is() {
        for (text, what, place) in [
            ("executable = \"/bin/x\"", "names nothing that could appear", ""),
            ("unit = \"a/b\"", "`unit = \"a/b\"`", "2:1"),
            ("slice = \"a\"", "`slice = \"a\"`", "2:1"),
            ("cgroup = \"a\"", "`cgroup = \"a\"`", "2:1"),
            ("unit = \"a\"\nshare = \"120%\"", "`share = \"120%\"`", "3:1"),
            ("unit = \"a\"\nclass = \"bach\"", "`class = \"bach\"`", "3:1"),
            ("unit = \"a\"\npolicy = \"gangs\"", "`policy = \"gangs\"`", "3:1"),
            ("container_labels = false", "names nothing that could appear", ""),
            ("unit = \"a\"\nexecutable = \"x\"", "`executable = \"x\"`", "3:1"),
            ("unit = \"a\"\nuint = 3", "unknown key `uint`", "3:1"),
        ] {
            let error = Config::parse(&format!("[[adopt]]\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(place), "{text}: {error}");
            assert!(place.is_empty() || error.contains('^'), "{text}: {error}");
        }
    }
}
