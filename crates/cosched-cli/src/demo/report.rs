//! The demo's table and its one-sentence summary, computed from the numbers.

use super::machine_policy;
use super::measure::Time;
use super::options::Arm;
use crate::format::or_dash;
use crate::table::Listing;
use cosched_api::Policy;
use std::collections::BTreeMap;

/// Ratios closer to 1 than this count as no difference: repeated runs vary by as much.
const SAME_WITHIN: f64 = 0.03;

/// Other processes are mentioned if they use more than this fraction of the CPUs.
const OTHERS_WORTH_NAMING: f64 = 0.05;
/// If other processes use more than this fraction, they affect the times more than the policies do.
const OTHERS_DECIDE: f64 = 0.25;
/// Slowdowns below this fraction of the number of jobs are impossible: that amount of work does not fit into the time,
/// even if each job's start overlaps with the others.
const POSSIBLE_FROM: f64 = 0.6;

/// All times, by number of jobs and arm, one entry per repetition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Results(BTreeMap<(u32, Arm), Vec<Time>>);

/// One line of the table.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Line {
    pub(crate) jobs: u32,
    pub(crate) policy: &'static str,
    /// The median over the repetitions, in seconds.
    pub(crate) seconds: f64,
    /// Whether all the jobs had ended; if not, the numbers of this line are lower bounds.
    pub(crate) finished: bool,
    /// t_j / t_1, with t_1 of plain Linux alone.
    pub(crate) slowdown: f64,
    /// Relative to plain Linux with the same number of jobs.
    pub(crate) ratio_to_linux: Option<f64>,
}

pub(crate) fn arm_name(arm: Arm) -> &'static str {
    machine_policy(arm).map_or("linux", Policy::name)
}

impl Results {
    pub(crate) fn add(&mut self, jobs: u32, arm: Arm, time: Time) {
        self.0.entry((jobs, arm)).or_default().push(time);
    }

    /// The lines for which there are numbers; none before plain Linux has run alone.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let Some(alone) = self.median(1, Arm::Linux) else { return Vec::new() };
        let line = |&(jobs, arm): &(u32, Arm)| {
            let time = self.median(jobs, arm)?;
            let linux = self.median(jobs, Arm::Linux);
            Some(Line {
                jobs,
                policy: arm_name(arm),
                seconds: time.seconds,
                finished: time.finished,
                slowdown: time.seconds / alone.seconds,
                ratio_to_linux: linux.map(|linux| time.seconds / linux.seconds),
            })
        };
        self.0.keys().filter_map(line).collect()
    }

    /// The median; for an even number of repetitions the slower of the two middle ones.
    fn median(&self, jobs: u32, arm: Arm) -> Option<Time> {
        let mut times = self.0.get(&(jobs, arm))?.clone();
        times.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        times.get(times.len() / 2).copied()
    }
}

/// The table for people.
pub(crate) fn table(lines: &[Line]) -> String {
    let bounded = |line: &Line, value: f64| format!("{}{value:.2}", if line.finished { "" } else { ">" });
    Listing::of(lines)
        .numbers("JOBS", 0, |line| line.jobs.to_string())
        .words("POLICY", 0, |line| line.policy)
        .numbers("TIME", 0, |line| bounded(line, line.seconds) + "s")
        .numbers("SLOWDOWN", 0, |line| bounded(line, line.slowdown))
        .numbers("IDEAL", 0, |line| line.jobs.to_string())
        .numbers("TIME/LINUX", 0, |line| or_dash(line.ratio_to_linux.map(|ratio| format!("{ratio:.2}"))))
        .render(None)
}

/// The result in one sentence. `others` is the fraction of the CPU time that processes outside the demo used.
pub(crate) fn sentence(lines: &[Line], others: f64) -> String {
    let busy = format!("other processes kept the CPUs {:.0} % busy meanwhile", others * 100.0);
    if let Some(line) = lines.iter().find(|line| line.slowdown < POSSIBLE_FROM * f64::from(line.jobs)) {
        return format!(
            "These numbers say nothing about scheduling: {} under {} cannot be only {:.2} times as slow as 1 alone \
             under plain Linux, so conditions differed between the runs ({busy}); run the demo when the machine is idle.",
            line.jobs, line.policy, line.slowdown
        );
    }
    let verdict = verdicts(lines);
    if others > OTHERS_DECIDE {
        return format!("These numbers are unreliable, as {busy}; run the demo when the machine is idle. {verdict}.");
    }
    if others > OTHERS_WORTH_NAMING { format!("{verdict}; {busy}, which all times include.") } else { verdict + "." }
}

