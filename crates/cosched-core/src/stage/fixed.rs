//! Settings before the run, by the limiting resource: Roysden 2004, section 4, "Fixed scheduling", and later kernel features.
//!
//! The paper's: I/O threads call nice with a positive value ("nice up", a lower priority) or a negative one ("nice
//! down"). The best setting for its compute-bound program was nice up for I/O, 5 % faster; in general "increase the priority of the
//! threads that contain operations for the limiting resource", or lower the rest. The paper saw no difference between
//! magnitudes; on today's kernels a step is about 10 % of a share, so ±10 is used.
//! Since then: slices per thread (EEVDF, Linux 6.12), and scheduling classes.

use super::{Class, Resource, Setting};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// The nice value of a raised stage.
pub const RAISED: i8 = -10;
/// The nice value of a lowered stage.
pub const LOWERED: i8 = 10;
/// The shortest slice that the kernel accepts, µs.
pub const SLICE_US_SHORT: u32 = 100;
/// The longest slice that the kernel accepts, µs.
pub const SLICE_US_LONG: u32 = 100_000;
/// The real-time priority of [`FixedRule::Fifo`]: the lowest.
pub const FIFO_PRIORITY: u8 = 1;

/// A setting of all stages before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixedRule {
    /// Nothing is changed.
    Default,
    /// I/O has lower priority (Table 3, "Nice Up I/O").
    NiceUpIo,
    /// I/O has higher priority (Table 3, "Nice Down I/O"). Needs permission.
    NiceDownIo,
    /// Raise the stages of the limiting resource. Needs permission.
    Raise(Resource),
    /// Lower the stages of all resources except the limiting one.
    LowerRest(Resource),
    /// Short slices for stages that block: a stage that has had little CPU time gets its CPU sooner when it wakes up.
    ShortSlices,
    /// Short slices for stages that block, and long ones for stages that compute, so that these are seldom interrupted.
    ShortAndLongSlices,
    /// Short slices for all.
    ShortSlicesAll,
    /// Long slices for all.
    LongSlicesAll,
    /// `SCHED_BATCH` for the stages of all resources except the limiting one.
    BatchRest(Resource),
    /// `SCHED_IDLE` for these stages.
    IdleRest(Resource),
    /// `SCHED_BATCH` for all.
    BatchAll,
    /// `SCHED_FIFO` for the stages of a resource. Needs permission; a stage that computes without end then stops others.
    Fifo(Resource),
}

/// A name that the resource's name is appended to, and the rule.
type OfResource = (&'static str, fn(Resource) -> FixedRule);

/// The rules whose names need a resource.
const OF_RESOURCE: [OfResource; 5] = [
    ("raise", FixedRule::Raise),
    ("lower-rest-of", FixedRule::LowerRest),
    ("batch-rest-of", FixedRule::BatchRest),
    ("idle-rest-of", FixedRule::IdleRest),
    ("fifo", FixedRule::Fifo),
];

/// The other rules.
const PLAIN: [(&str, FixedRule); 8] = [
    ("default", FixedRule::Default),
    ("nice-up-io", FixedRule::NiceUpIo),
    ("nice-down-io", FixedRule::NiceDownIo),
    ("short-slices", FixedRule::ShortSlices),
    ("short-and-long-slices", FixedRule::ShortAndLongSlices),
    ("short-slices-all", FixedRule::ShortSlicesAll),
    ("long-slices-all", FixedRule::LongSlicesAll),
    ("batch-all", FixedRule::BatchAll),
];

impl FixedRule {
    /// All of them, the default first.
    pub fn all() -> Vec<FixedRule> {
        let plain = PLAIN.iter().map(|(_, rule)| *rule);
        let of_resource = OF_RESOURCE.iter().flat_map(|(_, make)| Resource::ALL.into_iter().map(make));
        plain.chain(of_resource).collect()
    }
}

impl fmt::Display for FixedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = PLAIN.iter().find(|(_, rule)| rule == self) {
            return f.write_str(name);
        }
        for (name, make) in OF_RESOURCE {
            if let Some(resource) = Resource::ALL.into_iter().find(|resource| make(*resource) == *self) {
                return write!(f, "{name}-{}", resource.name());
            }
        }
        Ok(())
    }
}

/// There is no rule of this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownRule;

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no rule for priorities has this name")
    }
}

impl core::error::Error for UnknownRule {}

impl FromStr for FixedRule {
    type Err = UnknownRule;

