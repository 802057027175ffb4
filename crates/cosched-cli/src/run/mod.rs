//! `cosched run`: the launcher.
//!
//! It starts a gate ([`mod@gate`]), registers it as a job, opens it, and is then nothing but the command's shadow: it
//! passes signals on, follows the daemon ([`mod@follow`]), reports the end, and ends with the command's exit code. A
//! detached job has a supervisor ([`mod@detach`]) that does the same in a session of its own.

mod again;
mod array;
pub(crate) mod carry;
mod detach;
mod files;
mod find;
mod follow;
mod gate;
mod leftovers;
mod no_daemon;
mod options;
mod place;
mod report;
mod script;
pub(crate) mod signals;
mod terms;
mod thaw;
pub(crate) mod waiting;
mod watch;

pub(crate) use again::{AGAIN, again};
pub(crate) use detach::supervise;
pub(crate) use find::find_program;
pub(crate) use follow::Follow;
pub(crate) use gate::gate;
pub(crate) use options::Run;
pub(crate) use script::with_options;
pub(crate) use thaw::cgroup2;
pub(crate) use waiting::{strategies, wait_library};
pub(crate) use watch::{shell_code, wait, wire_status};

use crate::context::Context;
use crate::out::{Failure, say};
use array::Task;
use cosched_api::{
    Activation, After, Client, ClientError, ErrorCode, ExitReport, Job, JobRequest, OnNodeLoss, SocketChoice, activate,
};
use files::{Files, Words};
use follow::FIRST_POLL_AFTER;
use gate::Gate;
use options::Leftovers;
use place::{Place, Placed};
use report::Report;
use signals::Signals;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use watch::MainProcess;

/// The first argument of a gate.
pub(crate) const GATE: &str = "__gate";
/// The first argument of the process that becomes a daemon in a new session.
pub(crate) const SESSION: &str = "__session";
/// The first argument of a detached job's supervisor.
pub(crate) const SUPERVISE: &str = "__supervise";

/// cosched itself failed, as opposed to the command.
pub(crate) const EXIT_FAILED: u8 = 125;
/// The command was found but could not be executed.
pub(crate) const EXIT_NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
pub(crate) const EXIT_NOT_FOUND: u8 = 127;

/// How long the launcher tries to report the end to a daemon that is away.
const REPORT_TIME: Duration = Duration::from_secs(5);

/// `cosched run`.
pub(crate) fn run(context: &Context, options: &Run) -> Result<u8, Failure> {
    if options.detach {
        return detach::detach(context.json, options);
    }
    let mut file = report::open(options.report.as_deref())?;
    let launch = Launch::new(context, options, None);
    let result = launch.and_then(|launch| run_job(&launch, |said| report::tell(&mut file, &said)));
    if let Err(failure) = &result {
        // The failure is also printed on standard error.
        let _ = report::tell(&mut file, &Report::of(failure));
    }
    result
}

/// What is to be run and how.
#[derive(Debug)]
struct Launch<'a> {
    program: PathBuf,
    argv: &'a [OsString],
    request: JobRequest,
    waiting: Option<waiting::Plan>,
    leftovers: Leftovers,
    socket: SocketChoice,
    files: &'a Files,
    task: Option<Task>,
}

impl<'a> Launch<'a> {
    /// For a detached job, `log_path` is the file of its output, unless the user named another.
    fn new(context: &Context, options: &'a Run, detached: Option<Detached>) -> Result<Launch<'a>, Failure> {
        // Before the directory changes.
        let socket = SocketChoice::find(context.socket.as_ref().and_then(|path| std::path::absolute(path).ok()));
        let program = find_in(options)?;
        let Detached { log_path, task } = detached.unwrap_or_default();
        let (policy, asked) = options.how();
        let waiting = waiting::Plan::new(asked, &program)?;
        let lossy = |word: &OsString| word.to_string_lossy().into_owned();
        let mut request = JobRequest {
            command: options.command.iter().map(lossy).collect(),
            name: task
                .as_ref()
                .map(|task| format!("{}[{}]", name_of(options), task.index))
                .or_else(|| options.name.clone()),
            class: options.class,
            cpus: options.cpus,
            mem_bytes: options.mem,
            policy,
            share_max: options.share,
            waiting: waiting::told(asked, waiting.as_ref()),
            cwd: std::env::current_dir().ok().map(|dir| dir.to_string_lossy().into_owned()),
            detached: options.detach,
            log_path,
            nodes: options.nodes.clone(),
            queue: options.queue.clone(),
            on_node_loss: options.on_node_loss,
            ..JobRequest::default()
        };
        options.terms.add_to(&mut request);
        request.after.extend(task.iter().filter_map(|task| Some(After { job: task.after?, ok: false })));
        if options.on_node_loss == Some(OnNodeLoss::Requeue) {
            request.environment = environment(&options.files.env);
        }
        let (argv, leftovers, files) = (&options.command[..], options.leftovers, &options.files);
        let mut launch = Launch { program, argv, request, waiting, leftovers, socket, files, task };
        if let Some(path) = launch.files.log_path(launch.words()).filter(|_| options.detach) {
            launch.request.log_path = Some(path);
        }
        Ok(launch)
    }

    fn words(&self) -> Words<'_> {
        let index = self.task.as_ref().map(|task| task.index);
        Words { name: self.request.name.as_deref().unwrap_or_else(|| base_name(&self.argv[0])), index }
    }

