//! A daemon on a node: at the usual socket of the node, below a cgroup of its own.

use super::leftovers;
use super::net::Host;
use cosched_api::Client;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A node with its daemon.
#[derive(Debug)]
pub struct Node {
    /// The place on the network.
    pub host: Host,
    /// The name of its cgroup.
    pub cgroup: String,
    child: Option<Child>,
}

impl Node {
    /// Starts a daemon with this configuration (TOML), and does not wait for it.
    pub(super) fn start(host: &Host, net: &Path, config: &str) -> Node {
        let net_name = net.file_name().expect("a name").to_string_lossy().replace('.', "-");
        let cgroup = format!("{net_name}-{}", host.name);
        leftovers::cgroup(net, &cgroup);
        fs::write(host.dir.join("cosched.toml"), crate::with_fixed_reserve(config)).expect("configuration");
        let mut node = Node { host: host.clone(), cgroup, child: None };
        node.launch();
        node
    }

    /// The cgroup of another daemon on this node, which is removed with the net like its own.
    pub fn another_cgroup(&self) -> String {
        let name = format!("{}-another", self.cgroup);
        leftovers::cgroup(self.host.dir.parent().expect("the net"), &name);
        name
    }

    fn launch(&mut self) {
        let file = |name: &str| self.host.dir.join(name);
        let log = File::options().create(true).append(true).open(file("coschedd.log")).expect("log");
        let mut command = self.host.command(&crate::bin_dir().join("coschedd").display().to_string());
        command.args(["--cgroup", &self.cgroup]).arg("--config").arg(file("cosched.toml"));
        // The node's /run/cosched, by a path that the kernel's last resort can find, too.
        command.arg("--socket").arg(self.socket()).arg("--state-dir").arg(file("state"));
        self.child =
            Some(command.env("COSCHED_LOG", "info,cosched_daemon=debug").stderr(log).spawn().expect("coschedd starts"));
    }

    /// Waits until it answers.
    ///
    /// # Panics
    /// When it does not: shows its log.
    pub fn until_ready(&self) {
        let answers = || Client::connect(self.socket()).is_ok_and(|mut client| client.status().is_ok());
        assert!(crate::wait_until(answers), "{}: no answer; the log:\n{}", self.host.name, self.log());
    }

    /// Its socket, as this process sees it.
    pub fn socket(&self) -> PathBuf {
        self.host.dir.join("run/coschedd.sock")
    }

    /// A client of the API.
    pub fn client(&self) -> Client {
        Client::connect(self.socket()).expect("the daemon listens")
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.host.dir.join("coschedd.log")).unwrap_or_default()
    }

    /// A command on this node. Our own programs are found by name.
    pub fn command(&self, program: &str) -> Command {
        let ours = crate::bin_dir().join(program);
        let program = if ours.is_file() { ours.display().to_string() } else { program.to_owned() };
        let mut command = self.host.command(&program);
        command.env("XDG_STATE_HOME", self.host.dir.join("xdg"));
        command
    }

    /// Runs `cosched ARGS` on this node until it ends.
    pub fn cosched(&self, args: &[&str]) -> Output {
        self.command("cosched").args(args).output().expect("cosched runs")
    }

    /// Starts `cosched run ARGS` on this node.
    pub fn spawn_run(&self, args: &[&str]) -> Child {
        let mut command = self.command("cosched");
        command.arg("run").args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("cosched runs")
    }

    /// The daemon's process.
    pub fn pid(&self) -> i32 {
        self.child.as_ref().expect("it runs").id() as i32
    }

    /// kill -9 of the daemon, and nothing else.
    pub fn kill_daemon(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("kill");
            child.wait().expect("wait");
        }
    }

    /// Restarts the daemon on its state, and waits until it answers; a running one is first ended as an operator does.
    pub fn restart(&mut self) {
        self.stop();
        self.launch();
        self.until_ready();
    }

    /// Ends the daemon as an operator does.
    ///
    /// # Panics
    /// When it does not end.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        crate::procs::signal(child.id() as i32, rustix::process::Signal::TERM);
        let ended = crate::wait_until(|| child.try_wait().expect("wait").is_some());
        assert!(ended, "{}: no end on SIGTERM; the log:\n{}", self.host.name, self.log());
    }

    /// The v2 cgroup of a job on this node.
    pub fn v2_job(&self, id: u64) -> PathBuf {
        crate::procs::v2_mount().join(&self.cgroup).join(format!("job-{id}"))
    }

    /// The processes of a job on this node.
    pub fn job_pids(&self, id: u64) -> Vec<i32> {
        crate::procs::pids_in(&self.v2_job(id))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        for job in crate::procs::sub_directories(&crate::procs::v2_mount().join(&self.cgroup)) {
            crate::procs::end_cgroup(&job);
        }
        if let Some(mut child) = self.child.take() {
            crate::procs::signal(child.id() as i32, rustix::process::Signal::TERM);
            if !crate::wait_until(|| child.try_wait().is_ok_and(|status| status.is_some())) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        if std::thread::panicking() {
            eprintln!("--- the log of {}\n{}", self.host.name, self.log());
        }
    }
}
