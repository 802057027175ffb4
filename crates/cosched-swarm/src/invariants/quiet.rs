//! A cluster in which nothing happens only renews leases, and looks each time whether the state is what it was.
//!
//! Why: what every node writes or reads all the time costs the store with every node more, for nothing. Loads flicker and
//! clocks are looked at meanwhile; that is no news.

use super::{Invariant, Seen};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Quiet {
    is_quiet: bool,
    /// By node: renewals of which the second half, the look whether the state has changed, is to come.
    half: BTreeMap<usize, u32>,
}

impl Invariant for Quiet {
    fn name(&self) -> &'static str {
        "quiet"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::Quiet(quiet) => *self = Quiet { is_quiet: *quiet, ..Quiet::default() },
            Seen::Asked { node, what } if self.is_quiet => {
                let half = self.half.entry(*node).or_insert(1);
                match *what {
                    "renewals" => *half += 1,
                    "checks" if *half > 0 => *half -= 1,
                    what => return Err(format!("nothing happens, and node {node} asks the store for {what}")),
                }
            }
            _ => (),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::is_noticed;
    use crate::world::Broken;

    #[test]
    fn a_node_that_tells_every_flicker_is_noticed() {
        assert!(is_noticed(Broken::Flickers, "quiet"));
    }
}
