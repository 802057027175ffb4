//! Start-up: everything that can fail does so here, with an explanation, before the first job is touched.

use crate::args::Args;
use crate::call::Call;
use crate::cluster::Link;
use crate::config::Config;
use crate::driver::{Driver, Identity, Machinery};
use crate::guard::GuardKeeper;
use crate::instance::{self, Places};
use crate::probe::ProbeKeeper;
use crate::rights::Rights;
use crate::store::{Opened, Store};
use crate::{clock, http, users};
use anyhow::{Context, bail};
use cosched_api::Warning;
use cosched_linux::beat::Beat;
use cosched_linux::kernel_agent::KernelAgent;
use cosched_linux::{Layout, Place, SlotConfig, SlotThread, Tree, mechanism, observe, realtime, thaw};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
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
    start_log();
    let config = match args.config.clone().or_else(instance::default_config) {
        Some(path) => Config::load(&path)?,
        None => Config::default(),
    };
    let layout = Layout::detect()?;
    let place = place(&layout, &args.cgroup)?;
    if args.check {
        return check(&config, &layout, place);
    }
    let rights = rights(&config)?;
    let places = Places::new(&args, &config);
    instance::check_free(&args, &places)?;
    instance::make_dir(&places.runtime_dir)?;
    let (store, state, warnings) = open_state(&places.state_dir)?;
    let machinery = machinery(&config, &args, &places, &layout, place)?;
    let listener = instance::listen(&args, &places)?;
    let metrics = config.metrics_listen.map(instance::listen_for_metrics).transpose()?;
    let identity = Identity {
        status_file: places.status_file.clone(),
        socket: places.socket.display().to_string(),
        embedded: args.embedded,
        started_unix_ms: clock::unix_ms(),
        layout: layout.to_string(),
        cpus: observe::cpus_allowed(),
        wait_dir: places.runtime_dir.join("wait"),
        home: home(&places.state_dir),
        disk_bytes: disk_bytes(&places.state_dir),
        warnings,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (calls, called) = mpsc::channel(64);
    let to_driver = calls.clone();
    let served = tokio::task::LocalSet::new().block_on(&runtime, async {
        let driver = Driver::new(config, identity, rights, (store, state), machinery, to_driver)?;
        let metrics = metrics.map(TcpListener::from_std).transpose()?;
        serve(driver, (calls, called), UnixListener::from_std(listener)?, metrics).await
    });
    // A socket of systemd's stays; ours and the one that `cosched` made for us go.
    if !args.listen_stdin || args.embedded {
        let _ = std::fs::remove_file(&places.socket);
    }
    served
}

fn start_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("COSCHED_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
}

/// A daemon that has this machine and the lock of this directory has no living twin.
fn home(state_dir: &Path) -> String {
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_else(|_| observe::hostname());
    let dir = state_dir.canonicalize().unwrap_or_else(|_| state_dir.to_owned());
    format!("{}:{}", machine.trim(), dir.display())
}

/// The size of the file system of a directory.
fn disk_bytes(dir: &Path) -> u64 {
    rustix::fs::statvfs(dir).map_or(0, |of| of.f_blocks.saturating_mul(of.f_frsize))
}

/// The place of our cgroups: below the root for root, in a delegated subtree for a user.
fn place(layout: &Layout, name: &str) -> anyhow::Result<Place> {
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        bail!("`{name}` cannot be the name of a cgroup. Use letters, digits and dashes");
    }
    if instance::is_root() {
        return Ok(Place::Root { name: name.to_owned() });
    }
    Ok(Place::own_delegated(layout, name)?)
}

fn check(config: &Config, layout: &Layout, place: Place) -> anyhow::Result<()> {
    println!("cgroups    {layout}");
    let tree = Tree::open(layout, place)?;
    println!("subtree    {}", tree.v2_dir().display());
    for probe in mechanism::probe(&tree) {
        println!("mechanism  {}: {}", probe.name, probe.why);
    }
    if tree.jobs()?.is_empty() {
        tree.remove()?;
    }
    if let Some(cluster) = &config.cluster {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let reached = tokio::task::LocalSet::new().block_on(&runtime, Link::reach(cluster))?;
        println!("store      {reached} ({}, as node {})", cluster.name, cluster.node);
    }
    println!("configuration and machine are fine");
    Ok(())
}

