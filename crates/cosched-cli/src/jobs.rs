//! Resolves the words on a command line to jobs: ids, or names if they are unique.

use crate::context::Context;
use crate::out::{EXIT_NO_JOB, EXIT_REFUSED, Failure, print_json, say, tell};
use cosched_api::{Client, ClusterStatus, Job, NodeStatus, SocketChoice, Status, parse};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// When an answer takes longer than this, the reason is explained.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Connects to the running daemon; no command but `run` starts one.
pub(crate) fn connect(context: &Context) -> Result<Client, Failure> {
    Ok(SocketChoice::find(context.socket.clone()).connect()?)
}

/// Applies a function to each job; continues after failures, the first of which determines the exit code.
pub(crate) fn for_each(
    context: &Context,
    words: &[String],
    mut action: impl FnMut(&mut Client, u64) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let mut client = connect(context)?;
    let path = client.path().to_owned();
    let mut first = 0;
    for word in words {
        let done = find(&mut client, word).and_then(|id| patiently(&path, || action(&mut client, id)));
        let code = code_of(done)?;
        first = if first == 0 { code } else { first };
    }
    Ok(first)
}

/// The daemon's answers to requests that change jobs, as lines of JSON. After a failure to write none is shown, but requests are still sent.
pub(crate) struct Answers {
    json: bool,
    written: Result<(), Failure>,
}

impl Answers {
    pub(crate) fn new(context: &Context) -> Answers {
        Answers { json: context.json, written: Ok(()) }
    }

    pub(crate) fn show(&mut self, job: &Job) {
        if self.json && self.written.is_ok() {
            self.written = print_json(job);
        }
    }

    /// The exit code of the command, from that of its requests.
    pub(crate) fn end(self, requests: u8) -> Result<u8, Failure> {
        match self.written {
            Err(failure) if requests == 0 => Err(failure),
            written => {
                if let Err(failure) = written {
                    tell(&failure);
                }
                Ok(requests)
            }
        }
    }
}

/// Prints a failure; returns the exit code of the result or of the failure.
pub(crate) fn code_of(done: Result<u8, Failure>) -> Result<u8, Failure> {
    match done {
        // Only a closed standard output has code 0; the rest would not be read either.
        Err(failure) if failure.code == 0 => Err(failure),
        Err(failure) => {
            tell(&failure);
            Ok(failure.code)
        }
        done => done,
    }
}

/// Calls a function that queries the daemon behind a socket, and explains the delay if the cluster's store is away.
pub(crate) fn patiently<T>(socket: &Path, ask: impl FnOnce() -> T) -> T {
    let (done, waits) = channel::<()>();
    let socket = socket.to_owned();
    std::thread::spawn(move || {
        if waits.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout)
            && let Ok(mut client) = Client::connect(&socket)
            && let Some(cluster) = without_store(&mut client)
            // It may have been answered in the meantime.
            && waits.recv_timeout(Duration::ZERO) == Err(RecvTimeoutError::Timeout)
        {
            say(&format!("the store of cluster {cluster} does not answer; waiting for it"));
        }
    });
    let answer = ask();
    drop(done);
    answer
}

/// The cluster of the daemon, if its store does not answer now.
pub(crate) fn without_store(client: &mut Client) -> Option<String> {
    let cluster = client.status().ok()?.cluster?;
    (!cluster.store_answers && !cluster.alone).then_some(cluster.name)
}

/// The id of the job that `word` names.
pub(crate) fn find(client: &mut Client, word: &str) -> Result<u64, Failure> {
    find_all(client, &[word])?.remove(0)
}

/// The ids of the jobs that these words name.
///
/// # Errors
/// The jobs cannot be listed, which takes one request for all names.
pub(crate) fn find_all(client: &mut Client, words: &[impl AsRef<str>]) -> Result<Vec<Result<u64, Failure>>, Failure> {
    let uid = rustix::process::getuid().as_raw();
    let has_names = words.iter().any(|word| word.as_ref().parse::<u64>().is_err());
    let jobs = if has_names { client.jobs(true)?.jobs } else { Vec::new() };
    let id = |word: &str| word.parse().or_else(|_| by_name(&jobs, word, uid));
    Ok(words.iter().map(|word| id(word.as_ref())).collect())
}

