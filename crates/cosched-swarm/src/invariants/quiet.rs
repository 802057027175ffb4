//! A cluster in which nothing happens only renews leases.
//!
//! Why: what every node writes or reads all the time costs the store with every node more, for nothing. Loads flicker and
//! clocks are looked at meanwhile; that is no news.

use super::{Invariant, Seen};

#[derive(Default)]
pub(super) struct Quiet(bool);

impl Invariant for Quiet {
    fn name(&self) -> &'static str {
        "quiet"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::Quiet(quiet) => self.0 = *quiet,
            Seen::Asked { node, what } if self.0 => {
                return Err(format!("nothing happens, and node {node} asks the store for {what}"));
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
