//! The descriptors of a row of calls: a program may poll several descriptors in turn, and must be woken by any of them.

use libc::pollfd;

/// The limit on remembered descriptors; a row with more of them blocks on those of the call itself.
const DESCRIPTORS: usize = 16;

/// The descriptors of a row, each once with all its events.
pub(crate) struct Descriptors {
    all: [pollfd; DESCRIPTORS],
    count: usize,
}

impl Default for Descriptors {
    fn default() -> Self {
        Self { all: [pollfd { fd: -1, events: 0, revents: 0 }; DESCRIPTORS], count: 0 }
    }
}

impl Descriptors {
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// The number of descriptors.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// A copy to block on, and its length.
    pub(crate) fn copy(&self) -> ([pollfd; DESCRIPTORS], usize) {
        (self.all, self.count)
    }

    /// Adds the descriptors of a call. True if all of them were known; `None` if they do not fit.
    pub(crate) fn add(&mut self, asked: &[pollfd]) -> Option<bool> {
        let mut known = true;
        for (place, one) in asked.iter().enumerate().filter(|(_, one)| one.fd >= 0) {
            known &= self.add_one(place, one.fd, one.events)?;
        }
        Some(known)
    }

    fn add_one(&mut self, place: usize, fd: i32, events: i16) -> Option<bool> {
        // Most programs poll the same ones in the same order.
        let hit = if place < self.count && self.all[place].fd == fd {
            Some(place)
        } else {
            self.all[..self.count].iter().position(|one| one.fd == fd)
        };
        if let Some(place) = hit {
            let known = self.all[place].events & events == events;
            self.all[place].events |= events;
            return Some(known);
        }
        *self.all.get_mut(self.count)? = pollfd { fd, events, revents: 0 };
        self.count += 1;
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(fd: i32, events: i16) -> pollfd {
        pollfd { fd, events, revents: 7 }
    }

    #[test]
    fn a_row_is_known_when_everything_was_asked_for_before() {
        let mut row = Descriptors::default();
        assert_eq!(row.add(&[ask(3, 1), ask(-1, 1), ask(5, 4)]), Some(false));
        assert_eq!(row.add(&[ask(5, 4)]), Some(true));
        assert_eq!(row.add(&[ask(5, 1)]), Some(false), "another event");
        assert_eq!(row.add(&[ask(3, 1), ask(5, 5)]), Some(true));
        let (copy, count) = row.copy();
        assert_eq!(count, 2);
        assert_eq!((copy[1].fd, copy[1].events, copy[1].revents), (5, 5, 0));
        row.clear();
        assert_eq!(row.count(), 0);
    }

    #[test]
    fn too_many_do_not_fit() {
        let mut row = Descriptors::default();
        let many: Vec<pollfd> = (0..17).map(|fd| ask(fd, 1)).collect();
        assert_eq!(row.add(&many[..16]), Some(false));
        assert_eq!(row.add(&many), None);
        assert_eq!(row.add(&many[..16]), Some(true));
    }
}
