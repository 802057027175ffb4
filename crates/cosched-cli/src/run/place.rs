//! A job of a cluster: it may have to wait for its place, and its program is told where that is.
//!
//! The MPI launchers are told by their own means (host files named in the environment), so that `mpirun ./a.out` starts its ranks on
//! the job's nodes without further options. Variables that the user has set are left alone.

use super::files::of_user;
use super::gate::Gate;
use super::signals::Signals;
use crate::out::say;
use cosched_api::{Client, ClientError, ErrorCode, Job, JobState, ProcessRequest};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Until then pauses are short: a chain of short jobs waits for each of them.
const SHORT_WAIT: Duration = Duration::from_secs(2);
/// If the daemon is away for less than this, the user is not told.
const AWAY_MIN: Duration = Duration::from_secs(5);
/// A daemon that is away for this long is not expected back: longer than any maintenance of a machine that is not restarted.
const AWAY_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The outcome for a job that waited.
#[derive(Debug)]
pub(crate) enum Placed {
    /// It has its place.
    At(Box<Job>),
    /// It has ended, or the user cancelled it: by this signal, or the gate has ended.
    Never(Option<i32>),
}

/// Waits until the job has its place, and says what it waits for.
///
/// # Errors
/// The daemon no longer knows the job, or has been away for a week.
pub(crate) fn wait(
    client: &mut Client,
    mut job: Job,
    signals: &Signals,
    gate: &mut Gate,
) -> Result<Placed, ClientError> {
    if job.state != JobState::Waiting {
        return Ok(Placed::At(Box::new(job)));
    }
    let (begun, mut told, mut pause) = (Instant::now(), None, PAUSE_MIN);
    let (mut away, mut told_away) = (None::<Instant>, false);
    while job.state == JobState::Waiting {
        if told != job.waits_for {
            told.clone_from(&job.waits_for);
            let why = told.as_deref().unwrap_or("it has no place yet");
            say(&format!("job {} waits: {why}", job.id));
        }
        client.disconnect();
        std::thread::sleep(pause);
        if begun.elapsed() > SHORT_WAIT {
            pause = (pause * 2).min(PAUSE_MAX);
        }
        let signal = signals.next().map(|signal| signal.number);
        if signal.is_some() || gate.ended().is_some() {
            return Ok(Placed::Never(signal));
        }
        job = match client.job(job.id) {
            Ok(job) => job,
            // A daemon that is restarted still knows the job, and knows it again when its store answers.
            Err(gone) if is_passing(&gone) => {
                let silence = away.get_or_insert_with(Instant::now).elapsed();
                if silence >= AWAY_MAX {
                    say(&format!("job {} is given up: the daemon has not answered for a week", job.id));
                    return Err(gone);
                }
                if !told_away && silence >= AWAY_MIN {
                    told_away = true;
                    say(&format!("job {} waits: the daemon does not answer", job.id));
                }
                continue;
            }
            Err(e) => return Err(e),
        };
        (away, told_away) = (None, false);
    }
    if job.state.has_ended() {
        super::tell_why(&job);
        return Ok(Placed::Never(None));
    }
    let pid = gate.pid() as i32;
    if job.pid != pid && !job.cgroup.is_empty() {
        // The daemon that knew this process has died since.
        job = client.add_process(job.id, &ProcessRequest { pid, start_ticks: None })?;
    }
    Ok(Placed::At(Box::new(job)))
}

/// Whether the job may be there although the daemon does not say so now.
fn is_passing(why: &ClientError) -> bool {
    match why {
        ClientError::Unreachable { .. } => true,
        ClientError::Refused(body) => matches!(body.code, ErrorCode::Internal | ErrorCode::Limit),
        _ => false,
    }
}

/// The environment of a job's program, and the files that it names: they are in no directory and disappear with this value, however
/// this process ends.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// For the program.
    pub(crate) environment: Vec<(String, OsString)>,
    files: Vec<File>,
}

impl Place {
    /// For a job that has its nodes; empty for a job of a single machine. `own`: the user's (`--env`).
    pub(crate) fn of(job: &Job, own: &[(String, String)]) -> Place {
        let mut place = Place::default();
        if job.nodes.is_empty() {
            return place;
        }
        let slots: Vec<(&str, u32)> =
            job.nodes.iter().map(|node| (node.name.as_str(), node.cpus.unwrap_or(1))).collect();
        let list: Vec<String> = slots.iter().map(|(name, cpus)| format!("{name}:{cpus}")).collect();
        place.environment.push(("COSCHED_NODES".to_owned(), list.join(",").into()));
        if slots.len() > 1 {
            let open_mpi = ["OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"];
            let hydra = ["HYDRA_HOST_FILE"];
            for (kind, variables, between) in [("openmpi", &open_mpi[..], " slots="), ("hydra", &hydra[..], ":")] {
                if variables.iter().all(|variable| of_user(own, variable).is_none()) {
                    place.host_file(job.id, kind, variables, &lines(&slots, between));
                }
            }
        }
        place
    }

    fn host_file(&mut self, id: u64, kind: &str, variables: &[&str], text: &str) {
        match unnamed(&format!("cosched-hosts-{id}.{kind}"), text) {
            Ok(file) => {
                // Through this process, because its children do not inherit the descriptor.
                let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
                self.environment.extend(variables.iter().map(|variable| ((*variable).to_owned(), path.clone().into())));
                self.files.push(file);
            }
            Err(e) => say(&format!("the list of the job's nodes for {kind} cannot be written: {e}")),
        }
    }
}

/// A file in memory, for reading.
fn unnamed(name: &str, text: &str) -> std::io::Result<File> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(text.as_bytes())?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file)
}

fn lines(slots: &[(&str, u32)], between: &str) -> String {
    let mut text = String::new();
    for (name, cpus) in slots {
        let _ = writeln!(text, "{name}{between}{cpus}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_files_are_read_by_others_and_have_no_place_in_a_directory() {
        let file = unnamed("read by others", "a slots=2\n").unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let read = std::process::Command::new("cat").arg(&path).output().unwrap();
        assert_eq!(read.stdout, b"a slots=2\n");
        assert!(std::fs::write(&path, "b").is_err(), "nobody changes it");
        let target = std::fs::read_link(&path).unwrap();
        drop(file);
        // Another test may have a file of the same number by now.
        assert_ne!(std::fs::read_link(&path).ok(), Some(target));
    }

    #[test]
    fn host_files_in_both_forms() {
        let slots = [("a", 2), ("b", 1)];
        assert_eq!(lines(&slots, " slots="), "a slots=2\nb slots=1\n");
        assert_eq!(lines(&slots, ":"), "a:2\nb:1\n");
    }
}
