//! Matrix multiply: Strazdins & Uhlmann 2004, section 5.2, equation 8.
//!
//! C ← A A + C by rank-k updates: before each update, the next k × N and N × k segments of A are distributed down the
//! columns and along the rows of the grid by a ring-shift all-gather, with P − 1 and Q − 1 steps in which each process
//! sends and receives what it holds. So in each step every process receives N²/(PQ) words, summed over all updates.

use crate::cost::{Cost, Term};
use crate::grid::Problem;
use crate::machine::Machine;

/// The paper's k.
pub const BLOCK: u32 = 128;

/// t_1 of the multiplication. `startups`: includes the startups of the messages, which equation 8 omits because they
/// are less than 1 %.
pub fn cost(machine: &Machine, problem: &Problem, startups: bool) -> Cost {
    let (n, block) = (f64::from(problem.n), f64::from(problem.block));
    let processes = problem.grid.processes();
    let (down, across) = (f64::from(problem.grid.rows - 1), f64::from(problem.grid.columns - 1));
    let (link, betas) = machine.links_of(processes, machine.programs.matmul);
    let words = n * n / processes as f64;
    let mut terms = vec![
        Term::compute("multiply", 2.0 * n * words * machine.compute.flop_ns_level3 * 1e-9),
        Term::volume("vertical all-gather", words * down, betas.vertical_us, betas.cpu_us),
        Term::volume("horizontal all-gather", words * across, betas.horizontal_us, betas.cpu_us),
    ];
    if startups {
        let updates = (n / block).ceil();
        terms.push(Term::startup("vertical startups", &link, updates * down));
        terms.push(Term::startup("horizontal startups", &link, updates * across));
    }
    Cost { terms }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::shipped;

    #[test]
    fn is_equation_8() {
        let bunyip = shipped("bunyip").unwrap();
        let problem = Problem::new(4000, "8x4".parse().unwrap(), BLOCK).unwrap();
        let n = 4000.0_f64;
        let by_hand = 2.0 * n.powi(3) / 32.0 / 403e6 + n * n / 32.0 * (7.0 * 1.73e-6 + 3.0 * 1.03e-6);
        assert!((cost(&bunyip, &problem, false).time_s() - by_hand).abs() < 1e-9);
        let whole = cost(&bunyip, &problem, true);
        assert_eq!(whole.messages(), 32.0 * 10.0);
        assert!(whole.time_s() > by_hand && whole.time_s() < by_hand * 1.01, "startups are less than 1 %");
    }

    #[test]
    fn one_process_sends_nothing() {
        let problem = Problem::new(500, "1x1".parse().unwrap(), BLOCK).unwrap();
        let alone = cost(&shipped("bunyip").unwrap(), &problem, true);
        assert_eq!((alone.messages(), alone.words()), (0.0, 0.0));
        assert_eq!(alone.time_s(), alone.cpu_s());
    }
}