    /// What the gate of a job without cgroups is told.
    fn kept(&self, keeper: &str, job: &Job) -> [(String, OsString); 3] {
        gate::kept(keeper, &job.cgroup, self.leftovers == Leftovers::Kill)
    }

    /// The additions to the command's environment: the user's, those of its array, and those of its job.
    fn variables(&self, job: &Job) -> Vec<(String, OsString)> {
        let own = self.files.env.iter().map(|(name, value)| (name.clone(), value.into()));
        let of_array = self.task.iter().flat_map(|task| {
            let (index, count) = (task.index.to_string(), task.count.to_string());
            let array = task.array.unwrap_or(job.id).to_string();
            [("INDEX", index), ("COUNT", count), ("ID", array)]
                .map(|(name, value)| (format!("COSCHED_ARRAY_{name}"), value.into()))
        });
        own.chain(of_array).chain(carry::environment(job, self.waiting.as_ref(), &self.files.env)).collect()
    }
}

/// Runs the job to its end; `before` is called with the outcome of the registration before the command runs.
fn run_job(launch: &Launch<'_>, before: impl FnOnce(Report) -> Result<(), Failure>) -> Result<u8, Failure> {
    let mut gate = Gate::spawn(&launch.program, launch.argv).map_err(|e| failed("cannot start a process", &e))?;
    let signals = Signals::take().map_err(|e| failed("cannot read signals", &e))?;
    let (mut client, job, daemon) = match register(launch, gate.pid()) {
        Ok(all) => all,
        // Interrupted while it waited: the command is not run, and there is nothing to explain.
        Err(_) if gate.ended().is_some() => return Ok(shell_code(watch::wire_status(cancel(gate)?))),
        Err(error) => {
            cancel(gate)?;
            return match error {
                ClientError::NoPlace { why, hint } => {
                    before(Report::WithoutDaemon { why: why.clone(), hint: hint.clone() })?;
                    no_daemon::exec(launch, signals, (&why, &hint))
                }
                error => Err(Failure { code: EXIT_FAILED, ..Failure::from(error) }),
            };
        }
    };
    let registered = Report::Registered(Box::new(job.clone()));
    daemon.keeper.iter().for_each(|_| no_daemon::tell_signals(&job));
    let ready = launch.files.check(launch.words(), job.id).and_then(|()| before(registered));
    let placed = ready.map_err(|failure| (None, Some(failure))).and_then(|()| {
        let job = match place::wait(&mut client, job.clone(), &signals, &mut gate) {
            Ok(Placed::At(job)) => *job,
            Ok(Placed::Never(signal)) => return Err((signal, None)),
            Err(e) => return Err((None, Some(Failure { code: EXIT_FAILED, ..Failure::from(e) }))),
        };
        let streams = launch.files.prepare(launch.words(), job.id);
        streams.map(|streams| (job, streams)).map_err(|failure| (None, Some(failure)))
    });
    let (job, streams) = match placed {
        Ok(both) => both,
        Err((signal, failure)) => {
            let cancelled = watch::wire_status(cancel(gate)?);
            // The gate then ends by itself; it was the user's signal that ended the job.
            let exit = signal.map_or(cancelled, |signal| cosched_api::ExitStatus { code: None, signal: Some(signal) });
            let _ = client.report_exit(job.id, &ExitReport { exit });
            return failure.map_or_else(|| Ok(shell_code(exit)), Err);
        }
    };
    let outside = is_outside(&job);
    let place = Place::of(&job, &launch.files.env);
    let keeper = daemon.keeper.iter().flat_map(|keeper| launch.kept(keeper, &job)).collect();
    let environment = [launch.variables(&job), place.environment.clone(), streams, keeper].concat();
    let mut main = MainProcess::new(gate.open(&environment)).map_err(|e| failed("cannot watch the command", &e))?;
    let exit = {
        let mut follow = Follow::new(&client, &job, FIRST_POLL_AFTER);
        let status = watch::until_exit(&mut main, &signals, &mut follow, outside);
        watch::wire_status(status.map_err(|e| failed("cannot wait for the command", &e))?)
    };
    daemon.keeper.iter().for_each(|keeper| continue_left(keeper, &job, exit));
    let reported = report((&launch.socket, daemon.embedded), &mut client, &job, exit);
    reported.iter().for_each(tell_what_was_killed);
    match reported {
        Ok(job) if job.state.has_ended() || job.ended_why.is_some() => tell_why(&job),
        Ok(job) => leftovers::finish(launch.leftovers, &mut client, &signals, &job),
        Err(error) => say(&format!("the end of job {} could not be reported: {error}", job.id)),
    }
    Ok(shell_code(exit))
}

