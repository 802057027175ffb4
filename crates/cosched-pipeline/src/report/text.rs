//! A report as text: what limits the run, and how each stage spent its time.

use std::fmt::Write;

use super::{Report, StageReport};

/// The maximum number of actions that are printed per stage.
const ACTIONS_SHOWN: usize = 8;

impl Report {
    /// Tables and sentences for a terminal, with a newline at the end. Control characters in names are replaced, so
    /// that they cannot contain escape sequences.
    pub fn text(&self) -> String {
        let mut text = format!("pipeline '{}': {}\n\n", plain(&self.name), self.summary());
        text.push_str(&table(&self.stages, self.elapsed_s));
        let _ = write!(text, "\n{}\n", self.bound_line());
        for stall in &self.stalls {
            let how = if stall.over { "continued after" } else { "has not continued for" };
            let (name, what) = (plain(&stall.stage), plain(&stall.what));
            let _ =
                writeln!(text, "stuck: stage '{name}' {what} (thread {}) and {how} {}", stall.tid, time(stall.held_s));
        }
        self.stages.iter().for_each(|stage| actions(&mut text, stage));
        for note in &self.notes {
            let _ = writeln!(text, "note: {}", plain(note));
        }
        text
    }

    fn summary(&self) -> String {
        let mut parts =
            vec![time(self.elapsed_s), count(self.rounds, "block"), format!("{} of buffers", bytes(self.memory_bytes))];
        if self.cpus > 0 {
            parts.push(count(self.cpus.into(), "CPU"));
        }
        if !self.priorities.is_empty() {
            parts.push(format!("priorities {}", self.priorities));
        }
        parts.join(", ")
    }

    fn bound_line(&self) -> String {
        let bound = &self.bound;
        if bound.s() == 0.0 {
            return "bound: nothing was done".to_owned();
        }
        let who = bound.stage.as_ref().map_or(String::new(), |stage| format!(", busiest '{}'", plain(stage)));
        let parts = [("compute", bound.compute_s), ("communicate", bound.communicate_s), ("I/O", bound.io_s)];
        let parts = parts.map(|(name, s)| format!("{name} {}", time(s))).join(", ");
        let speed = format!("the run had {:.1} % of the best speed", self.efficiency() * 100.0);
        format!("bound: {parts}: {} limits{who}; {speed}", resource(&bound.limiting))
    }
}

fn actions(text: &mut String, stage: &StageReport) {
    for action in stage.actions.iter().take(ACTIONS_SHOWN) {
        let (at, name, change) = (time(action.at_s), plain(&stage.name), plain(&action.change));
        let why = plain(&action.why);
        let _ = match &action.refused {
            None => writeln!(text, "{at:>8}  '{name}' {change}: {why}"),
            Some(reason) => writeln!(text, "{at:>8}  '{name}' would have had {change} ({why}), but {}", plain(reason)),
        };
    }
    let rest = stage.actions_count.saturating_sub(stage.actions.len().min(ACTIONS_SHOWN) as u64);
    if rest > 0 {
        let _ = writeln!(text, "          '{}' and {rest} more changes", plain(&stage.name));
    }
}

const TITLES: [&str; 13] =
    ["STAGE", "USES", "ON", "N", "BLOCKS", "RATE", "BUSY", "CPU", "DELAY", "WAIT IN", "WAIT OUT", "QUEUE", "SETTINGS"];
/// Columns of words, which are aligned to the left; the other ones, numbers, to the right.
const WORDS: [usize; 4] = [0, 1, 2, 12];

