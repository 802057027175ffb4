//! `cosched adopt` makes running processes a job; `cosched release` releases them.
//!
//! This module finds the cgroup of a unit or a container with its own manager's command, as the calling user. Whether that cgroup may become a job is
//! the daemon's decision, based on what the daemon itself sees.

use crate::context::Context;
use crate::jobs::{connect, patiently};
use crate::out::{EXIT_REFUSED, Failure, plain, print, print_json, say};
use crate::parsers::{class_parser, part_of_time, policy_parser};
use clap::{ArgGroup, Args};
use cosched_api::{Adopt as What, Class, JobRequest, JobState, Policy, parse};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::ADOPT)]
#[command(group = ArgGroup::new("what").required(true))]
pub(crate) struct Adopt {
    /// A systemd unit with a cgroup: a service or a scope
    #[arg(long, value_name = "UNIT", group = "what")]
    unit: Option<String>,

    /// A cgroup of the v2 hierarchy, as /proc/PID/cgroup shows it, or as a path below /sys/fs/cgroup
    #[arg(long, value_name = "PATH", group = "what")]
    cgroup: Option<PathBuf>,

    /// A container of podman or docker, by id or name
    #[arg(long, value_name = "ID", group = "what")]
    container: Option<String>,

    /// A process with its descendants
    #[arg(long, value_name = "PID", group = "what", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    /// How urgent: express (administrators), interactive, batch or standby [default: interactive]
    #[arg(long, short, value_name = "CLASS", value_parser = class_parser(), hide_possible_values = true)]
    class: Option<Class>,

    /// Concurrent CPUs of the job [default: all of this node's]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    cpus: Option<u32>,

    /// At most this part of the time, in whole time slots, as 50%; or from-quota: what its owner's cpu.max gives, which is lifted meanwhile
    #[arg(long, value_name = "PART|from-quota", value_parser = share)]
    share: Option<Share>,

    /// Memory that the job needs, as 512M or 4G
    #[arg(long, value_name = "SIZE", value_parser = parse::size_bytes)]
    mem: Option<u64>,

    /// A name for the job [default: the unit's, the container's, the cgroup's or the program's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// auto, gang, local, pb or dcs, independently of the machine's policy
    #[arg(long, value_name = "POLICY", value_parser = policy_parser(), hide_possible_values = true)]
    policy: Option<Policy>,

    /// The queue, if queues are configured [default: the first one]
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
}

/// A part of the time; none: what a quota gives.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share(Option<f64>);

fn share(text: &str) -> Result<Share, String> {
    match text {
        "from-quota" => Ok(Share(None)),
        text => part_of_time(text).map(Some).map(Share).map_err(|e| format!("{e}, or `from-quota`")),
    }
}

/// What was found out about the unit, container, cgroup or process to be adopted.
struct Found {
    what: What,
    name: String,
    command: Vec<String>,
}

/// `cosched adopt`.
pub(crate) fn adopt(context: &Context, options: &Adopt) -> Result<u8, Failure> {
    let Found { what, name, command } = options.find()?;
    let request = JobRequest {
        command,
        name: Some(options.name.clone().unwrap_or(name)),
        class: Some(options.class.unwrap_or(Class::Interactive)),
        cpus: options.cpus,
        mem_bytes: options.mem,
        policy: options.policy,
        share_max: options.share.and_then(|Share(part)| part),
        share_from_quota: options.share == Some(Share(None)),
        queue: options.queue.clone(),
        adopt: Some(what),
        ..JobRequest::default()
    };
    let mut client = connect(context)?;
    let socket = client.path().to_owned();
    let job = patiently(&socket, || client.register(&request))?;
    if context.json {
        print_json(&job)?;
    } else {
        print(&format!("{}\n", job.id))?;
        if job.state == JobState::Waiting {
            say(&format!("job {} waits for CPUs; until then everything continues as before", job.id));
        }
    }
    Ok(0)
}

impl Adopt {
    fn find(&self) -> Result<Found, Failure> {
        match (&self.unit, &self.cgroup, &self.container, self.pid) {
            (Some(unit), ..) => of_unit(unit),
            (_, Some(path), ..) => Ok(of_cgroup(path)),
            (.., Some(container), _) => of_container(container),
            (.., pid) => Ok(of_process(pid.unwrap_or_default())),
        }
    }
}

fn cgroup(path: &Path, from: Option<String>, name: &str) -> Found {
    let cgroup = path.to_string_lossy().into_owned();
    let command = vec![from.clone().unwrap_or_else(|| cgroup.clone())];
    Found { what: What { cgroup: Some(cgroup), pid: None, from }, name: name.into(), command }
}

fn of_cgroup(path: &Path) -> Found {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    cgroup(path, None, &name)
}

fn of_process(pid: i32) -> Found {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let mut command: Vec<String> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    if command.is_empty() {
        command.push(format!("process {pid}"));
    }
    let name = command[0].rsplit('/').next().unwrap_or_default().to_owned();
    let what = What { cgroup: None, pid: Some(pid), from: Some(format!("process {pid}")) };
    Found { what, name, command }
}

