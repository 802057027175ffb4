//! Programs that the daemon starts for a user: as after a login, without any of the daemon's privileges.
//!
//! The problem: a job that was lost with a node is started again by the daemon, which has privileges that no user may have: real-time priority,
//! locked memory, an OOM score, a place in the kernel agent's cgroup. And libraries that the user's environment makes the loader run (LD_PRELOAD)
//! must not run before the process is in its job, nor with our rights. The rule: the guard's binary waits as a *gate* ([`spawn_gate`]), with our
//! rights and an empty environment, until the daemon has put it into its place. Then it drops all privileges, becomes the user and executes the
//! program. systemd (exec_invoke) and slurmstepd reset the same things.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::process::{inherited, keep_descriptors};
use crate::realtime::ordinarily;

/// The kernel's default for a fair thread.
const TIMER_SLACK_NS: usize = 50_000;
/// A higher limit would slow down programs that close all descriptors one by one; a program that needs more can raise it itself.
const OPEN_FILES: u64 = 1024;
const OPEN_FILES_MAX: u64 = 524_288;

/// The user whom a program runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The uid.
    pub uid: u32,
    /// The groups, the primary one first.
    pub groups: Vec<u32>,
}

/// A process that waits to become a user's program.
#[derive(Debug)]
pub struct Gate(Child);

/// Starts `exe` (the binary whose `main` is [`crate::guard::guard_main`]) as a gate: when it is opened it becomes `argv` with this environment, as
/// `user`, or as the caller's user if that is `None`. Until then it runs nothing of the user's.
///
/// # Errors
/// It cannot be started, or a variable cannot be in an environment.
pub fn spawn_gate(
    exe: &Path,
    user: Option<&User>,
    environment: &[(String, String)],
    argv: &[OsString],
) -> io::Result<Gate> {
    let mut file = File::from(memfd_create("cosched-environment", MemfdFlags::CLOEXEC)?);
    for (name, value) in environment {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no variable can be called {name:?}")));
        }
        write!(file, "{name}={value}\0")?;
    }
    file.rewind()?;
    let mut command = Command::new(exe);
    command.arg("start").arg(file.as_raw_fd().to_string());
    command.arg(user.map_or_else(String::new, |user| {
        let numbers = std::iter::once(user.uid).chain(user.groups.iter().copied());
        numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
    }));
    command.args(argv).env_clear().current_dir("/");
    keep_descriptors(&mut command, &[file.as_raw_fd()]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Gate(command.spawn()?))
}

impl Gate {
    /// Its process number, which the program will have.
    pub fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// Lets it become the program.
    ///
    /// # Errors
    /// It has ended meanwhile.
    pub fn open(mut self) -> io::Result<Child> {
        let opened = match self.0.stdin.take() {
            Some(mut pipe) => pipe.write_all(b"g"),
            None => Err(io::Error::other("no way to the gate")),
        };
        match opened {
            Ok(()) => Ok(self.0),
            Err(e) => Err(self.cancel(e)),
        }
    }

    /// Ends it; returns why.
    pub fn cancel(mut self, why: io::Error) -> io::Error {
        // It may already have ended by itself.
        let _ = self.0.kill();
        let _ = ordinarily(|| self.0.wait());
        why
    }
}

/// The main function of the gate: the environment's descriptor, the user, the program with its arguments. Returns only when it fails.
pub(crate) fn gate_main(args: &[OsString]) -> Result<(), String> {
    let [environment, user, program, arguments @ ..] = args else { return Err("an argument is missing".into()) };
    let mut text = Vec::new();
    File::from(inherited(environment)?).read_to_end(&mut text).map_err(|e| format!("the environment: {e}"))?;
    let user = parse_user(user.to_str().ok_or("a user is a number")?)?;
    let mut go = [0];
    if io::stdin().read_exact(&mut go).is_err() {
        return Err("the daemon has ended before the program began".into());
    }
    give_back(user.as_ref()).map_err(|e| format!("the daemon's rights cannot be given back: {e}"))?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear();
    for entry in text.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        let at = entry.iter().position(|byte| *byte == b'=').unwrap_or(entry.len());
        let value = entry.get(at + 1..).unwrap_or_default();
        command.env(OsString::from_vec(entry[..at].to_vec()), OsString::from_vec(value.to_vec()));
    }
    Err(format!("{}: {}", program.display(), command.exec()))
}

fn parse_user(text: &str) -> Result<Option<User>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let numbers: Result<Vec<u32>, _> = text.split(',').map(str::parse).collect();
    match numbers.map_err(|e| format!("{text}: {e}"))?.split_first() {
        Some((&uid, groups)) if !groups.is_empty() => Ok(Some(User { uid, groups: groups.to_vec() })),
        _ => Err(format!("{text}: a user and its groups")),
    }
}

