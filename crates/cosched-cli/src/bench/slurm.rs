//! The same jobs under a local Slurm that shares nodes by time slices (`PreemptMode=GANG`), through its documented commands.
//!
//! A job is a batch job whose script is one of our supervisors: processes below slurmd are not descendants of the harness, so
//! the supervisor writes its report to a file. `sbatch --wait` reports the end late (it polls every few seconds), so the
//! supervisor's end time counts; the start is the time of submission, because that is when the user starts to wait.

use crate::format::command_line;
use crate::jobset::{End, Measured, Outcome, STAGE, Usage};
use crate::out::{EXIT_REFUSED, Failure};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// A Slurm that can be used, and a directory for reports.
#[derive(Debug)]
pub(crate) struct Slurm {
    reports: PathBuf,
}

impl Slurm {
    /// Checks that there is a Slurm that lets `jobs` jobs share a node.
    ///
    /// # Errors
    /// When there is none, it does not answer, or is not configured for time slices.
    pub(crate) fn find(jobs: u32) -> Result<Slurm, Failure> {
        ask("scontrol", &["ping"]).and_then(|text| is_up(&text)).map_err(|why| refused(&why))?;
        ask("sbatch", &["--version"]).and_then(|_| ask("scancel", &["--version"])).map_err(|why| refused(&why))?;
        let configuration = ask("scontrol", &["show", "config"]).map_err(|why| refused(&why))?;
        let partitions = ask("scontrol", &["show", "partition", "--oneliner"]).map_err(|why| refused(&why))?;
        time_slices(&configuration).and_then(|()| shares(&partitions, jobs)).map_err(|why| refused(&why))?;
        let reports = std::env::temp_dir().join(format!("cosched-bench-{}", std::process::id()));
        std::fs::create_dir_all(&reports)
            .map_err(|e| Failure::other(format!("cannot make {}: {e}", reports.display())))?;
        Ok(Slurm { reports })
    }

    /// The words that submit a job and wait for it.
    pub(crate) fn submit(&self, name: &str, command: &[String], limit_s: f64) -> Result<Vec<OsString>, Failure> {
        let own = std::env::current_exe().map_err(|e| Failure::other(format!("cannot find this program: {e}")))?;
        let inside: Vec<String> = [own.to_string_lossy().into_owned(), STAGE.into(), "alone".into()]
            .into_iter()
            .chain(command.iter().cloned())
            .collect();
        let place =
            |kind: &str| command_line(&[self.reports.join(format!("{name}.{kind}")).to_string_lossy().into_owned()]);
        let script = format!("exec {} >{} 2>{} </dev/null", command_line(&inside), place("report"), place("output"));
        // Slurm counts minutes; this is a safety net below the harness's own limit.
        let minutes = (limit_s / 60.0).ceil() as u64 + 1;
        let words = [
            "sbatch".to_owned(),
            "--wait".into(),
            "--quiet".into(),
            format!("--job-name={name}"),
            "--nodes=1".into(),
            "--ntasks=1".into(),
            format!("--cpus-per-task={}", crate::jobset::cpus()),
            "--oversubscribe".into(),
            "--output=/dev/null".into(),
            format!("--time={minutes}"),
            format!("--wrap={script}"),
        ];
        Ok(words.into_iter().map(OsString::from).collect())
    }

    /// Replaces what is known about the submission by the report of the supervisor inside the job.
    pub(crate) fn add_report(&self, name: &str, end: &mut End) {
        let read =
            |kind: &str| std::fs::read_to_string(self.reports.join(format!("{name}.{kind}"))).unwrap_or_default();
        end.output.push_str(&read("output"));
        let Ok(inside) = serde_json::from_str::<Usage>(&read("report")) else { return };
        if let Some(outside) = &end.usage {
            end.end_s = end.start_s + inside.end_ns.saturating_sub(outside.start_ns) as f64 / 1e9;
        }
        end.max_memory_bytes = inside.max_process_kib * 1024;
        end.usage = Some(inside);
    }
}

/// Corrects the measurements of the whole set by the reports: `sbatch --wait` ends seconds after the last job, and the jobs'
/// own CPU time was counted as that of other processes.
pub(crate) fn correct(measured: &mut Measured, cpus: usize) {
    let ends: Vec<&End> = measured.jobs.iter().flatten().collect();
    let cpu_us: u64 =
        ends.iter().filter_map(|end| end.usage.as_ref()).map(|usage| usage.user_us + usage.system_us).sum();
    let own = cpu_us as f64 / 1e6 / (measured.elapsed_s * cpus as f64);
    let begin_s = ends.iter().map(|end| end.start_s).fold(f64::INFINITY, f64::min);
    let end_s = ends.iter().map(|end| end.end_s).fold(0.0, f64::max);
    measured.others_cpu_share = measured.others_cpu_share.map(|share| (share - own).max(0.0));
    if measured.outcome == Outcome::Done && end_s > begin_s {
        measured.elapsed_s = end_s - begin_s;
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.reports);
    }
}

