//! Tables of text that fit a terminal.

use crate::out::plain;
use std::borrow::Cow;
use tabled::Table;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Color, Padding, Style};
use unicode_truncate::UnicodeTruncateStr;
use unicode_width::UnicodeWidthStr;

/// One column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) title: Cow<'static, str>,
    /// Numbers are aligned to the right.
    pub(crate) right: bool,
    /// Narrow terminals drop the columns with the highest number first; 0 is always shown.
    pub(crate) dispensable: u8,
}

/// A column of words.
pub(crate) const fn words(title: &'static str, dispensable: u8) -> Column {
    Column { title: Cow::Borrowed(title), right: false, dispensable }
}

/// A column of numbers.
pub(crate) const fn numbers(title: &'static str, dispensable: u8) -> Column {
    Column { title: Cow::Borrowed(title), right: true, dispensable }
}

/// One entry: its text, and the escape sequence that colours it (empty: plain).
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

/// A table that is made column by column, so that each title stands beside what its cells say.
pub(crate) struct Listing<T> {
    items: Vec<T>,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl<T: Copy> Listing<T> {
    /// A row for each of these.
    pub(crate) fn of(items: impl IntoIterator<Item = T>) -> Listing<T> {
        let items: Vec<T> = items.into_iter().collect();
        Listing { rows: vec![Vec::new(); items.len()], items, columns: Vec::new() }
    }

    /// Adds a column of words.
    pub(crate) fn words<C: Into<Cell>>(self, title: &'static str, dispensable: u8, cell: impl Fn(T) -> C) -> Self {
        self.column(words(title, dispensable), cell)
    }

    /// Adds a column of numbers.
    pub(crate) fn numbers<C: Into<Cell>>(self, title: &'static str, dispensable: u8, cell: impl Fn(T) -> C) -> Self {
        self.column(numbers(title, dispensable), cell)
    }

    /// Adds a column.
    pub(crate) fn column<C: Into<Cell>>(mut self, column: Column, cell: impl Fn(T) -> C) -> Self {
        self.columns.push(column);
        self.rows.iter_mut().zip(&self.items).for_each(|(row, item)| row.push(cell(*item).into()));
        self
    }

    /// The text, as of [`render`].
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        render(&self.columns, &self.rows, width)
    }
}

/// The minimum useful width of a last column that is truncated.
const LAST_WIDTH_MIN: usize = 12;

/// Renders rows under their titles. With a width, dispensable columns are left out and the last one is truncated until
/// the table fits; without, nothing is.
pub(crate) fn render(columns: &[Column], rows: &[Vec<Cell>], width: Option<usize>) -> String {
    let titles = columns.iter().map(|column| column.title.to_string()).collect();
    let entries = rows.iter().map(|row| row.iter().map(|cell| plain(&cell.text)).collect());
    let mut lines: Vec<Vec<String>> = std::iter::once(titles).chain(entries).collect();
    let shown = width.map_or_else(|| (0..columns.len()).collect(), |width| fit(columns, &mut lines, width));
    let mut table = Table::from_iter(lines.iter().map(|line| shown.iter().map(|&column| line[column].as_str())));
    table.with(Style::empty()).with(Padding::new(0, 2, 0, 0));
    for (place, &column) in shown.iter().enumerate() {
        if columns[column].right {
            table.modify(Columns::one(place), Alignment::right());
        }
        for (line, row) in (1..).zip(rows).filter(|(_, row)| !row[column].colour.is_empty()) {
            table.modify((line, place), Color::new(row[column].colour, "\x1b[0m"));
        }
    }
    table.to_string().lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Chooses the columns that are shown; the last one is truncated to the remaining width.
fn fit(columns: &[Column], lines: &mut [Vec<String>], width: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let widths: Vec<usize> =
        shown.iter().map(|&column| lines.iter().map(|line| line[column].width()).max().unwrap_or(0)).collect();
    let last = columns.len() - 1;
    let before_last = |shown: &[usize]| -> usize {
        shown.iter().filter(|&&column| column != last).map(|&column| widths[column] + 2).sum()
    };
    while before_last(&shown) + widths[last].min(LAST_WIDTH_MIN) > width {
        let candidates = shown.iter().enumerate().filter(|&(_, &column)| columns[column].dispensable > 0);
        let Some((place, _)) = candidates.max_by_key(|&(_, &column)| columns[column].dispensable) else { break };
        shown.remove(place);
    }
    let rest = width.saturating_sub(before_last(&shown)).max(LAST_WIDTH_MIN);
    for entry in lines.iter_mut().map(|line| &mut line[last]).filter(|entry| entry.width() > rest) {
        *entry = format!("{}…", entry.unicode_truncate(rest - 1).0);
    }
    shown
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
        let coloured = Cell { text: "up".into(), colour: "\x1b[32m" };
        let row = vec!["1".into(), coloured.clone(), coloured, "x".into()];
        let text = render(&COLUMNS, &[row], None);
        assert_eq!(text, "ID  NAME  MEM  COMMAND\n 1  \x1b[32mup\x1b[0m     \x1b[32mup\x1b[0m  x\n");
    }

    #[test]
    fn wide_characters_keep_their_columns() {
        let row = |name: &str| vec!["1".into(), name.into(), "2M".into(), "计算流体力学模拟程序".into()];
        let text = render(&COLUMNS, &[row("夜间作业"), row("nightly")], None);
        assert_eq!(text.lines().nth(1), Some(" 1  夜间作业   2M  计算流体力学模拟程序"));
        assert_eq!(text.lines().nth(2), Some(" 1  nightly    2M  计算流体力学模拟程序"));
        let text = render(&COLUMNS, &[row("夜间作业")], Some(33));
        assert_eq!(text.lines().nth(1), Some(" 1  夜间作业   2M  计算流体力学…"), "{text}");
        assert!(text.lines().all(|line| line.width() <= 33));
    }
}
