//! Keeps coschedd's jobs in step with the pods that ask to be gangs.
//!
//! Nothing is remembered that has to survive: each turn compares the pods with the jobs that coschedd has (`turn.rs` says what follows). So it makes no
//! difference which of the runtime, coschedd and the plug-in has been started again. Whatever ends, coschedd and its guard see to it that no pod stays frozen.

use crate::pods::{News, Pod, Pods};
use crate::settings::{Settings, Wish};
use crate::turn::{Known, Step, steps};
use cosched_api::{
    CgroupRequest, Client, ClientError, ErrorBody, Job, JobRequest, JobState, KillRequest, NodeResources, OnNodeLoss,
    SocketChoice, Terms,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the jobs are compared with the pods while nothing is told: coschedd may have been started again, or a job released.
const PERIOD: Duration = Duration::from_secs(2);
/// When a pod is tried again that coschedd has refused.
const RETRY: Duration = Duration::from_secs(10);
/// The beginning of what our jobs have in the place of a command; the gang follows.
const PODS_OF: &str = "pods of ";

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
    /// Until then it is not tried again.
    Refused(Instant),
}

/// A pod with what it asks for.
struct Asked {
    id: String,
    shown: String,
    cgroup: String,
    terms: Terms,
}

pub(crate) struct Gangs {
    socket: SocketChoice,
    settings: Settings,
    pods: Pods,
    standings: BTreeMap<String, Standing>,
    /// What was said last of why a pod is no gang.
    said: BTreeMap<String, String>,
    /// The runtime has told what it has. Before that no job is known to be superfluous.
    is_synchronised: bool,
    /// It has just done so: jobs of before may be superfluous.
    is_first: bool,
    /// Why the last turn could not be finished.
    trouble: Option<String>,
}

