//! The matrix: N records as `rows` × `columns`, in column-major order.
//!
//! Leighton (1985): eight steps sort the matrix if `columns` divides `rows` and `rows` ≥ 2 (`columns` − 1)². If a matrix
//! has more places than there are records, the remaining places count as +∞; they are at the end of every sorted column,
//! their number is known in advance, and they are never stored, sent or written.
//!
//! On P processes column j belongs to process j mod P, so P has to divide `columns`.

use std::fmt;

/// A matrix for a number of records on a number of processes. Only [`Shape::new`] creates one, so every instance satisfies
/// the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Shape {
    /// The number of records to sort.
    pub records: u64,
    /// The number of records in a column (r).
    pub rows: u64,
    /// The number of columns (s).
    pub columns: u64,
    /// The number of processes (P).
    pub processes: u64,
}

/// Why a matrix would not sort, and the nearest ones that do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} rows x {} columns does not sort {} records: {why}", asked.0, asked.1, asked.2)]
pub struct BadShape {
    /// The requested rows, columns and records.
    pub asked: (u64, u64, u64),
    /// The condition that is violated.
    pub why: Wrong,
    /// Rows and columns of matrices that hold the records and satisfy all conditions, the nearest first.
    pub nearest: Vec<(u64, u64)>,
}

/// The condition that is violated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// There are no rows or no columns.
    #[error("a matrix has at least one row and one column")]
    Empty,
    /// The number of columns does not divide the number of rows.
    #[error("the columns have to divide the rows")]
    Division,
    /// Fewer rows than 2 (columns − 1)².
    #[error("rows >= 2 (columns - 1)^2 does not hold: this number of columns needs {rows_min} rows or more")]
    TooFlat {
        /// The number of rows that this number of columns needs.
        rows_min: u64,
    },
    /// The number of processes does not divide the number of columns.
    #[error("column j belongs to process j mod P, so the {0} processes have to divide the columns")]
    Processes(u64),
    /// There are fewer places than records.
    #[error("it has fewer places than there are records")]
    TooSmall,
}

/// The minimum number of rows for a number of columns: 2 (columns − 1)², rounded up to a multiple of the columns.
pub fn rows_min(columns: u64) -> u64 {
    let square = columns.saturating_sub(1).saturating_mul(columns.saturating_sub(1)).saturating_mul(2);
    square.max(1).div_ceil(columns).saturating_mul(columns)
}

/// The minimum number of rows with which this number of columns holds the records and sorts them.
pub fn rows_for(records: u64, columns: u64) -> u64 {
    let full = records.div_ceil(columns).div_ceil(columns).max(1) * columns;
    full.max(rows_min(columns))
}

impl Shape {
    /// A matrix, if it satisfies the conditions.
    ///
    /// # Errors
    /// The condition that is violated, with the nearest matrices that satisfy all of them.
    pub fn new(records: u64, rows: u64, columns: u64, processes: u64) -> Result<Shape, BadShape> {
        let wrong = if rows == 0 || columns == 0 {
            Some(Wrong::Empty)
        } else if processes == 0 || !columns.is_multiple_of(processes) {
            Some(Wrong::Processes(processes))
        } else if !rows.is_multiple_of(columns) {
            Some(Wrong::Division)
        } else if rows < rows_min(columns) {
            Some(Wrong::TooFlat { rows_min: rows_min(columns) })
        } else if rows.checked_mul(columns).is_some_and(|places| places < records) {
            Some(Wrong::TooSmall)
        } else {
            None
        };
        match wrong {
            None => Ok(Shape { records, rows, columns, processes }),
            Some(why) => {
                let nearest = nearest(records, rows.max(1), columns.max(1), processes.max(1));
                Err(BadShape { asked: (rows, columns, records), why, nearest })
            }
        }
    }

    /// The number of records of a block: the part of a column that goes to one other column in steps 2 and 4 (r / s).
    pub fn block(&self) -> u64 {
        self.rows / self.columns
    }

