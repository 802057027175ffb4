//! Start-up: everything that can fail does so here, with an explanation, before the first job is changed.

use crate::args::Args;
use crate::audit::Audit;
use crate::bounds::Bounds;
use crate::budget::Budget;
use crate::call::Call;
use crate::config::{Config, Reserve};
use crate::door::{self, Door};
use crate::driver::{Driver, Identity, Machinery};
use crate::events::EventLog;
use crate::ground;
use crate::guard::GuardKeeper;
use crate::http::{Desk, EndedLog};
use crate::instance::{self, Places};
use crate::neighbours::Neighbours;
use crate::places::Mover;
use crate::privacy::Privacy;
use crate::probe::ProbeKeeper;
use crate::rights::Rights;
use crate::store::{Opened, Store};
use crate::watchdogs::Watchdogs;
use crate::{check, clock, http, log, pace, rules, serve, setup, users};
use anyhow::{Context, bail};
use cosched_api::Warning;
use cosched_linux::beat::Beat;
use cosched_linux::kernel_agent::KernelAgent;
use cosched_linux::{SlotConfig, SlotThread, Subgangs, Tree, mechanism, observe, realtime, subgangs, thaw};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Runs the daemon until it is told to end.
///
/// # Errors
/// Why it could not start; nothing was changed then.
pub fn run(args: Args) -> anyhow::Result<()> {
    log::start();
    let mut config = configuration(&args)?;
    if args.check || args.setup.is_some() {
        return look(&config, &args);
    }
    let cgroups = ground::cgroups(&args.cgroup);
    // Jobs of an earlier daemon are not limited until this one drives them, and use all CPUs but the reserve: the start must not be delayed by them.
    pace::begin();
    let rights = rights(&config)?;
    let mut places = Places::new(&args, &config);
    instance::check_free(&args, &places)?;
    places.runtime_dir = instance::make_dir(&places.runtime_dir)?;
    let (store, state, mut warnings) = open_state(&places.state_dir).map_err(|e| ground::or_no_place(e, &cgroups))?;
    store.dir().clone_into(&mut places.state_dir);
    warnings.extend(places.warnings());
    // The machine may have been renamed; in its store it keeps its first name.
    if let Some(name) = store.own().node_name().filter(|_| config.cluster.is_alone()) {
        config.cluster.node = name;
    }
    let (tree, without) = ground::open_tree(cgroups, (&args, &config, &places))?;
    warnings.extend(without.inspect(|of| tracing::warn!("{}: {}. {}", of.what, of.why, of.hint)));
    let layout = tree.layout().clone();
    let machinery = machinery(&config, &args, &places, tree)?;
    let (listener, metrics) = match listen(&config, &args, &places) {
        Ok(listeners) => listeners,
        Err(e) => {
            machinery.stand_down();
            return Err(e);
        }
    };
    let places_inside = door::Places::new(&config.limits, realtime::raise_open_files());
    let budget = Budget::new(config.limits.buffered_bytes, config.limits.buffered_bytes_all);
    let (cpus, cpus_at_a_time) = cpus(&machinery.tree);
    let identity = Identity {
        cpus_at_a_time,
        events: EventLog::new(clock::unix_ms()),
        inside: (places_inside.clone(), budget.clone()),
        status_file: places.status_file.clone(),
        socket: places.socket.display().to_string(),
        embedded: args.embedded,
        started_unix_ms: clock::unix_ms(),
        layout: layout.to_string(),
        cpus,
        wait_dir: places.runtime_dir.join("wait"),
        home: instance::home(&places.state_dir),
        state_dir: places.state_dir.clone(),
        disk_bytes: disk_bytes(&places.state_dir),
        warnings,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let guests = rights.clone();
    let privacy = Privacy::new(config.private_data, rights.clone());
    let (audit, time) = (Audit::start(&places.state_dir)?, config.limits.request_time);
    let (calls, called) = mpsc::channel(64);
    let to_driver = calls.clone();
    let (rules, of_rules, run_dir) = (config.adopt.clone(), calls.clone(), places.runtime_dir.clone());
    let served = tokio::task::LocalSet::new().block_on(&runtime, async {
        let (events, ended) = (identity.events.clone(), EndedLog::new(&places.state_dir));
        let desk = Desk { calls, privacy, audit, rights: guests.clone(), events, ended };
        let driver = Driver::new(config, identity, rights, (store, state), machinery, to_driver)?;
        rules::start(rules, &layout.v2_mount, run_dir, of_rules);
        let metrics = metrics.map(TcpListener::from_std).transpose()?;
        let bounds = Bounds { budget, rights: guests.clone(), time };
        let door = Door::new(UnixListener::from_std(listener)?, guests, places_inside, time);
        serve(driver, (desk, called), (door, bounds), metrics).await
    });
    remove_socket(&args, &places);
    served
}

/// A socket of systemd's stays; our own and the one that `cosched` made for us are removed.
fn remove_socket(args: &Args, places: &Places) {
    if !args.listen_stdin || args.embedded {
        let _ = std::fs::remove_file(&places.socket);
    }
}

/// The size of a directory's file system, in bytes.
fn disk_bytes(dir: &Path) -> u64 {
    rustix::fs::statvfs(dir).map_or(0, |of| of.f_blocks.saturating_mul(of.f_frsize))
}

/// Checks the machine without changing it: `--setup` or `--check`.
fn look(config: &Config, args: &Args) -> anyhow::Result<()> {
    if let Some(how) = &args.setup {
        return setup::setup(config, args, how == "fix");
    }
    check::check(config, args)
}

fn configuration(args: &Args) -> anyhow::Result<Config> {
    Ok(match args.config.clone().or_else(instance::default_config) {
        Some(path) => Config::load(&path)?,
        None => Config::default(),
    })
}

fn open_state(dir: &Path) -> anyhow::Result<(Store, crate::store::State, Vec<Warning>)> {
    let opened = Store::open(dir);
    if opened.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock) {
        bail!(
            "another daemon has its state in {}. Two cannot share it. Use that one, or give this one another \
             --state-dir, --socket and --cgroup",
            dir.display()
        );
    }
    let Opened { store, state, damaged } = opened.map_err(|e| no_state(dir, &e))?;
    Ok((store, state, damaged.into_iter().map(damage).collect()))
}

