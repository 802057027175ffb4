//! A fake daemon: it keeps jobs in memory and touches no cgroup unless a test tells it to.

use cosched_api::{Event, Job, JobRequest, JobState};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time limit for everything here.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// Instead of a refusal: the daemon dies before it answers.
pub(crate) const DIES: &str = "dies";

/// What the daemon does when a job is registered; an error is the body of the refusal.
type OnRegister = Box<dyn Fn(&mut Job) -> Result<(), Value> + Send + Sync>;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) jobs: Vec<Job>,
    /// `METHOD /path body`, in order.
    pub(crate) seen: Vec<String>,
    /// The number of processes that jobs leave behind when their main process has ended.
    pub(crate) leftovers: u32,
    /// Its operator started it, not a command.
    pub(crate) operators: bool,
    /// It takes long polls and does not answer them.
    pub(crate) mute: bool,
    /// The events of each job.
    pub(crate) events: Vec<Event>,
    /// The machine's policy; gang when not set.
    pub(crate) policy: Option<cosched_api::Policy>,
    streams: Vec<UnixStream>,
    stopping: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    on_register: OnRegister,
}

/// The daemon; dropping it ends it.
pub(crate) struct Fake {
    pub(crate) socket: PathBuf,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Fake {
    pub(crate) fn start(socket: &Path) -> Fake {
        Fake::with(socket, |_| Ok(()))
    }

    pub(crate) fn with(
        socket: &Path,
        on_register: impl Fn(&mut Job) -> Result<(), Value> + Send + Sync + 'static,
    ) -> Fake {
        let _ = std::fs::remove_file(socket);
        Fake::serve(UnixListener::bind(socket).unwrap(), socket, Box::new(on_register))
    }

    pub(crate) fn serve(listener: UnixListener, socket: &Path, on_register: OnRegister) -> Fake {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), on_register });
        let acceptor = std::thread::spawn({
            let shared = shared.clone();
            move || accept(&listener, &shared)
        });
        Fake { socket: socket.to_owned(), shared, acceptor: Some(acceptor) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }

    /// Waits until the state satisfies `wanted`.
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&State) -> bool) {
        let (_state, timeout) =
            self.shared.changed.wait_timeout_while(self.state(), LIMIT, |state| !wanted(state)).unwrap();
        assert!(!timeout.timed_out(), "waited in vain for: {what}");
    }

    /// The job, which had to wait, has its place.
    pub(crate) fn place(&self, id: u64) {
        self.state().jobs[id as usize - 1].state = JobState::Running;
    }

    /// The job's last process ends.
    pub(crate) fn end(&self, id: u64) {
        end(&mut self.state().jobs[id as usize - 1]);
        self.shared.changed.notify_all();
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let mut state = self.state();
        state.stopping = true;
        for stream in state.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        let _ = UnixStream::connect(&self.socket);
        let _ = self.acceptor.take().unwrap().join();
    }
}

fn end(job: &mut Job) {
    job.state = JobState::Ended;
    job.processes = Some(0);
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let mut state = shared.state.lock().unwrap();
        if state.stopping {
            return;
        }
        state.streams.push(stream.try_clone().unwrap());
        drop(state);
        let shared = shared.clone();
        std::thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            while let Ok(Some((target, body))) = read_request(&mut stream) {
                let (status, answer) = answer(&shared, &target, &body);
                if answer == DIES {
                    let _ = stream.get_ref().shutdown(Shutdown::Both);
                    return;
                }
                let text = answer.to_string();
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", text.len());
                if stream.get_mut().write_all((head + &text).as_bytes()).is_err() {
                    return;
                }
            }
        });
    }
}

fn read_request(stream: &mut BufReader<UnixStream>) -> io::Result<Option<(String, String)>> {
    let (mut first, mut length) = (String::new(), 0);
    if stream.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let target = first.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    Ok(Some((target, String::from_utf8(body).unwrap())))
}

fn answer(shared: &Shared, target: &str, body: &str) -> (u16, Value) {
    shared.state.lock().unwrap().seen.push(format!("{target} {body}"));
    shared.changed.notify_all();
    let reply = match target {
        "GET /v1/status" => (200, status(shared)),
        "PUT /v1/policy" => {
            let request: cosched_api::PolicyRequest = serde_json::from_str(body).unwrap();
            shared.state.lock().unwrap().policy = request.policy;
            (200, status(shared))
        }
        "POST /v1/jobs" => register(shared, body),
        "GET /v1/jobs" | "GET /v1/jobs?all=true" => (200, json!({ "jobs": shared.state.lock().unwrap().jobs })),
        _ => of_job(shared, target, body),
    };
    shared.changed.notify_all();
    reply
}

