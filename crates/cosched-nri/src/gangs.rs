//! Keeps coschedd's jobs in step with the pods that ask to be gangs.
//!
//! Nothing is remembered that has to survive: each turn compares the pods with the jobs that coschedd has, adopts what is missing and releases what is no longer
//! asked for. So it makes no difference which of the runtime, coschedd and the plug-in has been started again. Whatever ends, coschedd and its guard see to it
//! that no pod stays frozen.

use crate::pods::{GANG, News, Pod, Pods};
use crate::settings::{Settings, Wish};
use cosched_api::{Adopt, Client, ClientError, Job, JobRequest, JobState, KillRequest, SocketChoice};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the jobs are compared with the pods while nothing is told: coschedd may have been started again, or a job released.
const PERIOD: Duration = Duration::from_secs(2);
/// When a pod is tried again that coschedd has refused.
const RETRY: Duration = Duration::from_secs(10);
/// The beginning of where our jobs come from.
const FROM: &str = "pod ";

/// What the connection to the runtime tells.
#[derive(Debug)]
pub(crate) enum Told {
    /// The runtime has settings for the plug-in.
    Settings(Settings),
    News(News),
}

/// How far a pod has come, by the id of its sandbox.
#[derive(Debug, PartialEq)]
enum Standing {
    Job(u64),
    /// By an operator: it stays so until the pod or the plug-in is started again.
    Released,
    Refused {
        why: String,
        again: Instant,
    },
}

pub(crate) struct Gangs {
    socket: SocketChoice,
    settings: Settings,
    pods: Pods,
    standings: BTreeMap<String, Standing>,
    /// The runtime has told what it has. Before that no job is known to be superfluous.
    is_synchronised: bool,
    /// It has just done so: jobs of before may be superfluous.
    is_first: bool,
    /// Why the last turn could not be finished.
    trouble: Option<String>,
}

impl Gangs {
    pub(crate) fn new(socket: SocketChoice, settings: Settings) -> Gangs {
        let (pods, standings) = Default::default();
        Gangs { socket, settings, pods, standings, is_synchronised: false, is_first: false, trouble: None }
    }