/// Asks systemd; where systemd does not run, uses the path that its units' cgroups have.
fn of_unit(unit: &str) -> Result<Found, Failure> {
    let unit = if unit.contains('.') { unit.to_owned() } else { format!("{unit}.service") };
    let path = of_systemd(&unit, &[]).or_else(|| of_systemd(&unit, &["--user"])).or_else(|| by_place(&unit));
    let Some(path) = path else {
        let why = "systemd reports no cgroup for it, and none has its name in system.slice: it is not running, or is \
                   not a service or scope";
        let hint =
            "`systemctl status UNIT` shows whether it runs, and its cgroup; `cosched adopt --cgroup PATH` takes any.";
        return Err(Failure::explained(EXIT_REFUSED, &format!("unit {unit} has no cgroup"), why, hint));
    };
    let name = unit.strip_suffix(".service").unwrap_or(&unit);
    Ok(cgroup(&path, Some(format!("unit {unit}")), name))
}

/// The cgroup of a unit according to `systemctl show`, if it has one. Warns of its watchdog.
fn of_systemd(unit: &str, whose: &[&str]) -> Option<PathBuf> {
    let words = ["show", "--property=ControlGroup,WatchdogUSec", "--", unit];
    let text = output("systemctl", &[whose, &words].concat())?;
    let (path, watchdog) = read_unit(&text)?;
    if let Some(watchdog) = watchdog {
        // The daemon asks the system's systemd alone.
        let suspended = match whose {
            [] => "while it is suspended the daemon gives that sign for it",
            _ => "do not suspend it",
        };
        say(&format!(
            "unit {} has WatchdogSec={}: systemd ends it when it gives no sign of life for that long\n  \
             hint: keep the time between its slots below half of that (a slot's length times the gangs that share the CPUs, or \
             divided by its share); {suspended}",
            plain(unit),
            plain(&watchdog)
        ));
    }
    Some(path)
}

/// The cgroup, and the watchdog's time if one is set.
fn read_unit(text: &str) -> Option<(PathBuf, Option<String>)> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).filter(|value| !value.is_empty());
    let path = value("ControlGroup=").filter(|path| *path != "/")?;
    let watchdog = value("WatchdogUSec=").filter(|time| !["0", "infinity"].contains(time));
    Some((path.into(), watchdog.map(str::to_owned)))
}

fn by_place(unit: &str) -> Option<PathBuf> {
    let mount = crate::run::cgroup2()?;
    let is_name = Path::new(unit).file_name().is_some_and(|name| name == unit);
    let path = Path::new("system.slice").join(unit);
    (is_name && mount.join(&path).is_dir()).then(|| Path::new("/").join(path))
}

/// The cgroup of the container's first process, where it has one in the v2 hierarchy; else that process, with its descendants.
fn of_container(id: &str) -> Result<Found, Failure> {
    let words = ["inspect", "--type", "container", "--format", "{{.State.Pid}}", "--", id];
    let found = ["podman", "docker"].into_iter().find_map(|engine| {
        let pid: i32 = output(engine, &words)?.trim().parse().ok()?;
        (pid > 0).then_some((engine, pid))
    });
    let Some((engine, pid)) = found else {
        let why = "neither podman nor docker reports a running container of that name to this user";
        let hint = "`podman ps` and `docker ps` list your containers; only root sees root's.";
        return Err(Failure::explained(EXIT_REFUSED, &format!("container {id} cannot be adopted"), why, hint));
    };
    let from = Some(format!("container {id} ({engine})"));
    let own = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    Ok(match own.lines().find_map(|line| line.strip_prefix("0::")).filter(|path| *path != "/") {
        Some(path) => cgroup(Path::new(path), from, id),
        None => Found { what: What { cgroup: None, pid: Some(pid), from }, name: id.into(), ..of_process(pid) },
    })
}

/// The output of a manager's command; `None` if it is not installed, fails, or takes too long.
fn output(program: &str, words: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let deadline = std::time::Instant::now() + MANAGER_TIME_MAX;
    // The output is smaller than a pipe's buffer, so it need not be read meanwhile.
    while child.try_wait().ok()?.is_none() {
        if std::time::Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// How long systemd or a container engine may take to answer.
const MANAGER_TIME_MAX: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systemd_says_of_a_unit_is_read() {
        let read = |text: &str| read_unit(text).map(|(path, watchdog)| (path.display().to_string(), watchdog));
        let path = "/system.slice/system-llama.slice/llama@1.service".to_owned();
        assert_eq!(read(&format!("ControlGroup={path}\nWatchdogUSec=0\n")), Some((path.clone(), None)));
        assert_eq!(read(&format!("WatchdogUSec=30s\nControlGroup={path}\n")), Some((path.clone(), Some("30s".into()))));
        assert_eq!(read(&format!("ControlGroup={path}\nWatchdogUSec=infinity\n")), Some((path, None)));
        assert_eq!(read("ControlGroup=\nWatchdogUSec=0\n"), None, "it does not run");
        assert_eq!(read(""), None);
    }

    #[test]
    fn a_share_is_a_part_or_what_a_quota_gives() {
        assert_eq!((share("50%"), share("from-quota")), (Ok(Share(Some(0.5))), Ok(Share(None))));
        assert!(share("half").unwrap_err().contains("or `from-quota`"));
    }

    #[test]
    fn a_unit_is_no_path() {
        assert_eq!(by_place("../cosched"), None);
        assert_eq!(by_place("a/b.service"), None);
    }

    #[test]
    fn a_process_is_named_by_its_program() {
        let found = of_process(std::process::id() as i32);
        assert!(!found.name.contains('/') && !found.command.is_empty());
        assert_eq!(of_process(i32::MAX).command, [format!("process {}", i32::MAX)]);
    }
}
