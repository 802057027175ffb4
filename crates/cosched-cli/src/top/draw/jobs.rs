//! The list of jobs.

use super::Theme;
use crate::format;
use crate::top::view::View;
use cosched_api::{Job, JobState};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

/// A column: its title, width, alignment, and the minimum width of a screen that shows it.
struct Column {
    title: &'static str,
    width: u16,
    right: bool,
    from_width: u16,
    text: fn(&Job) -> String,
}

const fn column(title: &'static str, width: u16, right: bool, from_width: u16, text: fn(&Job) -> String) -> Column {
    Column { title, width, right, from_width, text }
}

/// The command gets the remaining width, if the screen has this one.
const COMMAND_WIDTH: u16 = 72;

const COLUMNS: [Column; 15] = [
    column("ID", 5, true, 0, |job| job.id.to_string()),
    column("NAME", 14, false, 0, |job| job.name.clone()),
    column("USER", 9, false, 100, |job| job.user.clone()),
    column("CLASS", 11, false, 72, |job| job.class.name().to_owned()),
    column("POLICY", 6, false, 120, |job| job.policy.name().to_owned()),
    column("STATE", 9, false, 0, |job| job.state.name().to_owned()),
    column("CPUS", 4, true, 90, |job| job.cpus.to_string()),
    column("PLACE", 9, false, 130, |job| format::or_dash(job.places.clone())),
    column("PROCS", 5, true, 140, |job| format::or_dash(job.processes.map(|count| count.to_string()))),
    column("CPU%", 5, true, 50, |job| format::or_dash(job.cpu_percent.map(|percent| format!("{percent:.0}")))),
    column("TIME", 7, true, 110, |job| format::measured(job, Some(format::duration_ms(job.cpu_time_ms)))),
    column("MEM", 5, true, 60, |job| format::measured(job, job.memory_bytes.map(format::size))),
    column("DUE", 4, true, 44, |job| format::or_dash(job.share_due.map(format::percent))),
    column("GOT", 4, true, 0, |job| format::or_dash(job.share_received.map(format::percent))),
    column("OUTSIDE", 7, true, 150, |job| format::or_dash(job.outside_ms.map(format::duration_ms))),
];

/// A job that received less than this fraction of its due share is highlighted.
const POOR: f64 = 0.7;

pub(super) fn draw(frame: &mut Frame, view: &mut View, theme: Theme, area: Rect) {
    let jobs = view.jobs();
    let shown: Vec<&Column> = COLUMNS.iter().filter(|column| area.width >= column.from_width).collect();
    let with_command = area.width >= COMMAND_WIDTH;
    let widths =
        shown.iter().map(|column| Constraint::Length(column.width)).chain(with_command.then_some(Constraint::Min(8)));
    let titles = shown
        .iter()
        .map(|column| cell(column.title.to_owned(), column.right))
        .chain(with_command.then(|| "COMMAND".into()));
    let rows = jobs.iter().map(|job| row(job, &shown, with_command, theme));
    let table = Table::new(rows, widths)
        .header(Row::new(titles).style(theme.strong()))
        .row_highlight_style(theme.marked())
        .column_spacing(1);
    let place = view.place(&jobs);
    let (count, empty) = (jobs.len(), jobs.is_empty());
    view.page = usize::from(area.height.saturating_sub(2)).max(1);
    let mut state = TableState::new().with_selected((!empty).then_some(place));
    frame.render_stateful_widget(table, area, &mut state);
    let below = u16::try_from(count - state.offset().min(count)).unwrap_or(u16::MAX);
    let first = area.y.saturating_add(1);
    view.listed = (first..first.saturating_add(below).min(area.bottom()), state.offset());
    if empty && area.height > 1 {
        let below = Rect { y: area.y + 1, height: 1, ..area };
        frame.render_widget(Paragraph::new(Line::styled(nothing(view), theme.faint())), below);
    }
}

fn nothing(view: &View) -> String {
    match (&view.shot, view.filter.as_str()) {
        (None, _) => String::new(),
        (Some(_), "") => "no jobs: `cosched run -- COMMAND` starts one".to_owned(),
        (Some(_), filter) => format!("no job matches `{filter}`"),
    }
}

fn row(job: &Job, shown: &[&Column], with_command: bool, theme: Theme) -> Row<'static> {
    let style = match job.state {
        JobState::Running if is_poor(job) => theme.middling(),
        JobState::Running => theme.good(),
        JobState::Suspended | JobState::Waiting => theme.middling(),
        JobState::Lost | JobState::Unknown => theme.bad(),
        JobState::Asleep | JobState::Dropped | JobState::Ended => theme.faint(),
    };
    let cells = shown.iter().map(|column| {
        let cell = cell((column.text)(job), column.right);
        if matches!(column.title, "STATE" | "GOT") { cell.style(style) } else { cell }
    });
    Row::new(cells.chain(with_command.then(|| format::command_line(&job.command).into())))
}

fn is_poor(job: &Job) -> bool {
    matches!((job.share_received, job.share_due), (Some(got), Some(due)) if got < due * POOR)
}

fn cell(text: String, right: bool) -> Cell<'static> {
    let line = Line::raw(text);
    Cell::from(if right { line.right_aligned() } else { line })
}
