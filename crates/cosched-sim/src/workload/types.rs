//! WL1 to WL8: the types of the jobs of a workload (Zhang et al. 2000, Table 2).

use super::random::Random;
use crate::job::JobType;
use std::fmt;
use std::str::FromStr;

/// A workload of the paper: the types of its jobs, each with the same frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeMix {
    number: u8,
}

impl Default for TypeMix {
    /// WL7: all six types.
    fn default() -> TypeMix {
        TypeMix { number: 7 }
    }
}

impl TypeMix {
    /// WL1 to WL8; `None` for other numbers.
    pub fn new(number: u8) -> Option<TypeMix> {
        (1..=8).contains(&number).then_some(TypeMix { number })
    }

    /// All eight.
    pub fn all() -> impl Iterator<Item = TypeMix> {
        (1..=8).map(|number| TypeMix { number })
    }

    /// WL1 to WL6 have one type, WL7 all six, WL8 has J2, J4 and J5.
    pub fn types(self) -> &'static [JobType] {
        match self.number {
            7 => &JobType::ALL,
            8 => &[JobType::J2, JobType::J4, JobType::J5],
            one => std::slice::from_ref(&JobType::ALL[usize::from(one - 1)]),
        }
    }
}

impl fmt::Display for TypeMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(["WL1", "WL2", "WL3", "WL4", "WL5", "WL6", "WL7", "WL8"][usize::from(self.number - 1)])
    }
}

impl FromStr for TypeMix {
    type Err = String;

    /// Reads `WL1` to `WL8`, in any case.
    fn from_str(text: &str) -> Result<TypeMix, String> {
        let upper = text.to_ascii_uppercase();
        let found = TypeMix::all().find(|mix| mix.to_string() == upper);
        found.ok_or_else(|| format!("no workload '{text}'; there are WL1 to WL8"))
    }
}

/// Draws a type for each of `count` jobs.
pub fn assign_types(mix: TypeMix, count: usize, random: &mut Random) -> Vec<JobType> {
    let types = mix.types();
    (0..count).map(|_| types[random.below(types.len() as u64) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_the_papers() {
        let mix = |name: &str| name.parse::<TypeMix>().unwrap();
        assert_eq!(mix("WL3").types(), [JobType::J3]);
        assert_eq!(mix("wl7").types().len(), 6);
        assert_eq!(mix("WL8").types(), [JobType::J2, JobType::J4, JobType::J5]);
        assert!("WL9".parse::<TypeMix>().is_err() && "".parse::<TypeMix>().is_err() && TypeMix::new(0).is_none());
        let kinds = assign_types(mix("WL8"), 30_000, &mut Random::new(1, 0));
        for kind in mix("WL8").types() {
            let count = kinds.iter().filter(|other| *other == kind).count();
            assert!((9_600..10_400).contains(&count), "{kind} {count}");
        }
        assert!(assign_types(mix("WL2"), 50, &mut Random::new(1, 0)).iter().all(|kind| *kind == JobType::J2));
    }
}