fn open_state(dir: &Path) -> anyhow::Result<(Store, crate::store::State, Vec<Warning>)> {
    let opened = Store::open(dir);
    if opened.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock) {
        bail!(
            "another daemon keeps its state in {}. Two cannot share it. Use that one, or give this one another \
             --state-dir, --socket and --cgroup",
            dir.display()
        );
    }
    let Opened { store, state, damaged } = opened
        .with_context(|| format!("the state in {} cannot be opened; choose another --state-dir", dir.display()))?;
    let warnings = damaged.map(|(aside, lines)| Warning {
        what: format!("{lines} damaged lines in the state"),
        why: "the file was changed by somebody else, or the disk failed".to_owned(),
        hint: format!("The damaged file was set aside as {}; all other lines were taken over.", aside.display()),
    });
    if let Some(w) = &warnings {
        tracing::error!("{}: {}. {}", w.what, w.why, w.hint);
    }
    Ok((store, state, warnings.into_iter().collect()))
}

fn machinery(
    config: &Config,
    args: &Args,
    places: &Places,
    layout: &Layout,
    place: Place,
) -> anyhow::Result<Machinery> {
    let tree = Tree::open(layout, place)?;
    let lock = lock_tree(&tree)?;
    // What an earlier daemon left frozen must not wait for the new plan.
    thaw::thaw_all(&tree.thaw_paths(), config.mechanism == "signals");
    if !tree.set_reserve(config.reserve)? {
        tracing::info!("the weight of our subtree is not ours to set; the reserve is its parent's matter");
    }
    if let Err(e) = realtime::lock_memory() {
        tracing::warn!("the memory could not be locked: {e}");
    }
    let exe = guard_exe()?;
    let agent = KernelAgent::arm(&places.runtime_dir, &args.cgroup, &exe, &tree).map_err(|e| e.to_string());
    let beat = Arc::new(Beat::create(config.lease.as_nanos() as u64)?);
    let guard = GuardKeeper::new(exe.clone(), tree.thaw_paths(), Arc::clone(&beat), agent);
    let mechanism = mechanism::choose(&tree, true, None)?;
    let slots = SlotThread::start(SlotConfig { priority: config.realtime_priority, beat: Some(beat) }, mechanism)?;
    Ok(Machinery { tree, slots, guard, probe: ProbeKeeper::new(exe), _lock: lock })
}

/// Two daemons on one subtree would switch each other's jobs.
fn lock_tree(tree: &Tree) -> anyhow::Result<File> {
    let dir = tree.v2_dir();
    let lock = File::open(dir).with_context(|| format!("the cgroup {} cannot be opened", dir.display()))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        bail!(
            "another daemon has its jobs in the cgroup {}. Use that one (`cosched status`), or give this one another \
             --cgroup, --socket and --state-dir",
            dir.display()
        );
    }
    Ok(lock)
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
                bail!("`admins` names `{name}`, whom /etc/passwd does not know. Use a number for a user from elsewhere")
            }
        }
    }
    Ok(Rights::new(rustix::process::geteuid().as_raw(), admins))
}

async fn serve(
    driver: Driver,
    (calls, called): (mpsc::Sender<Call>, mpsc::Receiver<Call>),
    listener: UnixListener,
    metrics: Option<TcpListener>,
) -> anyhow::Result<()> {
    let (stop, stopped) = mpsc::channel(1);
    let metrics = metrics.map(|listener| {
        let app = http::metrics_router(calls.clone());
        tokio::spawn(async move { axum::serve(listener, app).await })
    });
    let app = http::router(calls).into_make_service_with_connect_info::<crate::rights::Peer>();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        tokio::select! { _ = term.recv() => (), _ = int.recv() => () }
        let _ = stop.send(()).await;
    });
    // Without systemd nobody listens, and that is fine.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    tracing::info!(pid = std::process::id(), "ready");
    driver.run(called, stopped).await;
    server.abort();
    metrics.inspect(|server| server.abort());
    Ok(())
}
