//! A job that was lost with a node is started anew: by the daemon of its main node, as its owner, in its cgroup.

use super::super::Driver;
use crate::call::{Call, Op};
use crate::clock::unix_ms;
use crate::rights::Peer;
use crate::users;
use cosched_api::{ExitReport, ExitStatus};
use cosched_cluster::wire::Job;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use tokio::sync::oneshot;

/// The shell, as the owner, waits for a line until it is in the job's cgroup, goes to the directory, opens the output, and
/// becomes the program, by way of `cosched` where that is installed, which tells it the job's nodes: what the owner may
/// not do, it cannot.
const GATE: &str = "\
read -r go && cd -- \"$1\" || exit 125
exec </dev/null >>\"$2\" 2>&1
cosched=$3 socket=$4 job=$5
shift 5
test -x \"$cosched\" && exec \"$cosched\" __again \"$socket\" \"$job\" \"$@\"
exec \"$@\"";

impl Driver {
    pub(super) fn launch_anew(&mut self, job: &Job) {
        let id = job.id;
        let begun = self.spawn_in(job);
        match begun {
            Ok(child) => {
                let pid = child.id() as i32;
                self.remember(id, |record| {
                    record.pid = pid;
                    record.by_api = false;
                    record.event(unix_ms(), "restarted", format!("attempt {}, pid {pid}", job.attempt));
                });
                if let Some(live) = self.live.get_mut(&id) {
                    live.end_at = None;
                }
                self.report_end_of(id, child);
            }
            Err(e) => {
                tracing::error!(id, "the job could not be started anew: {e}");
                self.remember(id, |record| {
                    record.event(unix_ms(), "lost", format!("it could not be started anew: {e}"))
                });
                self.finish(id);
            }
        }
    }

    fn spawn_in(&mut self, job: &Job) -> io::Result<Child> {
        let owner = job.owner.uid;
        // By its full name, and as the owner from its first instruction on: PATH and LD_PRELOAD are his.
        let mut command = Command::new("/bin/sh");
        let cwd = job.ask.cwd.as_deref().unwrap_or("/");
        let log = job.ask.log_path.as_deref().unwrap_or("/dev/null");
        let cosched = std::env::current_exe()?.with_file_name("cosched");
        command.args(["-c", GATE, "sh", cwd, log]).arg(cosched);
        command.args([&self.identity.socket, &job.id.to_string()]).args(&job.ask.command);
        command.env_clear().envs(job.ask.environment.iter().map(|(name, value)| (name, value)));
        command.env("COSCHED_JOB", job.id.to_string());
        if owner != rustix::process::geteuid().as_raw() {
            let groups =
                users::groups_of(owner).ok_or_else(|| io::Error::other(format!("no user has uid {owner} here")))?;
            cosched_linux::user::run_as(&mut command, owner, groups[0], groups);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let live = self.live.get(&job.id).ok_or_else(|| io::Error::other("the job has no cgroup"))?;
        let opened = live.cgroup.attach(child.id() as i32).map_err(io::Error::other).and_then(|()| {
            let mut gate = child.stdin.take().ok_or_else(|| io::Error::other("no way to the gate"))?;
            gate.write_all(b"go\n")
        });
        if let Err(e) = opened {
            let _ = child.kill();
            let _ = child.wait();
            return Err(e);
        }
        Ok(child)
    }

    /// Its end is told as a launcher tells it.
    fn report_end_of(&self, id: u64, mut child: Child) {
        let (calls, own_uid) = (self.calls.clone(), rustix::process::geteuid().as_raw());
        tokio::task::spawn_blocking(move || {
            let Ok(status) = child.wait() else { return };
            let exit = ExitStatus { code: status.code(), signal: status.signal() };
            let (reply, _) = oneshot::channel();
            let op = Op::Exit(id, ExitReport { exit });
            let _ = calls.blocking_send(Call { peer: Peer { uid: own_uid, pid: None }, op, reply });
        });
    }
}
