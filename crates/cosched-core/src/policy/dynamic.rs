//! Dynamic coscheduling: how a process waits × what a node does when a message arrives.
//!
//! Problem: without slots there is no guarantee that the partner of a process runs. But messages are evidence: one that arrived
//! shows that its sender ran a moment ago, one that does not come shows that its sender does not run.
//!
//! Rule. *Waiting*: a process spins for its message (busy wait), or spins for the spin time and then blocks (spin block)
//! or lowers itself below all others and raises one that can use the CPU (spin yield). *On arrival*: nothing; an
//! interrupt raises the receiver if it does not run (demand-based coscheduling, DCS); or the node periodically examines
//! its processes' endpoints and raises one (periodic boost, PB). The product of the two is the design space.
//!
//! Source: Zhang, Sivasubramaniam, Moreira, Franke 2000, §2.4 and Table 1. Units: levels are 0 (low) to 59 (high).

/// How a process waits for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// It spins until the message arrives.
    Busy,
    /// It spins for the spin time, then blocks.
    SpinBlock,
    /// It spins for the spin time, then yields and continues to spin.
    SpinYield,
}

/// What a node does when a message arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnArrival {
    /// Nothing.
    None,
    /// An interrupt raises the receiver, unless it runs (DCS).
    Interrupt,
    /// A periodic search of the endpoints raises a candidate (PB).
    Periodic,
}

/// The state of a process as observed from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Asleep: for I/O, or blocked in a receive. Never a candidate.
    Blocked,
    /// Can run, and is not in a receive.
    Computing,
    /// Can run, and is in a receive whose message has not arrived.
    Waiting,
    /// Can run, and is in a receive whose message has arrived.
    Served,
}

/// The order in which [`boost_candidate`] searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Heuristic {
    /// From the current process on: the first that is served, otherwise the first that computes (Zhang et al. §2.4.4).
    #[default]
    Paper,
    /// As `Paper`, but from the process after the current one: the others come first.
    OthersFirst,
    /// Only processes that are served.
    ServedOnly,
    /// From the current process on: the first that computes, otherwise the first that is served.
    ComputingFirst,
}

/// The result of a search of the endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The index of the process to boost in the node's table.
    pub candidate: Option<usize>,
    /// The number of endpoints examined in the first pass; each costs time.
    pub looked_at: u32,
}

/// The process that a node should boost.
///
/// `table(i)` is the state of process `i` of `len`, in the order of their arrival on the node; `current` is the one that
/// has the CPU. With `but_current` that one is neither examined nor chosen (spin yield: the yielding process itself).
pub fn boost_candidate(
    heuristic: Heuristic,
    len: usize,
    current: usize,
    but_current: bool,
    table: impl Fn(usize) -> Endpoint,
) -> Look {
    let (first, second) = match heuristic {
        Heuristic::Paper | Heuristic::OthersFirst => (Endpoint::Served, Some(Endpoint::Computing)),
        Heuristic::ServedOnly => (Endpoint::Served, None),
        Heuristic::ComputingFirst => (Endpoint::Computing, Some(Endpoint::Served)),
    };
    let start = current + usize::from(but_current || heuristic == Heuristic::OthersFirst);
    let others = len - usize::from(but_current && len > 0);
    let mut look = Look::default();
    let mut fallback = None;
    for step in 0..others {
        let place = start + step;
        let place = if place >= len { place - len } else { place };
        let seen = table(place);
        if seen == Endpoint::Blocked {
            continue;
        }
        look.looked_at += 1;
        if seen == first {
            look.candidate = Some(place);
            return look;
        }
        if fallback.is_none() && Some(seen) == second {
            fallback = Some(place);
        }
    }
    look.candidate = fallback;
    look
}

/// Whether the arrival of a message raises an interrupt under DCS: not if the network interface believes that the
/// receiver has the CPU, and not for a process that blocked by itself (its own wake-up rule applies) or has ended.
pub fn interrupts(receiver_noted_as_running: bool, blocked_or_ended: bool) -> bool {
    !receiver_noted_as_running && !blocked_or_ended
}

/// The level of a process that yields: one below the lowest of the others on its node, at least 0. A process that is alone
/// keeps its own level.
pub fn yield_level(own: u8, others: impl Iterator<Item = u8>) -> u8 {
    others.min().map_or(own, |lowest| lowest.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::Endpoint::{Blocked as B, Computing as C, Served as S, Waiting as W};
    use super::*;

    fn look(heuristic: Heuristic, current: usize, but_current: bool, table: &[Endpoint]) -> (Option<usize>, u32) {
        let look = boost_candidate(heuristic, table.len(), current, but_current, |i| table[i]);
        (look.candidate, look.looked_at)
    }

    #[test]
    fn the_first_served_from_the_current_one_on() {
        assert_eq!(look(Heuristic::Paper, 1, false, &[S, W, B, S]), (Some(3), 2), "blocked ones cost nothing");
        assert_eq!(look(Heuristic::Paper, 3, false, &[S, W, B, S]), (Some(3), 1), "the current one first");
        assert_eq!(look(Heuristic::Paper, 2, false, &[S, W, W]), (Some(0), 2), "and round");
    }

    #[test]
    fn else_the_first_that_is_not_in_a_receive() {
        assert_eq!(look(Heuristic::Paper, 1, false, &[C, W, C]), (Some(2), 3));
        assert_eq!(look(Heuristic::Paper, 0, false, &[W, W, B]), (None, 2));
        assert_eq!(look(Heuristic::Paper, 0, false, &[]), (None, 0));
    }

    #[test]
    fn one_that_yields_does_not_choose_itself() {
        assert_eq!(look(Heuristic::Paper, 0, true, &[S, W, C]), (Some(2), 2));
        assert_eq!(look(Heuristic::Paper, 0, true, &[S]), (None, 0));
    }

    #[test]
    fn other_heuristics() {
        assert_eq!(look(Heuristic::OthersFirst, 0, false, &[S, W, S]), (Some(2), 2));
        assert_eq!(look(Heuristic::OthersFirst, 0, false, &[S, W, W]), (Some(0), 3));
        assert_eq!(look(Heuristic::ServedOnly, 0, false, &[C, W, W]), (None, 3));
        assert_eq!(look(Heuristic::ComputingFirst, 0, false, &[S, C, W]), (Some(1), 2));
        assert_eq!(look(Heuristic::ComputingFirst, 0, false, &[W, W, S]), (Some(2), 3));
    }

    #[test]
    fn a_yield_goes_below_the_lowest_other() {
        assert_eq!(yield_level(59, [40, 12].into_iter()), 11);
        assert_eq!(yield_level(59, [0].into_iter()), 0);
        assert_eq!(yield_level(30, [].into_iter()), 30);
    }

    #[test]
    fn demand_based_interrupts_are_for_those_who_do_not_run() {
        assert!(interrupts(false, false));
        assert!(!interrupts(true, false) && !interrupts(false, true));
    }
}
