//! The last hour of the machine, and of a job, as lines of bars.

use crate::top::view::View;
use cosched_api::Sample;

/// From empty to full.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar for each value of 0 to 1, the newest last, in at most this many columns: each is the mean of as many values as the width needs.
/// Values that are not known are dots.
pub(super) fn line(values: &[Option<f64>], width: usize) -> String {
    if width == 0 || values.is_empty() {
        return String::new();
    }
    // The oldest group may be a smaller one.
    let mut groups: Vec<&[Option<f64>]> = values.rchunks(values.len().div_ceil(width)).collect();
    groups.reverse();
    groups.into_iter().map(bar).collect()
}

fn bar(values: &[Option<f64>]) -> char {
    let known: Vec<f64> = values.iter().flatten().copied().filter(|value| value.is_finite()).collect();
    if known.is_empty() {
        return '·';
    }
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let last = BARS.len() - 1;
    // What is little is not nothing.
    let level = if mean > 0.0 { ((mean * last as f64).round() as usize).clamp(1, last) } else { 0 };
    BARS[level]
}

/// The use of all CPUs.
pub(super) fn machine(view: &View) -> Vec<Option<f64>> {
    view.past.iter().map(|sample| Some(sample.busy)).collect()
}

/// What a job was due and got, since it is known.
pub(super) fn job(view: &View, id: u64) -> [Vec<Option<f64>>; 2] {
    let of = |sample: &Sample| sample.jobs.iter().find(|job| job.id == id).map(|job| (job.due, job.received));
    let first = view.past.iter().position(|sample| of(sample).is_some()).unwrap_or(view.past.len());
    let values = view.past[first..].iter().map(of);
    [values.clone().map(|of| of.map(|(due, _)| due)).collect(), values.map(|of| of.map(|(_, got)| got)).collect()]
}

/// The time that these samples span, for people; none for less than two.
pub(super) fn span(samples: &[Sample], values: usize) -> Option<String> {
    let first = samples.len().checked_sub(values.max(1))?;
    let (from, to) = (samples.get(first)?.unix_ms, samples.last()?.unix_ms);
    (to > from).then(|| crate::format::duration_ms(to - from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_the_height_of_the_values_and_as_many_as_fit() {
        let known = |values: &[f64]| values.iter().map(|value| Some(*value)).collect::<Vec<_>>();
        assert_eq!(line(&known(&[0.0, 0.001, 0.5, 1.0, 7.0]), 10), " ▁▄██");
        assert_eq!(line(&[Some(1.0), None, Some(f64::NAN)], 10), "█··");
        // Five values in two columns: the newest three, and the two before.
        assert_eq!(line(&known(&[1.0, 1.0, 0.5, 0.5, 0.5]), 2), "█▄");
        assert_eq!(line(&known(&[1.0; 360]), 7).chars().count(), 7);
        assert_eq!((line(&[], 5), line(&known(&[1.0]), 0)), (String::new(), String::new()));
    }
}
