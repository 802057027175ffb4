//! The policies that `--policies` names: plain Linux, a way to run under cosched, or the local Slurm.

use crate::out::Failure;
use crate::run::waiting::{WaitOption, parse_strategy, parse_wait};
use cosched_api::parse::nearest;
use cosched_api::{Policy, Sharing, WaitMode};
use cosched_sim::{OnArrival, Strategy, Wait};

/// A policy, with the name that the user gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) name: String,
    pub(crate) how: How,
}

/// How its jobs are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Without cosched.
    Linux,
    /// By `cosched run` with these options.
    Cosched {
        options: Vec<String>,
        /// The sharing that the machine has to be set to; `None`: unchanged.
        sharing: Option<Sharing>,
        /// The way to wait that was requested by name.
        wait: Option<WaitOption>,
    },
    /// By Slurm.
    Slurm,
}

const SHARED: [(&str, Sharing); 4] = [
    ("gang-strict", Sharing::Strict),
    ("gang-soft", Sharing::Soft),
    ("gang-paired", Sharing::Paired),
    ("paired", Sharing::Paired),
];

impl Choice {
    /// Parses a name.
    ///
    /// # Errors
    /// When there is no such policy.
    pub(crate) fn parse(name: &str) -> Result<Choice, Failure> {
        let (base, wait) = name.split_once('+').map_or((name, None), |(base, wait)| (base, Some(wait)));
        let invalid = |why: &str| unknown(name, why);
        let how = match base {
            "linux" | "slurm-gang" if wait.is_some() => {
                return Err(invalid("only jobs of cosched have a way to wait: local+spin-block, for example"));
            }
            "linux" => How::Linux,
            "slurm-gang" => How::Slurm,
            _ => Choice::cosched(base, wait).map_err(|why| invalid(&why))?,
        };
        Ok(Choice { name: name.to_owned(), how })
    }

    /// Parses all of them; duplicates count once.
    ///
    /// # Errors
    /// When there is no such policy, or the list is empty.
    pub(crate) fn parse_all(names: &[String]) -> Result<Vec<Choice>, Failure> {
        let mut all: Vec<Choice> = Vec::new();
        for name in names {
            let choice = Choice::parse(name.trim())?;
            if !all.contains(&choice) {
                all.push(choice);
            }
        }
        Ok(all)
    }

    fn cosched(base: &str, wait: Option<&str>) -> Result<How, String> {
        let shared = SHARED.iter().find(|(name, _)| *name == base).map(|(_, sharing)| *sharing);
        let policy =
            if shared.is_some() { Some(Policy::Gang) } else { Policy::ALL.into_iter().find(|p| p.name() == base) };
        let Some(policy) = policy else {
            let (_, waiting) = parse_strategy(base).map_err(|_| suggestion(base))?;
            if wait.is_some() {
                return Err(format!("{base} is a strategy, which has its own way to wait"));
            }
            let options = vec!["--strategy".into(), base.into()];
            return Ok(How::Cosched { options, sharing: None, wait: Some(WaitOption::On(waiting)) });
        };
        let mut options = vec!["--policy".to_owned(), policy.name().to_owned()];
        let parsed = wait.map(parse_wait).transpose()?;
        options.extend(wait.into_iter().flat_map(|wait| ["--wait".to_owned(), wait.to_owned()]));
        Ok(How::Cosched { options, sharing: shared, wait: parsed })
    }

