//! The columns of a table with results.

use super::result::CellResult;
use crate::metrics::RunMetrics;

/// A quantity of a run.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its name in CSV and JSON, with the unit last.
    pub name: &'static str,
    of: Of,
}

/// Its source.
#[derive(Clone, Copy, Debug)]
enum Of {
    Run(fn(&RunMetrics) -> Option<f64>),
    Sampling,
}

impl Measure {
    /// Its value in a run.
    pub fn value(&self, result: &CellResult) -> Option<f64> {
        match self.of {
            Of::Run(of) => of(&result.metrics),
            Of::Sampling => result.sampling_ci95_s,
        }
    }

    /// Its index in [`MEASURES`].
    pub fn place(name: &str) -> Option<usize> {
        MEASURES.iter().position(|measure| measure.name == name)
    }
}

const fn of_run(name: &'static str, of: fn(&RunMetrics) -> Option<f64>) -> Measure {
    Measure { name, of: Of::Run(of) }
}

/// All quantities, in the order of the columns.
pub const MEASURES: [Measure; 34] = [
    of_run("mean_response_s", |m| Some(m.response_s?.mean)),
    of_run("mean_wait_s", |m| Some(m.wait_s?.mean)),
    of_run("mean_execution_s", |m| Some(m.execution_s?.mean)),
    of_run("mean_slowdown", |m| Some(m.slowdown?.mean)),
    of_run("mean_bounded_slowdown", |m| Some(m.bounded_slowdown?.mean)),
    of_run("warm_up_jobs", |m| Some(m.steady?.warm_up_jobs as f64)),
    of_run("steady_response_s", |m| Some(m.steady?.mean)),
    of_run("median_response_s", |m| Some(m.response_s?.median)),
    of_run("p95_response_s", |m| Some(m.response_s?.p95)),
    of_run("p99_response_s", |m| Some(m.response_s?.p99)),
    of_run("median_bounded_slowdown", |m| Some(m.bounded_slowdown?.median)),
    of_run("p95_bounded_slowdown", |m| Some(m.bounded_slowdown?.p95)),
    of_run("p99_bounded_slowdown", |m| Some(m.bounded_slowdown?.p99)),
    of_run("max_bounded_slowdown", |m| Some(m.bounded_slowdown?.max)),
    of_run("makespan_s", |m| m.makespan_s),
    of_run("throughput_per_h", |m| Some(m.throughput_per_h)),
    of_run("offered_load", |m| m.offered_load),
    of_run("util_nominal", |m| Some(m.utilisation.nominal)),
    of_run("util_useful", |m| Some(m.utilisation.useful)),
    of_run("util_compute", |m| Some(m.utilisation.compute)),
    of_run("util_nominal_trimmed", |m| m.utilisation.nominal_trimmed),
    of_run("util_useful_trimmed", |m| m.utilisation.useful_trimmed),
    of_run("cpu_compute", |m| Some(m.cpu.compute)),
    of_run("cpu_spin", |m| Some(m.cpu.spin)),
    of_run("cpu_switch", |m| Some(m.cpu.switch)),
    of_run("cpu_interrupt", |m| Some(m.cpu.interrupt)),
    of_run("cpu_sched", |m| Some(m.cpu.sched)),
    of_run("cpu_idle", |m| Some(m.cpu.idle)),
    of_run("jain_slowdown", |m| m.jain_slowdown),
    of_run("max_stretch", |m| m.max_stretch),
    of_run("fragmentation", |m| Some(m.fragmentation)),
    of_run("switches_per_node_s", |m| Some(m.switches_per_node_s)),
    of_run("spin_us_per_message", |m| m.spin_us_per_message),
    Measure { name: "sampling_ci95_s", of: Of::Sampling },
];
