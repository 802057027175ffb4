//! LU factorisation with partial pivoting and storage blocking, the main part of the paper's Linpack.
//!
//! Strazdins & Uhlmann 2004 give the orders of its costs, in section 4.1: startups Θ(N lg P), volume Θ(N² lg P / Q),
//! computation Θ(N³/(PQ)), and their constants elsewhere. docs/model.md derives each term below. The matrix is
//! distributed in blocks of ω; storage blocking means that a panel of ω columns is factored by the one column of the grid
//! that stores it.

use crate::cost::{Cost, Term};
use crate::grid::{Problem, tree_depth};
use crate::machine::Machine;

/// The paper's ω.
pub const BLOCK: u32 = 60;

/// t_1 of the factorisation.
pub fn cost(machine: &Machine, problem: &Problem) -> Cost {
    let (n, block) = (f64::from(problem.n), f64::from(problem.block));
    let (rows, columns) = (problem.grid.rows, problem.grid.columns);
    let (deep, wide) = (tree_depth(rows), tree_depth(columns));
    let (link, betas) = machine.links_of(problem.grid.processes(), machine.programs.lu);
    // The probability that the pivot's row belongs to another process.
    let elsewhere = 1.0 - 1.0 / f64::from(rows);
    let sums = Sums::of(problem);
    let (level2, level3) = (machine.compute.level2_ns() * 1e-9, machine.compute.flop_ns_level3 * 1e-9);
    let even = sums.even;
    let imbalance = (sums.largest.update + sums.largest.solve - even.update - even.solve) * level3
        + (sums.largest.panel - even.panel) * level2;
    let vertical = |name, words: f64| Term::volume(name, words, betas.vertical_us, betas.cpu_us);
    let terms = vec![
        Term::compute("update (level 3)", even.update * level3),
        Term::compute("triangular solve", even.solve * level3),
        Term::compute("panel (level 2)", even.panel * level2),
        Term::compute("imbalance", imbalance),
        Term::startup("pivot search", &link, n * deep),
        Term::startup("pivot row startups", &link, n * deep),
        Term::startup("row exchange startups", &link, n * 3.0 * elsewhere),
        Term::startup("panel broadcast startups", &link, sums.panels * wide),
        Term::startup("U broadcast startups", &link, sums.panels * deep),
        vertical("pivot rows", n * block * deep),
        vertical("row exchanges", n * elsewhere * (block + 2.0 * (n - block) / f64::from(columns))),
        Term::volume("panel broadcasts", sums.panel_words * wide, betas.horizontal_us, betas.cpu_us),
        vertical("U broadcasts", sums.upper_words * deep),
    ];
    Cost { terms }
}

/// Floating point operations of one process.
#[derive(Clone, Copy, Default)]
struct Flops {
    update: f64,
    solve: f64,
    panel: f64,
}

/// Sums over the panels.
#[derive(Default)]
struct Sums {
    panels: f64,
    /// If every process had an equal part of each remaining matrix.
    even: Flops,
    /// For the process with the most blocks in each step, for which the others wait.
    largest: Flops,
    /// The number of words of the panels that a process of the column has.
    panel_words: f64,
    /// The number of words of the rows of U that a process of the row has.
    upper_words: f64,
}

impl Sums {
    fn of(problem: &Problem) -> Sums {
        let (rows, columns) = (problem.grid.rows, problem.grid.columns);
        let mut sums = Sums::default();
        let mut at = 0;
        while at < problem.n {
            let block = problem.block.min(problem.n - at);
            let (height, rest) = (problem.n - at, problem.n - at - block);
            let width = f64::from(block);
            let even = |length: u32, parts: u32| f64::from(length) / f64::from(parts);
            sums.panels += 1.0;
            sums.even.add(width, even(height, rows), even(rest, rows), even(rest, columns));
            let most = |length, parts| f64::from(most_owned(length, problem.block, parts));
            sums.largest.add(width, most(height, rows), most(rest, rows), most(rest, columns));
            sums.panel_words += width * even(height, rows);
            sums.upper_words += width * even(rest, columns);
            at += block;
        }
        sums
    }
}

impl Flops {
    /// Adds one panel: `width` columns, of which a process has `height` rows; right of and below it, `below` × `right`.
    fn add(&mut self, width: f64, height: f64, below: f64, right: f64) {
        self.update += 2.0 * width * below * right;
        self.solve += width * width * right;
        self.panel += width * width * height;
    }
}

/// The largest part that one of `parts` processes has of `length` rows (or columns) distributed in blocks.
fn most_owned(length: u32, block: u32, parts: u32) -> u32 {
    let blocks = length.div_ceil(block);
    (blocks.div_ceil(parts) * block).min(length)
}

#[cfg(test)]
#[path = "lu_tests.rs"]
mod tests;
