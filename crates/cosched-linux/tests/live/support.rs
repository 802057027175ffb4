//! A tree of its own for each test, cleaned up also when the test fails.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cosched_linux::{JobCgroup, Layout, Place, Tree};

/// The time limit of every wait in a test; far above the expected time.
const PATIENCE: Duration = Duration::from_secs(30);

static NEXT: AtomicU32 = AtomicU32::new(0);
static CPUS: Mutex<()> = Mutex::new(());

/// Serialises tests that compare CPU times.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    CPUS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A tree with its processes.
pub(crate) struct Scene {
    pub(crate) tree: Tree,
    pub(crate) name: String,
    children: Vec<Child>,
}

impl Scene {
    /// `None` (with the reason printed) where the tests cannot run.
    pub(crate) fn new() -> Option<Scene> {
        Scene::on(|layout| layout)
    }

    /// The same on a machine that lacks something.
    pub(crate) fn on(lacks: impl FnOnce(Layout) -> Layout) -> Option<Scene> {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: needs root");
            return None;
        }
        let layout = match Layout::detect() {
            Ok(layout) => lacks(layout),
            Err(e) => {
                println!("SKIPPED: {e}");
                return None;
            }
        };
        let name = format!("cst-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let tree = Tree::open(&layout, Place::Root { name: name.clone() }).expect("root may make a tree");
        Some(Scene { tree, name, children: Vec::new() })
    }

    /// A job with `count` processes of `command`, moved into it after their start.
    pub(crate) fn job(&mut self, id: u64, command: &[&str], count: usize) -> JobCgroup {
        let job = self.tree.create_job(id).expect("create");
        self.more(&job, command, count);
        job
    }

    /// More processes for a job.
    pub(crate) fn more(&mut self, job: &JobCgroup, command: &[&str], count: usize) {
        for _ in 0..count {
            let child = spawn(command);
            job.attach(child.id() as i32).expect("attach");
            self.children.push(child);
        }
    }

    /// A job of processes that only use CPU, one for each CPU.
    pub(crate) fn spinners(&mut self, id: u64) -> JobCgroup {
        self.job(id, &[helper(), "spin"], cosched_linux::observe::cpus_online())
    }

    /// Reaps processes that have ended.
    pub(crate) fn reap(&mut self) {
        self.children.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
    }

    pub(crate) fn living(&mut self) -> usize {
        self.reap();
        self.children.len()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        for id in self.tree.jobs().unwrap_or_default() {
            if let Ok(job) = self.tree.open_job(id) {
                let _ = job.kill();
                let _ = within(|| job.populated().is_ok_and(|p| !p));
            }
        }
        if let Err(e) = self.tree.remove() {
            eprintln!("left over: {e}");
        }
    }
}

pub(crate) fn spawn(command: &[&str]) -> Child {
    let mut child = Command::new(command[0]);
    child.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null());
    child.spawn().expect("spawn")
}

/// The program that plays daemon, guard and job.
pub(crate) fn helper() -> &'static str {
    env!("CARGO_BIN_EXE_cosched-fault-helper")
}

/// Waits until a condition holds; false if it never does.
pub(crate) fn within(mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        sleep(Duration::from_millis(2));
    }
    true
}

/// The CPU time that each job uses during `time`, in milliseconds.
pub(crate) fn used_ms(jobs: &[&JobCgroup], time: Duration) -> Vec<f64> {
    let read = || -> Vec<u64> { jobs.iter().map(|job| job.cpu_time_ns().expect("cpu.stat")).collect() };
    let before = read();
    sleep(time);
    read().iter().zip(before).map(|(after, before)| (after - before) as f64 / 1e6).collect()
}
