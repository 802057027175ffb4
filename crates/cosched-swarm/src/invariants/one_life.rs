//! Nothing lives twice: when a job begins anew, no process of its earlier lives is left on any node, in true time.
//!
//! Why: two lives of a job write to the same files. A job of an earlier life of the store is another job.

use super::{Invariant, Seen};

#[derive(Default)]
pub(super) struct OneLife {
    /// The store was put back or is another one: who plans knows nothing of what began since.
    another: bool,
}

impl Invariant for OneLife {
    fn name(&self) -> &'static str {
        "one_life"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::AnotherStore => self.another = true,
            Seen::Begun { node, job, attempt, older: Some(on) } if !self.another => {
                return Err(format!(
                    "life {attempt} of job {job} begins on node {node}, an earlier one goes on on {on}"
                ));
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
    fn a_guard_that_does_not_end_what_others_begin_anew_is_noticed() {
        assert!(is_noticed(Broken::NobodyFences, "one_life"));
    }
}
