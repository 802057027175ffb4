//! Priorities of stages: chosen before the run, by a rule during the run, or by autotune.
//!
//! Roysden 2004 gave the stages of FG priorities by `nice`, before the run according to what limits the program (*fixed*), or at
//! each convey according to the length of the output queue (*adjusting*). The rules are core's ([`cosched_core::stage`]); this
//! module applies them to threads. If the system refuses a setting, the report contains what the rule would have done, and the
//! run continues.
//!
//! Precedence of the settings, the strongest first: what the stage requests itself ([`Stage::with`](crate::Stage::with)), the
//! fixed rule. Both are applied before the stage's `init`. Stages that share a thread, and those on the workers, share its
//! setting: it is applied if they agree, and left alone if they do not.

mod adjusting;
mod apply;
mod settings;

pub(crate) use adjusting::Adjusted;
pub(crate) use apply::{apply, change, describe, rights};
pub use settings::{Settings, SettingsError};

use cosched_core::stage::adjust::Rule;
use cosched_core::stage::autotune::Config;
use cosched_core::stage::fixed::FixedRule;

/// How the scheduling of the stages' threads is chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Priorities {
    /// The kernel's default.
    #[default]
    Default,
    /// Set before the run, by the resource that each stage mostly uses (Roysden 2004, section 4, "Fixed scheduling", and newer
    /// ones).
    Fixed(FixedRule),
    /// A thread lowers its own priority once, when two or more buffers wait for the next stage (section 4, the first adjusting
    /// rule).
    AdjustOnce,
    /// The same, and raises it again when none waits (the second rule). Raising needs a privilege.
    AdjustUpDown,
    /// Autotune: find what limits, act, observe whether it helped, undo it if not.
    Auto,
    /// The same, with bounds other than the default ones.
    AutoWith(Config),
}

impl Priorities {
    /// The name in reports; of fixed rules, the name of the rule.
    pub fn name(&self) -> String {
        match self {
            Priorities::Default => "default".to_owned(),
            Priorities::Fixed(rule) => rule.to_string(),
            Priorities::AdjustOnce => "adjust-once".to_owned(),
            Priorities::AdjustUpDown => "adjust-up-down".to_owned(),
            Priorities::Auto | Priorities::AutoWith(_) => "auto".to_owned(),
        }
    }

    /// The adjusting rule, if this is one.
    pub(crate) fn adjusting(&self) -> Option<Rule> {
        match self {
            Priorities::AdjustOnce => Some(Rule::Once),
            Priorities::AdjustUpDown => Some(Rule::UpDown),
            _ => None,
        }
    }

    /// Whether autotune is on, and its bounds if they were given.
    pub(crate) fn autotune(&self) -> Option<Option<Config>> {
        match self {
            Priorities::Auto => Some(None),
            Priorities::AutoWith(config) => Some(Some(config.clone())),
            _ => None,
        }
    }
}

impl std::str::FromStr for Priorities {
    type Err = UnknownPriorities;

    fn from_str(name: &str) -> Result<Priorities, UnknownPriorities> {
        let rules = [Priorities::Default, Priorities::AdjustOnce, Priorities::AdjustUpDown, Priorities::Auto];
        if let Some(found) = rules.into_iter().find(|rule| rule.name() == name) {
            return Ok(found);
        }
        name.parse().map(Priorities::Fixed).map_err(|_| UnknownPriorities(name.to_owned()))
    }
}

/// An unknown name of a way to choose priorities.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a rule for priorities; valid are {all}", all = Priorities::names().join(", "))]
pub struct UnknownPriorities(pub String);

impl Priorities {
    /// All names that can be parsed.
    pub fn names() -> Vec<String> {
        let own = [Priorities::Default, Priorities::AdjustOnce, Priorities::AdjustUpDown, Priorities::Auto];
        let fixed =
            FixedRule::all().into_iter().filter(|rule| *rule != FixedRule::Default).map(|rule| rule.to_string());
        own.iter().map(Priorities::name).chain(fixed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for name in Priorities::names() {
            assert_eq!(name.parse::<Priorities>().unwrap().name(), name);
        }
        assert_eq!("nice-up-io".parse(), Ok(Priorities::Fixed(FixedRule::NiceUpIo)));
        let error = "nice".parse::<Priorities>().unwrap_err().to_string();
        assert!(error.contains("adjust-up-down") && error.contains("fifo-io"), "{error}");
    }
}