fn status(shared: &Shared) -> Value {
    let state = shared.state.lock().unwrap();
    let (policy, embedded) = (state.policy.unwrap_or(cosched_api::Policy::Gang), !state.operators);
    drop(state);
    let times = json!({ "count": 0, "p50_us": 0.0, "p99_us": 0.0, "max_us": 0.0 });
    json!({
        "version": "0.0.0", "pid": 1, "uid": 0, "started_unix_ms": 1, "embedded": embedded, "socket": "s", "node": "n",
        "cpus": [0, 1], "memory_bytes": 1, "policy": policy, "sharing": "soft", "slot_length_ms": 100, "reserve": 0.05,
        "layout": "none", "mechanism": "none", "mechanisms": {}, "generation": 1,
        "matrix": { "columns": ["cpu0", "cpu1"], "rows": [], "text": "", "slot": 1, "current": [], "cycle_slots": 0 },
        "switches": { "count": 0, "wake": times, "done": times, "late": 0, "errors": 0 }, "jobs": {},
        "safety": { "lease_ms": 1000, "kernel_agent": false }, "warnings": [],
    })
}

fn register(shared: &Shared, body: &str) -> (u16, Value) {
    let request: JobRequest = serde_json::from_str(body).unwrap();
    let id = shared.state.lock().unwrap().jobs.len() as u64 + 1;
    let mut job: Job = serde_json::from_value(json!({
        "id": id, "name": request.name.unwrap_or_else(|| "job".into()), "uid": 0, "user": "root",
        "class": "interactive", "policy": "gang", "cpus": 2, "state": "running", "command": request.command,
        "pid": request.pid, "submitted_unix_ms": 1, "cpu_time_ms": 0, "detached": request.detached,
        "cgroup": format!("cst-none-{id}"), "processes": 1,
    }))
    .unwrap();
    job.log_path = request.log_path;
    match (shared.on_register)(&mut job) {
        Ok(()) => {
            let answer = json!(job);
            shared.state.lock().unwrap().jobs.push(job);
            (200, answer)
        }
        Err(refusal) => (403, refusal),
    }
}

pub(crate) fn refusal(code: &str) -> Value {
    json!({ "code": code, "what": format!("what: {code}"), "why": "because", "hint": "do else" })
}

/// `METHOD /v1/jobs/ID/VERB`. Suspending is forbidden and resuming in conflict, for the exit codes.
fn of_job(shared: &Shared, target: &str, body: &str) -> (u16, Value) {
    let path = target.split_once(' ').unwrap().1;
    let mut parts = path.split('?').next().unwrap().split('/').skip(3);
    let id: usize = parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    let mut state = shared.state.lock().unwrap();
    if id == 0 || id > state.jobs.len() {
        return (404, refusal("not-found"));
    }
    let leftovers = state.leftovers;
    match parts.next() {
        Some("exit") => {
            let report: cosched_api::ExitReport = serde_json::from_str(body).unwrap();
            let job = &mut state.jobs[id - 1];
            job.exit = Some(report.exit);
            if leftovers == 0 { end(job) } else { job.processes = Some(leftovers) }
        }
        Some("wait") => {
            let asked = Duration::from_millis(path.split('=').next_back().unwrap().parse().unwrap());
            let time = if state.mute { LIMIT } else { asked };
            let waiting = |state: &mut State| state.jobs[id - 1].state != JobState::Ended && !state.stopping;
            state = shared.changed.wait_timeout_while(state, time.min(LIMIT), waiting).unwrap().0;
        }
        Some("events") => return (200, json!({ "events": state.events })),
        Some("kill") if leftovers > 0 => end(&mut state.jobs[id - 1]),
        Some("suspend") => return (403, refusal("forbidden")),
        Some("resume") => return (409, refusal("conflict")),
        _ => {}
    }
    (200, json!(state.jobs[id - 1]))
}

/// The environment of one test: its directory and its socket.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) socket: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("coschedd.sock");
        Place { dir, socket }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `cosched` with this place's socket and without the caller's settings.
    pub(crate) fn cosched(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
        command.args(words).env("COSCHED_SOCKET", &self.socket).env("COSCHED_DAEMON", "/nonexistent/coschedd");
        command.env("XDG_STATE_HOME", self.dir.path()).stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(crate) fn output(&self, words: &[&str]) -> Output {
        bounded(self.cosched(words).stdout(Stdio::piped()).stderr(Stdio::piped()))
    }
}

/// The output of a command that must end in time.
pub(crate) fn bounded(command: &mut Command) -> Output {
    let child = command.spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let (done, ended) = std::sync::mpsc::channel();
    let watchdog = std::thread::spawn(move || {
        if ended.recv_timeout(LIMIT).is_err() {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    let _ = done.send(());
    watchdog.join().unwrap();
    output
}

/// The exit status of a process that must end in time.
pub(crate) fn ended(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if started.elapsed() >= LIMIT {
            let _ = child.kill();
            panic!("process {} did not end", child.id());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LIMIT, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program of target/venv; `None`, with a note, where that is not installed (tools/setup test).
pub(crate) fn program(name: &str, check: &str) -> Option<Command> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin");
    let imports = Command::new(folder.join("python")).args(["-c", check]).stderr(Stdio::null()).status();
    if !imports.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: target/venv has no {name}: `{check}` fails (tools/setup test)");
        return None;
    }
    Some(Command::new(folder.join(name)))
}
