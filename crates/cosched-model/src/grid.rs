//! The logical grid of a job's processes, and the shape of a problem on it.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// P processes down and Q across.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Grid {
    /// P.
    pub rows: u32,
    /// Q.
    pub columns: u32,
}

/// Why a grid or a problem is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The text is not a grid.
    #[error("`{0}` is not a grid: give PxQ, processes down and across, each from 1 to {max}, as 8x4", max = Grid::SIDE_MAX)]
    Grid(String),
    /// N is 0 or above the limit.
    #[error("N must be from 1 to {max}, not {0}", max = Problem::N_MAX)]
    Order(u32),
    /// The block is 0 or larger than the matrix.
    #[error("the block must be from 1 to N = {n}, not {block}")]
    Block {
        /// The block.
        block: u32,
        /// N.
        n: u32,
    },
}

impl Grid {
    /// The largest P and Q.
    pub const SIDE_MAX: u32 = 65_536;

    /// P × Q.
    pub fn processes(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.columns)
    }
}

impl FromStr for Grid {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Grid, ShapeError> {
        let side = |text: &str| text.parse().ok().filter(|side| (1..=Grid::SIDE_MAX).contains(side));
        let sides = text.split_once(['x', 'X']).and_then(|(rows, columns)| Some((side(rows)?, side(columns)?)));
        let (rows, columns) = sides.ok_or_else(|| ShapeError::Grid(text.to_owned()))?;
        Ok(Grid { rows, columns })
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

/// An N × N matrix in blocks on a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// N.
    pub n: u32,
    /// P × Q.
    pub grid: Grid,
    /// Rows and columns of a block: k of the matrix multiply, ω of LU.
    pub block: u32,
}

impl Problem {
    /// The largest N.
    pub const N_MAX: u32 = 10_000_000;

    /// Checks the shape.
    ///
    /// # Errors
    /// [`ShapeError`] for N or a block that is out of range.
    pub fn new(n: u32, grid: Grid, block: u32) -> Result<Problem, ShapeError> {
        if !(1..=Problem::N_MAX).contains(&n) {
            return Err(ShapeError::Order(n));
        }
        if !(1..=n).contains(&block) {
            return Err(ShapeError::Block { block, n });
        }
        Ok(Problem { n, grid, block })
    }
}

/// ⌈lg p⌉: the number of consecutive messages of a broadcast or a reduction along a binary tree over p processes.
pub(crate) fn tree_depth(processes: u32) -> f64 {
    f64::from(processes.max(1).next_power_of_two().trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_grids_and_refuses_others() {
        assert_eq!("8x4".parse(), Ok(Grid { rows: 8, columns: 4 }));
        assert_eq!("8X4".parse::<Grid>().unwrap().to_string(), "8x4");
        for text in ["", "8", "8x", "x4", "0x4", "8x0", "8x4x2", "-8x4", "8*4", "65537x1", "8 x 4"] {
            assert!(text.parse::<Grid>().unwrap_err().to_string().contains("as 8x4"), "{text}");
        }
    }

    #[test]
    fn refuses_shapes() {
        let grid = Grid { rows: 2, columns: 1 };
        assert_eq!(Problem::new(0, grid, 1), Err(ShapeError::Order(0)));
        assert_eq!(Problem::new(100, grid, 0), Err(ShapeError::Block { block: 0, n: 100 }));
        assert_eq!(Problem::new(100, grid, 101), Err(ShapeError::Block { block: 101, n: 100 }));
        assert!(Problem::new(Problem::N_MAX + 1, grid, 1).is_err());
    }

    #[test]
    fn depths_of_trees() {
        assert_eq!([1, 2, 3, 4, 5, 8, 9].map(tree_depth), [0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0]);
    }
}
