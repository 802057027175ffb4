//! A real daemon for a test, under private names, that leaves nothing behind.

pub mod cluster;
pub mod procs;
pub mod service;
pub mod soak;
pub mod uncontrolled;
pub mod users;

use cosched_api::Client;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum time that a test waits for something that should happen soon. Never a measure of speed.
pub const PATIENCE: Duration = Duration::from_secs(20);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Daemons share the CPUs, and most tests check who gets them: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// While the guard is held, no other test of this program has a daemon.
fn alone() -> MutexGuard<'static, ()> {
    // A failed test has poisoned it, but has cleaned up.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the machine can run a test that needs root; otherwise says why the test is skipped.
pub fn needs_root() -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    println!("SKIPPED: this test makes cgroups and needs root");
    false
}

/// The directory of the programs that cargo built.
pub fn bin_dir() -> PathBuf {
    let own = std::env::current_exe().expect("own path");
    let dir = own.parent().expect("target directory");
    // Tests are one directory deeper.
    let dir = if dir.ends_with("deps") { dir.parent().expect("target directory") } else { dir }.to_owned();
    for name in ["cosched", "coschedd", "cosched-guard"] {
        assert!(dir.join(name).exists(), "{name} is not built: run `cargo build --workspace` first");
    }
    dir
}

/// A daemon for one test: socket, state and cgroup under private names.
pub struct Daemon {
    /// The directory of socket, state and log.
    pub dir: tempfile::TempDir,
    /// The name of its cgroup.
    pub cgroup: String,
    /// Variables of its environment, and of commands, besides the usual ones.
    pub environment: Vec<(&'static str, PathBuf)>,
    child: Option<Child>,
    config: String,
    _alone: MutexGuard<'static, ()>,
}

/// Other tests' processes are no neighbours whose part of the slots is to be tested: a fixed reserve, unless the configuration has one.
pub(crate) fn with_fixed_reserve(config: &str) -> String {
    let fixed = if config.contains("reserve") { "" } else { "reserve = 0.1\n" };
    format!("{fixed}{config}")
}

impl Daemon {
    /// Starts one with this configuration (TOML) and waits until it answers.
    pub fn start(config: &str) -> Daemon {
        let mut daemon = Daemon::prepare(config);
        daemon.launch();
        daemon
    }

    /// The same with a disk of this size for its state alone.
    pub fn start_on_disk(config: &str, size: &str) -> Daemon {
        let mut daemon = Daemon::prepare(config);
        procs::mount_tmpfs(&daemon.state_dir(), size);
        daemon.launch();
        daemon
    }

    fn prepare(config: &str) -> Daemon {
        let config = with_fixed_reserve(config);
        let alone = alone();
        let dir = tempfile::Builder::new().prefix("cst-").tempdir().expect("temporary directory");
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let cgroup = format!("cst-{}-{n}", std::process::id());
        let environment = Vec::new();
        Daemon { dir, cgroup, environment, child: None, config, _alone: alone }
    }

    /// Changes the configuration for the next start.
    pub fn configure(&mut self, config: &str) {
        config.clone_into(&mut self.config);
    }

    /// The directory of its state.
    pub fn state_dir(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Starts it (again) on the same state.
    pub fn launch(&mut self) {
        let log = File::options().create(true).append(true).open(self.log_path()).expect("log");
        self.child = Some(self.coschedd().stderr(log).spawn().expect("coschedd starts"));
        let answers = wait_until(|| Client::connect(self.socket()).is_ok_and(|mut c| c.status().is_ok()));
        assert!(answers, "the daemon does not answer; its log:\n{}", self.log());
    }

    /// Tries to start it on the same state; it is expected to end by itself. `before` are the words of another program in
    /// front of it.
    pub fn try_start(&self, before: &[&str]) -> Output {
        let daemon = self.coschedd();
        let mut command = self.with_environment(Command::new("timeout"));
        command.arg("20").args(before).arg(daemon.get_program()).args(daemon.get_args()).stdin(Stdio::null());
        command.output().expect("it runs")
    }

    fn coschedd(&self) -> Command {
        let config = self.dir.path().join("cosched.toml");
        File::create(&config).and_then(|mut f| f.write_all(self.config.as_bytes())).expect("configuration");
        let mut command = self.command("coschedd");
        command.args(["--cgroup", &self.cgroup]).arg("--config").arg(config).arg("--socket").arg(self.socket());
        command.arg("--state-dir").arg(self.state_dir()).stdin(Stdio::null());
        command
    }

    /// One of our commands, in the test's environment.
    pub fn command(&self, program: &str) -> Command {
        self.with_environment(Command::new(bin_dir().join(program)))
    }

    fn with_environment(&self, mut command: Command) -> Command {
        command
            .env("COSCHED_SOCKET", self.socket())
            .env("COSCHED_LOG", "debug")
            .env("XDG_STATE_HOME", self.dir.path().join("xdg"))
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .envs(self.environment.iter().cloned());
        command
    }

    /// Runs `cosched ARGS` until it ends.
    pub fn cosched(&self, args: &[&str]) -> Output {
        self.command("cosched").args(args).stdin(Stdio::null()).output().expect("cosched runs")
    }

    /// Starts `cosched run ARGS` and returns its process.
    pub fn spawn_run(&self, args: &[&str]) -> Child {
        self.command("cosched")
            .arg("run")
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("cosched runs")
    }

    /// Starts a detached job and returns its id.
    pub fn detach(&self, args: &[&str]) -> u64 {
        let output = self.command("cosched").args(["run", "--detach"]).args(args).output().expect("cosched runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("an id on stdout")
    }

    /// A client of the API.
    pub fn client(&self) -> Client {
        Client::connect(self.socket()).expect("the daemon listens")
    }

    /// The path of its socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("coschedd.sock")
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.dir.path().join("coschedd.log")
    }

    /// The number of its process.
    pub fn pid(&self) -> i32 {
        self.child.as_ref().expect("it runs").id() as i32
    }

    /// kill -9 of the daemon, and nothing else.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("kill");
            child.wait().expect("wait");
        }
    }

