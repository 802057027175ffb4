//! Runs a sweep's cells: the journal's file, threads, progress and results.

use super::files::{Output, distinct, is_stdout, writable};
use super::table;
use super::workloads::Workloads;
use crate::jobset::cpus;
use crate::out::{Failure, json_line, print, print_json, say, terminal_width};
use crate::progress::Progress;
use clap::Args;
use cosched_sim::report::sweep_report;
use cosched_sim::sweep::{self, Hooks, Journal, Plan, SweepError, SweepProgress, Table, Taken};
use cosched_study::engine::simulate;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The heading of options for running cells.
pub(crate) const RUNNING: &str = "Running and results";

/// How cells are run and where their results go.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = RUNNING)]
pub(crate) struct Cells {
    /// Number of cells to run concurrently [default: the CPUs of this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,

    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Write the table, or the JSON, to this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Write the results as CSV with all columns; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Write a report with figures as a single HTML file; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// The number of threads for simulations side by side, if the user gives none: one for each CPU.
pub(crate) fn on_threads(wanted: Option<u32>) -> usize {
    wanted.map_or_else(cpus, |threads| threads as usize)
}

/// Engines, clock and progress for a sweep.
struct Clockwork {
    start: Instant,
    progress: Progress,
}

impl Clockwork {
    fn new(quiet: bool) -> Clockwork {
        Clockwork { start: Instant::now(), progress: Progress::of_parts(quiet) }
    }

    fn show(&self, SweepProgress { cells, cells_all, resumed, work, work_all }: SweepProgress) {
        self.progress.show_part((work, work_all), || {
            let kept = if resumed > 0 { format!(" ({resumed} already simulated)") } else { String::new() };
            format!("{cells} of {cells_all} cells{kept}")
        });
    }
}

/// Simulates the cells that the journal does not have.
pub(crate) fn run(plan: &Plan, cells: &Cells, journal: Option<&Path>) -> Result<Table, Failure> {
    let outputs: Vec<&Path> =
        [&cells.out, &cells.csv, &cells.html].into_iter().flatten().map(PathBuf::as_path).collect();
    distinct(journal.unwrap_or(Path::new("-")), &outputs)?;
    outputs.iter().try_for_each(|path| writable(path))?;
    let mut file = journal.map(JournalFile::open).transpose()?;
    let known = file.as_ref().map(|file| file.journal.clone()).unwrap_or_default();
    let clockwork = Clockwork::new(cells.quiet);
    let threads = on_threads(cells.threads);
    let taken = with_hooks(&clockwork, plan, |hooks| {
        sweep::run_precisely(plan, &known, threads, hooks, &mut |line| {
            file.as_mut().map_or(Ok(()), |file| file.append(line))
        })
    })?;
    drop(clockwork);
    let (plan, taken) = taken.map_err(failure)?;
    let table = Table::new(&plan, &taken);
    if let Some(precision) = plan.precision {
        let wide = table.imprecise(precision.part);
        if wide > 0 {
            let part = crate::format::exact_percent(precision.part);
            say(&format!(
                "{wide} of {} mean response times are less precise than {part}\n  why: after {} seeds, more were not allowed\n  \
                 hint: a larger --seeds-max, or longer lists (--count)",
                table.rows.len(),
                table.seeds()
            ));
        }
    }
    Ok(table)
}

/// The results in a journal, without any simulation.
pub(crate) fn recall(plan: &Plan, journal: &Path) -> Result<(Plan, Vec<Taken>), Failure> {
    let read = match File::open(journal) {
        Ok(file) => Journal::read(BufReader::new(file)).map_err(|e| unreadable(journal, &e))?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => Journal::default(),
        Err(e) => return Err(unreadable(journal, &e)),
    };
    with_hooks(&Clockwork::new(true), plan, |hooks| sweep::recall_precisely(plan, &read, hooks))?.map_err(failure)
}

fn with_hooks<T>(clockwork: &Clockwork, plan: &Plan, use_them: impl FnOnce(Hooks<'_>) -> T) -> Result<T, Failure> {
    let workloads = Workloads::read(plan.cells.iter().map(|cell| &cell.wanted.workload))?;
    Ok(use_them(Hooks {
        jobs: &|wanted| workloads.jobs(wanted),
        simulate: &|config, jobs, watch| simulate(plan.sampled, config, jobs, watch),
        now_s: &|| clockwork.start.elapsed().as_secs_f64(),
        progress: &|progress| clockwork.show(progress),
    }))
}

/// The failure of a command for a sweep's error.
pub(crate) fn failure(error: SweepError) -> Failure {
    let code = if matches!(error, SweepError::Description { .. }) { 2 } else { 1 };
    Failure { code, message: error.to_string() }
}

/// A journal that one sweep at a time may append to.
struct JournalFile {
    file: File,
    journal: Journal,
}

impl JournalFile {
    /// Opens or creates it, and removes an unfinished line that a killed sweep left.
    fn open(path: &Path) -> Result<JournalFile, Failure> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|e| unreadable(path, &e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::explained(
                    1,
                    &format!("the journal {} is in use", path.display()),
                    "another sweep appends to it",
                    "wait for it, or give another --journal",
                ));
            }
            Err(TryLockError::Error(e)) => return Err(unreadable(path, &e)),
        }
        let journal = Journal::read(BufReader::new(&file)).map_err(|e| unreadable(path, &e))?;
        if journal.is_foreign || (journal.strange > 0 && journal.results.is_empty()) {
            return Err(Failure::explained(
                1,
                &format!("{} is not a journal", path.display()),
                "it contains data other than results of cells",
                "give the path of a journal, or of a new file",
            ));
        }
        if journal.strange > 0 {
            say(&format!("{} lines of {} are not results; they are not used", journal.strange, path.display()));
        }
        let cut = file.set_len(journal.whole_bytes).and_then(|()| file.seek(SeekFrom::Start(journal.whole_bytes)));
        cut.map_err(|e| unreadable(path, &e))?;
        Ok(JournalFile { file, journal })
    }

    /// Appends a line and syncs it to the disk.
    fn append(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::explained(
        1,
        &format!("cannot use the journal {}", path.display()),
        &error.to_string(),
        "give the path of a journal, or of a new file, with --journal",
    )
}

