//! When a job may start and its limits: `--time`, `--grace`, `--begin`, `--after`, `--mem-limit`; and `--exclusive-cores`.

use crate::moment;
use clap::Args;
use cosched_api::{After, JobRequest, parse};
use std::time::Duration;

#[derive(Args, Debug)]
pub(crate) struct Terms {
    /// The longest run time, as 2h or 90s: then TERM, the grace time, and KILL. Time while suspended does not count
    #[arg(long, value_name = "TIME", value_parser = positive)]
    pub(crate) time: Option<Duration>,

    /// With --time: how long the job has to end after TERM [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse::duration, requires = "time")]
    pub(crate) grace: Option<Duration>,

    /// Start no earlier than this: 14:30, tomorrow, 2026-12-31T08:00 (local time), or in 30m
    #[arg(long, value_name = "TIME", value_parser = moment::ahead)]
    pub(crate) begin: Option<u64>,

    /// Start when these jobs have ended: 7, 7:any, or 7:ok (only if its exit code is 0; otherwise the job is ended)
    #[arg(long, value_name = "JOB[:ok|any],…", value_delimiter = ',', value_parser = after)]
    pub(crate) after: Vec<After>,

    /// The most memory that the job may use on a node, as 4G; the kernel kills what exceeds it
    #[arg(long, value_name = "SIZE", value_parser = parse::size_bytes)]
    pub(crate) mem_limit: Option<u64>,

    /// Whole cores, as many as --cpus: their other CPUs (siblings) stay empty in the job's time slots
    #[arg(long)]
    pub(crate) exclusive_cores: bool,
}

impl Terms {
    /// Adds the options to the daemon's request.
    pub(super) fn add_to(&self, request: &mut JobRequest) {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
        request.time_ms_max = self.time.map(ms);
        request.grace_ms = self.grace.map(ms);
        request.begin_unix_ms = self.begin;
        request.after.clone_from(&self.after);
        request.mem_bytes_max = self.mem_limit;
        request.exclusive_cores = self.exclusive_cores;
    }
}

fn positive(text: &str) -> Result<Duration, String> {
    match parse::duration(text).map_err(|e| e.to_string())? {
        Duration::ZERO => Err("give a time above 0, as 2h".to_owned()),
        time => Ok(time),
    }
}

fn after(text: &str) -> Result<After, String> {
    let (job, ok) = match text.split_once(':') {
        None | Some((_, "any")) => (text.trim_end_matches(":any"), false),
        Some((job, "ok")) => (job, true),
        Some((_, rule)) => return Err(format!("`{rule}` is not a rule: write JOB:ok or JOB:any")),
    };
    let job = job
        .parse()
        .map_err(|_| format!("`{job}` is not a job's number; `cosched run -d` prints it, `cosched ps` lists them"))?;
    Ok(After { job, ok })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_come_before() {
        assert_eq!(after("7"), Ok(After { job: 7, ok: false }));
        assert_eq!((after("7:any"), after("7:ok")), (Ok(After { job: 7, ok: false }), Ok(After { job: 7, ok: true })));
        assert!(after("7:fine").unwrap_err().contains("JOB:ok"));
        assert!(after("night").unwrap_err().contains("number"));
        assert!(positive("0s").is_err() && positive("2h").is_ok());
    }
}