/// If the keeper of a job without cgroups was killed, what it has stopped is continued. The daemon does this, too, and its guard.
fn continue_left(keeper: &str, job: &Job, exit: cosched_api::ExitStatus) {
    if exit.signal.is_some() {
        let _ = std::process::Command::new(keeper).arg("continue").arg(&job.cgroup).status();
    }
}

/// Whether the command runs outside its job because the job has no part on this node; the user is told so.
fn is_outside(job: &Job) -> bool {
    let outside = job.cgroup.is_empty() && !job.nodes.is_empty();
    if outside {
        let names: Vec<&str> = job.nodes.iter().map(|node| node.name.as_str()).collect();
        say(&format!(
            "job {} has its CPUs on {}, not on this node: the command runs here outside the job, and processes that it starts \
             there join the job",
            job.id,
            names.join(", ")
        ));
    }
    outside
}

/// Says why a job ended, unless it ended by itself.
fn tell_why(job: &Job) {
    if let Some(why) = &job.ended_why {
        say(&format!("job {} was ended: {why}", job.id));
    }
}

/// Says what the kernel killed for lack of memory, which the command's exit code does not show.
fn tell_what_was_killed(job: &Job) {
    let Some(killed) = job.out_of_memory else { return };
    let hint = match killed.limit_bytes {
        Some(_) => "reduce its memory use, or have the limit raised",
        None => {
            "reduce its memory use, or run less beside it; with `--mem` jobs wait for memory where the machine plans it"
        }
    };
    say(&format!("job {}: {killed}; {hint}", job.id));
}

/// For a daemon that may have to restart the program. Variables that are not valid Unicode cannot be passed on.
fn environment(own: &[(String, String)]) -> Vec<(String, String)> {
    let inherited = std::env::vars_os();
    let text = inherited.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let kept = text.filter(|(name, _)| own.iter().all(|(other, _)| other != name));
    kept.chain(own.iter().cloned()).collect()
}

/// What is specific to a detached job.
#[derive(Debug, Default)]
struct Detached {
    log_path: Option<String>,
    task: Option<Task>,
}

/// Finds the command's file, relative to the present directory or else to the directory to run in; then changes to that directory.
fn find_in(options: &Run) -> Result<PathBuf, Failure> {
    let find = || find_program(&options.command[0], std::env::var_os("PATH"));
    let here = find().map(|path| std::path::absolute(&path).unwrap_or(path));
    options.files.enter()?;
    here.or_else(|_| find())
}

fn base_name(command: &OsStr) -> &str {
    Path::new(command).file_name().and_then(OsStr::to_str).unwrap_or("job")
}

fn name_of(options: &Run) -> &str {
    options.name.as_deref().unwrap_or_else(|| base_name(&options.command[0]))
}

/// What a launcher needs to know of its daemon.
struct Daemon {
    /// It was started by a command.
    embedded: bool,
    /// The program that stops and continues the job by signals, where there are no cgroups.
    keeper: Option<String>,
}

fn register(launch: &Launch<'_>, pid: u32) -> Result<(Client, Job, Daemon), ClientError> {
    let request = JobRequest { pid: pid as i32, ..launch.request.clone() };
    let mut may_have_ended = true;
    loop {
        let mut client = connect_or_start(&launch.socket, None)?;
        let daemon =
            client.status().map(|status| Daemon { embedded: status.embedded, keeper: status.keeper.map(own_keeper) });
        // A daemon that was started on demand ends when it has no jobs. Any other daemon is not replaced.
        let is_replaced = may_have_ended && daemon.as_ref().map_or(true, |daemon| daemon.embedded);
        let has_keeper = daemon.as_ref().is_ok_and(|daemon| daemon.keeper.is_some());
        if has_keeper && waiting::is_rank() {
            let why = "each rank would be a job by itself, and they would be stopped in turn".to_owned();
            return Err(ClientError::NoPlace { why, hint: "put `cosched run` before the launcher".to_owned() });
        }
        let request = JobRequest { keeper: has_keeper, ..request.clone() };
        match daemon.and_then(|daemon| Ok((client.register(&request)?, daemon))) {
            Err(ClientError::Unreachable { .. }) if is_replaced => may_have_ended = false,
            other => {
                let (job, daemon) = other.map_err(|error| if has_keeper { without_place(error) } else { error })?;
                return Ok((client, job, daemon));
            }
        }
    }
}

