//! The programs that are run, and the values taken from their reports.

use super::Wait;
use super::cache::{self, Refill};
use super::run::{Line, json};
use crate::out::Failure;
use crate::programs::{self, Launcher};
use crate::run::signals::Signals;
use crate::run::waiting::{Plan, WaitOption};
use cosched_api::{WaitMode, Waiting};
use cosched_model::waitpage::crowded;
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// The programs and how they are started.
pub(super) struct Tools {
    launcher: Launcher,
    pingpong: PathBuf,
    yields: PathBuf,
    matmul: PathBuf,
    wait: Option<Plan>,
}

/// How ranks communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    SharedMemory,
    Tcp,
}

/// What was measured, one value for each repetition.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub(super) shared: Messages,
    pub(super) network: Messages,
    /// α_c, in µs.
    pub(super) switch_us: Vec<f64>,
    /// γ_3, in ns.
    pub(super) flop_ns: Vec<f64>,
    pub(super) refill: Vec<Refill>,
}

/// Messages of one way to communicate.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) alpha_us: Vec<f64>,
    pub(super) beta_us: Vec<f64>,
    pub(super) alpha_cpu_us: Vec<f64>,
    pub(super) beta_cpu_us: Vec<f64>,
}

impl Messages {
    /// Adds the reports of two runs of pingpong: times, and CPU times.
    fn add(&mut self, times: &Value, cpu: &Value) -> Result<(), Failure> {
        self.alpha_us.push(number(times, "pingpong", "alpha_us", 0.0)?);
        self.beta_us.push(number(times, "pingpong", "beta_us_per_word", 0.0)?);
        self.alpha_cpu_us.push(number(cpu, "pingpong", "alpha_cpu_us", 0.0)?);
        self.beta_cpu_us.push(number(cpu, "pingpong", "beta_cpu_us_per_word", 0.0)?);
        Ok(())
    }
}

impl Tools {
    /// Everything that will be run.
    ///
    /// # Errors
    /// When a program, the launcher, or a wait library that was requested by name is missing.
    pub(super) fn find(mpirun: Option<&OsStr>, wait: Wait) -> Result<Tools, Failure> {
        let program = |name: &str| {
            programs::find(name).ok_or_else(|| {
                let hint = "`make build && make install` from the source has them (packages do not); COSCHED_PROGRAMS names their directory";
                missing(&format!("the program {name} was not found"), hint)
            })
        };
        let (pingpong, yields, matmul) = (program("pingpong")?, program("yield")?, program("matmul")?);
        let launcher = programs::mpirun(mpirun).ok_or_else(|| match mpirun {
            Some(named) => missing(&format!("{} cannot be run", named.to_string_lossy()), "name a working mpirun"),
            None => missing("no mpirun was found", "install an MPI (openmpi-bin), or name its launcher with --mpirun"),
        })?;
        let block =
            || Plan::new(Some(WaitOption::On(Waiting { mode: WaitMode::SpinBlock, spin_us: Some(0) })), &pingpong);
        let wait = match wait {
            Wait::Busy => None,
            Wait::SpinBlock => block()?,
            // With `auto`, a missing library is no failure.
            Wait::Auto => block().ok().flatten(),
        };
        Ok(Tools { launcher, pingpong, yields, matmul, wait })
    }