/// Writes the results in all requested forms; the exit code says whether cells failed.
pub(crate) fn give(title: &str, table: &Table, cells: &Cells, json: bool) -> Result<u8, Failure> {
    let mut takes_stdout = false;
    if let Some(path) = &cells.csv {
        let mut out = Output::create(path)?;
        let result = sweep::write_csv(&mut out, table);
        out.written(result)?;
        takes_stdout |= is_stdout(path);
    }
    if let Some(path) = &cells.html {
        Output::create(path)?.finish(&sweep_report(title, table))?;
        takes_stdout |= is_stdout(path);
    }
    match (&cells.out, json) {
        (Some(path), true) => Output::create(path)?.finish(&json_line(table)?)?,
        (Some(path), false) => Output::create(path)?.finish(&table::rows(table, None))?,
        (None, _) if takes_stdout => {}
        (None, true) => print_json(table)?,
        (None, false) => print(&table::rows(table, terminal_width()))?,
    }
    Ok(tell_failures(table))
}

/// The maximum number of failures that are reported individually.
const TOLD_MAX: usize = 5;

fn tell_failures(table: &Table) -> u8 {
    let failures: Vec<String> = table
        .rows
        .iter()
        .flat_map(|row| row.failures.iter().map(|(seed, why)| format!("{} seed={seed}: {why}", row.cell.label())))
        .collect();
    failures.iter().take(TOLD_MAX).for_each(|failure| say(failure));
    if failures.len() > TOLD_MAX {
        say(&format!("and {} more cells without a result", failures.len() - TOLD_MAX));
    }
    u8::from(!failures.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_sim::general::Config;
    use cosched_sim::sweep::{Description, Seeds};
    use cosched_sim::{Params, Strategy};

    fn plan() -> Plan {
        let description = Description {
            strategies: vec!["GS".into(), "PB".into()],
            workloads: vec!["WL3".into()],
            seeds: Seeds::Count(2),
            jobs: 10,
            mean_exec_s: 0.05,
            ..Description::default()
        };
        Plan::new(&description, &|strategy: Strategy, _| Config::paper(Params::paper(strategy, 4))).unwrap()
    }

    fn cells() -> Cells {
        Cells { threads: Some(2), quiet: true, out: None, csv: None, html: None }
    }

    #[test]
    fn a_torn_journal_is_cut_and_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j.jsonl");
        let whole = run(&plan(), &cells(), Some(&path)).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 4);
        std::fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
        let (_, recalled) = recall(&plan(), &path).unwrap();
        assert_eq!(recalled.iter().filter(|taken| taken.result().is_some()).count(), 3);
        assert_eq!(run(&plan(), &cells(), Some(&path)).unwrap(), whole);
        let again = std::fs::read_to_string(&path).unwrap();
        assert_eq!(again.lines().filter(|line| line.ends_with("}}")).count(), 4, "{again}");
    }

    #[test]
    fn files_that_are_no_journals_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        for notes in ["my notes\n", "my notes"] {
            std::fs::write(&path, notes).unwrap();
            let failure = run(&plan(), &cells(), Some(&path)).unwrap_err();
            assert!(failure.message.contains("is not a journal"), "{failure:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), notes);
        }
    }

    #[test]
    fn a_journal_has_one_writer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j.jsonl");
        let first = JournalFile::open(&path).unwrap();
        let second = JournalFile::open(&path).map(drop).unwrap_err();
        assert!(second.message.contains("is in use"), "{second:?}");
        drop(first);
        assert!(JournalFile::open(&path).is_ok());
    }
}
