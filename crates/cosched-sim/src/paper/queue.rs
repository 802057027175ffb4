//! A queue as a slice: entries leave at the front without moving the others, and are inserted near the end.

/// Entries before `head` have left.
#[derive(Clone, Debug)]
pub(super) struct Queue<T> {
    items: Vec<T>,
    head: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue { items: Vec::new(), head: 0 }
    }
}

impl<T: Copy> Queue<T> {
    /// Inserts an entry before the one at this index of the slice.
    #[inline]
    pub(super) fn insert(&mut self, at: usize, item: T) {
        self.items.insert(self.head + at, item);
    }

    /// Appends an entry.
    #[inline]
    pub(super) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// Removes the first entry, which must exist.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.head += 1;
        if self.head == self.items.len() {
            self.items.clear();
            self.head = 0;
        } else if self.head == HEAD_MAX {
            self.items.drain(..self.head);
            self.head = 0;
        }
    }
}

/// The number of removed entries after which their memory is reused.
const HEAD_MAX: usize = 16;

impl<T> std::ops::Deref for Queue<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.items[self.head..]
    }
}

impl<T> std::ops::DerefMut for Queue<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[self.head..]
    }
}
