//! The layout of the screen.

mod header;
mod history;
mod jobs;
mod machine;
mod matrix;
mod page;
mod popup;

use super::view::{Mode, View};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

/// From this width on, machine and matrix are side by side.
const WIDE: u16 = 120;
/// The minimum number of lines of the list of jobs, including its titles.
const JOBS_LINES_MIN: u16 = 5;

/// Draws everything; `unix_ns` is the present time.
pub(super) fn draw(frame: &mut Frame, view: &mut View, unix_ns: u128) {
    let theme = Theme { colour: view.colour };
    let area = frame.area();
    let [head, top, list, foot] = split(view, area);
    frame.render_widget(header::line(view, theme, unix_ns, head.width), head);
    let (machine_area, matrix_area) = side_by_side(view, top);
    frame.render_widget(machine::paragraph(view, theme, unix_ns, machine_area), machine_area);
    frame.render_widget(matrix::paragraph(view, theme, unix_ns, matrix_area), matrix_area);
    jobs::draw(frame, view, theme, list);
    frame.render_widget(footer(view, theme, foot.width), foot);
    if let Mode::Page(id) = view.mode {
        let above = Rect { height: area.height.saturating_sub(1), ..area };
        page::draw(frame, view, id, theme, unix_ns, above);
    }
    popup::draw(frame, view, theme, area);
}

/// The number of lines that the whole picture needs.
pub(super) fn height(view: &View, width: u16) -> u16 {
    let jobs = u16::try_from(view.jobs().len()).unwrap_or(u16::MAX / 2);
    2 + wanted_top(view, width) + (1 + jobs).max(JOBS_LINES_MIN)
}

/// Headline, machine with matrix, jobs, foot.
fn split(view: &View, area: Rect) -> [Rect; 4] {
    let top = wanted_top(view, area.width).min(area.height.saturating_sub(2 + JOBS_LINES_MIN));
    Layout::vertical([Constraint::Length(1), Constraint::Length(top), Constraint::Min(0), Constraint::Length(1)])
        .areas(area)
}

fn wanted_top(view: &View, width: u16) -> u16 {
    let matrix = matrix::wanted(view);
    if width >= WIDE {
        return machine::wanted(view, width / 2).max(matrix);
    }
    machine::wanted(view, width) + matrix
}

/// The areas of the machine and of the matrix.
fn side_by_side(view: &View, area: Rect) -> (Rect, Rect) {
    if area.width >= WIDE {
        let [left, right] = Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(area);
        return (left, right);
    }
    // If there is less room than both want, the matrix gets at most half.
    let machine =
        machine::wanted(view, area.width).min(area.height.saturating_sub(matrix::wanted(view).min(area.height / 2)));
    let [above, below] = Layout::vertical([Constraint::Length(machine), Constraint::Min(0)]).areas(area);
    (above, below)
}

/// The last line: problems take precedence over messages, and messages over the keys.
fn footer(view: &View, theme: Theme, width: u16) -> Line<'static> {
    if let Mode::Filter = view.mode {
        return Line::styled(format!("filter: {}_   Enter keeps it, Esc shows all jobs", view.filter), theme.strong());
    }
    if let Some(why) = &view.trouble {
        return Line::styled(format!("retrying: {why}"), theme.bad());
    }
    match &view.message {
        Some(message) if message.good => Line::styled(message.text.clone(), theme.good()),
        Some(message) => Line::styled(message.text.clone(), theme.bad()),
        None if view.still => Line::default(),
        None => Line::styled(keys(view, width), theme.faint()),
    }
}

/// As many keys as fit, the help in any case.
fn keys(view: &View, width: u16) -> String {
    let keys: &[&str] = match view.mode {
        Mode::Page(_) => &["Esc list", "↑↓ scroll", "c class", "s suspend", "r resume", "k kill", "q quit"],
        _ => &[
            "h help",
            "q quit",
            "↑↓ job",
            "⏎ page",
            "c class",
            "s suspend",
            "r resume",
            "k kill",
            "/ filter",
            "o sort",
        ],
    };
    let mut text = String::new();
    for key in keys {
        let more = format!("{text}{}{key}", if text.is_empty() { "" } else { "  " });
        if more.chars().count() > usize::from(width) && !text.is_empty() {
            break;
        }
        text = more;
    }
    text
}

/// Colours, or the same without.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    colour: bool,
}

impl Theme {
    fn tint(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) fn good(self) -> Style {
        self.tint(Color::Green)
    }

    pub(super) fn middling(self) -> Style {
        self.tint(Color::Yellow)
    }

    /// Must be visible without colours, too.
    pub(super) fn bad(self) -> Style {
        self.tint(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// For the selected job and the current row.
    pub(super) fn marked(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