    fn from_str(text: &str) -> Result<FixedRule, UnknownRule> {
        if let Some((_, rule)) = PLAIN.iter().find(|(name, _)| *name == text) {
            return Ok(*rule);
        }
        let parsed = OF_RESOURCE.iter().find_map(|(name, make)| {
            let resource = text.strip_prefix(name)?.strip_prefix('-')?;
            Some(make(Resource::ALL.into_iter().find(|one| one.name() == resource)?))
        });
        parsed.ok_or(UnknownRule)
    }
}

/// The settings of a pipeline's stages, given by their resources, under a rule.
pub fn settings(rule: FixedRule, stages: &[Resource]) -> Vec<Setting> {
    stages.iter().map(|resource| setting(rule, *resource)).collect()
}

fn setting(rule: FixedRule, resource: Resource) -> Setting {
    let nice = |nice: i8, when: bool| Setting { nice: when.then_some(nice), ..Setting::default() };
    let slice = |slice_us: u32, when: bool| Setting { slice_us: when.then_some(slice_us), ..Setting::default() };
    let class = |class: Class, when: bool| Setting { class: when.then_some(class), ..Setting::default() };
    let computes = resource == Resource::Compute;
    match rule {
        FixedRule::Default => Setting::default(),
        FixedRule::NiceUpIo => nice(LOWERED, resource == Resource::Io),
        FixedRule::NiceDownIo => nice(RAISED, resource == Resource::Io),
        FixedRule::Raise(limiting) => nice(RAISED, resource == limiting),
        FixedRule::LowerRest(limiting) => nice(LOWERED, resource != limiting),
        FixedRule::ShortSlices => slice(SLICE_US_SHORT, !computes),
        FixedRule::ShortAndLongSlices => slice(if computes { SLICE_US_LONG } else { SLICE_US_SHORT }, true),
        FixedRule::ShortSlicesAll => slice(SLICE_US_SHORT, true),
        FixedRule::LongSlicesAll => slice(SLICE_US_LONG, true),
        FixedRule::BatchRest(limiting) => class(Class::Batch, resource != limiting),
        FixedRule::IdleRest(limiting) => class(Class::Idle, resource != limiting),
        FixedRule::BatchAll => class(Class::Batch, true),
        FixedRule::Fifo(of) => class(Class::Fifo(FIFO_PRIORITY), resource == of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// Columnsort, section 4: "read, compute, communicate, compute, and write".
    const COLUMNSORT: [Resource; 5] =
        [Resource::Io, Resource::Compute, Resource::Communicate, Resource::Compute, Resource::Io];

    fn nices(rule: FixedRule) -> Vec<Option<i8>> {
        settings(rule, &COLUMNSORT).iter().map(|setting| setting.nice).collect()
    }

    #[test]
    fn section_4_nice_up_lowers_io_and_nice_down_raises_it() {
        assert_eq!(nices(FixedRule::NiceUpIo), [Some(10), None, None, None, Some(10)]);
        assert_eq!(nices(FixedRule::NiceDownIo), [Some(-10), None, None, None, Some(-10)]);
        assert_eq!(nices(FixedRule::Default), [None; 5]);
    }

    #[test]
    fn section_4_what_limits_is_raised_or_the_rest_is_lowered() {
        assert_eq!(nices(FixedRule::Raise(Resource::Compute)), [None, Some(-10), None, Some(-10), None]);
        assert_eq!(nices(FixedRule::LowerRest(Resource::Compute)), [Some(10), None, Some(10), None, Some(10)]);
    }

    #[test]
    fn slices_and_classes_leave_the_nice_value_alone() {
        for rule in [FixedRule::ShortAndLongSlices, FixedRule::BatchAll, FixedRule::Fifo(Resource::Io)] {
            assert_eq!(nices(rule), [None; 5]);
        }
        let slices: Vec<_> = settings(FixedRule::ShortAndLongSlices, &COLUMNSORT).iter().map(|s| s.slice_us).collect();
        assert_eq!(slices, [Some(100), Some(100_000), Some(100), Some(100_000), Some(100)]);
        let classes: Vec<_> =
            settings(FixedRule::BatchRest(Resource::Io), &COLUMNSORT).iter().map(|s| s.class).collect();
        assert_eq!(classes, [None, Some(Class::Batch), Some(Class::Batch), Some(Class::Batch), None]);
    }

    #[test]
    fn names_lead_back_to_their_rules() {
        for rule in FixedRule::all() {
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
        assert_eq!(FixedRule::all().len(), 23);
        assert_eq!("lower-rest-of-io".parse(), Ok(FixedRule::LowerRest(Resource::Io)));
        for wrong in ["", "raise", "raise-", "raise-disk", "nice", "fifoio"] {
            assert_eq!(wrong.parse::<FixedRule>(), Err(UnknownRule), "{wrong}");
        }
    }
}
