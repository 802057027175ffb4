//! A job's wait page (docs/waiting.md) for measuring the CPU time of messages: it tells the wait library that other
//! processes want the CPUs, although none runs that would disturb the measurement.

use core::mem::offset_of;
use cosched_core::wait::page::{Head, MAGIC, SIZE, SPIN_BLOCK};

/// The bytes of a page with which every wait blocks at once.
pub fn crowded() -> Vec<u8> {
    let mut page = vec![0; SIZE];
    // The spin time stays 0 µs, and the number of CPUs unknown.
    for (offset, word) in
        [(offset_of!(Head, magic), MAGIC), (offset_of!(Head, mode), SPIN_BLOCK), (offset_of!(Head, rivals), 1)]
    {
        page[offset..offset + 4].copy_from_slice(&word.to_ne_bytes());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_page_with_rivals_and_no_spin_time() {
        let page = crowded();
        let word = |offset: usize| u32::from_ne_bytes(page[offset..offset + 4].try_into().unwrap());
        assert_eq!((page.len(), word(offset_of!(Head, magic))), (SIZE, MAGIC));
        assert_eq!((word(offset_of!(Head, rivals)), word(offset_of!(Head, spin_us))), (1, 0));
    }
}