/// The warning to all users about a damaged file.
fn damage((aside, lines): (PathBuf, usize)) -> Warning {
    let warning = Warning {
        what: format!("{lines} lines of the state are damaged, missing or not in their place"),
        why: "the file was changed by another program, is an older copy, or the disk failed".to_owned(),
        hint: format!(
            "The damaged file was set aside as {}; all other lines were taken over. Jobs may be missing: compare \
             `cosched ps` with what should run.",
            aside.display()
        ),
    };
    tracing::error!("{}: {}. {}", warning.what, warning.why, warning.hint);
    warning
}

fn no_state(dir: &Path, e: &io::Error) -> anyhow::Error {
    let hint = match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "Make room there; running jobs continue until then"
        }
        io::ErrorKind::PermissionDenied => {
            "The directory, its contents and the directories above it must belong to the daemon's user, and no other \
             user may write there: chown and chmod, or choose another --state-dir"
        }
        io::ErrorKind::InvalidData => {
            "Use the version that wrote it, or move the directory away and start with an empty one"
        }
        _ => "Check that disk, or choose another --state-dir",
    };
    anyhow::anyhow!("the state in {} cannot be opened: {e}. {hint}. Nothing was changed", dir.display())
}

fn listen(
    config: &Config,
    args: &Args,
    places: &Places,
) -> anyhow::Result<(std::os::unix::net::UnixListener, Option<std::net::TcpListener>)> {
    let listener = instance::listen(args, places)?;
    let metrics = config.metrics_listen.map(instance::listen_for_metrics).transpose();
    // A socket made by another program, such as systemd, stays.
    let _ = metrics.as_ref().map_err(|_| (!args.listen_stdin).then(|| std::fs::remove_file(&places.socket)));
    Ok((listener, metrics?))
}