fn verdicts(lines: &[Line]) -> String {
    let counts: std::collections::BTreeSet<u32> = lines.iter().map(|line| line.jobs).filter(|jobs| *jobs > 1).collect();
    let parts: Vec<String> = counts.into_iter().filter_map(|jobs| compare(lines, jobs)).collect();
    let text = parts.join("; ");
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => "Nothing was compared: there are no times of plain Linux and of cosched with several jobs".into(),
    }
}

/// Gang (or local, when gang was not measured) against plain Linux.
fn compare(lines: &[Line], jobs: u32) -> Option<String> {
    let of = |policy: &str| lines.iter().find(|line| line.jobs == jobs && line.policy == policy);
    let linux = of("linux")?;
    let (ours, other) = match (of("gang"), of("local")) {
        (Some(gang), local) => (gang, local),
        (None, local) => (local?, None),
    };
    let versus = format!("slowdown {} against {}, ideal {jobs}", slowdown(ours), slowdown(linux));
    let name = ours.policy;
    let verdict = match verdict(ours, linux) {
        Verdict::First(ratio) => format!("with {jobs} jobs cosched {name} is {ratio} times as fast as plain Linux"),
        Verdict::Second(ratio) => format!("with {jobs} jobs Linux wins: cosched {name} takes {ratio} times as long"),
        Verdict::Same => format!("with {jobs} jobs cosched {name} and plain Linux take the same time within 3 %"),
        Verdict::Unknown => {
            format!(
                "with {jobs} jobs neither cosched {name} nor plain Linux had finished when the demo's time was over"
            )
        }
    };
    let local = other.and_then(|local| match (self::verdict(local, ours), self::verdict(local, linux)) {
        (Verdict::First(ratio), _) => Some(format!(", and cosched local is {ratio} times as fast as gang")),
        (_, Verdict::Second(ratio)) => Some(format!(
            ", and cosched local takes {ratio} times as long as plain Linux: it has shares but no slots, so processes wait for partners \
             that are not running"
        )),
        _ => None,
    });
    Some(format!("{verdict} ({versus}){}", local.unwrap_or_default()))
}

enum Verdict {
    /// The first is faster by this factor.
    First(String),
    /// The second is faster.
    Second(String),
    Same,
    Unknown,
}

fn verdict(first: &Line, second: &Line) -> Verdict {
    let ratio = second.seconds / first.seconds;
    // A time that was cut off is a lower bound, and so is a ratio with it in the numerator.
    let at_least = |ratio: f64, line: &Line| format!("{}{ratio:.2}", if line.finished { "" } else { "more than " });
    match (first.finished, second.finished) {
        (false, false) => Verdict::Unknown,
        _ if ratio > 1.0 + SAME_WITHIN && first.finished => Verdict::First(at_least(ratio, second)),
        _ if 1.0 / ratio > 1.0 + SAME_WITHIN && second.finished => Verdict::Second(at_least(1.0 / ratio, first)),
        (true, true) => Verdict::Same,
        _ => Verdict::Unknown,
    }
}

