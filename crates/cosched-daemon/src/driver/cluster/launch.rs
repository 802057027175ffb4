//! Starts a job again that was lost with a node: by the daemon of its main node, as its owner, in its cgroup.

use super::super::Driver;
use crate::call::{Call, Op};
use crate::clock::unix_ms;
use crate::pollable::pollable;
use crate::rights::Peer;
use crate::users;
use cosched_api::{ExitReport, ExitStatus};
use cosched_cluster::wire::Job;
use cosched_core::JobId;
use cosched_linux::process::open_pidfd;
use cosched_linux::realtime::ordinarily;
use cosched_linux::user::{User, spawn_gate};
use cosched_node::Input;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::Duration;
use tokio::sync::oneshot;

/// How often a process is polled for its end, where there is no pidfd.
const ASK_PERIOD: Duration = Duration::from_secs(1);

/// The shell, as the owner and in the job's cgroup, changes to the directory, opens the output, and executes the program, by way of `cosched` where
/// that is installed, which passes it the job's nodes: so the owner's rights apply to all of it.
const SHELL: &str = "\
cd -- \"$1\" || exit 125
exec </dev/null >>\"$2\" 2>&1
cosched=$3 socket=$4 job=$5
shift 5
test -x \"$cosched\" && exec \"$cosched\" __again \"$socket\" \"$job\" \"$@\"
exec \"$@\"";

impl Driver {
    pub(super) fn relaunch(&mut self, job: &Job) {
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
                self.cluster.handle(Input::Populated(JobId(id), true));
                self.report_end_of(id, child);
            }
            Err(e) => {
                tracing::error!(id, "the job could not be restarted: {e}");
                self.remember(id, |record| record.event(unix_ms(), "lost", format!("it could not be restarted: {e}")));
                self.cluster.node.close(JobId(id));
            }
        }
    }

    fn spawn_in(&mut self, job: &Job) -> io::Result<Child> {
        let owner = job.owner.uid;
        let cwd = job.ask.cwd.as_deref().unwrap_or("/");
        let log = job.ask.log_path.as_deref().unwrap_or("/dev/null");
        let cosched = std::env::current_exe()?.with_file_name("cosched");
        // By its full path: PATH is the owner's.
        let words = ["/bin/sh", "-c", SHELL, "sh", cwd, log].map(OsString::from).into_iter();
        let id = job.id.to_string();
        let to_again = [cosched.into_os_string(), self.identity.socket.clone().into(), id.clone().into()];
        let argv: Vec<OsString> = words.chain(to_again).chain(job.ask.command.iter().map(OsString::from)).collect();
        let mut environment = job.ask.environment.clone();
        environment.retain(|(name, _)| name != "COSCHED_JOB");
        environment.push(("COSCHED_JOB".to_owned(), id));
        let user = if owner == rustix::process::geteuid().as_raw() {
            None
        } else {
            let groups =
                users::groups_of(owner).ok_or_else(|| io::Error::other(format!("no user has uid {owner} here")))?;
            Some(User { uid: owner, groups })
        };
        let live = self.live.get(&job.id).ok_or_else(|| io::Error::other("the job has no cgroup"))?;
        let guard = &self.machinery.guard;
        let gate = spawn_gate(&guard.exe, user.as_ref(), &environment, &argv)?;
        // While another process is in the kernel agent's cgroup, the agent does not notice the death of the daemon.
        let placed = guard.release(gate.pid());
        match placed.and_then(|()| live.cgroup.attach_child(gate.pid()).map_err(io::Error::other)) {
            Ok(()) => gate.open(),
            Err(e) => Err(gate.cancel(e)),
        }
    }

    /// Reports its end in the way of a launcher.
    fn report_end_of(&self, id: u64, mut child: Child) {
        let (calls, own_uid) = (self.calls.clone(), rustix::process::geteuid().as_raw());
        let ends = open_pidfd(child.id() as i32).and_then(|pidfd| pollable(&pidfd));
        tokio::spawn(async move {
            // Without a descriptor to wait for, it is polled.
            let exit = loop {
                match &ends {
                    Ok(pidfd) => drop(pidfd.readable().await),
                    Err(_) => tokio::time::sleep(ASK_PERIOD).await,
                }
                match ordinarily(|| child.try_wait()) {
                    Ok(Some(status)) => break ExitStatus { code: status.code(), signal: status.signal() },
                    Ok(None) => tokio::time::sleep(Duration::from_millis(1)).await,
                    Err(_) => return,
                }
            };
            let (reply, _) = oneshot::channel();
            let op = Op::Exit(id, ExitReport { exit });
            let _ = calls.send(Call { peer: Peer { uid: own_uid, pid: None }, op, reply }).await;
        });
    }
}
