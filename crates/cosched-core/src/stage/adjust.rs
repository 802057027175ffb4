//! The adjusting rules: Roysden 2004, section 4, "Adjusting scheduling". One [`Adjusting`] per thread of a stage.
//!
//! Problem: to change priorities while a pipeline runs, from what a stage can observe by itself.
//!
//! Rule, in the paper's words. First: "a stage calls nice up—permanently lowers its priority—if it observes two or more
//! buffers in its output queue when it conveyed a completed buffer. The priority is lowered only once". Second: "the
//! thread calls nice up if it sees a backup and does not already have a lowered priority. The thread also calls nice
//! down—raises its priority—if it sees no other buffers when it conveys and if it has a lower priority. This technique
//! requires superuser privileges." The paper gives no nice value, because at that time all had the same effect; here it is a
//! parameter. The buffer that is being conveyed is not counted.

use super::Change;

/// The number of buffers in the output queue that counts as a backup.
const BACKUP: usize = 2;

/// Which of the two rules is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Lower the priority once, permanently (Table 4, "Dynamic up").
    Once,
    /// Lower it, and raise it again (Table 4, "Dynamic up, down"). Raising needs permission.
    UpDown,
}

/// The rule of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adjusting {
    rule: Rule,
    normal: i8,
    lowered: i8,
    is_lowered: bool,
    /// A change was refused: the priority stays as it is.
    refused: bool,
}

impl Adjusting {
    /// A stage with nice 0, which is lowered to [`super::fixed::LOWERED`].
    pub const fn new(rule: Rule) -> Adjusting {
        Adjusting::between(rule, 0, super::fixed::LOWERED)
    }

    /// A stage with the nice value `normal`, which is lowered to `lowered`.
    pub const fn between(rule: Rule, normal: i8, lowered: i8) -> Adjusting {
        Adjusting { rule, normal, lowered, is_lowered: false, refused: false }
    }

    /// The stage conveys a buffer, and `output_len` others wait in its output queue.
    pub fn convey(&mut self, output_len: usize) -> Option<Change> {
        if self.refused {
            return None;
        }
        let nice = match (self.is_lowered, self.rule) {
            (false, _) if output_len >= BACKUP => self.lowered,
            (true, Rule::UpDown) if output_len == 0 => self.normal,
            _ => return None,
        };
        self.is_lowered = !self.is_lowered;
        Some(Change::Nice(nice))
    }

    /// The last change was refused (no permission to raise a priority): no further one is requested.
    pub fn refused(&mut self) {
        self.is_lowered = !self.is_lowered;
        self.refused = true;
    }

    /// Whether the stage has a lowered priority now.
    pub const fn is_lowered(&self) -> bool {
        self.is_lowered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn told(mut adjusting: Adjusting, lengths: &[usize]) -> Vec<Option<i8>> {
        let nice = |change| match change {
            Some(Change::Nice(nice)) => Some(nice),
            _ => None,
        };
        lengths.iter().map(|len| nice(adjusting.convey(*len))).collect()
    }

    #[test]
    fn section_4_the_first_rule_lowers_once_and_for_good() {
        let up = Some(10);
        let lengths = [0, 1, 2, 3, 0, 0, 5, 2];
        assert_eq!(told(Adjusting::new(Rule::Once), &lengths), [None, None, up, None, None, None, None, None]);
    }

    #[test]
    fn section_4_the_second_rule_raises_again_when_none_waits() {
        let (up, down) = (Some(10), Some(0));
        let lengths = [0, 1, 2, 3, 1, 0, 0, 5, 1, 0];
        let told = told(Adjusting::new(Rule::UpDown), &lengths);
        assert_eq!(told, [None, None, up, None, None, down, None, up, None, down]);
    }

    #[test]
    fn a_refused_rise_leaves_the_stage_lowered_and_is_not_asked_for_again() {
        let mut adjusting = Adjusting::new(Rule::UpDown);
        assert_eq!(adjusting.convey(2), Some(Change::Nice(10)));
        assert_eq!(adjusting.convey(0), Some(Change::Nice(0)));
        adjusting.refused();
        assert!(adjusting.is_lowered());
        assert!((0..9).all(|len| adjusting.convey(len % 3).is_none()));
    }
}
