//! Tables of text that fit a terminal.

use crate::out::plain;

/// One column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Numbers stand at the right.
    pub(crate) right: bool,
    /// Narrow terminals lose the columns with the highest number first; 0 stays.
    pub(crate) dispensable: u8,
}

/// A column of words.
pub(crate) const fn words(title: &'static str, dispensable: u8) -> Column {
    Column { title, right: false, dispensable }
}

/// A column of numbers.
pub(crate) const fn numbers(title: &'static str, dispensable: u8) -> Column {
    Column { title, right: true, dispensable }
}

/// One entry: its text, and the escape sequence that colours it (none: plain).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) colour: &'static str,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), colour: "" }
    }
}

/// The smallest useful width of a last column that is cut.
const LAST_WIDTH_MIN: usize = 12;

/// Renders rows under their titles. With a width, dispensable columns are left out and the last one is cut until it
/// fits; without, nothing is.
pub(crate) fn render(columns: &[Column], rows: &[Vec<Cell>], width: Option<usize>) -> String {
    let safe = |cell: &Cell| Cell { text: plain(&cell.text), colour: cell.colour };
    let rows: Vec<Vec<Cell>> = rows.iter().map(|row| row.iter().map(safe).collect()).collect();
    let full = |column: usize| {
        let cells = rows.iter().map(|row| row[column].text.chars().count());
        cells.max().unwrap_or(0).max(columns[column].title.chars().count())
    };
    let mut widths: Vec<usize> = (0..columns.len()).map(full).collect();
    let shown = choose(columns, &mut widths, width);
    let mut text = String::new();
    let titles: Vec<Cell> = columns.iter().map(|column| column.title.into()).collect();
    for row in std::iter::once(&titles).chain(&rows) {
        let mut line = String::new();
        for (place, &column) in shown.iter().enumerate() {
            let last = place + 1 == shown.len();
            line.push_str(if place == 0 { "" } else { "  " });
            line.push_str(&entry(&row[column], widths[column], columns[column].right, last));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Which columns are shown; the last one's width is reduced to what is left.
fn choose(columns: &[Column], widths: &mut [usize], width: Option<usize>) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let (Some(width), Some(last)) = (width, columns.len().checked_sub(1)) else { return shown };
    let before_last = |shown: &[usize], widths: &[usize]| -> usize {
        shown.iter().filter(|&&column| column != last).map(|&column| widths[column] + 2).sum()
    };
    while before_last(&shown, widths) + widths[last].min(LAST_WIDTH_MIN) > width {
        let candidates = shown.iter().enumerate().filter(|&(_, &column)| columns[column].dispensable > 0);
        let Some((place, _)) = candidates.max_by_key(|&(_, &column)| columns[column].dispensable) else { break };
        shown.remove(place);
    }
    let rest = width.saturating_sub(before_last(&shown, widths));
    widths[last] = widths[last].min(rest.max(LAST_WIDTH_MIN));
    shown
}

fn entry(cell: &Cell, width: usize, right: bool, last: bool) -> String {
    let length = cell.text.chars().count();
    let cut: String =
        if length > width { cell.text.chars().take(width - 1).chain(['…']).collect() } else { cell.text.clone() };
    let padding = " ".repeat(if last && !right { 0 } else { width.saturating_sub(length) });
    let coloured = if cell.colour.is_empty() { cut } else { format!("{}{cut}\x1b[0m", cell.colour) };
    if right { padding + &coloured } else { coloured + &padding }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [numbers("ID", 0), words("NAME", 0), numbers("MEM", 1), words("COMMAND", 0)];

    fn rows() -> Vec<Vec<Cell>> {
        vec![
            vec!["7".into(), "a".into(), "12M".into(), "mpirun -n 2 ./a.out".into()],
            vec!["12".into(), "longer".into(), "1.5G".into(), "true".into()],
        ]
    }

    #[test]
    fn aligns_and_leaves_no_trailing_blanks() {
        let text = render(&COLUMNS, &rows(), None);
        assert_eq!(text, "ID  NAME     MEM  COMMAND\n 7  a        12M  mpirun -n 2 ./a.out\n12  longer  1.5G  true\n");
    }

    #[test]
    fn cuts_the_last_column_then_drops_dispensable_ones() {
        let text = render(&COLUMNS, &rows(), Some(32));
        assert!(text.contains(" 7  a        12M  mpirun -n 2 .…\n"), "{text}");
        let text = render(&COLUMNS, &rows(), Some(26));
        assert_eq!(text, "ID  NAME    COMMAND\n 7  a       mpirun -n 2 .…\n12  longer  true\n");
        for width in 1..60 {
            let widest = render(&COLUMNS, &rows(), Some(width)).lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= width.max(24), "{width}");
        }
    }

    #[test]
    fn an_entry_cannot_forge_a_line_or_a_colour() {
        let row = vec!["1".into(), "x\n 2  root".into(), "\x1b[8m".into(), "\x1b]0;t\x07".into()];
        let text = render(&COLUMNS, &[row], None);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\x1b') && text.contains("x\\n 2  root"), "{text}");
    }

    #[test]
    fn colours_do_not_count() {
        let cell = Cell { text: "running".into(), colour: "\x1b[32m" };
        assert_eq!(entry(&cell, 9, false, false), "\x1b[32mrunning\x1b[0m  ");
        assert_eq!(entry(&cell, 9, true, false), "  \x1b[32mrunning\x1b[0m");
    }
}
