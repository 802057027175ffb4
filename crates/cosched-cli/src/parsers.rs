//! Parsers for values that several commands take: classes, policies, nodes, signals.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cosched_api::{Class, JobState, NodeResources, Policy, Sharing, parse};
use std::time::Duration;

pub(crate) fn class_parser() -> impl TypedValueParser<Value = Class> {
    named(Class::ALL.map(|class| (class.name(), class)))
}

pub(crate) fn policy_parser() -> impl TypedValueParser<Value = Policy> {
    named(Policy::ALL.map(|policy| (policy.name(), policy)))
}

pub(crate) fn policy_or_default() -> PossibleValuesParser {
    PossibleValuesParser::new(Policy::ALL.map(Policy::name).into_iter().chain(["default"]))
}

pub(crate) fn sharing_parser() -> impl TypedValueParser<Value = Sharing> {
    named(Sharing::ALL.map(|sharing| (sharing.name(), sharing)))
}

pub(crate) fn state_parser() -> impl TypedValueParser<Value = JobState> {
    named(JobState::ALL.map(|state| (state.name(), state)))
}

/// A parser that accepts these words.
pub(crate) fn named<const N: usize, T: Copy + Send + Sync + 'static>(
    all: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.map(|(name, _)| name)).map(move |word| value_of(&all, &word))
}

/// A parser that accepts these words, each with an explanation for the completions.
pub(crate) fn explained<const N: usize, T: Copy + Send + Sync + 'static>(
    all: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let words = all.map(|(name, help, _)| PossibleValue::new(name).help(help));
    let values = all.map(|(name, _, value)| (name, value));
    PossibleValuesParser::new(words).map(move |word| value_of(&values, &word))
}

/// The parser lets only words of the list pass.
fn value_of<T: Copy>(all: &[(&str, T)], word: &str) -> T {
    all.iter().find(|(name, _)| *name == word).unwrap_or(&all[0]).1
}

/// `CLASS=N`.
pub(crate) fn parse_share(text: &str) -> Result<(Class, u32), String> {
    let wrong = || format!("`{text}` is not a share of a class; write CLASS=N, as in batch=4, N from 1 to 1000");
    let (name, share) = text.split_once('=').ok_or_else(wrong)?;
    let class = Class::ALL.into_iter().find(|class| class.name() == name);
    let share = share.parse().ok().filter(|share| (1..=1000).contains(share));
    class.zip(share).ok_or_else(wrong)
}

/// The speed of a processor.
pub(crate) fn flops(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| (1.0..=1e18).contains(speed));
    speed.ok_or_else(|| "a number from 1 to 1e18, as 1e9".to_owned())
}

/// A fraction of the time, as `50%`; the daemon decides whether such a share is possible.
pub(crate) fn part_of_time(text: &str) -> Result<f64, String> {
    parse::part_of_time(text)
        .ok_or_else(|| format!("`{text}` is not a part of the time; give more than 0% and at most 100%, as 50%"))
}

/// A fraction of the time, or no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PartOrNone(pub(crate) Option<f64>);

pub(crate) fn part_or_none(text: &str) -> Result<PartOrNone, String> {
    match text {
        "none" => Ok(PartOrNone(None)),
        text => part_of_time(text).map(Some).map(PartOrNone).map_err(|e| format!("{e}, or `none`")),
    }
}

/// A time in seconds.
pub(crate) fn time_s(text: &str) -> Result<f64, String> {
    parse::duration(text).map(|time| time.as_secs_f64()).map_err(|e| e.to_string())
}

/// A time above 0, in seconds.
pub(crate) fn positive_time(text: &str) -> Result<f64, String> {
    match time_s(text)? {
        0.0 => Err("give a time above 0, as 90s".to_owned()),
        time_s => Ok(time_s),
    }
}

/// A time, or zero for never.
pub(crate) fn dead_after(text: &str) -> Result<Duration, String> {
    match text {
        "never" => Ok(Duration::ZERO),
        text => parse::duration(text).map_err(|e| e.to_string()),
    }
}

/// `NODE`, `NODE:CPUS` or `NODE:CPUS:MEM`.
pub(crate) fn parse_node(text: &str) -> Result<NodeResources, String> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default();
    if name.is_empty() {
        return Err("the node's name is missing, as in a:2".to_owned());
    }
    let cpus = parts.next().map(|cpus| match cpus.parse() {
        Ok(cpus) if cpus > 0 => Ok(cpus),
        _ => Err(format!("`{cpus}` is not a number of CPUs; write NODE:CPUS, as in {name}:2")),
    });
    let memory = parts.next().map(|size| parse::size_bytes(size).map_err(|e| e.to_string()));
    if parts.next().is_some() {
        return Err("write NODE, NODE:CPUS or NODE:CPUS:MEM".to_owned());
    }
    let (cpus, memory_bytes) = (cpus.transpose()?, memory.transpose()?);
    Ok(NodeResources { name: name.to_owned(), cpus, memory_bytes, ..NodeResources::default() })
}

/// `TERM`, `SIGTERM`, `term` or `15`.
pub(crate) fn parse_signal(text: &str) -> Result<i32, String> {
    use nix::sys::signal::Signal;
    if let Ok(number) = text.parse::<i32>() {
        return if (1..=64).contains(&number) { Ok(number) } else { Err("signals have numbers from 1 to 64".into()) };
    }
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let names = || Signal::iterator().map(|signal| signal.as_str().trim_start_matches("SIG"));
    if let Some(signal) = Signal::iterator().find(|signal| signal.as_str().trim_start_matches("SIG") == name) {
        return Ok(signal as i32);
    }
    match parse::nearest(name, names()) {
        Some(near) => Err(format!("unknown signal; did you mean {near}?")),
        None => Err("unknown signal; `kill -l` lists them".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_time_are_percentages() {
        assert_eq!((part_of_time("50%"), part_of_time("12.5%"), part_of_time("100%")), (Ok(0.5), Ok(0.125), Ok(1.0)));
        for wrong in ["50", "0%", "101%", "-1%", "NaN%", "%", "half"] {
            assert!(part_of_time(wrong).unwrap_err().contains("as 50%"), "{wrong}");
        }
        assert_eq!((part_or_none("none"), part_or_none("30%")), (Ok(PartOrNone(None)), Ok(PartOrNone(Some(0.3)))));
        assert!(part_or_none("no").unwrap_err().contains("or `none`"));
    }

    #[test]
    fn signals_by_name_and_number() {
        assert_eq!(
            [parse_signal("TERM"), parse_signal("SIGTERM"), parse_signal("term"), parse_signal("15")],
            [Ok(15), Ok(15), Ok(15), Ok(15)]
        );
        assert!(parse_signal("0").is_err() && parse_signal("65").is_err());
    }
}
