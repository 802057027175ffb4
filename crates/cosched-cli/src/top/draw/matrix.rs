//! The Ousterhout matrix; the row that runs now is marked.

use super::Theme;
use crate::top::view::View;
use cosched_api::{Matrix, Row};
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

/// The number of lines that it needs: a title, and one line per row.
pub(super) fn wanted(view: &View) -> u16 {
    let rows = view.shot.as_ref().map_or(0, |shot| shot.status.matrix.rows.len());
    1 + u16::try_from(rows).unwrap_or(u16::MAX)
}

pub(super) fn paragraph(view: &View, theme: Theme, unix_ns: u128, area: Rect) -> Paragraph<'static> {
    let Some(shot) = &view.shot else { return Paragraph::default() };
    let matrix = &shot.status.matrix;
    if matrix.rows.is_empty() {
        return Paragraph::new(Line::styled("matrix: empty, no gang has slots", theme.faint()));
    }
    let current = view.row_at(unix_ns);
    let room = usize::from(area.height.max(2)) - 1;
    let shown = window(matrix, current, room);
    let cells: Vec<Vec<String>> = shown.iter().map(cells).collect();
    let widths = widths(matrix, &cells);
    // Row, cells, slots: `>12  ` before and `  3 slots` after.
    let full = 6 + widths.iter().map(|width| width + 1).sum::<usize>() + 18 <= usize::from(area.width);
    let title = if full { titles(matrix, &widths) } else { format!("matrix  {} CPUs", matrix.columns.len()) };
    let more = matrix.rows.len() - shown.len();
    let title = if more > 0 { format!("{title}  ({more} more rows)") } else { title };
    let mut lines = vec![Line::styled(title, theme.strong())];
    for (row, cells) in shown.iter().zip(&cells) {
        let runs = current == Some(row.index);
        let text = if full { aligned(cells, &widths) } else { pieces(cells) };
        let line = format!("{}{:>3}  {text}  {}", if runs { '>' } else { ' ' }, row.index, slots(row));
        lines.push(if runs { Line::styled(line, theme.marked()) } else { Line::raw(line) });
    }
    Paragraph::new(lines)
}

/// The rows that fit: the first ones, or those that end with the current one.
fn window(matrix: &Matrix, current: Option<u32>, room: usize) -> &[Row] {
    let place = matrix.rows.iter().position(|row| Some(row.index) == current).unwrap_or(0);
    let first = (place + 1).saturating_sub(room);
    &matrix.rows[first..(first + room).min(matrix.rows.len())]
}

fn cells(row: &Row) -> Vec<String> {
    row.cells.iter().map(|cell| cell.map_or_else(|| "·".to_owned(), |id| id.to_string())).collect()
}

fn widths(matrix: &Matrix, cells: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| {
        let entries = cells.iter().filter_map(|row| row.get(column)).map(|entry| entry.chars().count());
        entries.chain([name(matrix, column).chars().count()]).max().unwrap_or(1)
    };
    (0..matrix.columns.len()).map(width).collect()
}

/// `cpu12` as `12`, because there are many side by side.
fn name(matrix: &Matrix, column: usize) -> &str {
    matrix.columns.get(column).map_or("", |name| name.strip_prefix("cpu").unwrap_or(name))
}

fn titles(matrix: &Matrix, widths: &[usize]) -> String {
    let names = widths.iter().enumerate().map(|(column, width)| format!("{:>width$}", name(matrix, column)));
    format!(" CPU  {}  slots", names.collect::<Vec<_>>().join(" "))
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}")).collect::<Vec<_>>().join(" ")
}

/// A summary for when there are too many columns: `7×64 ·×2`.
fn pieces(cells: &[String]) -> String {
    let runs = cells.chunk_by(|a, b| a == b);
    runs.map(|run| format!("{}×{}", run[0], run.len())).collect::<Vec<_>>().join(" ")
}

fn slots(row: &Row) -> String {
    let also: Vec<String> = row.also.iter().map(ToString::to_string).collect();
    if also.is_empty() { row.slots.to_string() } else { format!("{} also {}", row.slots, also.join(" ")) }
}