/// Live jobs take precedence over ended ones, and the caller's jobs over other users'.
fn by_name(jobs: &[Job], name: &str, uid: u32) -> Result<u64, Failure> {
    let rank = |job: &Job| (job.state.has_ended(), job.uid != uid);
    let named: Vec<&Job> = jobs.iter().filter(|job| job.name == name).collect();
    let Some(best) = named.iter().map(|job| rank(job)).min() else { return Err(no_such_name(jobs, name)) };
    let ids: Vec<u64> = named.iter().filter(|job| rank(job) == best).map(|job| job.id).collect();
    match ids[..] {
        [id] => Ok(id),
        _ => {
            let list = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let why = format!("the jobs {list} have this name");
            Err(Failure::explained(EXIT_REFUSED, &format!("the name `{name}` is ambiguous"), &why, "use the id"))
        }
    }
}

fn no_such_name(jobs: &[Job], name: &str) -> Failure {
    let hint = match parse::nearest(name, jobs.iter().map(|job| job.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`cosched ps --all` lists the jobs".to_owned(),
    };
    Failure::explained(EXIT_NO_JOB, &format!("no job `{name}`"), "the daemon knows no job of this name", &hint)
}

/// The cluster's part of a status; an error where there is no cluster.
pub(crate) fn status_of_cluster(status: &Status) -> Result<(&[NodeStatus], &ClusterStatus), Failure> {
    match (&status.nodes, &status.cluster) {
        (Some(nodes), Some(cluster)) => Ok((nodes, cluster)),
        _ => {
            let why = "this daemon is of an older version, in which a machine without queues is not a node";
            Err(Failure::explained(
                EXIT_REFUSED,
                "the daemon knows no nodes",
                why,
                "restart the daemon with the coschedd of this version",
            ))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use cosched_api::JobState;

    /// A running job for tests.
    pub(crate) fn job(id: u64, name: &str) -> Job {
        serde_json::from_value(serde_json::json!({
            "id": id, "name": name, "uid": 1000, "user": "ann", "class": "interactive", "policy": "gang", "cpus": 2,
            "state": "running", "command": ["mpirun", "-n", "2", "./a.out"], "pid": 4000 + id,
            "submitted_unix_ms": 1_700_000_000_000_u64, "cpu_time_ms": 12_340, "detached": false,
            "cgroup": format!("cosched/job-{id}"),
        }))
        .expect("the literal is a job")
    }

    #[test]
    fn answers_that_cannot_be_written_do_not_hide_a_failure() {
        let end = |requests| Answers { json: true, written: Err(Failure::silent(0)) }.end(requests);
        assert_eq!(end(EXIT_NO_JOB).unwrap(), EXIT_NO_JOB);
        assert_eq!(end(0).unwrap_err().code, 0);
        assert_eq!(Answers { json: true, written: Ok(()) }.end(0).unwrap(), 0);
    }

    #[test]
    fn names_are_unique_among_the_best() {
        let mut jobs = vec![job(1, "a"), job(2, "a"), job(3, "b"), job(4, "b")];
        jobs[0].state = JobState::Ended;
        jobs[2].uid = 7;
        assert_eq!(by_name(&jobs, "a", 1000).unwrap(), 2);
        assert_eq!(by_name(&jobs, "b", 1000).unwrap(), 4);
        assert_eq!(by_name(&jobs, "b", 7).unwrap(), 3);
        let ambiguous = by_name(&jobs, "b", 0).unwrap_err();
        assert_eq!(ambiguous.code, EXIT_REFUSED);
        assert!(ambiguous.message.contains("the jobs 3, 4 have this name"));
        let missing = by_name(&[job(1, "night")], "nihgt", 0).unwrap_err();
        assert_eq!(missing.code, EXIT_NO_JOB);
        assert!(missing.message.contains("did you mean `night`?"));
    }
}