    /// The simulator's name for it; `None` if the simulator has no such policy. Unless a way to wait is named,
    /// processes spin, except under policy auto, which chooses.
    pub(crate) fn strategy(&self) -> Option<Strategy> {
        let (policy, sharing, wait) = match &self.how {
            How::Linux => return Some(Strategy::Dynamic(Wait::Busy, OnArrival::None)),
            How::Slurm => return Some(Strategy::Gang),
            How::Cosched { options, sharing, wait } => (options[1].as_str(), sharing, wait),
        };
        let wait = match wait {
            Some(WaitOption::On(waiting)) if waiting.mode == WaitMode::SpinBlock => Wait::SpinBlock,
            Some(WaitOption::On(waiting)) if waiting.mode == WaitMode::SpinYield => Wait::SpinYield,
            Some(WaitOption::On(waiting)) if waiting.mode == WaitMode::Micro => return None,
            _ => Wait::Busy,
        };
        Some(match policy {
            "gang" => match sharing {
                Some(Sharing::Strict) => Strategy::Gang,
                Some(Sharing::Paired) => Strategy::PairedGang,
                Some(Sharing::Soft) | None => Strategy::SoftGang,
            },
            "local" => Strategy::Dynamic(wait, OnArrival::None),
            "pb" => Strategy::Dynamic(wait, OnArrival::Periodic),
            "dcs" => Strategy::Dynamic(wait, OnArrival::Interrupt),
            "auto" => Strategy::Auto,
            named => named.parse().ok()?,
        })
    }

    /// Whether its jobs are registered with the daemon.
    pub(crate) fn needs_daemon(&self) -> bool {
        matches!(self.how, How::Cosched { .. })
    }
}

fn suggestion(name: &str) -> String {
    let names =
        || ["linux", "slurm-gang"].into_iter().chain(SHARED.map(|(name, _)| name)).chain(Policy::ALL.map(Policy::name));
    match nearest(name, names()) {
        Some(near) => format!("did you mean {near}?"),
        None => {
            let all: Vec<&str> = names().collect();
            format!(
                "valid are {}, and the short names of the literature (GS, Local, SB, SY, DCS, PB, PB-SB …)",
                all.join(", ")
            )
        }
    }
}

fn unknown(name: &str, why: &str) -> Failure {
    let what = format!("`{name}` is not a policy");
    Failure::explained(2, &what, why, "`cosched bench slowdown --help` lists the policies")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(name: &str) -> String {
        match Choice::parse(name).unwrap().how {
            How::Cosched { options, .. } => options.join(" "),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn names_become_options_of_run() {
        assert_eq!(options("gang"), "--policy gang");
        assert_eq!(options("local+spin-block:50us"), "--policy local --wait spin-block:50us");
        assert_eq!(options("PB-SB"), "--strategy PB-SB");
        assert_eq!(options("auto+off"), "--policy auto --wait off");
        assert_eq!((options("linux"), options("slurm-gang")), ("Linux".into(), "Slurm".into()));
        for (name, wanted) in SHARED {
            assert_eq!(options(name), "--policy gang");
            assert!(matches!(Choice::parse(name).unwrap().how, How::Cosched { sharing: Some(s), .. } if s == wanted));
        }
    }

    #[test]
    fn policies_have_a_name_in_the_simulator() {
        for (policy, strategy) in [
            ("linux", "Local"),
            ("local", "Local"),
            ("local+spin-block", "SB"),
            ("local+off", "Local"),
            ("local+spin-yield:50us", "SY"),
            ("gang", "soft-gang"),
            ("gang-strict", "GS"),
            ("paired", "paired-gang"),
            ("pb", "PB"),
            ("pb+spin-block", "PB-SB"),
            ("DCS-SY", "DCS-SY"),
            ("GS", "GS"),
            ("auto", "auto"),
        ] {
            assert_eq!(Choice::parse(policy).unwrap().strategy().map(Strategy::name), Some(strategy), "{policy}");
        }
    }

    #[test]
    fn mistakes_are_explained() {
        let why = |name: &str| Choice::parse(name).unwrap_err().message;
        assert!(why("gangs").contains("did you mean gang?"), "{}", why("gangs"));
        assert!(why("local+spin-blok").contains("did you mean spin-block?"));
        assert!(why("linux+busy").contains("only jobs of cosched"));
        assert!(why("PB+busy").contains("own way to wait"));
        assert!(why("").contains("valid are linux"));
        assert_eq!(Choice::parse("x").unwrap_err().code, 2);
    }

    #[test]
    fn who_comes_twice_counts_once() {
        let names = ["gang", "linux", " gang"].map(str::to_owned);
        assert_eq!(Choice::parse_all(&names).unwrap().len(), 2);
    }
}
