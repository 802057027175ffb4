//! What is seen while it runs: one line that changes on a terminal, a line a set elsewhere.

use super::plan::Cell;
use super::record::{Ended, Run};
use super::stats::median;
use crate::format::duration_s;
use crate::jobset::Look;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shows where the bench is.
#[derive(Debug)]
pub(crate) struct Progress {
    mode: Mode,
    started: Instant,
    /// Sets in all, and those behind.
    all: usize,
    behind: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    InPlace,
    Lines,
    Quiet,
}

impl Progress {
    pub(crate) fn new(quiet: bool, all: usize) -> Progress {
        let mode = match (quiet, io::stderr().is_terminal()) {
            (true, _) => Mode::Quiet,
            (false, true) => Mode::InPlace,
            (false, false) => Mode::Lines,
        };
        Progress { mode, started: Instant::now(), all, behind: 0 }
    }

    /// A set goes on; `left_s` is what it and all later ones will take, as far as that is known.
    pub(crate) fn tick(&self, title: &str, look: &Look, left_s: Option<f64>) {
        if self.mode != Mode::InPlace {
            return;
        }
        let ended = look.ended.iter().flatten().count();
        let left = left_s.map(|s| format!(", about {} left", duration_s((s - look.elapsed.as_secs_f64()).max(0.0))));
        let _ = write!(
            io::stderr(),
            "\r\x1b[K[{}/{}] {title}: {}, {ended} of {} ended; {} so far{}",
            self.behind + 1,
            self.all,
            duration_s(look.elapsed.as_secs_f64()),
            look.ended.len(),
            duration_s(self.started.elapsed().as_secs_f64()),
            left.unwrap_or_default()
        );
    }

    /// A set has ended, or was left out.
    pub(crate) fn end(&mut self, title: &str, run: &Run) {
        self.behind += 1;
        let took = match run.outcome {
            Ended::Done => format!("{:.2} s", run.elapsed_s),
            other => format!(
                "{} ({})",
                other.name(),
                run.why.as_deref().unwrap_or_default().lines().next().unwrap_or_default()
            ),
        };
        let text = format!("[{}/{}] {title}, repetition {}: {took}", self.behind, self.all, run.repetition + 1);
        match self.mode {
            // Only what did not go well stays.
            Mode::InPlace if run.outcome != Ended::Done => drop(writeln!(io::stderr(), "\r\x1b[K{text}")),
            Mode::InPlace => drop(write!(io::stderr(), "\r\x1b[K")),
            Mode::Lines => drop(writeln!(io::stderr(), "{text}")),
            Mode::Quiet => {}
        }
    }

    /// A set is left out.
    pub(crate) fn skip(&mut self) {
        self.behind += 1;
    }
}

/// How long these sets will take, from what is known: a set that ran before takes as long again, another as its jobs one
/// after the other. None before anything is known.
pub(crate) fn estimate_s(cells: &[Cell], runs: &[Run]) -> Option<f64> {
    let times = |fits: &dyn Fn(&Run) -> bool| -> Vec<f64> {
        runs.iter().filter(|run| run.outcome == Ended::Done && fits(run)).map(|run| run.elapsed_s).collect()
    };
    let alone = median(&times(&|run| run.jobs == 1))?;
    let of = |cell: &Cell| median(&times(&|run| cell.is_of(run))).unwrap_or(f64::from(cell.jobs) * alone);
    Some(cells.iter().map(of).sum::<f64>() + Duration::from_millis(50).as_secs_f64() * cells.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::super::plan::{cells, tests::head};
    use super::super::results::tests::run;
    use super::*;

    #[test]
    fn estimates_from_what_is_known() {
        let head = head(&["gang"], &[2, 4], 1);
        let cells = cells(&head, 0);
        assert_eq!(estimate_s(&cells, &[]), None);
        let runs = [run("linux", 0, &[1.0]), run("gang", 0, &[2.5, 3.0])];
        // 1 + 3 + 4 · 1.
        assert!((estimate_s(&cells, &runs).unwrap() - 8.15).abs() < 1e-9);
    }
}