/// The words that end a job of this name.
pub(crate) fn cancel(name: &str) -> Vec<OsString> {
    ["scancel".to_owned(), format!("--name={name}")].into_iter().map(OsString::from).collect()
}

fn refused(why: &str) -> Failure {
    let hint =
        "slurm-gang needs sbatch, scontrol and scancel in $PATH and a slurmctld that shares nodes (docs/bench.md)";
    Failure::explained(EXIT_REFUSED, "Slurm cannot run jobs in time slices here", why, hint)
}

/// The output of a Slurm command.
fn ask(program: &str, words: &[&str]) -> Result<String, String> {
    let shown = format!("{program} {}", words.join(" "));
    let output = Command::new(program).args(words).output().map_err(|e| format!("{program} cannot be run: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{shown}` failed: {}", said.lines().next().unwrap_or("it wrote nothing")))
}

/// `scontrol ping` exits with success even if a controller is down.
fn is_up(ping: &str) -> Result<(), String> {
    if ping.contains(" UP") { Ok(()) } else { Err(format!("slurmctld does not answer: {}", ping.trim())) }
}

fn time_slices(configuration: &str) -> Result<(), String> {
    let value = |name: &str| {
        let line = configuration.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
        Some(line.trim_start().strip_prefix('=')?.trim().to_owned())
    };
    let mode = value("PreemptMode").unwrap_or_default();
    if mode.contains("GANG") { Ok(()) } else { Err(format!("its PreemptMode is `{mode}`, without GANG")) }
}

/// The default partition has to let `jobs` jobs share its CPUs: `OverSubscribe=FORCE:4`.
fn shares(partitions: &str, jobs: u32) -> Result<(), String> {
    let default = partitions.lines().find(|line| line.contains("Default=YES")).ok_or("it has no default partition")?;
    let field = default.split_ascii_whitespace().find_map(|word| word.strip_prefix("OverSubscribe=")).unwrap_or("NO");
    let (mode, most) = field.split_once(':').unwrap_or((field, "4"));
    let most: u32 = most.parse().unwrap_or(0);
    match mode {
        "FORCE" | "YES" if most >= jobs => Ok(()),
        "FORCE" | "YES" => {
            Err(format!("its default partition lets {most} jobs share (OverSubscribe={field}), not {jobs}"))
        }
        _ => Err(format!("its default partition does not let jobs share (OverSubscribe={field})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_scontrol_says() {
        assert!(is_up("Slurmctld(primary) at n0 is UP\n").is_ok());
        assert!(is_up("Slurmctld(primary) at n0 is DOWN\n").unwrap_err().contains("DOWN"));
        assert!(time_slices("PreemptMode             = GANG,SUSPEND\n").is_ok());
        assert!(time_slices("PreemptMode             = OFF\n").unwrap_err().contains("OFF"));
        let partition = |field: &str| {
            format!("PartitionName=a Default=NO OverSubscribe=NO\nPartitionName=b Default=YES {field} X=1\n")
        };
        assert!(shares(&partition("OverSubscribe=FORCE:8"), 8).is_ok());
        assert!(shares(&partition("OverSubscribe=FORCE:4"), 8).unwrap_err().contains("not 8"));
        assert!(shares(&partition("OverSubscribe=NO"), 2).unwrap_err().contains("does not let"));
        assert!(shares("", 2).is_err());
    }

    #[test]
    fn a_set_ends_with_its_last_job_and_not_with_sbatch() {
        let end = |start_s, end_s| {
            let usage = Some(Usage { user_us: 3_000_000, system_us: 1_000_000, ..Usage::default() });
            Some(End { start_s, end_s, usage, max_memory_bytes: 0, output: String::new() })
        };
        let jobs = vec![end(0.5, 8.5), end(0.5, 10.5), None];
        let mut set =
            Measured { outcome: Outcome::Done, elapsed_s: 20.0, jobs, others_cpu_share: Some(0.3), oom_kills: 0 };
        correct(&mut set, 2);
        assert_eq!(set.elapsed_s, 10.0);
        assert!((set.others_cpu_share.unwrap() - 0.1).abs() < 1e-9, "{set:?}");
        set.outcome = Outcome::Limit;
        set.elapsed_s = 20.0;
        correct(&mut set, 2);
        assert_eq!(set.elapsed_s, 20.0);
    }

    #[test]
    fn the_script_is_quoted_for_a_shell() {
        let slurm = Slurm { reports: std::env::temp_dir().join("cst-none") };
        let words = slurm.submit("bench-1-1-1", &["sh".into(), "-c".into(), "echo 'a b'".into()], 90.0).unwrap();
        let text: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(text.contains(&"--time=3".to_owned()) && text.contains(&"--oversubscribe".to_owned()), "{text:?}");
        let wrap = text.last().unwrap();
        assert!(wrap.contains("__job alone sh -c 'echo '\\''a b'\\''' >"), "{wrap}");
    }
}