fn machinery(config: &Config, args: &Args, places: &Places, mut tree: Tree) -> anyhow::Result<Machinery> {
    if !tree.bound_tasks(config.limits.tasks_per_job) {
        tracing::warn!("there is no pids controller here: the processes of a job are not bounded");
    }
    let lock = instance::lock_tree(&tree)?;
    // Jobs left frozen by an earlier daemon must not wait for the new plan.
    thaw::thaw_all(&tree.thaw_paths(), config.mechanism == "signals");
    subgangs::forget(tree.v2_dir());
    // `fair` begins with the weight of one session among others.
    let part = if let Reserve::Part(part) = config.reserve { part } else { 0.5 };
    if !tree.set_reserve(part)? {
        tracing::info!("the weight of our subtree cannot be set by this daemon; its parent decides the reserve");
    }
    if let Err(e) = realtime::lock_memory() {
        tracing::warn!("the memory could not be locked: {e}");
    }
    let exe = guard_exe()?;
    let agent = match tree.has_keepers() {
        true => Err("there are no cgroups".to_owned()),
        false => KernelAgent::arm(&places.runtime_dir, &args.cgroup, &exe, &tree).map_err(|e| e.to_string()),
    };
    let beat = Arc::new(Beat::create(config.lease.as_nanos() as u64)?);
    let guard =
        GuardKeeper::new(exe.clone(), tree.thaw_paths(), (Arc::clone(&beat), places.runtime_dir.join("fences")), agent);
    let mechanism = mechanism::choose(&tree, true, None)?;
    let slots = SlotThread::start(SlotConfig { priority: config.realtime_priority, beat: Some(beat) }, mechanism)?;
    let neighbours = match config.reserve {
        Reserve::Fair => Neighbours::start(&tree, &slots)?,
        Reserve::Part(_) => None,
    };
    let mover = Mover::start()?;
    let subgangs = if tree.has_keepers() { None } else { Subgangs::start()? };
    if subgangs.is_none() && !tree.has_keepers() {
        tracing::info!("processes of one job take no turns (subgangs): this daemon has no CAP_SYS_NICE");
    }
    let watchdogs = Watchdogs::start(places.runtime_dir.clone())?;
    // Without cgroups nothing fills, and it need not be known which CPUs are idle.
    let probe = (!tree.has_keepers()).then(|| ProbeKeeper::new(exe));
    Ok(Machinery { tree, slots, neighbours, guard, mover, subgangs, watchdogs, probe, _lock: lock })
}

/// The CPUs, and the number of them that jobs can use at a time.
fn cpus(tree: &Tree) -> (Vec<u32>, u32) {
    let cpus = observe::cpus_allowed();
    let under_quota = std::thread::available_parallelism().ok().filter(|_| tree.has_keepers());
    let at_a_time = under_quota.map_or(cpus.len(), |count| count.get().min(cpus.len())) as u32;
    (cpus, at_a_time)
}

fn guard_exe() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("the daemon's own program cannot be found")?;
    Ok(own.with_file_name("cosched-guard"))
}

fn rights(config: &Config) -> anyhow::Result<Rights> {
    let mut admins = Vec::new();
    for name in &config.admins {
        match users::user_id(name) {
            Some(uid) => admins.push(uid),
            None => {
                bail!("`admins` names `{name}`, which is not in /etc/passwd. Use a number for a user from elsewhere")
            }
        }
    }
    Ok(Rights::new(rustix::process::geteuid().as_raw(), admins))
}

async fn serve(
    driver: Driver,
    (desk, called): (Desk, mpsc::Receiver<Call>),
    (door, bounds): (Door, Bounds),
    metrics: Option<TcpListener>,
) -> anyhow::Result<()> {
    let (stop, stopped) = mpsc::channel(1);
    let time = bounds.time;
    let metrics =
        metrics.map(|listener| tokio::spawn(serve::metrics(listener, http::metrics_router(desk.clone()), time)));
    let server = tokio::spawn(serve::users(door, http::router(desk, bounds), time));
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        tokio::select! { _ = term.recv() => (), _ = int.recv() => () }
        let _ = stop.send(()).await;
    });
    // Without systemd there is no listener, and that is no error.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    tracing::info!(pid = std::process::id(), "ready");
    driver.run(called, stopped).await;
    pace::end();
    server.abort();
    metrics.inspect(|server| server.abort());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_administrator_whom_nobody_knows_is_a_mistake() {
        let of = |text: &str| rights(&Config::parse(text).unwrap());
        let known = of("admins = [\"root\", \"4711\"]").unwrap();
        assert!(known.is_admin(crate::rights::Peer { uid: 4711, pid: None }));
        let e = of("admins = [\"nobody-of-this-name\"]").unwrap_err().to_string();
        assert!(e.contains("nobody-of-this-name"), "{e}");
    }

    #[test]
    fn a_state_that_cannot_be_opened_says_what_to_do() {
        for (kind, hint) in [
            (io::ErrorKind::StorageFull, "Make room there"),
            (io::ErrorKind::QuotaExceeded, "Make room there"),
            (io::ErrorKind::PermissionDenied, "chown and chmod"),
            (io::ErrorKind::InvalidData, "Use the version that wrote it"),
            (io::ErrorKind::NotFound, "choose another --state-dir"),
        ] {
            let told = no_state(Path::new("/s"), &io::Error::from(kind)).to_string();
            assert!(told.contains(hint) && told.contains("Nothing was changed"), "{told}");
        }
    }

    #[test]
    fn a_state_has_one_daemon_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = open_state(dir.path()).unwrap();
        let e = open_state(dir.path()).map(drop).unwrap_err().to_string();
        assert!(e.contains("another daemon has its state"), "{e}");
        drop(first);
        assert!(open_state(dir.path()).is_ok());
    }
}
