//! The load of the machine, measured on request.

use cosched_api::{CpuLoad, Load};
use cosched_linux::load::CpuTicks;
use cosched_linux::observe;
use std::time::Duration;
use tokio::time::Instant;

/// The kernel counts in hundredths of a second: shorter intervals would be imprecise.
const INTERVAL_MIN: Duration = Duration::from_millis(500);

/// The last two readings.
#[derive(Debug)]
pub(super) struct LoadMeter {
    read: Instant,
    ticks: CpuTicks,
    cpus: Vec<CpuLoad>,
}

impl LoadMeter {
    pub(super) fn new() -> LoadMeter {
        LoadMeter { read: Instant::now(), ticks: CpuTicks::now(), cpus: Vec::new() }
    }

    /// The load of the CPUs in `used`, over the time since the last request, but at least half a second.
    pub(super) fn view(&mut self, used: &[u32]) -> Load {
        if self.read.elapsed() >= INTERVAL_MIN {
            let ticks = CpuTicks::now();
            let busy = ticks.busy_since(&self.ticks).into_iter().filter(|(cpu, _)| used.contains(cpu));
            self.cpus = busy.map(|(cpu, busy)| CpuLoad { cpu, busy }).collect();
            (self.read, self.ticks) = (Instant::now(), ticks);
        }
        let now = observe::load();
        Load {
            cpus: self.cpus.clone(),
            average: now.map(|load| load.average[0]),
            memory_available_bytes: now.map(|load| load.memory_available_bytes),
        }
    }
}
