//! A short list of places in one word: a node's lists have at most as many entries as the node has places, and inserting,
//! removing and finding one are a few operations on bits instead of loops over memory.

/// The maximum number of places on a node for this engine: a place is four bits.
pub(super) const PLACES_MAX: usize = 16;

const ONES: u64 = 0x1111_1111_1111_1111;

/// Up to [`PLACES_MAX`] places, in order; the first is in the lowest bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Short {
    bits: u64,
    len: u32,
}

impl Short {
    #[inline]
    pub(super) fn len(self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The place at this index, which must exist.
    #[inline]
    pub(super) fn get(self, at: usize) -> u8 {
        (self.bits >> (4 * at)) as u8 & 15
    }

    #[inline]
    pub(super) fn first(self) -> Option<u8> {
        (self.len > 0).then(|| self.get(0))
    }

    #[inline]
    pub(super) fn last(self) -> Option<u8> {
        (self.len > 0).then(|| self.get(self.len() - 1))
    }

    #[inline]
    pub(super) fn iter(self) -> impl Iterator<Item = u8> {
        (0..self.len()).map(move |at| self.get(at))
    }

    /// The index of a place; none for a number that no place has.
    #[inline]
    pub(super) fn position(self, place: u8) -> Option<usize> {
        if usize::from(place) >= PLACES_MAX {
            return None;
        }
        let others = self.bits ^ (ONES * u64::from(place));
        // The lowest bit is that of the first digit that is zero.
        let found = others.wrapping_sub(ONES) & !others & (ONES << 3);
        let at = found.trailing_zeros() as usize / 4;
        (at < self.len()).then_some(at)
    }

    #[inline]
    pub(super) fn insert(&mut self, at: usize, place: u8) {
        let before = (1 << (4 * at)) - 1;
        self.bits = self.bits & before | u64::from(place) << (4 * at) | (self.bits & !before) << 4;
        self.len += 1;
    }

    #[inline]
    pub(super) fn push(&mut self, place: u8) {
        self.insert(self.len(), place);
    }

    /// Removes the place at this index, which must exist.
    #[inline]
    pub(super) fn remove(&mut self, at: usize) -> u8 {
        let (place, before) = (self.get(at), (1 << (4 * at)) - 1);
        self.bits = self.bits & before | self.bits >> 4 & !before;
        self.len -= 1;
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_behaves_like_a_vector(steps in prop::collection::vec((0..3_u8, 0_usize..16, 0..16_u8), 0..60)) {
            let (mut short, mut vector) = (Short::default(), Vec::new());
            for (step, at, place) in steps {
                match step {
                    0 if vector.len() < PLACES_MAX => {
                        short.insert(at.min(vector.len()), place);
                        vector.insert(at.min(vector.len()), place);
                    }
                    1 if vector.len() < PLACES_MAX => {
                        short.push(place);
                        vector.push(place);
                    }
                    2 if at < vector.len() => prop_assert_eq!(short.remove(at), vector.remove(at)),
                    _ => {}
                }
                prop_assert_eq!(short.iter().collect::<Vec<_>>(), &*vector);
                prop_assert_eq!(short.position(place), vector.iter().position(|p| *p == place));
                prop_assert_eq!(short.position(u8::MAX), None);
                prop_assert_eq!((short.first(), short.last()), (vector.first().copied(), vector.last().copied()));
            }
        }
    }
}
