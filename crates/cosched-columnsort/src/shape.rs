//! The matrix: N records as `rows` × `columns`, in column-major order.
//!
//! Leighton (1985): eight steps sort the matrix if `columns` divides `rows` and `rows` ≥ 2 (`columns` − 1)². A matrix that
//! has more places than there are records is filled up with places that count as +∞; they are at the end of every sorted
//! column, how many is known without looking, and they are never stored, sent or written.
//!
//! On P processes column j belongs to process j mod P, so P has to divide `columns`.

use std::fmt;

/// A matrix for so many records on so many processes. Only [`Shape::new`] makes one, so each of them sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Shape {
    /// Records to sort.
    pub records: u64,
    /// Records in a column (r).
    pub rows: u64,
    /// Columns (s).
    pub columns: u64,
    /// Processes (P).
    pub processes: u64,
}

/// Why a matrix would not sort, and the nearest ones that do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadShape {
    /// Rows, columns and records that were asked for.
    pub asked: (u64, u64, u64),
    /// What is wrong.
    pub why: Wrong,
    /// Rows and columns of matrices that hold the records and do sort, the nearest first.
    pub nearest: Vec<(u64, u64)>,
}

/// The condition that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// No rows or no columns.
    Empty,
    /// The columns do not divide the rows.
    Division,
    /// Fewer rows than 2 (columns − 1)².
    TooFlat {
        /// How many rows these columns need.
        rows_min: u64,
    },
    /// The processes do not divide the columns.
    Processes(u64),
    /// Fewer places than records.
    TooSmall,
}

/// The fewest rows that so many columns allow: 2 (columns − 1)², rounded up to a multiple of the columns.
pub fn rows_min(columns: u64) -> u64 {
    let square = columns.saturating_sub(1).saturating_mul(columns.saturating_sub(1)).saturating_mul(2);
    square.max(1).div_ceil(columns).saturating_mul(columns)
}

/// The fewest rows with which so many columns hold the records and sort them.
pub fn rows_for(records: u64, columns: u64) -> u64 {
    let full = records.div_ceil(columns).div_ceil(columns).max(1) * columns;
    full.max(rows_min(columns))
}

impl Shape {
    /// A matrix, if it sorts.
    ///
    /// # Errors
    /// The condition that does not hold, with the nearest matrices for which all hold.
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

    /// Records of a block: the part of a column that goes to one other column in steps 2 and 4 (r / s).
    pub fn block(&self) -> u64 {
        self.rows / self.columns
    }

    /// Records by which step 6 shifts: half a column, rounded down. Half rounded down is enough: what is not yet in order
    /// after step 5 spans at most (s − 1)² ≤ ⌊r / 2⌋ places.
    pub fn half(&self) -> u64 {
        self.rows / 2
    }

    /// Columns of each process.
    pub fn columns_each(&self) -> u64 {
        self.columns / self.processes
    }
}

/// Matrices near the one asked for: the same columns with enough rows; the same rows with fewer columns; and the least that
/// holds the records at all.
fn nearest(records: u64, rows: u64, columns: u64, processes: u64) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut add = |rows: u64, columns: u64| {
        let fits = columns > 0 && rows.checked_mul(columns).is_none_or(|places| places >= records);
        if fits && !found.contains(&(rows, columns)) {
            found.push((rows, columns));
        }
    };
    // Columns may not be even one: round them to the processes, both ways.
    for columns in [columns.next_multiple_of(processes), columns / processes * processes] {
        if columns > 0 {
            add(rows_for(records, columns).max(rows / columns * columns).max(rows_min(columns)), columns);
        }
    }
    // Fewer columns, with as many rows as were asked for (rounded up to a multiple).
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

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Empty => write!(f, "a matrix has at least one row and one column"),
            Wrong::Division => write!(f, "the columns have to divide the rows"),
            Wrong::TooFlat { rows_min } => {
                write!(f, "rows >= 2 (columns - 1)^2 does not hold: so many columns need {rows_min} rows or more")
            }
            Wrong::Processes(processes) => {
                write!(
                    f,
                    "column j belongs to process j mod P, so the {processes} processes have to divide the columns"
                )
            }
            Wrong::TooSmall => write!(f, "it has fewer places than there are records"),
        }
    }
}

impl fmt::Display for BadShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, columns, records) = self.asked;
        write!(f, "{rows} rows x {columns} columns does not sort {records} records: {}", self.why)
    }
}

impl std::error::Error for BadShape {}

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
        /// Whatever is asked for: either it is a shape, or each of the suggestions is.
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