    /// How processes wait, in words.
    pub(super) fn waiting(&self) -> &'static str {
        match self.wait {
            Some(_) => "CPU time of messages: both ranks on one CPU, with the wait library (spin-block:0)",
            None => "CPU time of messages: waits of the MPI library, which spins, so nearly all time is CPU time",
        }
    }

    pub(super) fn description(&self) -> String {
        format!("{}; {}", self.launcher.path.display(), self.waiting())
    }

    /// Measures everything once; returns a summary for the user.
    pub(super) fn measure(&self, signals: &Signals, n: u32, samples: &mut Samples) -> Result<String, Failure> {
        for (way, messages) in [(Way::SharedMemory, &mut samples.shared), (Way::Tcp, &mut samples.network)] {
            let value = json(signals, &self.ping(way))?;
            let cpu = self.wait.as_ref().map(|plan| self.ping_on_one_cpu(signals, way, plan)).transpose()?;
            messages.add(&value, cpu.as_ref().unwrap_or(&value))?;
        }
        let line = Line { words: words(&[self.yields.as_os_str()], &["--pair", "--json"]), ..Line::default() };
        // Noise may make it negative.
        samples.switch_us.push(number(&json(signals, &line)?, "yield", "alpha_c_us", f64::MIN)?);
        let value = json(signals, &self.multiply(n))?;
        let main_s = number(&value, "matmul", "main_phase_s", f64::MIN_POSITIVE)?;
        let times = value.get("iterations").and_then(Value::as_f64).filter(|times| *times >= 1.0).unwrap_or(1.0);
        samples.flop_ns.push(main_s * 1e9 / (2.0 * f64::from(n).powi(3) * times));
        samples.refill.extend(cache::refill());
        let last = |values: &[f64]| values.last().copied().unwrap_or_default();
        Ok(format!(
            "shared memory {:.2} us + {:.5} us a word, TCP {:.2} us + {:.5} us a word, switch {:.2} us, {:.0} MFLOPS",
            last(&samples.shared.alpha_us),
            last(&samples.shared.beta_us),
            last(&samples.network.alpha_us),
            last(&samples.network.beta_us),
            last(&samples.switch_us),
            1e3 / last(&samples.flop_ns)
        ))
    }

    fn ping(&self, way: Way) -> Line {
        let (mut start, environment) = self.launcher.start(2);
        let mut environment: Vec<(String, OsString)> = owned(&environment);
        match (self.launcher.is_openmpi, way) {
            (true, Way::SharedMemory) => start.extend(["--mca", "btl", "vader,self"].map(OsString::from)),
            (true, Way::Tcp) => {
                let tcp = ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo", "--mca", "pml", "ob1"];
                start.extend(tcp.map(OsString::from));
            }
            (false, Way::SharedMemory) => {}
            // MPICH over UCX.
            (false, Way::Tcp) => environment.push(("UCX_TLS".into(), "tcp,self".into())),
        }
        start.extend([self.pingpong.clone().into(), "--json".into()]);
        Line { words: start, environment, one_cpu: false }
    }

    /// With both ranks on one CPU neither can wait while the other works, so the CPU is busy with messages alone: half
    /// of the one-way time is the CPU time of a rank. The wait library makes the ranks give up the CPU at once.
    fn ping_on_one_cpu(&self, signals: &Signals, way: Way, plan: &Plan) -> Result<Value, Failure> {
        let page = crowded_page()?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), page.as_raw_fd());
        let mut line = self.ping(way);
        line.environment.extend(plan.environment(Some(&path), &[]));
        line.one_cpu = true;
        json(signals, &line)
    }

    fn multiply(&self, n: u32) -> Line {
        let (mut start, environment) = self.launcher.start(1);
        let n = n.to_string();
        start.extend(words(&[self.matmul.as_os_str()], &["--n", &n, "--grid", "1x1", "--json"]));
        let mut environment = owned(&environment);
        environment.push(("OPENBLAS_NUM_THREADS".into(), "1".into()));
        Line { words: start, environment, one_cpu: false }
    }
}

/// A page that says that CPUs are shared: otherwise the wait library does nothing. It is a file without a name, so
/// nothing is left behind.
fn crowded_page() -> Result<File, Failure> {
    let failed = |error: std::io::Error| Failure::other(format!("cannot make a wait page: {error}"));
    let file = memfd_create("cosched-calibrate-page", MemfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    let mut file = File::from(file);
    file.write_all(&crowded()).map_err(failed)?;
    Ok(file)
}

fn words(first: &[&OsStr], rest: &[&str]) -> Vec<OsString> {
    first.iter().map(|word| (*word).to_owned()).chain(rest.iter().map(OsString::from)).collect()
}

fn owned(environment: &[(&'static str, &'static str)]) -> Vec<(String, OsString)> {
    environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

/// A number of a program's report.
fn number(report: &Value, program: &str, key: &str, at_least: f64) -> Result<f64, Failure> {
    let hint = "`make build && make install` from the source has the programs of this version (packages do not); COSCHED_PROGRAMS names their directory";
    let value = report.get(key).and_then(Value::as_f64);
    let value = value.ok_or_else(|| missing(&format!("the report of {program} has no `{key}`"), hint))?;
    if value.is_finite() && value >= at_least {
        return Ok(value);
    }
    let why = format!("{program} measured {key} = {value}, which is not possible");
    Err(missing(&why, "retry on an otherwise idle machine"))
}

fn missing(why: &str, hint: &str) -> Failure {
    Failure::explained(1, "this machine cannot be calibrated", why, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(is_openmpi: bool) -> Tools {
        let launcher = Launcher { path: "/usr/bin/mpirun".into(), is_openmpi };
        Tools {
            launcher,
            pingpong: "/p/pingpong".into(),
            yields: "/p/yield".into(),
            matmul: "/p/matmul".into(),
            wait: None,
        }
    }

    #[test]
    fn each_way_to_talk_has_its_transport() {
        let line = |is_openmpi, way| tools(is_openmpi).ping(way);
        let has = |line: &Line, word: &str| line.words.iter().any(|known| known == word);
        assert!(has(&line(true, Way::SharedMemory), "vader,self") && has(&line(true, Way::Tcp), "tcp,self"));
        let tcp = line(false, Way::Tcp);
        assert!(tcp.environment.contains(&("UCX_TLS".into(), "tcp,self".into())));
        assert!(!has(&tcp, "--mca"));
    }

    #[test]
    fn a_report_without_the_number_is_of_another_version() {
        let report = serde_json::json!({"alpha_us": 1.5, "beta_us_per_word": -1.0});
        assert_eq!(number(&report, "pingpong", "alpha_us", 0.0).unwrap(), 1.5);
        let old = number(&report, "pingpong", "alpha_cpu_us", 0.0).unwrap_err();
        assert!(old.message.contains("has no `alpha_cpu_us`") && old.message.contains("make install"), "{old:?}");
        assert!(number(&report, "pingpong", "beta_us_per_word", 0.0).is_err());
    }
}