/// Resets this process to what a login gives, and no more.
fn give_back(user: Option<&User>) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        // A container's root may not lower the score, and raising it from the daemon's is always permitted.
        let _ = std::fs::write("/proc/self/oom_score_adj", "0");
        reset_limits()?;
        reset_scheduling()?;
    } else {
        // The daemon of one user has no more than the user, except for open files.
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(OPEN_FILES.min(maximum.unwrap_or(u64::MAX))), maximum })?;
    }
    reset_signals();
    // SAFETY: these take numbers only; 4 is CLOSE_RANGE_CLOEXEC, which a kernel before 5.11 refuses: our descriptors have the flag anyway.
    unsafe {
        libc::umask(0o022);
        // A session of its own is also an autogroup of its own.
        libc::setsid();
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 4);
    }
    let Some(User { uid, groups }) = user else { return Ok(()) };
    let check = |result: i32| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: the pointer and the length are those of a vector that lives; the kernel reads it only.
    check(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })?;
    let gid = groups[0];
    // SAFETY: numbers only. The order matters: after the uid is given up, groups cannot be changed.
    check(unsafe { libc::setresgid(gid, gid, gid) })?;
    // SAFETY: numbers only. This drops the capabilities, except for the inheritable ones.
    check(unsafe { libc::setresuid(*uid, *uid, *uid) })?;
    if *uid != 0 {
        drop_capabilities()?;
    }
    // SAFETY: no memory is involved. A session keyring of its own instead of the daemon's; a kernel may have none.
    unsafe { libc::syscall(libc::SYS_keyctl, libc::KEYCTL_JOIN_SESSION_KEYRING, 0usize) };
    Ok(())
}

/// The limits that Linux and systemd give a session, whatever the daemon's are. The daemon never changes any other limit.
fn reset_limits() -> io::Result<()> {
    const MIB: u64 = 1 << 20;
    for (resource, current, maximum) in [
        (Resource::Core, 0, u64::MAX),
        (Resource::Stack, 8 * MIB, u64::MAX),
        (Resource::Memlock, 8 * MIB, 8 * MIB),
        (Resource::Nofile, OPEN_FILES, OPEN_FILES_MAX),
        (Resource::Rtprio, 0, 0),
        (Resource::Nice, 0, 0),
    ] {
        // Never above the present maximum, which a container's root may not raise.
        let maximum = maximum.min(getrlimit(resource).maximum.unwrap_or(u64::MAX));
        let finite = |value: u64| Some(value).filter(|value| *value < u64::MAX);
        setrlimit(resource, Rlimit { current: finite(current.min(maximum)), maximum: finite(maximum) })?;
    }
    Ok(())
}

fn reset_scheduling() -> io::Result<()> {
    let check = |result: i64| if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    let fair = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a live sched_param, which the call only reads.
    check(i64::from(unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &fair) }))?;
    // SAFETY: numbers only.
    check(i64::from(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 0) }))?;
    // SAFETY: numbers only: this process (1, 0), class none.
    check(unsafe { libc::syscall(libc::SYS_ioprio_set, 1, 0, 0) })?;
    // SAFETY: one number, the slack in nanoseconds.
    check(i64::from(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS) }))
}

/// Signals that are ignored or blocked would stay so in the program.
fn reset_signals() {
    // The C library hides its two signals from signal(2), and its posix_spawn leaves them ignored: so the system call is made directly.
    const DEFAULT_ACTION: [usize; 4] = [0; 4];
    const MASK_BYTES: usize = 8;
    // SAFETY: the kernel reads an action of four zero words; it refuses the signals that may not be changed; an empty set blocks nothing.
    unsafe {
        for signal in 1..=64 {
            libc::syscall(libc::SYS_rt_sigaction, signal, DEFAULT_ACTION.as_ptr(), 0usize, MASK_BYTES);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Drops the inheritable and the ambient capabilities, too; the bounding set stays like that of a login.
fn drop_capabilities() -> io::Result<()> {
    /// Version 3, this process.
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    let none = [0u32; 6];
    // SAFETY: the header and both thirds of the sets live, and the kernel only reads them.
    let result = unsafe { libc::syscall(libc::SYS_capset, HEADER.as_ptr(), none.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_survives_the_arguments() {
        assert_eq!(parse_user("7,8,9"), Ok(Some(User { uid: 7, groups: vec![8, 9] })));
        assert_eq!(parse_user(""), Ok(None));
        assert!(parse_user("7").is_err() && parse_user("7,x").is_err());
    }

    #[test]
    fn a_variable_that_cannot_be_is_refused() {
        for (name, value) in [("", "x"), ("A=B", "x"), ("A", "x\0Y=z")] {
            let environment = [(name.to_owned(), value.to_owned())];
            let refused = spawn_gate(Path::new("/bin/false"), None, &environment, &[]).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