fn slowdown(line: &Line) -> String {
    format!("{}{:.2}", if line.finished { "" } else { "more than " }, line.slowdown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(times: &[(u32, Arm, f64, bool)]) -> Vec<Line> {
        let mut results = Results::default();
        for &(jobs, arm, seconds, finished) in times {
            results.add(jobs, arm, Time { seconds, finished });
        }
        results.lines()
    }

    #[test]
    fn where_gang_wins() {
        let lines = results(&[
            (1, Arm::Linux, 2.0, true),
            (1, Arm::Gang, 2.02, true),
            (2, Arm::Linux, 7.7, true),
            (2, Arm::Gang, 4.1, true),
            (4, Arm::Linux, 25.6, false),
            (4, Arm::Gang, 8.2, true),
        ]);
        assert_eq!(
            sentence(&lines, 0.01),
            "With 2 jobs cosched gang is 1.88 times as fast as plain Linux (slowdown 2.05 against 3.85, ideal 2); \
             with 4 jobs cosched gang is more than 3.12 times as fast as plain Linux \
             (slowdown 4.10 against more than 12.80, ideal 4)."
        );
        assert_eq!(
            table(&lines),
            "JOBS  POLICY     TIME  SLOWDOWN  IDEAL  TIME/LINUX\n   \
                1  linux     2.00s      1.00      1        1.00\n   \
                1  gang      2.02s      1.01      1        1.01\n   \
                2  linux     7.70s      3.85      2        1.00\n   \
                2  gang      4.10s      2.05      2        0.53\n   \
                4  linux   >25.60s    >12.80      4        1.00\n   \
                4  gang      8.20s      4.10      4        0.32\n"
        );
    }

    #[test]
    fn where_linux_wins_it_says_so() {
        let lines = results(&[
            (1, Arm::Linux, 2.0, true),
            (2, Arm::Linux, 4.0, true),
            (2, Arm::Local, 4.04, true),
            (2, Arm::Gang, 4.4, true),
        ]);
        assert_eq!(
            sentence(&lines, 0.01),
            "With 2 jobs Linux wins: cosched gang takes 1.10 times as long (slowdown 2.20 against 2.00, ideal 2), \
             and cosched local is 1.09 times as fast as gang."
        );
    }

    #[test]
    fn where_there_is_no_difference_or_no_answer_it_says_so() {
        let same = results(&[(1, Arm::Linux, 2.0, true), (2, Arm::Linux, 4.0, true), (2, Arm::Local, 4.1, true)]);
        assert!(
            sentence(&same, 0.01)
                .starts_with("With 2 jobs cosched local and plain Linux take the same time within 3 %")
        );
        let cut = results(&[(1, Arm::Linux, 2.0, true), (2, Arm::Linux, 60.0, false), (2, Arm::Gang, 60.0, false)]);
        assert!(sentence(&cut, 0.01).contains("neither cosched gang nor plain Linux had finished"));
        // Linux was cut off earlier than gang needed: a lower bound proves nothing here.
        let bound = results(&[(1, Arm::Linux, 2.0, true), (2, Arm::Linux, 30.0, false), (2, Arm::Gang, 60.0, true)]);
        assert!(!sentence(&bound, 0.01).contains("Linux wins"));
        assert!(sentence(&results(&[(1, Arm::Linux, 2.0, true)]), 0.01).starts_with("Nothing was compared"));
    }

    #[test]
    fn a_busy_machine_is_named_and_impossible_numbers_are_not_praised() {
        let lines = results(&[(1, Arm::Linux, 2.0, true), (2, Arm::Linux, 8.0, true), (2, Arm::Gang, 4.0, true)]);
        let loud = sentence(&lines, 0.4);
        assert!(loud.starts_with("These numbers are unreliable, as other processes kept the CPUs 40 % busy"), "{loud}");
        let text = sentence(&lines, 0.1);
        assert!(
            text.ends_with("; other processes kept the CPUs 10 % busy meanwhile, which all times include."),
            "{text}"
        );
        let lines = results(&[(1, Arm::Linux, 6.7, true), (2, Arm::Linux, 20.0, true), (2, Arm::Gang, 1.0, true)]);
        let text = sentence(&lines, 0.9);
        assert!(
            text.starts_with("These numbers say nothing about scheduling: 2 under gang cannot be only 0.15"),
            "{text}"
        );
        assert!(!text.contains("as fast as"), "{text}");
    }

    #[test]
    fn repetitions_count_by_their_median() {
        let lines = results(&[(1, Arm::Linux, 9.0, true), (1, Arm::Linux, 2.0, true), (1, Arm::Linux, 3.0, true)]);
        assert_eq!((lines.len(), lines[0].seconds), (1, 3.0));
    }
}
