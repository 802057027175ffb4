//! The clients: each sends one request after the other, to the daemon of any node, and records the answers.

use super::beat::GATE;
use super::history::{Ask, Entry, Heard, Look, Register, Shown};
use super::{Draw, now, sleep_ms};
use crate::cluster::net::Host;
use cosched_api::{
    Class, ClassRequest, Client, ClientError, ErrorCode, ExitReport, ExitStatus, Job, JobRequest, JobState,
    KillRequest, NodeRequest, NodeResources, OnNodeLoss, PolicyRequest, ProcessRequest, Queue, QueuesRequest,
};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum number of live jobs at a time.
const JOBS_MAX: usize = 6;

/// The daemon answers within 10 s, even when its store is away.
const PATIENCE: Duration = Duration::from_secs(15);

/// What the clients share.
#[derive(Debug)]
pub(super) struct Shared {
    /// The nodes' places on the network.
    pub(super) hosts: Vec<Host>,
    /// The directory into which the programs write.
    pub(super) beats: PathBuf,
    /// The operations.
    pub(super) entries: Mutex<Vec<Entry>>,
    /// The lists of jobs that nodes returned.
    pub(super) looks: Mutex<Vec<Look>>,
    /// The jobs that may be alive.
    jobs: Mutex<Vec<u64>>,
    names: AtomicU64,
    /// No more requests are sent.
    pub(super) over: AtomicBool,
    /// The cluster has been shut down.
    pub(super) gone: AtomicBool,
}

impl Shared {
    pub(super) fn new(hosts: Vec<Host>, beats: &Path) -> Arc<Shared> {
        Arc::new(Shared {
            hosts,
            beats: beats.to_owned(),
            entries: Mutex::default(),
            looks: Mutex::default(),
            jobs: Mutex::default(),
            names: AtomicU64::new(1),
            over: AtomicBool::new(false),
            gone: AtomicBool::new(false),
        })
    }

