//! What the demo shows while it runs: drawn in place on a terminal, plain lines elsewhere.

use super::measure::Time;
use super::options::{Arm, Demo};
use super::report::{Results, arm_name, table};
use crate::commands::matrix;
use crate::context::Context;
use crate::jobset::Look;
use crate::out::{Failure, print, say, use_colour};
use crate::picture::draw_over;
use cosched_api::{Client, Status};
use std::io::{self, IsTerminal};

/// How progress is shown.
#[derive(Debug)]
pub(crate) struct Display {
    mode: Mode,
    /// The number of lines of the last drawing, which the next one overwrites.
    drawn: usize,
    colour: bool,
    /// Whether the matrix of this run was shown already, in plain mode.
    matrix_shown: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    InPlace,
    Lines,
    /// Standard output is JSON: the lines go to standard error.
    Talk,
}

impl Display {
    pub(crate) fn new(context: &Context, options: &Demo) -> Display {
        let mode = match (context.json, options.plain || !io::stdout().is_terminal()) {
            (true, _) => Mode::Talk,
            (false, true) => Mode::Lines,
            (false, false) => Mode::InPlace,
        };
        Display { mode, drawn: 0, colour: use_colour(), matrix_shown: false }
    }

    /// Prints a line that stays.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.erase()?;
        match self.mode {
            Mode::Talk => say(text),
            Mode::Lines | Mode::InPlace => print(&format!("{text}\n"))?,
        }
        Ok(())
    }

    /// A run begins.
    pub(crate) fn begin(&mut self) {
        self.matrix_shown = false;
    }

    /// Called while a run is in progress.
    pub(crate) fn tick(
        &mut self,
        arm: Arm,
        progress: &Look,
        client: &mut Client,
        results: &Results,
    ) -> Result<(), Failure> {
        match self.mode {
            Mode::InPlace => {
                let status = client.status().ok();
                let text = screen(arm, progress, status.as_ref(), results, self.colour);
                self.draw(&text)
            }
            // Once per run, when its rows exist.
            Mode::Lines if arm == Arm::Gang && !self.matrix_shown && progress.ended.len() > 1 => {
                let rows = client.status().map(|status| matrix::text(&status.matrix)).unwrap_or_default();
                self.matrix_shown = rows.lines().count() > progress.ended.len();
                if self.matrix_shown { print(&indent(&rows)) } else { Ok(()) }
            }
            Mode::Lines | Mode::Talk => Ok(()),
        }
    }

    /// A run has ended.
    pub(crate) fn end(&mut self, arm: Arm, jobs: u32, time: Time) -> Result<(), Failure> {
        let what = title(arm, jobs);
        let took = if time.finished {
            format!("{:.2} s", time.seconds)
        } else {
            format!("not ended after {:.0} s", time.seconds)
        };
        if self.mode == Mode::InPlace { self.erase() } else { self.line(&format!("{what:<27} {took}")) }
    }

    fn draw(&mut self, text: &str) -> Result<(), Failure> {
        self.drawn = draw_over(self.drawn, text)?;
        Ok(())
    }

    fn erase(&mut self) -> Result<(), Failure> {
        match std::mem::take(&mut self.drawn) {
            0 => Ok(()),
            lines => draw_over(lines, "").map(drop),
        }
    }
}

fn title(arm: Arm, jobs: u32) -> String {
    let place = match arm {
        Arm::Linux => "plain Linux".to_owned(),
        _ => format!("cosched {}", arm_name(arm)),
    };
    format!("{jobs} {}, {place}", if jobs == 1 { "job" } else { "jobs" })
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn screen(arm: Arm, progress: &Look, status: Option<&Status>, results: &Results, colour: bool) -> String {
    let (bold, off) = if colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let jobs = u32::try_from(progress.ended.len()).unwrap_or(u32::MAX);
    let mut text = format!("{bold}{}{off}  {:.1} s\n\n", title(arm, jobs), progress.elapsed.as_secs_f64());
    for (number, ended) in progress.ended.iter().enumerate() {
        let state = match ended {
            Some(after) => format!("done after {:.1} s", after.as_secs_f64()),
            None => "runs".to_owned(),
        };
        text.push_str(&format!("  job {}: {state}\n", number + 1));
    }
    text.push('\n');
    let rows = status.map(|status| matrix::text(&status.matrix)).unwrap_or_default();
    match (arm, rows.is_empty()) {
        (Arm::Gang, false) => text.push_str(&indent(&rows)),
        (Arm::Gang, true) => text.push_str("    the matrix is empty: no gang has slots\n"),
        _ => text.push_str("    no matrix: Linux schedules the jobs\n"),
    }
    let lines = results.lines();
    if !lines.is_empty() {
        text.push('\n');
        text.push_str(&table(&lines));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::tests::example_status;
    use std::time::Duration;

    #[test]
    fn the_screen_shows_jobs_matrix_and_results() {
        let progress =
            Look { elapsed: Duration::from_millis(1240), ended: vec![None, Some(Duration::from_millis(900))] };
        let mut results = Results::default();
        results.add(1, Arm::Linux, Time { seconds: 2.0, finished: true });
        let status = example_status();
        let text = screen(Arm::Gang, &progress, Some(&status), &results, false);
        assert!(
            text.starts_with("2 jobs, cosched gang  1.2 s\n\n  job 1: runs\n  job 2: done after 0.9 s\n"),
            "{text}"
        );
        assert!(text.contains("    > row 0     7     7  1\n"), "{text}");
        assert!(text.contains("   1  linux   2.00s      1.00"), "{text}");
        let plain = screen(Arm::Linux, &progress, Some(&status), &Results::default(), false);
        assert!(plain.contains("Linux schedules the jobs") && !plain.contains("row 0"), "{plain}");
    }
}