/// The keeper beside this program, if it is there: the daemon may be in another container, with other paths.
fn own_keeper(of_daemon: String) -> String {
    let own = std::env::current_exe()
        .ok()
        .and_then(|own| own.with_file_name("cosched-guard").into_os_string().into_string().ok());
    own.filter(|path| Path::new(path).is_file()).unwrap_or(of_daemon)
}

/// Where jobs are switched by signals, another user's daemon, and one whose job this command is in, are as good as none.
fn without_place(error: ClientError) -> ClientError {
    let is_inside = std::env::var_os(carry::JOB).is_some();
    match error {
        ClientError::Refused(of)
            if of.code == ErrorCode::Forbidden || (of.code == ErrorCode::Conflict && is_inside) =>
        {
            ClientError::NoPlace { why: of.why, hint: of.hint }
        }
        error => error,
    }
}

/// The running daemon, else a new one. `limit` bounds the time until the new one's first answer.
pub(crate) fn connect_or_start(socket: &SocketChoice, limit: Option<Duration>) -> Result<Client, ClientError> {
    match socket.connect() {
        Err(error) if is_absent(&error) => {
            no_daemon::is_possible()?;
            let mut activation = Activation::find(vec!["/proc/self/exe".into(), SESSION.into()])?;
            activation.timeout = limit.unwrap_or(activation.timeout);
            let mut client = activate(socket.to_start(), &activation)?;
            client.status().iter().for_each(no_daemon::tell_place);
            Ok(client)
        }
        other => other,
    }
}

/// Whether this error says that no daemon listens; one that does may only be slow.
fn is_absent(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { source, .. } => {
            matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
        }
        ClientError::NotStarted { .. } | ClientError::NoPlace { .. } => true,
        _ => false,
    }
}

/// Reports the command's end; if the daemon has died, to its successor or to a new one.
fn report(
    daemon: (&SocketChoice, bool),
    client: &mut Client,
    job: &Job,
    exit: cosched_api::ExitStatus,
) -> Result<Job, ClientError> {
    let report = ExitReport { exit };
    let deadline = Instant::now() + REPORT_TIME;
    let mut answer = client.report_exit(job.id, &report);
    while let Err(ClientError::Unreachable { .. } | ClientError::NotStarted { .. } | ClientError::NoPlace { .. }) =
        answer
    {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let fresh = reconnect(daemon, left).inspect_err(|error| {
            if is_absent(error) {
                thaw::thaw(&job.cgroup);
            }
        });
        answer = fresh.and_then(|mut fresh| {
            fresh.set_answer_timeout(left);
            let answer = fresh.report_exit(job.id, &report);
            *client = fresh;
            answer
        });
        if answer.is_err() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    answer
}

/// A command restarts only a daemon that was started by a command. Any other daemon is restarted by its operator, and a daemon in its
/// place would prevent that.
fn reconnect((socket, embedded): (&SocketChoice, bool), limit: Duration) -> Result<Client, ClientError> {
    match socket {
        SocketChoice::Usual { .. } if embedded => connect_or_start(socket, Some(limit)),
        _ => socket.connect(),
    }
}

fn cancel(gate: Gate) -> Result<std::process::ExitStatus, Failure> {
    gate.cancel().map_err(|e| failed("cannot end the waiting process", &e))
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure { code: EXIT_FAILED, message: format!("{what}: {error}") }
}

/// The failure for a command that could not be executed although it was found.
pub(crate) fn exit_not_executed(argv0: &OsStr, error: &io::Error) -> Failure {
    let found = error.kind() != io::ErrorKind::NotFound;
    let code = if found { EXIT_NOT_EXECUTABLE } else { EXIT_NOT_FOUND };
    // If a script's interpreter is missing, the kernel reports "not found".
    let hint =
        if found { "is it a program for this machine?" } else { "a script may name an interpreter that is missing" };
    let what = format!("{}: cannot be executed", argv0.to_string_lossy());
    Failure::explained(code, &what, &error.to_string(), hint)
}

/// `__session PROGRAM ARGS…`: executes the program in a new session, with no signal blocked.
pub(crate) fn session(mut words: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    signals::unblock_all();
    rustix::process::setsid().map_err(|e| failed("cannot make a session", &e.into()))?;
    let program = words.next().ok_or_else(|| Failure::silent(EXIT_FAILED))?;
    let error = std::process::Command::new(&program).args(words).exec();
    Err(exit_not_executed(&program, &error))
}
