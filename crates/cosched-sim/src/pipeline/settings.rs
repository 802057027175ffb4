//! Which rule controls the priorities of a simulated pipeline.

use cosched_core::stage::adjust::Rule;
use cosched_core::stage::fixed::FixedRule;
use std::fmt;
use std::str::FromStr;

/// The rule that decides about priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priorities {
    /// A setting before the run; [`FixedRule::Default`] changes nothing.
    Fixed(FixedRule),
    /// The paper's adjusting rules.
    Adjust(Rule),
    /// Autotune.
    Auto,
}

/// No rule has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of: default, auto, adjust-once, adjust-up-down{others}", others = others())]
pub struct UnknownPriorities(String);

fn others() -> String {
    FixedRule::all().into_iter().skip(1).map(|rule| format!(", {rule}")).collect()
}

impl fmt::Display for Priorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Priorities::Fixed(rule) => rule.fmt(f),
            Priorities::Adjust(Rule::Once) => f.write_str("adjust-once"),
            Priorities::Adjust(Rule::UpDown) => f.write_str("adjust-up-down"),
            Priorities::Auto => f.write_str("auto"),
        }
    }
}

impl FromStr for Priorities {
    type Err = UnknownPriorities;

    fn from_str(text: &str) -> Result<Priorities, UnknownPriorities> {
        match text {
            "auto" => Ok(Priorities::Auto),
            "adjust-once" => Ok(Priorities::Adjust(Rule::Once)),
            "adjust-up-down" => Ok(Priorities::Adjust(Rule::UpDown)),
            _ => text.parse().map(Priorities::Fixed).map_err(|_| UnknownPriorities(text.to_owned())),
        }
    }
}