fn table(stages: &[StageReport], elapsed_s: f64) -> String {
    let rows: Vec<[String; TITLES.len()]> = stages.iter().map(|stage| row(stage, elapsed_s)).collect();
    let head = TITLES.map(str::to_owned);
    let all: Vec<&[String; TITLES.len()]> = std::iter::once(&head).chain(&rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..TITLES.len()).map(width).collect();
    let mut text = String::new();
    for row in all {
        let cell = |(column, cell): (usize, &String)| {
            let padding = " ".repeat(widths[column] - cell.chars().count());
            if WORDS.contains(&column) { format!("{cell}{padding}") } else { format!("{padding}{cell}") }
        };
        let line = row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn row(stage: &StageReport, elapsed_s: f64) -> [String; TITLES.len()] {
    let rate = if elapsed_s > 0.0 { stage.bytes as f64 / elapsed_s } else { 0.0 };
    [
        plain(&stage.name),
        resource(&stage.resource),
        stage.kind.clone(),
        stage.incarnations.to_string(),
        stage.rounds.to_string(),
        format!("{}/s", bytes(rate as u64)),
        time(stage.busy_s),
        time(stage.cpu_s),
        time(stage.delay_s),
        time(stage.wait_in_s),
        time(stage.wait_out_s),
        format!("{:.1}", stage.queue_mean),
        plain(&stage.settings),
    ]
}

fn resource(name: &str) -> String {
    if name == "io" { "I/O".to_owned() } else { plain(name) }
}

fn count(number: u64, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}

/// A time with three significant digits.
fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 10.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 0.1 => format!("{:.0} ms", s * 1e3),
        s if s >= 0.001 => format!("{:.1} ms", s * 1e3),
        s if s > 0.0 => format!("{:.0} µs", s * 1e6),
        _ => "0".to_owned(),
    }
}

fn bytes(count: u64) -> String {
    let count = count as f64;
    match count {
        n if n >= 1e9 => format!("{:.1} GB", n / 1e9),
        n if n >= 1e6 => format!("{:.1} MB", n / 1e6),
        n if n >= 1e3 => format!("{:.1} kB", n / 1e3),
        n => format!("{n:.0} B"),
    }
}

/// Replaces control characters.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Action, Bound, Stall};

    #[test]
    fn a_report_says_where_the_time_went() {
        let sort = StageReport {
            name: "sort\x1b[2J".into(),
            resource: "compute".into(),
            kind: "worker".into(),
            incarnations: 2,
            rounds: 1000,
            bytes: 4_000_000_000,
            busy_s: 3.5,
            cpu_s: 3.25,
            delay_s: 0.012,
            queue_mean: 1.25,
            settings: "nice 10".into(),
            actions: vec![Action {
                at_s: 0.5,
                by: "auto".into(),
                change: "nice -10".into(),
                why: "it limits".into(),
                refused: Some("no right".into()),
            }],
            actions_count: 3,
            ..StageReport::default()
        };
        let report = Report {
            name: "columnsort".into(),
            elapsed_s: 2.0,
            memory_bytes: 64_000_000,
            cpus: 2,
            priorities: "auto".into(),
            rounds: 1000,
            stages: vec![sort],
            bound: Bound { compute_s: 1.9, io_s: 0.4, limiting: "compute".into(), stage: None, communicate_s: 0.0 },
            stalls: vec![Stall {
                stage: "sort".into(),
                tid: 7,
                what: "works on block 4".into(),
                since_s: 1.0,
                held_s: 31.0,
                over: false,
            }],
            notes: vec!["a note".into()],
            ..Report::default()
        };
        let text = report.text();
        let expected = "\
pipeline 'columnsort': 2.00 s, 1000 blocks, 64.0 MB of buffers, 2 CPUs, priorities auto

STAGE     USES     ON      N  BLOCKS      RATE    BUSY     CPU    DELAY  WAIT IN  WAIT OUT  QUEUE  SETTINGS
sort?[2J  compute  worker  2    1000  2.0 GB/s  3.50 s  3.25 s  12.0 ms        0         0    1.2  nice 10

bound: compute 1.90 s, communicate 0, I/O 400 ms: compute limits; the run had 95.0 % of the best speed
stuck: stage 'sort' works on block 4 (thread 7) and has not continued for 31.0 s
  500 ms  'sort?[2J' would have had nice -10 (it limits), but no right
          'sort?[2J' and 2 more changes
note: a note
";
        assert_eq!(text, expected);
        assert!(Report::default().text().contains("nothing was done"));
    }
}