    /// Kills the guard and the daemon at one instant: the kernel's agent is left.
    pub fn kill_with_guard(&mut self) {
        let status = self.client().status().unwrap();
        assert!(status.safety.kernel_agent, "{:?}", status.warnings);
        procs::signal(status.safety.guard_pid.unwrap(), rustix::process::Signal::KILL);
        procs::signal(self.pid(), rustix::process::Signal::KILL);
        self.kill();
    }

    /// Ends it as an operator does.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        procs::signal(child.id() as i32, rustix::process::Signal::TERM);
        let ended = wait_until(|| child.try_wait().expect("wait").is_some());
        assert!(ended, "the daemon does not end on SIGTERM; its log:\n{}", self.log());
    }

    /// The directories of this daemon's cgroups, in every hierarchy.
    pub fn cgroups(&self) -> Vec<PathBuf> {
        procs::cgroup_mounts().into_iter().map(|m| m.join(&self.cgroup)).filter(|d| d.exists()).collect()
    }

    /// The jobs' cgroups that exist, in every hierarchy.
    pub fn job_cgroups(&self) -> Vec<PathBuf> {
        let children = |dir: &PathBuf| procs::sub_directories(dir);
        self.cgroups().iter().flat_map(children).filter(|d| d.ends_with_job()).collect()
    }

    /// The processes of a job, from the v2 hierarchy.
    pub fn job_pids(&self, id: u64) -> Vec<i32> {
        procs::pids_in(&self.v2_job(id))
    }

    /// Whether a job's cgroup is frozen.
    pub fn frozen(&self, id: u64) -> bool {
        procs::is_frozen(&self.v2_job(id))
    }

    /// The v2 cgroup of a job.
    pub fn v2_job(&self, id: u64) -> PathBuf {
        procs::v2_mount().join(&self.cgroup).join(format!("job-{id}"))
    }
}

trait JobDirectory {
    fn ends_with_job(&self) -> bool;
}

impl JobDirectory for PathBuf {
    fn ends_with_job(&self) -> bool {
        self.file_name().is_some_and(|n| n.to_string_lossy().starts_with("job-"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        for dir in procs::sub_directories(&procs::v2_mount().join(&self.cgroup)) {
            procs::end_cgroup(&dir);
        }
        if let Some(mut child) = self.child.take() {
            procs::signal(child.id() as i32, rustix::process::Signal::TERM);
            if !wait_until(|| child.try_wait().is_ok_and(|s| s.is_some())) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        procs::end_launchers(self.dir.path());
        procs::remove_tree_everywhere(&self.cgroup);
        procs::unmount(&self.dir.path().join("agent"));
        procs::forget_hierarchy(&self.cgroup);
        procs::detach_below(self.dir.path());
        procs::unmount(&self.state_dir());
        if std::thread::panicking() {
            eprintln!("--- the daemon's log\n{}", self.log());
        }
    }
}

/// Requires one clean measurement out of several, for measured shares of CPU time and nothing else: other work on the machine
/// disturbs one, a fault disturbs all of them. For what should happen soon there is [`wait_until`], and what must hold is
/// checked once.
///
/// # Panics
/// When no measurement was clean: shows what each one saw.
pub fn clean_look(mut look: impl FnMut() -> Result<(), String>) {
    let mut seen = Vec::new();
    for _ in 0..4 {
        match look() {
            Ok(()) => return,
            Err(what) => seen.push(what),
        }
    }
    panic!("no look of {} was clean:\n{}", seen.len(), seen.join("\n"));
}

/// Waits until a condition holds; false when it does not within `PATIENCE`.
pub fn wait_until(mut ready: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if ready() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// A program that `make programs` builds; where it cannot be built, the test is skipped and says so.
pub fn program(name: &str) -> Option<String> {
    built(&format!("build/programs/{name}"), "is not built: `make programs` says what it needs")
}

/// A file that `make test` installs below target; prints a message when it does not exist.
pub fn target(name: &str) -> Option<String> {
    built(&format!("target/{name}"), "is not there: `tools/setup test` installs it")
}

/// The full path of a file below the project; links are not resolved, since programs find themselves by their names.
fn built(name: &str, why_not: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    if !path.exists() {
        println!("SKIPPED: {name} {why_not}");
        return None;
    }
    let dir = path.parent()?.canonicalize().ok()?;
    Some(dir.join(path.file_name()?).display().to_string())
}

/// What a command wrote to stdout.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a command wrote to stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
