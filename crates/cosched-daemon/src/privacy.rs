//! What users see of other users' jobs: `private_data` in the configuration. Administrators and owners see everything.
//!
//! Applied where answers leave the daemon, so that no path can forget it: every answer to a request (`http.rs`), and the status file, which all users
//! may read. Metrics contain no names of jobs. Environments are in no answer.

use crate::record;
use crate::refuse::{Answer, no_such_job};
use crate::rights::{Peer, Rights};
use cosched_api::{Job, JobList, Samples};

/// The length of the part of a command in a list, in bytes; `GET /v1/jobs/{id}` returns all that is kept.
const LISTED_COMMAND_BYTES_MAX: usize = 512;

/// The data that are hidden from other users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrivateData {
    /// Command lines, with working directories and the paths of outputs.
    pub(crate) commands: bool,
    /// The existence of jobs.
    pub(crate) jobs: bool,
}

/// The values in the configuration.
pub(crate) const WORDS: [&str; 2] = ["commands", "jobs"];

/// Decides which user sees what.
#[derive(Clone, Debug)]
pub(crate) struct Privacy {
    data: PrivateData,
    rights: Rights,
}

impl Privacy {
    /// The rules of the configuration.
    pub(crate) fn new(data: PrivateData, rights: Rights) -> Privacy {
        Privacy { data, rights }
    }

    /// Whether nothing about a job may be revealed to this user before its owner is known.
    pub(crate) fn hides_jobs(&self, peer: Peer) -> bool {
        self.data.jobs && !self.rights.is_admin(peer)
    }

    /// Whether a user may know that this job exists.
    pub(crate) fn sees(&self, peer: Peer, job: &Job) -> bool {
        job.uid == peer.uid || !self.hides_jobs(peer)
    }

    /// The parts of a job that this user may see.
    pub(crate) fn job(&self, peer: Peer, mut job: Job) -> Answer<Job> {
        if job.uid == peer.uid || self.rights.is_admin(peer) {
            return Ok(job);
        }
        if self.data.jobs {
            return Err(no_such_job(job.id));
        }
        // A user can make many of them, with long names.
        job.cgroups.clear();
        if self.data.commands {
            job.command.clear();
            (job.cwd, job.log_path) = (None, None);
            if job.adopted.take().is_some() {
                job.cgroup.clear();
            }
        }
        Ok(job)
    }

    /// The samples of the jobs that this user may see.
    pub(crate) fn samples(&self, peer: Peer, mut samples: Samples) -> Samples {
        if self.hides_jobs(peer) {
            samples.samples.iter_mut().for_each(|sample| sample.jobs.retain(|job| job.uid == peer.uid));
        }
        samples
    }

    /// The parts of a list that this user may see, without the details that are only in a single job's answer.
    pub(crate) fn list(&self, peer: Peer, list: JobList) -> JobList {
        let seen = list.jobs.into_iter().filter_map(|job| self.job(peer, job).ok());
        let brief = |job: Job| Job {
            command: record::cut_to(job.command, LISTED_COMMAND_BYTES_MAX),
            cwd: None,
            log_path: None,
            ..job
        };
        JobList { jobs: seen.map(brief).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Peer = Peer { uid: 1000, pid: None };
    const OTHER: Peer = Peer { uid: 1001, pid: None };
    const ROOT: Peer = Peer { uid: 0, pid: None };

    fn job() -> Job {
        serde_json::from_value(serde_json::json!({
            "id": 7, "name": "a", "uid": 1000, "user": "ann", "class": "batch", "policy": "gang", "cpus": 2, "state": "running",
            "command": ["mysql", "x".repeat(9000)], "cwd": "/data", "pid": 5, "submitted_unix_ms": 1, "cpu_time_ms": 1,
            "detached": true, "log_path": "/data/log", "cgroup": "",
        }))
        .unwrap()
    }

    #[test]
    fn command_lines_and_jobs_are_hidden_from_others_as_configured() {
        let privacy = |commands, jobs| Privacy::new(PrivateData { commands, jobs }, Rights::new(0, []));
        for peer in [OWNER, ROOT] {
            assert_eq!(privacy(true, true).job(peer, job()).unwrap(), job());
        }
        let seen = privacy(true, false).job(OTHER, job()).unwrap();
        assert_eq!((seen.command.len(), seen.cwd, seen.log_path, seen.name.as_str()), (0, None, None, "a"));
        assert_eq!(privacy(false, false).job(OTHER, job()).unwrap(), job());
        assert!(privacy(false, true).job(OTHER, job()).is_err() && privacy(false, true).hides_jobs(OTHER));
        let list = JobList { jobs: vec![job()] };
        assert!(privacy(true, true).list(Peer::UNKNOWN, list.clone()).jobs.is_empty());
        let brief = &privacy(true, true).list(OWNER, list).jobs[0];
        assert!(brief.command.concat().len() <= 512 + 3 && brief.command[0] == "mysql" && brief.cwd.is_none());
    }

    #[test]
    fn samples_of_hidden_jobs_are_left_out() {
        let job = |uid| cosched_api::JobSample { id: 7, uid, due: 0.5, received: 0.5 };
        let sample = cosched_api::Sample { unix_ms: 1, busy: 0.5, jobs: vec![job(1000), job(1001)] };
        let samples = Samples { period_ms: 1, samples: vec![sample] };
        let seen = |jobs, peer| {
            let privacy = Privacy::new(PrivateData { commands: false, jobs }, Rights::new(0, []));
            privacy.samples(peer, samples.clone()).samples[0].jobs.len()
        };
        assert_eq!((seen(true, OWNER), seen(true, ROOT), seen(false, OWNER), seen(true, Peer::UNKNOWN)), (1, 2, 2, 0));
    }

    #[test]
    fn a_list_leaves_out_the_hidden_ones_alone() {
        let own = |uid| Job { uid, id: u64::from(uid), ..job() };
        let list = JobList { jobs: vec![own(1000), own(1001), own(1002)] };
        let seen = |data, peer| {
            let privacy = Privacy::new(data, Rights::new(0, [1002]));
            privacy.list(peer, list.clone()).jobs.into_iter().map(|job| (job.id, job.command.len())).collect::<Vec<_>>()
        };
        let jobs = PrivateData { commands: false, jobs: true };
        assert_eq!(seen(jobs, OTHER), [(1001, 2)]);
        assert_eq!(seen(jobs, Peer { uid: 1002, pid: None }), [(1000, 2), (1001, 2), (1002, 2)]);
        let commands = PrivateData { commands: true, jobs: false };
        assert_eq!(seen(commands, OTHER), [(1000, 0), (1001, 2), (1002, 0)]);
    }
}
