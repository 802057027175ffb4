//! `--mix`: a list of different jobs (TOML).

use serde::{Deserialize, Serialize};

/// A job's class in cosched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "core says what each means")]
pub enum Class {
    Express,
    Interactive,
    Batch,
    Standby,
}

impl Class {
    /// The name in options and files.
    pub fn name(self) -> &'static str {
        match self {
            Class::Express => "express",
            Class::Interactive => "interactive",
            Class::Batch => "batch",
            Class::Standby => "standby",
        }
    }
}

/// One entry of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct MixJob {
    /// The name in tables.
    pub name: String,
    /// cosched's class; ignored by plain Linux and Slurm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// Start time relative to the start of the set, in seconds.
    #[serde(default)]
    pub start_s: f64,
    /// The number of copies.
    #[serde(default = "one")]
    pub count: u32,
    pub command: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    job: Vec<MixJob>,
}

fn one() -> u32 {
    1
}

/// The maximum number of jobs of a mix, as for `--jobs`.
const JOBS_MAX: u64 = 512;

/// Parses and checks a list.
///
/// # Errors
/// What is wrong with the text, or with an entry.
pub fn parse(text: &str) -> Result<Vec<MixJob>, String> {
    let File { job: jobs } = toml::from_str(text).map_err(|e| e.to_string().trim_end().to_owned())?;
    if jobs.is_empty() {
        return Err("it has no job".into());
    }
    for (place, job) in jobs.iter().enumerate() {
        let wrong = |why: &str| Err(format!("job {} ({}): {why}", place + 1, job.name));
        if job.command.first().is_none_or(String::is_empty) {
            return wrong("it has no command");
        }
        if !(0.0..=1e6).contains(&job.start_s) {
            return wrong("start_s must be seconds from 0");
        }
        if job.count == 0 {
            return wrong("count must be 1 or more");
        }
        if jobs[..place].iter().any(|other| other.name == job.name) {
            return wrong("another job has this name");
        }
    }
    match jobs.iter().map(|job| u64::from(job.count)).sum::<u64>() {
        0..=JOBS_MAX => Ok(jobs),
        count => Err(format!("{count} jobs are more than {JOBS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_list() {
        let text = "[[job]]\nname = 'a'\ncommand = ['true']\n[[job]]\nname = 'b'\nclass = 'batch'\nstart_s = 1.5\ncount = 3\n\
            command = ['sleep', '1']\n";
        let jobs = parse(text).unwrap();
        assert_eq!((jobs[0].count, jobs[0].start_s, jobs[0].class), (1, 0.0, None));
        assert_eq!((jobs[1].count, jobs[1].start_s, jobs[1].class), (3, 1.5, Some(Class::Batch)));
    }

    #[test]
    fn impossible_entries_are_named() {
        let cases = [
            ("", "missing field `job`"),
            ("job = []", "no job"),
            ("[[job]]\nname='a'\ncommand=[]", "no command"),
            ("[[job]]\nname='a'\ncommand=['x']\nstart_s=-1", "start_s"),
            ("[[job]]\nname='a'\ncommand=['x']\nstart_s=nan", "start_s"),
            ("[[job]]\nname='a'\ncommand=['x']\ncount=0", "count"),
            ("[[job]]\nname='a'\ncommand=['x']\ncount=1000", "1000 jobs"),
            ("[[job]]\nname='a'\ncommand=['x']\n[[job]]\nname='a'\ncommand=['x']", "this name"),
            ("[[job]]\nname='a'\ncommand=['x']\nclas='batch'", "clas"),
        ];
        for (text, word) in cases {
            let why = parse(text).unwrap_err();
            assert!(why.contains(word), "{text}: {why}");
        }
    }
}
