//! What a stage requests itself.

use cosched_core::stage::{Class, Setting};
use cosched_linux::thread::slice_us_range;

/// The scheduling of a stage's threads. A field that is `None` is left unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Nice value, −20 (highest priority) to 19 (lowest). A lower value than the current one needs a privilege.
    pub nice: Option<i8>,
    /// The time slice that the kernel grants, 100 to 100 000 µs: with a short one a thread that blocks often gets its CPU
    /// sooner. Needs Linux 6.12, and no privilege.
    pub slice_us: Option<u32>,
    /// Scheduling class. [`Class::Fifo`] needs a privilege.
    pub class: Option<Class>,
    /// The CPUs that it may use.
    pub cpus: Option<Vec<usize>>,
}

/// Settings that no system accepts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum SettingsError {
    #[error("nice {0}: a nice value is -20 to 19")]
    Nice(i8),
    #[error("a slice of {0} us: a slice is 100 to 100000 us")]
    Slice(u32),
    #[error("fifo {0}: a priority of SCHED_FIFO is 1 to 99")]
    Fifo(u8),
    #[error("no CPUs: leave the field out for all that the process may use")]
    NoCpus,
    #[error("class {0} has no slice: only normal and batch have one")]
    SliceOf(&'static str),
}

impl Settings {
    /// Checks whether any system could accept them.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), SettingsError> {
        if let Some(nice) = self.nice.filter(|nice| !(-20..=19).contains(nice)) {
            return Err(SettingsError::Nice(nice));
        }
        if let Some(slice_us) = self.slice_us.filter(|slice_us| !slice_us_range().contains(slice_us)) {
            return Err(SettingsError::Slice(slice_us));
        }
        if self.cpus.as_ref().is_some_and(Vec::is_empty) {
            return Err(SettingsError::NoCpus);
        }
        match (self.class, self.slice_us) {
            (Some(Class::Fifo(priority)), _) if !(1..=99).contains(&priority) => Err(SettingsError::Fifo(priority)),
            (Some(Class::Fifo(_)), Some(_)) => Err(SettingsError::SliceOf("fifo")),
            (Some(Class::Idle), Some(_)) => Err(SettingsError::SliceOf("idle")),
            _ => Ok(()),
        }
    }

    /// Whether no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Settings::default()
    }

    /// In the form that core's rules use.
    pub(crate) fn setting(&self) -> Setting {
        let Settings { nice, slice_us, class, cpus } = self.clone();
        Setting { nice, slice_us, class, cpus, incarnations: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_system_takes_is_refused() {
        let ask = Settings::default;
        let good = [
            ask(),
            Settings { nice: Some(-20), slice_us: Some(100), class: Some(Class::Batch), cpus: Some(vec![0]) },
            Settings { nice: Some(19), slice_us: Some(100_000), ..ask() },
            Settings { class: Some(Class::Fifo(99)), ..ask() },
        ];
        assert!(good.iter().all(|settings| settings.check().is_ok()));
        let bad = [
            (Settings { nice: Some(20), ..ask() }, SettingsError::Nice(20)),
            (Settings { slice_us: Some(99), ..ask() }, SettingsError::Slice(99)),
            (Settings { class: Some(Class::Fifo(0)), ..ask() }, SettingsError::Fifo(0)),
            (Settings { cpus: Some(Vec::new()), ..ask() }, SettingsError::NoCpus),
            (Settings { class: Some(Class::Idle), slice_us: Some(100), ..ask() }, SettingsError::SliceOf("idle")),
        ];
        for (settings, error) in bad {
            assert_eq!(settings.check(), Err(error));
        }
    }
}