impl Gangs {
    pub(crate) fn new(socket: SocketChoice, settings: Settings) -> Gangs {
        let (pods, standings, said) = Default::default();
        Gangs { socket, settings, pods, standings, said, is_synchronised: false, is_first: false, trouble: None }
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

    /// Compares, twice if a new job takes pods at once.
    ///
    /// # Errors
    /// coschedd does not answer. What it refuses is the matter of one gang.
    fn turn(&mut self) -> Result<(), ClientError> {
        self.standings.retain(|id, _| self.pods.has(id));
        self.said.retain(|id, _| self.pods.has(id));
        let mut client = self.socket.connect()?;
        if self.compare(&mut client)? {
            self.compare(&mut client)?;
        }
        Ok(())
    }

    /// Whether a job was registered.
    fn compare(&mut self, client: &mut Client) -> Result<bool, ClientError> {
        let status = client.status()?;
        let jobs: Vec<Known> = client.jobs(false)?.jobs.iter().filter_map(known).collect();
        let gangs = self.asked(client, &jobs)?;
        let alive = status.nodes.into_iter().flatten().filter(|node| node.alive).map(|node| node.name).collect();
        let cgroups = |asked: &Vec<Asked>| asked.iter().map(|of| of.cgroup.clone()).collect();
        let wanted = gangs.iter().map(|(gang, asked)| (gang.clone(), cgroups(asked))).collect();
        let mut registered = false;
        for step in steps(&status.node, &alive, &wanted, &jobs) {
            match step {
                Step::Leave { job, cgroup } => leave(client, job, cgroup)?,
                Step::Cancel { job } => cancel(client, job)?,
                Step::Enter { job, cgroup } => {
                    let mut all = gangs.iter().flat_map(|(gang, asked)| asked.iter().map(move |of| (gang, of)));
                    if let Some((gang, of)) = all.find(|(_, of)| of.cgroup == cgroup) {
                        self.enter(client, job, gang, of)?;
                    }
                }
                Step::Register { gang, nodes } => {
                    let asked = gangs.get(&gang).map_or(&[][..], Vec::as_slice);
                    registered |= self.register(client, gang, nodes, asked)?;
                }
            }
        }
        Ok(registered)
    }

    /// The pods that are to be in a job now, by gang; of each gang the first one by name decides how it is scheduled.
    fn asked(&mut self, client: &mut Client, jobs: &[Known]) -> Result<BTreeMap<String, Vec<Asked>>, ClientError> {
        let pods: Vec<(String, Pod)> = self.pods.gangs().map(|(id, pod)| (id.clone(), pod.clone())).collect();
        let mut gangs: BTreeMap<String, Vec<Asked>> = BTreeMap::new();
        for (id, pod) in pods {
            let (cgroup, wish) = match self.wish(&pod) {
                Ok(wish) => wish,
                Err(why) => {
                    self.refuse(&id, &pod.shown, why);
                    continue;
                }
            };
            match jobs.iter().find(|job| job.cgroups.contains(&cgroup)) {
                Some(job) => drop(self.standings.insert(id.clone(), Standing::Job(job.id))),
                None if !self.may_enter(client, &id, &pod)? => continue,
                None => (),
            }
            let asked = Asked { id, shown: pod.shown, cgroup, terms: wish.terms };
            gangs.entry(wish.gang).or_default().push(asked);
        }
        gangs.values_mut().for_each(|asked| asked.sort_by(|a, b| a.shown.cmp(&b.shown)));
        Ok(gangs)
    }

    /// The pod's cgroup, and what it asks for.
    fn wish(&self, pod: &Pod) -> Result<(String, Wish), String> {
        let cgroup = pod.cgroup.clone()?;
        let wish = self.settings.wish(pod).map_err(|e| e.to_string())?;
        Ok((cgroup, wish))
    }

    /// Whether a pod without a job is to be in one now.
    fn may_enter(&mut self, client: &mut Client, id: &str, pod: &Pod) -> Result<bool, ClientError> {
        match self.standings.get(id) {
            Some(Standing::Job(job)) => match client.job(*job) {
                Ok(job) if job.adopted.as_ref().is_some_and(|adopted| adopted.released) => {
                    let (shown, job) = (&pod.shown, job.id);
                    tracing::info!("pod {shown} was released (job {job}), and stays so until it is started again");
                    self.standings.insert(id.to_owned(), Standing::Released);
                    Ok(false)
                }
                // A daemon with another state does not know it, or has another job of this number.
                Ok(_) | Err(ClientError::Refused(_)) => Ok(true),
                Err(e) => Err(e),
            },
            Some(Standing::Released) => Ok(false),
            Some(Standing::Refused(again)) => Ok(Instant::now() >= *again),
            None => Ok(true),
        }
    }

    /// Whether it was done.
    fn register(
        &mut self,
        client: &mut Client,
        gang: String,
        nodes: BTreeSet<String>,
        asked: &[Asked],
    ) -> Result<bool, ClientError> {
        let Some(first) = asked.first() else { return Ok(false) };
        let cpus = first.terms.cpus;
        let request = JobRequest {
            command: vec![format!("{PODS_OF}{gang}")],
            name: Some(gang),
            cpus: None,
            nodes: nodes.into_iter().map(|name| NodeResources { name, cpus, ..NodeResources::default() }).collect(),
            // Each node's plug-in asks for it.
            once: true,
            on_node_loss: Some(OnNodeLoss::Keep),
            ..first.terms.clone().into_request()
        };
        match client.register(&request) {
            Ok(_) => Ok(true),
            Err(ClientError::Refused(e)) => {
                let none = asked.iter().filter(|of| !matches!(self.standings.get(&of.id), Some(Standing::Job(_))));
                let none: Vec<(&String, &String)> = none.map(|of| (&of.id, &of.shown)).collect();
                none.into_iter().for_each(|(id, shown)| self.refuse(id, shown, told(&e)));
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }

    fn enter(&mut self, client: &mut Client, job: u64, gang: &str, asked: &Asked) -> Result<(), ClientError> {
        match client.add_cgroup(job, &CgroupRequest { cgroup: asked.cgroup.clone() }) {
            Ok(job) => {
                tracing::info!("pod {} is in the gang {gang} (job {})", asked.shown, job.id);
                if let Some(text) = differs(&asked.terms, &job) {
                    tracing::warn!("pod {} asks for {text}: the first pod of a gang decides for all", asked.shown);
                }
                self.said.remove(&asked.id);
                self.standings.insert(asked.id.clone(), Standing::Job(job.id));
            }
            Err(ClientError::Refused(e)) => self.refuse(&asked.id, &asked.shown, told(&e)),
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// Says why, once.
    fn refuse(&mut self, id: &str, shown: &str, why: String) {
        if self.said.get(id) != Some(&why) {
            tracing::warn!("pod {shown} is not in its gang: {why}");
            self.said.insert(id.to_owned(), why);
        }
        self.standings.insert(id.to_owned(), Standing::Refused(Instant::now() + RETRY));
    }
}

fn told(e: &ErrorBody) -> String {
    format!("{} ({}). {}", e.what, e.why, e.hint)
}

fn leave(client: &mut Client, job: u64, cgroup: String) -> Result<(), ClientError> {
    match client.remove_cgroup(job, &CgroupRequest { cgroup: cgroup.clone() }) {
        Ok(_) => tracing::info!("{cgroup} is in no gang any more (job {job})"),
        // It has ended meanwhile.
        Err(ClientError::Refused(e)) => tracing::debug!("{} ({})", e.what, e.why),
        Err(e) => return Err(e),
    }
    Ok(())
}

/// It is no longer needed, and has not begun.
fn cancel(client: &mut Client, job: u64) -> Result<(), ClientError> {
    match client.kill(job, &KillRequest { signal: 9, grace_ms: None, here: false }) {
        Ok(job) => tracing::info!("{} is not waited for any more (job {})", job.command.join(" "), job.id),
        // It has begun or ended meanwhile: the next turn sees it.
        Err(ClientError::Refused(e)) => tracing::debug!("{} ({})", e.what, e.why),
        Err(e) => return Err(e),
    }
    Ok(())
}

/// A job that this plug-in, an earlier one, or that of another node has asked for.
fn known(job: &Job) -> Option<Known> {
    let gang = job.command.first()?.strip_prefix(PODS_OF)?;
    let is_ours = job.uid == rustix::process::geteuid().as_raw() && job.name == gang;
    is_ours.then(|| Known {
        id: job.id,
        gang: gang.to_owned(),
        nodes: job.nodes.iter().map(|node| node.name.clone()).collect(),
        waits: matches!(job.state, JobState::Waiting | JobState::Unknown),
        cgroups: job.cgroups.iter().cloned().collect(),
    })
}

/// What a pod asks for and its gang has not.
fn differs(terms: &Terms, job: &Job) -> Option<String> {
    let class = terms.class.filter(|class| *class != job.class).map(|class| format!("class {}", class.name()));
    let is_share = job.share_max.map(permille) == terms.share.map(permille);
    let share = (!is_share).then(|| {
        terms.share.map_or("no share".to_owned(), |share| format!("share {}%", f64::from(permille(share)) / 10.0))
    });
    let policy = terms.policy.filter(|policy| job.own_policy != Some(*policy));
    let policy = policy.map(|policy| format!("policy {}", policy.name()));
    let queue =
        terms.queue.clone().filter(|queue| job.queue.as_ref() != Some(queue)).map(|queue| format!("queue {queue}"));
    let cpus = terms.cpus.filter(|cpus| job.nodes.iter().all(|node| node.cpus != Some(*cpus)));
    let cpus = cpus.map(|cpus| format!("{cpus} CPUs"));
    let all: Vec<String> = [class, share, policy, queue, cpus].into_iter().flatten().collect();
    (!all.is_empty()).then(|| format!("{}, which job {} has not", all.join(", "), job.id))
}

fn permille(share: f64) -> u32 {
    (share * 1000.0).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_api::Class;

    fn job(name: &str, command: &str, more: serde_json::Value) -> Job {
        let mut job = serde_json::json!({
            "id": 7, "name": name, "uid": rustix::process::geteuid().as_raw(), "user": "x", "class": "batch", "policy": "gang", "cpus": 1,
            "state": "running", "command": [command], "pid": 0, "submitted_unix_ms": 1, "cpu_time_ms": 0, "detached": false, "cgroup": "",
        });
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(job).unwrap()
    }

    #[test]
    fn only_what_a_plugin_has_asked_for_is_a_gangs_job() {
        let none = || serde_json::json!({});
        let ours =
            serde_json::json!({"state": "waiting", "nodes": [{"name": "n1"}, {"name": "n2"}], "cgroups": ["/a"]});
        let found = known(&job("ns/a", "pods of ns/a", ours)).unwrap();
        assert_eq!((found.id, found.gang.as_str(), found.waits, found.nodes.len()), (7, "ns/a", true, 2));
        assert!(found.cgroups.contains("/a") && !known(&job("ns/a", "pods of ns/a", none())).unwrap().waits);
        let others = rustix::process::geteuid().as_raw() + 1;
        for other in [
            job("ns/a", "sleep", none()),
            job("ns/a", "pods of ns/b", none()),
            job("ns/a", "pods of ns/a", serde_json::json!({"uid": others})),
        ] {
            assert_eq!(known(&other), None, "{:?}", other.command);
        }
    }

    #[test]
    fn what_a_pod_asks_for_in_vain_is_named() {
        let has = job("ns/a", "pods of ns/a", serde_json::json!({"share_max": 0.25, "queue": "day"}));
        let asks = |class, share| Terms { class, share, queue: Some("day".into()), ..Terms::default() };
        assert_eq!(differs(&asks(Some(Class::Batch), Some(0.25)), &has), None);
        assert_eq!(differs(&asks(None, Some(0.25)), &has), None, "it asks for none");
        let text = differs(&asks(Some(Class::Standby), None), &has).unwrap();
        assert_eq!(text, "class standby, no share, which job 7 has not");
        let text =
            differs(&Terms { cpus: Some(2), queue: Some("night".into()), ..asks(None, Some(0.5)) }, &has).unwrap();
        assert_eq!(text, "share 50%, queue night, 2 CPUs, which job 7 has not");
    }
}