    fn client(&self, node: usize) -> Result<Client, ClientError> {
        let mut client = Client::connect(self.hosts[node].dir.join("run/coschedd.sock"))?;
        client.set_answer_timeout(PATIENCE);
        Ok(client)
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Sends a request to a node, and records it.
    fn ask(
        &self,
        client: usize,
        node: usize,
        ask: Ask,
        how: impl FnOnce(&mut Client) -> Result<u64, ClientError>,
    ) -> Heard {
        let begin = now();
        let heard = match self.client(node) {
            // The daemon is not listening, so the request was not sent.
            Err(e) => Heard::Refused(e.to_string()),
            Ok(mut connected) => heard(how(&mut connected)),
        };
        let entry = Entry { client, node, begin, end: now(), ask, heard: heard.clone() };
        locked(&self.entries).push(entry);
        heard
    }

    /// All jobs, as a node reports them.
    pub(super) fn look(&self, node: usize) -> Option<Look> {
        let begin = now();
        let jobs = self.client(node).and_then(|mut client| client.jobs(true)).ok()?.jobs;
        Some(Look { node, begin, end: now(), jobs: jobs.into_iter().map(shown).collect() })
    }

    /// Drains or undrains a node.
    pub(super) fn set_drains(&self, client: usize, asked: usize, node: usize, drains: bool) -> Heard {
        let name = self.hosts[node].name.clone();
        let ask = Ask::Set(Register::Drains(name.clone()), drains.to_string());
        self.ask(client, asked, ask, |c| {
            c.set_node(&name, &NodeRequest { drains: Some(drains), ..NodeRequest::default() }).map(|_| 0)
        })
    }
}

/// The meaning of an answer. `Internal` is a daemon's answer to a request that it keeps.
fn heard(answer: Result<u64, ClientError>) -> Heard {
    match answer {
        Ok(id) => Heard::Done(id),
        Err(ClientError::Refused(body)) if body.code != ErrorCode::Internal => {
            Heard::Refused(format!("{}: {}", body.what, body.why))
        }
        Err(e) => Heard::Unknown(e.to_string()),
    }
}

fn shown(job: Job) -> Shown {
    let (state, class) = (job.state.name().to_owned(), format!("{:?}", job.class).to_lowercase());
    Shown { id: job.id, name: job.name, state, class, code: job.exit.and_then(|exit| exit.code), why: job.ended_why }
}

pub(super) fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one client until all is over.
pub(super) fn run(shared: &Arc<Shared>, number: usize, mut draw: Draw) {
    while !shared.is_over() {
        let node = draw.between(0, shared.hosts.len() as u64 - 1) as usize;
        let job = {
            let jobs = locked(&shared.jobs);
            (!jobs.is_empty()).then(|| *draw.one_of(&jobs))
        };
        match (draw.between(0, 99), job) {
            (0..30, _) | (_, None) if locked(&shared.jobs).len() < JOBS_MAX => submit(shared, number, node, &mut draw),
            (0..45, _) => locked(&shared.looks).extend(shared.look(node)),
            (45..50, _) => {
                let (which, drains) =
                    (draw.between(0, shared.hosts.len() as u64 - 1) as usize, draw.between(0, 2) == 0);
                shared.set_drains(number, node, which, drains);
            }
            (50..55, _) => set_ceiling(shared, number, node, &mut draw),
            (55..58, _) => set_time_limit(shared, number, node, &mut draw),
            (58..100, Some(id)) => steer(shared, number, node, id, &mut draw),
            _ => (),
        }
        sleep_ms(draw.between(20, 400));
    }
}

fn set_ceiling(shared: &Shared, number: usize, node: usize, draw: &mut Draw) {
    let ceiling = *draw.one_of(&[0.8, 0.9, 1.0]);
    let request = PolicyRequest { ceiling: Some(ceiling), ..PolicyRequest::default() };
    let ask = Ask::Set(Register::Ceiling, ceiling.to_string());
    shared.ask(number, node, ask, |client| client.set_policy(&request).map(|_| 0));
}

fn set_time_limit(shared: &Shared, number: usize, node: usize, draw: &mut Draw) {
    let limit = draw.between(1_000, 9_000) * 1_000;
    let queue = |name: &str, time_ms_max| Queue { name: name.to_owned(), time_ms_max, ..Queue::default() };
    let request = QueuesRequest { queues: vec![queue("day", Some(limit)), queue("night", None)], fair_share: None };
    let ask = Ask::Set(Register::TimeLimit, limit.to_string());
    shared.ask(number, node, ask, |client| client.set_queues(&request).map(|_| 0));
}

/// A random request about a job.
fn steer(shared: &Shared, number: usize, node: usize, id: u64, draw: &mut Draw) {
    match draw.between(0, 9) {
        0..3 => drop(shared.ask(number, node, Ask::Suspend(id), |client| client.suspend(id).map(|job| job.id))),
        3..7 => drop(shared.ask(number, node, Ask::Resume(id), |client| client.resume(id).map(|job| job.id))),
        7 => {
            let class = *draw.one_of(&[Class::Interactive, Class::Batch, Class::Standby]);
            let ask = Ask::Set(Register::Class(id), format!("{class:?}").to_lowercase());
            shared.ask(number, node, ask, |client| client.set_class(id, &ClassRequest { class }).map(|job| job.id));
        }
        8 => {
            let waited = shared.client(node).and_then(|mut client| client.wait(id, Duration::from_secs(1)));
            if waited.is_ok_and(|job| shown(job).is_over()) {
                locked(&shared.jobs).retain(|of| *of != id);
            }
        }
        _ => {
            let kill = KillRequest { signal: 9, grace_ms: None, here: false };
            shared.ask(number, node, Ask::Kill(id), |client| client.kill(id, &kill).map(|job| job.id));
        }
    }
}

/// A job of this node, or a gang that spans it and another one, started in the way of a launcher: a gate first, then the
/// program.
fn submit(shared: &Arc<Shared>, number: usize, node: usize, draw: &mut Draw) {
    let name = format!("j{}", shared.names.fetch_add(1, Ordering::Relaxed));
    let spans = draw.between(0, 1) == 1;
    let other = (node + draw.between(1, shared.hosts.len() as u64 - 1) as usize) % shared.hosts.len();
    let (seconds, code) = (draw.between(8, 50), draw.between(0, 9) as i32);
    let prefix = shared.beats.join(&name).display().to_string();
    let program = std::env::current_exe().expect("own path").display().to_string();
    let words = vec![program, "beat".to_owned(), prefix, seconds.to_string(), code.to_string()];
    let Some(child) = gate(&shared.hosts[node], &words) else { return };
    let nodes: &[usize] = if spans { &[node, other] } else { &[node] };
    let wants = |n: &usize| NodeResources { name: shared.hosts[*n].name.clone(), cpus: Some(1), ..Default::default() };
    let request = JobRequest {
        command: words.clone(),
        pid: child.id() as i32,
        name: Some(name.clone()),
        class: Some(Class::Interactive),
        nodes: nodes.iter().map(wants).collect(),
        queue: Some((*draw.one_of(&["day", "night"])).to_owned()),
        on_node_loss: Some(*draw.one_of(&[OnNodeLoss::Kill, OnNodeLoss::Keep, OnNodeLoss::Requeue])),
        environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        cwd: Some("/".to_owned()),
        ..JobRequest::default()
    };
    match shared.ask(number, node, Ask::Submit(name), |client| client.register(&request).map(|job| job.id)) {
        Heard::Done(id) => {
            locked(&shared.jobs).push(id);
            let (shared, words) = (Arc::clone(shared), words);
            std::thread::spawn(move || {
                let Some(child) = placed(&shared, node, id, child) else { return };
                let rank = spans.then(|| join(&shared, other, id, &words)).flatten();
                launch(&shared, number, node, id, child);
                // The daemon ends it, or it ends by itself.
                let _ = rank.map(|mut rank| rank.wait());
            });
        }
        // As a launcher does that was not told that it is a job: the program never begins.
        _ => end(Some(child)),
    }
}

/// Starts the program behind its gate, on a node.
fn gate(host: &Host, words: &[String]) -> Option<Child> {
    let mut command = host.command(&words[0]);
    command.args(&words[1..]).env(GATE, "1").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok()
}

/// Lets the program begin.
fn open(child: &mut Child) {
    if let Some(mut gate) = child.stdin.take() {
        // It may have been killed with its job.
        let _ = std::io::Write::write_all(&mut gate, b"x");
    }
}

/// As `cosched run` does: the program waits behind its gate until the job has its place. `None` when the job is over
/// before.
fn placed(shared: &Shared, node: usize, id: u64, child: Child) -> Option<Child> {
    while !shared.gone.load(Ordering::Relaxed) {
        let job = shared.client(node).and_then(|mut client| client.job(id));
        match job {
            Ok(job) if job.state == JobState::Waiting => (),
            Ok(job) if job.state.has_ended() => break,
            Ok(job) if job.pid == child.id() as i32 => return Some(child),
            Ok(_) => {
                // The daemon that knew this process has died since.
                let request = ProcessRequest { pid: child.id() as i32, start_ticks: None };
                let entered = shared.client(node).and_then(|mut client| client.add_process(id, &request));
                if entered.is_ok() {
                    return Some(child);
                }
                // Or the new one has not heard yet that the job has its place here.
            }
            Err(ClientError::Refused(body)) if body.code == ErrorCode::NotFound => break,
            Err(_) => (),
        }
        sleep_ms(100);
    }
    end(Some(child));
    locked(&shared.jobs).retain(|of| *of != id);
    None
}

/// The main process, from its beginning to the report of its end.
fn launch(shared: &Shared, number: usize, node: usize, id: u64, mut child: Child) {
    open(&mut child);
    let ended = child.wait();
    let Some(code) = ended.ok().and_then(|status| status.code()) else { return };
    let report = ExitReport { exit: ExitStatus { code: Some(code), signal: None } };
    while !shared.gone.load(Ordering::Relaxed) {
        let ask = Ask::Exit(id, code);
        if !matches!(shared.ask(number, node, ask, |c| c.report_exit(id, &report).map(|job| job.id)), Heard::Unknown(_))
        {
            break;
        }
        sleep_ms(1_000);
    }
    locked(&shared.jobs).retain(|of| *of != id);
}

/// A rank on another node enters the job there, as soon as the job has a part on it.
fn join(shared: &Shared, node: usize, id: u64, words: &[String]) -> Option<Child> {
    let mut rank = gate(&shared.hosts[node], words)?;
    let request = ProcessRequest { pid: rank.id() as i32, start_ticks: None };
    for _ in 0..20 {
        if shared.client(node).and_then(|mut client| client.add_process(id, &request)).is_ok() {
            open(&mut rank);
            return Some(rank);
        }
        sleep_ms(250);
    }
    end(Some(rank));
    None
}

/// Ends a remaining process, and waits for it.
fn end(child: Option<Child>) {
    if let Some(mut child) = child {
        let _ = child.kill();
        let _ = child.wait();
    }
}
