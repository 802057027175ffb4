//! The batch policies of `cosched sim backfill`, and the options of those under which jobs share processors or change them.

use crate::out::Failure;
use crate::parsers::explained;
use clap::Args;
use clap::builder::TypedValueParser;
use cosched_api::parse::duration;
use cosched_sim::batch::{Malleable, Oversubscribe, Policy, RoundRobin, Sharing, SoftGang};

/// A policy by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Space(Policy),
    SoftGang,
    Oversubscribe,
    RoundRobin,
    Malleable,
}

/// A policy with its options.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chosen {
    Space(Policy),
    Shared(Sharing),
}

impl Chosen {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Chosen::Space(policy) => policy.name(),
            Chosen::Shared(sharing) => sharing.name(),
        }
    }
}

pub(super) fn policy() -> impl TypedValueParser<Value = Named> {
    explained([
        ("fcfs", "First come, first served", Named::Space(Policy::Fcfs)),
        ("easy", "EASY backfilling", Named::Space(Policy::Easy)),
        ("easy-sjbf", "EASY backfilling, shortest candidates first", Named::Space(Policy::EasySjbf)),
        ("conservative", "Conservative backfilling: a reservation for every job", Named::Space(Policy::Conservative)),
        ("soft-gang", "Gangs in rows that take turns and lend what they leave idle", Named::SoftGang),
        ("oversubscribe", "Jobs share processors without coordination", Named::Oversubscribe),
        ("round-robin", "Whole jobs run and are suspended in slices", Named::RoundRobin),
        ("malleable", "Jobs grow and shrink", Named::Malleable),
    ])
}

/// `None`: not given.
#[derive(Args, Debug)]
pub(super) struct SharingOptions {
    /// Jobs that fit into the memory of a processor: rows of the matrix [default: 4; oversubscribe: 2]
    #[arg(long, value_name = "N", help_heading = "Sharing", value_parser = clap::value_parser!(u32).range(1..=16))]
    rows: Option<u32>,

    /// The length of a slot [default: 100ms; round-robin: 60s]
    #[arg(long, value_name = "TIME", help_heading = "Sharing", value_parser = time_us)]
    slot: Option<u64>,

    /// What a job loses when it gets its processors back [default: 100us; round-robin: 1s]
    #[arg(long, value_name = "TIME", help_heading = "Sharing", value_parser = time_us)]
    switch: Option<u64>,

    /// The useful part of a shared processor's time (oversubscribe) [default: 1]
    #[arg(long, value_name = "PART", help_heading = "Sharing")]
    shared_speed: Option<f64>,

    /// The part of the jobs that is malleable [default: 1]
    #[arg(long, value_name = "PART", help_heading = "Sharing")]
    malleable_part: Option<f64>,

    /// Smallest and largest size of a malleable job, as parts of its own [default: 0.5,2]
    #[arg(long, value_name = "LEAST,MOST", help_heading = "Sharing", value_parser = sizes)]
    sizes: Option<(f64, f64)>,

    /// The serial part of malleable jobs (Amdahl) [default: 0]
    #[arg(long, value_name = "PART", help_heading = "Sharing")]
    serial: Option<f64>,

    /// What a change of its size costs a malleable job [default: 1s]
    #[arg(long, value_name = "TIME", help_heading = "Sharing", value_parser = time_us)]
    resize: Option<u64>,

    /// Draws which jobs are malleable [default: 1]
    #[arg(long, value_name = "SEED", help_heading = "Sharing")]
    seed: Option<u64>,
}

impl SharingOptions {
    /// The policy with its options; those of other policies are refused.
    pub(super) fn of(&self, named: Named) -> Result<Chosen, Failure> {
        let (rows, slot, switch) = (self.rows.unwrap_or(4), self.slot.unwrap_or(100_000), self.switch.unwrap_or(100));
        let (sharing, own): (Sharing, &[&str]) = match named {
            Named::Space(policy) => return self.only(&[], policy.name()).map(|()| Chosen::Space(policy)),
            Named::SoftGang => {
                let gang = SoftGang { rows, slot_us: slot, switch_us: switch };
                (Sharing::SoftGang(gang), &["--rows", "--slot", "--switch"])
            }
            Named::RoundRobin => {
                let (slot_us, switch_us) = (self.slot.unwrap_or(60_000_000), self.switch.unwrap_or(1_000_000));
                (Sharing::RoundRobin(RoundRobin { rows, slot_us, switch_us }), &["--rows", "--slot", "--switch"])
            }
            Named::Oversubscribe => {
                let (rows, speed) = (self.rows.unwrap_or(2), self.shared_speed.unwrap_or(1.0));
                (Sharing::Oversubscribe(Oversubscribe { rows, speed }), &["--rows", "--shared-speed"])
            }
            Named::Malleable => {
                let (least, most) = self.sizes.unwrap_or((0.5, 2.0));
                let jobs = Malleable {
                    part: self.malleable_part.unwrap_or(1.0),
                    least,
                    most,
                    serial: self.serial.unwrap_or(0.0),
                    resize_us: self.resize.unwrap_or(1_000_000),
                    seed: self.seed.unwrap_or(1),
                };
                (Sharing::Malleable(jobs), &["--malleable-part", "--sizes", "--serial", "--resize", "--seed"])
            }
        };
        self.only(own, sharing.name())?;
        let refused = |(what, hint)| Failure::explained(2, what, "such a machine is not simulated", hint);
        sharing.check().map_err(refused)?;
        Ok(Chosen::Shared(sharing))
    }

    fn only(&self, own: &[&str], policy: &str) -> Result<(), Failure> {
        let given = [
            ("--rows", self.rows.is_some()),
            ("--slot", self.slot.is_some()),
            ("--switch", self.switch.is_some()),
            ("--shared-speed", self.shared_speed.is_some()),
            ("--malleable-part", self.malleable_part.is_some()),
            ("--sizes", self.sizes.is_some()),
            ("--serial", self.serial.is_some()),
            ("--resize", self.resize.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        let Some((name, _)) = given.iter().find(|(name, given)| *given && !own.contains(name)) else { return Ok(()) };
        let why = if own.is_empty() {
            "it has no options of sharing".to_owned()
        } else {
            format!("it takes {}", own.join(", "))
        };
        Err(Failure::explained(
            2,
            &format!("{name} means nothing to --policy {policy}"),
            &why,
            "leave it out, or choose another policy",
        ))
    }
}

/// `10ms`, in µs.
fn time_us(text: &str) -> Result<u64, String> {
    let time = duration(text).map_err(|error| error.to_string())?;
    u64::try_from(time.as_micros()).map_err(|_| "it is too long".to_owned())
}

/// `0.5,2`.
fn sizes(text: &str) -> Result<(f64, f64), String> {
    let (least, most) = text.split_once(',').ok_or("it is two parts of the job's own size, as 0.5,2")?;
    let part = |text: &str| text.trim().parse().map_err(|_| format!("`{text}` is not a number"));
    Ok((part(least)?, part(most)?))
}
