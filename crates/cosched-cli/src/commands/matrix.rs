//! The Ousterhout matrix as text, the current row marked.

use crate::table::{Cell, Column, numbers, render, words};
use cosched_api::{Matrix, Row};
use std::iter::once;

/// One line of titles and one line for each row; empty if there are no rows.
pub(crate) fn text(matrix: &Matrix) -> String {
    if matrix.rows.is_empty() {
        return String::new();
    }
    let titles = matrix.columns.iter().map(|title| Column { title: title.clone().into(), ..numbers("", 0) });
    let columns: Vec<Column> = once(words("", 0)).chain(titles).chain([words("slots", 0)]).collect();
    let index_width = matrix.rows.iter().map(|row| row.index.to_string().len()).max().unwrap_or(1);
    let line = |row: &Row| {
        let mark = if matrix.current_row == Some(row.index) { '>' } else { ' ' };
        let cells = row.cells.iter().map(|cell| cell.map_or_else(|| "·".to_owned(), |id| id.to_string()));
        let all = once(format!("{mark} row {:>index_width$}", row.index)).chain(cells).chain([slots_and_also(row)]);
        all.map(Cell::from).collect()
    };
    render(&columns, &matrix.rows.iter().map(line).collect::<Vec<_>>(), None)
}

fn slots_and_also(row: &Row) -> String {
    let also: Vec<String> = row.also.iter().map(ToString::to_string).collect();
    if also.is_empty() { row.slots.to_string() } else { format!("{:<5}  also {}", row.slots, also.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_the_current_row_and_aligns() {
        let row = |index, cells: [Option<u64>; 2], also: &[u64]| Row {
            index,
            cells: cells.to_vec(),
            also: also.to_vec(),
            slots: 1,
        };
        let matrix = Matrix {
            columns: vec!["cpu0".into(), "cpu1".into()],
            rows: vec![row(0, [Some(7), Some(7)], &[]), row(1, [Some(12345), None], &[9])],
            text: String::new(),
            slot: 17,
            current_row: Some(1),
            current: vec![12345],
            cycle_slots: 2,
            turns: vec![0, 1],
        };
        assert_eq!(
            text(&matrix),
            "          cpu0  cpu1  slots\n  row 0      7     7  1\n> row 1  12345     ·  1      also 9\n"
        );
        assert_eq!(text(&Matrix { rows: Vec::new(), ..matrix }), "");
    }
}