    /// The number of records by which step 6 shifts: half a column, rounded down. Rounding down is enough: what is not yet
    /// in order after step 5 spans at most (s − 1)² ≤ ⌊r / 2⌋ places.
    pub fn half(&self) -> u64 {
        self.rows / 2
    }

    /// The number of columns of each process.
    pub fn columns_each(&self) -> u64 {
        self.columns / self.processes
    }
}

/// Matrices near the requested one: the same columns with enough rows; the same rows with fewer columns; and the smallest
/// that holds the records.
fn nearest(records: u64, rows: u64, columns: u64, processes: u64) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut add = |rows: u64, columns: u64| {
        let fits = columns > 0 && rows.checked_mul(columns).is_none_or(|places| places >= records);
        if fits && !found.contains(&(rows, columns)) {
            found.push((rows, columns));
        }
    };
    // The number of columns may not be a multiple of the processes: round it both up and down.
    for columns in [columns.next_multiple_of(processes), columns / processes * processes] {
        if columns > 0 {
            add(rows_for(records, columns).max(rows / columns * columns).max(rows_min(columns)), columns);
        }
    }
    // Fewer columns, with the requested number of rows (rounded up to a multiple).
    let flattest = (1..=columns / processes).rev().map(|each| each * processes).find(|fewer| {
        let rows = rows.next_multiple_of(*fewer);
        rows >= rows_min(*fewer) && rows.saturating_mul(*fewer) >= records
    });
    if let Some(fewer) = flattest {
        add(rows.next_multiple_of(fewer), fewer);
    }
    found
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows x {} columns", self.rows, self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn leightons_conditions() {
        assert!(Shape::new(24, 8, 3, 1).is_err());
        assert!(Shape::new(27, 9, 3, 1).is_ok());
        assert_eq!(Shape::new(24, 6, 3, 1).unwrap_err().why, Wrong::TooFlat { rows_min: 9 });
        assert_eq!(Shape::new(24, 10, 3, 1).unwrap_err().why, Wrong::Division);
        assert_eq!(Shape::new(28, 9, 3, 1).unwrap_err().why, Wrong::TooSmall);
        assert_eq!(Shape::new(27, 9, 3, 2).unwrap_err().why, Wrong::Processes(2));
        assert_eq!(Shape::new(0, 0, 3, 1).unwrap_err().why, Wrong::Empty);
        assert!(Shape::new(0, 1, 1, 1).is_ok());
    }

    #[test]
    fn a_flat_matrix_is_told_what_works() {
        let bad = Shape::new(1_000_000, 10_000, 100, 1).unwrap_err();
        assert_eq!(bad.why, Wrong::TooFlat { rows_min: 19_700 });
        assert_eq!(bad.nearest[0], (19_700, 100));
        assert!(bad.to_string().contains("19700 rows or more"), "{bad}");
    }

    proptest! {
        /// For any request: either it is a valid shape, or each of the suggestions is.
        #[test]
        fn suggestions_work(records in 0u64..100_000, rows in 0u64..5_000, columns in 0u64..80, processes in 1u64..5) {
            match Shape::new(records, rows, columns, processes) {
                Ok(shape) => {
                    prop_assert!(shape.rows * shape.columns >= records);
                    prop_assert!(shape.rows >= 2 * (shape.columns - 1) * (shape.columns - 1));
                }
                Err(bad) => {
                    prop_assert!(!bad.nearest.is_empty());
                    for (rows, columns) in bad.nearest {
                        prop_assert!(Shape::new(records, rows, columns, processes).is_ok(), "{rows} x {columns}");
                    }
                }
            }
        }

        #[test]
        fn the_fewest_rows_are_a_shape_and_fewer_are_not(records in 1u64..1_000_000, columns in 1u64..60) {
            let rows = rows_for(records, columns);
            prop_assert!(Shape::new(records, rows, columns, 1).is_ok());
            prop_assert!(rows == columns || Shape::new(records, rows - columns, columns, 1).is_err());
        }
    }
}
