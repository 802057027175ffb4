//! In an idle cluster, nodes only renew their leases, and check with each renewal whether the state has changed.
//!
//! Why: what every node writes or reads all the time costs the store more with every node, for no benefit. Loads
//! fluctuate and clocks are checked meanwhile; that is not news.

use super::{Invariant, Seen};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Quiet {
    is_quiet: bool,
    /// By node: renewals whose second half, the check whether the state has changed, is still to come.
    half: BTreeMap<usize, u32>,
}

impl Invariant for Quiet {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::Quiet(quiet) => *self = Quiet { is_quiet: *quiet, ..Quiet::default() },
            Seen::Asked { node, what } if self.is_quiet => {
                let half = self.half.entry(*node).or_insert(1);
                match *what {
                    "renewals" => *half += 1,
                    "checks" if *half > 0 => *half -= 1,
                    what => return Err(format!("nothing happens, but node {node} sends the store {what}")),
                }
            }
            _ => (),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::run::is_noticed;
    use crate::world::Broken;

    #[test]
    fn a_node_that_tells_every_flicker_is_noticed() {
        assert!(is_noticed(Broken::Flickers, "quiet"));
    }
}
