//! Size classes in powers of two: 1, 2, 3-4, 5-8, … 513-1024, and all larger sizes.

/// The number of classes; the last one has no upper end.
const CLASSES: u32 = 12;

/// A class of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeClass(u32);

impl SizeClass {
    /// The class of a number of processors, at least 1.
    pub fn of(size: u32) -> SizeClass {
        let exponent = u32::BITS - size.max(1).saturating_sub(1).leading_zeros();
        SizeClass(exponent.min(CLASSES - 1))
    }

    /// All classes, small ones first.
    pub fn all() -> impl Iterator<Item = SizeClass> {
        (0..CLASSES).map(SizeClass)
    }

    /// The smallest size in it.
    pub fn low(self) -> u32 {
        if self.0 == 0 { 1 } else { (1 << (self.0 - 1)) + 1 }
    }

    /// The largest size in it; `None` for the last class.
    pub fn high(self) -> Option<u32> {
        (self.0 + 1 < CLASSES).then(|| 1 << self.0)
    }

    /// `5-8`, `1025-max`.
    pub fn name(self) -> String {
        match self.high() {
            Some(high) => format!("{}-{high}", self.low()),
            None => format!("{}-max", self.low()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_no_gaps() {
        let names: Vec<String> = SizeClass::all().map(SizeClass::name).collect();
        assert_eq!(names[..4], ["1-1", "2-2", "3-4", "5-8"]);
        assert_eq!(names.last().unwrap(), "1025-max");
        for size in 1..5000 {
            let class = SizeClass::of(size);
            assert!(class.low() <= size && class.high().is_none_or(|high| size <= high), "{size} {class:?}");
        }
        assert_eq!(SizeClass::of(u32::MAX).name(), "1025-max");
    }
}
