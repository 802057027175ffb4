//! A short list without an allocation of its own: a node's lists have at most as many entries as the node has places,
//! and one pointer less to follow saves a tenth of an event.

/// The maximum number of places on a node for this engine.
pub(super) const PLACES_MAX: usize = 16;

/// Up to [`PLACES_MAX`] entries, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short<T> {
    items: [T; PLACES_MAX],
    len: u8,
}

impl<T: Copy + Default> Short<T> {
    pub(super) fn new() -> Short<T> {
        Short { items: [T::default(); PLACES_MAX], len: 0 }
    }

    pub(super) fn insert(&mut self, at: usize, item: T) {
        let len = self.len as usize;
        // There are few entries: a loop is faster than a call that moves memory.
        for i in (at..len).rev() {
            self.items[i + 1] = self.items[i];
        }
        self.items[at] = item;
        self.len += 1;
    }

    pub(super) fn push(&mut self, item: T) {
        self.items[self.len as usize] = item;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, at: usize) -> T {
        let item = self.items[at];
        let len = self.len as usize;
        for i in at + 1..len {
            self.items[i - 1] = self.items[i];
        }
        self.len -= 1;
        item
    }
}

impl<T> std::ops::Deref for Short<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.items[..self.len as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_behaves_like_a_vector(steps in prop::collection::vec((0..3_u8, 0_usize..16, any::<u16>()), 0..60)) {
            let (mut short, mut vector) = (Short::new(), Vec::new());
            for (step, at, item) in steps {
                match step {
                    0 if vector.len() < PLACES_MAX => {
                        short.insert(at.min(vector.len()), item);
                        vector.insert(at.min(vector.len()), item);
                    }
                    1 if vector.len() < PLACES_MAX => {
                        short.push(item);
                        vector.push(item);
                    }
                    2 if at < vector.len() => prop_assert_eq!(short.remove(at), vector.remove(at)),
                    _ => {}
                }
                prop_assert_eq!(&*short, &*vector);
            }
        }
    }
}
