//! Users for tests of what one may do to another: threads that have become them, and their processes.

use crate::Daemon;
use cosched_api::{Class, Client, ClientError, ErrorCode, Job, JobRequest, ProcessRequest};
use rustix::process::Uid;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// A user.
pub const ANN: u32 = 65534;
/// Another user.
pub const BOB: u32 = 65533;

/// A daemon with this configuration whose socket all users can reach.
///
/// # Panics
/// When it does not start.
pub fn start(config: &str) -> Daemon {
    let d = Daemon::start(config);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(d.dir.path(), mode).unwrap();
    d
}

/// Calls a function with a client of this user. In the kernel, each thread has its own user; the other threads remain
/// root.
///
/// # Panics
/// When the kernel refuses.
pub fn as_user<T: Send>(d: &Daemon, uid: u32, work: impl FnOnce(&mut Client) -> T + Send) -> T {
    let socket = d.socket();
    std::thread::scope(|scope| {
        let run = || {
            let uid = Uid::from_raw(uid);
            rustix::thread::set_thread_res_uid(uid, uid, uid).expect("root may become anybody");
            work(&mut Client::connect(&socket).expect("the daemon listens"))
        };
        scope.spawn(run).join().expect("the user's thread")
    })
}

/// A process of a user, which ends with the test.
#[derive(Debug)]
pub struct Sleeper(Child);

impl Sleeper {
    /// Starts one as this user.
    ///
    /// # Panics
    /// When it does not start.
    pub fn of(uid: u32) -> Sleeper {
        Sleeper(Command::new("sleep").arg("1000").uid(uid).gid(uid).current_dir("/").spawn().unwrap())
    }

    /// SIGKILL; it stays a zombie until it is waited for.
    ///
    /// # Panics
    /// When it has been waited for.
    pub fn kill(&mut self) {
        self.0.kill().expect("kill");
    }

    /// Waits for its end: its number is free when this returns.
    ///
    /// # Panics
    /// When it cannot be waited for.
    pub fn wait(&mut self) {
        self.0.wait().expect("wait");
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A job without a process.
pub fn empty_job(class: Option<Class>) -> JobRequest {
    JobRequest { command: vec!["program".to_owned()], class, ..JobRequest::default() }
}

/// A request for the process that has this number, whichever it is.
pub fn process(pid: i32) -> ProcessRequest {
    ProcessRequest { pid, start_ticks: None }
}

/// The code of a refusal, after checking that it says what, why and what to do.
///
/// # Panics
/// When it is not a complete refusal.
pub fn code(result: Result<Job, ClientError>) -> ErrorCode {
    match result {
        Err(ClientError::Refused(body)) => {
            assert!(!body.what.is_empty() && !body.why.is_empty() && !body.hint.is_empty(), "{body:?}");
            body.code
        }
        other => panic!("{other:?}"),
    }
}

/// The cgroups of a process.
///
/// # Panics
/// When it has none.
pub fn cgroups(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap()
}

/// Sends this as the body of a request; the status and the answer.
///
/// # Panics
/// When there is no answer.
pub fn raw(d: &Daemon, method: &str, path: &str, header: &str, body: &str) -> String {
    let mut stream = UnixStream::connect(d.socket()).unwrap();
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{header}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A process that has the number of one that ended a moment ago; `None` where the kernel does not permit that.
pub fn successor_of(pid: i32, uid: u32) -> Option<Sleeper> {
    for _ in 0..200 {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).ok()?;
        let next = Sleeper::of(uid);
        if next.pid() == pid {
            return Some(next);
        }
    }
    None
}
