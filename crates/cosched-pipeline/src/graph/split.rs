//! Splitting a stage that computes into several consecutive ones.
//!
//! Each part does its share of the work on every buffer, so that several CPUs work on a buffer one after the other, while the
//! buffers stay in order and the stage needs no second incarnation. FG uses this to balance the load on several CPUs; the cost
//! is one more hand-off per part. Source: Roysden 2004, section 2.

use std::ops::Range;

use cosched_core::stage::Resource;

use super::stage::{Each, Stage};
use crate::buffer::Buffer;

/// One of the parts into which a stage is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    index: usize,
    of: usize,
}

impl Part {
    /// Its index, from 0.
    pub fn index(self) -> usize {
        self.index
    }

    /// The number of parts.
    pub fn of(self) -> usize {
        self.of
    }

    /// Its share of `count` items: the shares of all parts are consecutive, cover all items, and their sizes differ by at most
    /// one.
    pub fn range(self, count: usize) -> Range<usize> {
        let at = |index: usize| (count as u128 * index as u128 / self.of as u128) as usize;
        at(self.index)..at(self.index + 1)
    }

    /// Its share of the bytes in a buffer: whole records of `record_bytes`. The last part also gets the bytes after the last
    /// whole record.
    ///
    /// # Panics
    /// If `record_bytes` is 0.
    pub fn bytes(self, buffer: &mut Buffer, record_bytes: usize) -> &mut [u8] {
        let records = self.range(buffer.len() / record_bytes);
        let end = if self.index + 1 == self.of { buffer.len() } else { records.end * record_bytes };
        &mut buffer.bytes_mut()[records.start * record_bytes..end]
    }
}

impl Stage {
    /// Splits a stage into `parts` consecutive ones (one, if `parts` is 0); `make` creates the code of each part. They are
    /// named `name 1/3`, `name 2/3` and so on, and have to be put on a path one after the other.
    ///
    /// ```
    /// use cosched_pipeline::{Buffer, Flow, Options, Part, Pipeline, Resource, Stage};
    ///
    /// let source = Stage::source("ones", Resource::Compute, |buffer: &mut Buffer| {
    ///     buffer.set_len(100);
    ///     buffer.bytes_mut().fill(1);
    ///     Ok(Flow::Last)
    /// });
    /// let double = Stage::split("double", 3, Resource::Compute, |part: Part| {
    ///     move |buffer: &mut Buffer| {
    ///         part.bytes(buffer, 8).iter_mut().for_each(|byte| *byte *= 2);
    ///         Ok(Flow::Continue)
    ///     }
    /// });
    /// let check = Stage::compute("check", |buffer| {
    ///     assert!(buffer.bytes().iter().all(|byte| *byte == 2));
    ///     Ok(())
    /// });
    /// let line = Pipeline::new("split").buffers(2, 100).stage(source).stages(double).stage(check);
    /// line.run(&Options::default()).unwrap();
    /// ```
    pub fn split<E: Each + 'static>(
        name: impl Into<String>,
        parts: usize,
        resource: Resource,
        make: impl Fn(Part) -> E,
    ) -> Vec<Stage> {
        let (name, of) = (name.into(), parts.max(1));
        let stage = |index| Stage::each(format!("{name} {}/{of}", index + 1), resource, make(Part { index, of }));
        (0..of).map(stage).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_parts_are_all_of_it_and_alike(count in 0..10_000usize, of in 1..50usize) {
            let ranges: Vec<_> = (0..of).map(|index| Part { index, of }.range(count)).collect();
            prop_assert_eq!(ranges[0].start, 0);
            prop_assert_eq!(ranges[of - 1].end, count);
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            prop_assert!(ranges.iter().all(|range| range.len() == count / of || range.len() == count / of + 1));
        }
    }
}