    /// Works until nothing can be told any more.
    pub(crate) fn run(mut self, told: &Receiver<Told>) {
        loop {
            let first = if self.has_gangs() || self.trouble.is_some() {
                told.recv_timeout(PERIOD)
            } else {
                told.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            match first {
                Ok(first) => std::iter::once(first).chain(told.try_iter()).for_each(|told| self.hear(told)),
                Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // Other pods come and go, too.
            let has_work = self.has_gangs() || self.trouble.is_some() || !self.standings.is_empty();
            if self.is_synchronised && (has_work || self.is_first) {
                self.is_first = false;
                let done = self.turn();
                self.say(done);
            }
        }
    }

    fn has_gangs(&self) -> bool {
        self.pods.gangs().next().is_some()
    }

    fn hear(&mut self, told: Told) {
        match told {
            Told::Settings(settings) => {
                if settings.socket.is_some() {
                    self.socket = SocketChoice::find(settings.socket.clone());
                }
                self.settings = settings;
            }
            Told::News(news) => {
                let is_all = matches!(news, News::All { .. });
                self.is_synchronised |= is_all;
                self.is_first |= is_all;
                self.pods.apply(news);
            }
        }
    }

    fn say(&mut self, done: Result<(), ClientError>) {
        let trouble = done.err().map(|e| e.to_string());
        match &trouble {
            Some(why) if self.trouble.as_ref() != Some(why) => {
                tracing::warn!("pods are not adopted and not released now: {}", why.replace("\n  ", "; "));
            }
            None if self.trouble.is_some() => tracing::info!("coschedd answers again"),
            _ => (),
        }
        self.trouble = trouble;
    }

    /// Compares once.
    ///
    /// # Errors
    /// coschedd does not answer. What it refuses is the matter of one pod.
    fn turn(&mut self) -> Result<(), ClientError> {
        self.standings.retain(|id, _| self.pods.has(id));
        let gangs: Vec<(String, Pod)> = self.pods.gangs().map(|(id, pod)| (id.clone(), pod.clone())).collect();
        let mut client = self.socket.connect()?;
        let jobs = client.jobs(false)?.jobs;
        let (mut wanted, mut wanted_from) = (BTreeSet::new(), BTreeSet::new());
        let mut missing = Vec::new();
        for (id, pod) in &gangs {
            match self.wish(pod) {
                Ok((cgroup, wish)) => {
                    wanted.insert(cgroup.clone());
                    let from = from(pod);
                    match jobs.iter().find(|job| cgroup_of(job) == Some(&cgroup) || waits_as(job) == Some(&from)) {
                        Some(job) => drop(self.standings.insert(id.clone(), Standing::Job(job.id))),
                        None => missing.push((id, pod, cgroup, wish)),
                    }
                    wanted_from.insert(from);
                }
                Err(why) => self.refuse(id, pod, why),
            }
        }
        for job in jobs.iter().filter(|job| is_ours(job)) {
            if cgroup_of(job).is_some_and(|cgroup| !wanted.contains(cgroup)) {
                release(&mut client, job)?;
                self.standings.retain(|_, standing| *standing != Standing::Job(job.id));
            }
        }
        for job in jobs.iter().filter(|job| waits_as(job).is_some_and(|from| !wanted_from.contains(from))) {
            cancel(&mut client, job)?;
        }
        for (id, pod, cgroup, wish) in missing {
            if self.may_be_adopted(&mut client, (id, pod), &cgroup)? {
                self.adopt(&mut client, (id, pod), cgroup, wish)?;
                self.warn_of_same_name(id, pod);
            }
        }
        Ok(())
    }

    /// The pod's cgroup, and what it asks for.
    fn wish(&self, pod: &Pod) -> Result<(String, Wish), String> {
        let cgroup = pod.cgroup.clone()?;
        let wish = self.settings.wish(pod).map_err(|e| e.to_string())?;
        Ok((cgroup, wish))
    }

    /// Whether a pod without a job is to become one now.
    fn may_be_adopted(
        &mut self,
        client: &mut Client,
        (id, pod): (&str, &Pod),
        cgroup: &str,
    ) -> Result<bool, ClientError> {
        match self.standings.get(id) {
            Some(Standing::Job(job)) => match client.job(*job) {
                Ok(ended) if is_released(&ended, cgroup) => {
                    tracing::info!(
                        "pod {} was released (job {job}), and stays so until it is started again",
                        pod.shown
                    );
                    self.standings.insert(id.to_owned(), Standing::Released);
                    Ok(false)
                }
                // A daemon with another state does not know it, or has another job of this number.
                Ok(_) | Err(ClientError::Refused(_)) => Ok(true),
                Err(e) => Err(e),
            },
            Some(Standing::Released) => Ok(false),
            Some(Standing::Refused { again, .. }) => Ok(Instant::now() >= *again),
            None => Ok(true),
        }
    }

    fn adopt(
        &mut self,
        client: &mut Client,
        (id, pod): (&str, &Pod),
        cgroup: String,
        wish: Wish,
    ) -> Result<(), ClientError> {
        let from = from(pod);
        let request = JobRequest {
            command: vec![from.clone()],
            name: Some(wish.name.clone()),
            adopt: Some(Adopt { cgroup: Some(cgroup), pid: None, from: Some(from) }),
            ..wish.terms.into_request()
        };
        match client.register(&request) {
            Ok(job) => {
                tracing::info!("pod {} is the gang {} (job {})", pod.shown, wish.name, job.id);
                self.standings.insert(id.to_owned(), Standing::Job(job.id));
            }
            Err(ClientError::Refused(e)) => self.refuse(id, pod, format!("{} ({}). {}", e.what, e.why, e.hint)),
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// Says why, once.
    fn refuse(&mut self, id: &str, pod: &Pod, why: String) {
        let is_known = matches!(self.standings.get(id), Some(Standing::Refused { why: known, .. }) if *known == why);
        if !is_known {
            tracing::warn!("pod {} is no gang: {why}", pod.shown);
        }
        self.standings.insert(id.to_owned(), Standing::Refused { why, again: Instant::now() + RETRY });
    }

    /// A gang is one pod: coschedd adopts one cgroup as a job.
    fn warn_of_same_name(&self, id: &str, pod: &Pod) {
        let is_same =
            |other: &Pod| other.namespace == pod.namespace && other.annotations.get(GANG) == pod.annotations.get(GANG);
        if let Some((_, other)) = self.pods.gangs().find(|(known, other)| *known != id && is_same(other)) {
            tracing::warn!("pods {} and {} name the same gang: each is a gang of its own", other.shown, pod.shown);
        }
    }
}

fn release(client: &mut Client, job: &Job) -> Result<(), ClientError> {
    match client.release(job.id) {
        Ok(_) => tracing::info!(
            "{} is no gang any more (job {})",
            job.adopted.as_ref().and_then(|adopted| adopted.from.as_deref()).unwrap_or_default(),
            job.id
        ),
        // It has ended meanwhile.
        Err(ClientError::Refused(e)) => tracing::debug!("{} ({})", e.what, e.why),
        Err(e) => return Err(e),
    }
    Ok(())
}

/// Its pod has gone before it could begin.
fn cancel(client: &mut Client, job: &Job) -> Result<(), ClientError> {
    match client.kill(job.id, &KillRequest { signal: 9, grace_ms: None, here: false }) {
        Ok(_) => tracing::info!("{} has gone while it waited (job {})", job.command.join(" "), job.id),
        // It has begun or ended meanwhile: the next turn sees it.
        Err(ClientError::Refused(e)) => tracing::debug!("{} ({})", e.what, e.why),
        Err(e) => return Err(e),
    }
    Ok(())
}

/// Where the job of a pod comes from.
fn from(pod: &Pod) -> String {
    format!("{FROM}{}", pod.shown)
}

/// Of a job that this plug-in, or an earlier one, has asked for and that waits: where it comes from. Its cgroup is told once it has begun.
fn waits_as(job: &Job) -> Option<&String> {
    let is_ours = job.uid == rustix::process::geteuid().as_raw() && job.adopted.is_none();
    let from = job.command.first().filter(|from| from.starts_with(FROM));
    from.filter(|_| is_ours && job.state == JobState::Waiting)
}

fn is_released(job: &Job, cgroup: &str) -> bool {
    job.adopted.as_ref().is_some_and(|adopted| adopted.released && adopted.cgroup.as_deref() == Some(cgroup))
}

fn cgroup_of(job: &Job) -> Option<&String> {
    job.adopted.as_ref().and_then(|adopted| adopted.cgroup.as_ref())
}

/// Whether this plug-in, or an earlier one, has adopted it.
fn is_ours(job: &Job) -> bool {
    let from = job.adopted.as_ref().and_then(|adopted| adopted.from.as_deref());
    job.uid == rustix::process::geteuid().as_raw() && from.is_some_and(|from| from.starts_with(FROM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_waits_has_a_job() {
        let job = |state: &str, command: &str, more: serde_json::Value| -> Job {
            let mut job = serde_json::json!({
                "id": 7, "name": "a", "uid": rustix::process::geteuid().as_raw(), "user": "x", "class": "batch", "policy": "gang", "cpus": 1,
                "state": state, "command": [command], "pid": 0, "submitted_unix_ms": 1, "cpu_time_ms": 0, "detached": false, "cgroup": "",
            });
            job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(job).unwrap()
        };
        let none = || serde_json::json!({});
        assert_eq!(waits_as(&job("waiting", "pod ns/a", none())), Some(&"pod ns/a".to_owned()));
        assert_eq!(waits_as(&job("running", "pod ns/a", none())), None);
        assert_eq!(waits_as(&job("waiting", "sleep", none())), None);
        let others = rustix::process::geteuid().as_raw() + 1;
        assert_eq!(
            waits_as(&job("waiting", "pod ns/a", serde_json::json!({"uid": others}))),
            None,
            "another user's words"
        );
    }
}
