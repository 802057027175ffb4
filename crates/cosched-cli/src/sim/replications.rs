//! How many replications, as options.

use clap::Args;
use cosched_sim::sweep::Description;

/// Options for replications: the same seeds for all strategies.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Replications")]
pub(crate) struct Replications {
    /// Number of replications, with consecutive seeds; with --precision, to begin with (20 or more) [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: Option<u64>,

    /// Replicate until the 95 % interval of each mean response time is at most this much of it to either side, as 5%
    #[arg(long, value_name = "P%", value_parser = precision, allow_negative_numbers = true)]
    precision: Option<f64>,

    /// Replications at most, with --precision [default: 200]
    #[arg(long, value_name = "N", requires = "precision", value_parser = clap::value_parser!(u64).range(2..=10_000))]
    seeds_max: Option<u64>,
}

impl Replications {
    /// Replaces what was given.
    pub(crate) fn replace(&self, description: &mut Description) {
        description.precision = self.precision.or(description.precision);
        description.seeds_max = self.seeds_max.unwrap_or(description.seeds_max);
    }
}

/// A part of a mean, as `5%` or `0.05`.
fn precision(text: &str) -> Result<f64, String> {
    let part = match text.strip_suffix('%') {
        Some(number) => number.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    let part = part.ok().filter(|part| (0.001..1.0).contains(part));
    part.ok_or_else(|| "give 0.1% to less than 100%, as 5%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_is_a_part_of_the_mean() {
        assert_eq!((precision("5%"), precision("0.05"), precision("0.5 %")), (Ok(0.05), Ok(0.05), Ok(0.005)));
        for wrong in ["", "%", "0", "5", "100%", "-5%", "nan", "x"] {
            assert!(precision(wrong).is_err(), "{wrong}");
        }
    }
}
