//! What jobs stand on: cgroups of root's, cgroups delegated to a user, or directories and signals where there can be no cgroups (decision 0068).

use crate::args::Args;
use crate::config::{Config, WithoutCgroups};
use crate::instance::{self, Places};
use anyhow::bail;
use cosched_api::Warning;
use cosched_core::Policy;
use cosched_linux::{Layout, Place, Problem, Tree, TreeError, keeper};
use std::io;

/// Cgroups for jobs cannot be made on this machine, or not by this user.
#[derive(Debug, thiserror::Error)]
#[error("no daemon can run here\n  why: {why}\n  hint: {hint}")]
pub struct NoPlace {
    pub(crate) why: String,
    pub(crate) hint: String,
}

impl From<Problem> for NoPlace {
    fn from(problem: Problem) -> NoPlace {
        NoPlace { why: format!("{}: {}", problem.what, problem.why), hint: problem.hint }
    }
}

/// Only where cgroups may not be made: other errors may be temporary.
fn no_tree(error: TreeError) -> anyhow::Error {
    let is_forbidden = matches!(&error, TreeError::Io { source, .. }
        if matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem));
    if !is_forbidden {
        return error.into();
    }
    let hint = "in a container, have the cgroups mounted writable; or run coschedd on the host".to_owned();
    NoPlace { why: error.to_string(), hint }.into()
}

/// The hierarchies of this machine and our location in them. Touches nothing.
///
/// # Errors
/// [`NoPlace`] where there can be no cgroups; others for the operator.
pub(crate) fn cgroups(name: &str) -> anyhow::Result<(Layout, Place)> {
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        bail!("`{name}` cannot be the name of a cgroup. Use letters, digits and dashes");
    }
    let layout = Layout::detect().map_err(NoPlace::from)?;
    let place = match instance::is_root() {
        true => Place::Root { name: name.to_owned() },
        false => Place::own_delegated(&layout, name).map_err(NoPlace::from)?,
    };
    Ok((layout, place))
}

/// Where there are no cgroups, a state directory that cannot be used is one reason more to run without a daemon.
pub(crate) fn or_no_place(state: anyhow::Error, cgroups: &anyhow::Result<(Layout, Place)>) -> anyhow::Error {
    match cgroups.as_ref().err().and_then(|e| e.downcast_ref::<NoPlace>()) {
        Some(NoPlace { why, hint }) => NoPlace { why: format!("{why}; and {state}"), hint: hint.clone() }.into(),
        None => state,
    }
}

/// The tree of jobs, and a warning when it is none of cgroups.
///
/// # Errors
/// As [`cgroups`]; [`NoPlace`] where signals cannot help either.
pub(crate) fn open_tree(
    cgroups: anyhow::Result<(Layout, Place)>,
    (args, config, places): (&Args, &Config, &Places),
) -> anyhow::Result<(Tree, Option<Warning>)> {
    let why = match cgroups.and_then(|(layout, place)| Tree::open(&layout, place).map_err(no_tree)) {
        Ok(tree) => return Ok((tree, None)),
        Err(e) => e.downcast::<NoPlace>()?,
    };
    let why = signals_instead(why, args, config)?;
    let place = Place::Signals { name: format!("{}-jobs", args.cgroup) };
    Ok((Tree::open(&Layout::signals(&places.runtime_dir), place)?, Some(warning(&why))))
}

/// Whether jobs can be switched by signals where there are no cgroups.
fn signals_instead(why: NoPlace, args: &Args, config: &Config) -> anyhow::Result<NoPlace> {
    // A service's operator has cgroups and would not notice that they are missing.
    let is_service = args.listen_stdin && !args.embedded;
    if is_service || config.without_cgroups == WithoutCgroups::Refuse {
        return Err(why.into());
    }
    if let Some(obstacle) = keeper::obstacle() {
        return Err(
            NoPlace { why: format!("{}; nor can jobs be switched by signals: {obstacle}", why.why), ..why }.into()
        );
    }
    let asks = [
        (!config.cluster.is_alone(), "a node of a cluster"),
        (!config.adopt.is_empty(), "a rule of adoption"),
        (matches!(config.policy, Policy::Pb | Policy::Dcs), "policy pb or dcs"),
    ];
    if let Some((_, what)) = asks.iter().find(|(is_asked, _)| *is_asked) {
        bail!("{what} needs cgroups, and there are none here: {}. {}", why.why, why.hint);
    }
    Ok(why)
}

/// What users are told.
fn warning(why: &NoPlace) -> Warning {
    Warning {
        what: "there are no cgroups here: jobs are switched by signals".to_owned(),
        why: why.why.clone(),
        hint: format!(
            "Gangs of this daemon's user have slots; there is no filling, adoption, memory limit, pb or dcs \
             (docs/waiting.md, chapter 9). For all of it: {}.",
            why.hint
        ),
    }
}
