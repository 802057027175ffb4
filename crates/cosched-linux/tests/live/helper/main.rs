//! A replacement for the daemon and its guard in the live tests, which can be killed, stopped and started again.
//!
//! `cosched-fault-helper daemon NAME LEASE_MS MECHANISM RUN_DIR|-` switches all jobs of the tree NAME in turn every 20 ms, with a guard and, where a
//! run directory is given, with the kernel agent. It prints `ready GUARD_PID AGENT` and ends in an orderly way when its input ends. With
//! DRIVER_LIMIT_MS in the environment its driver hangs.
//! `cosched-fault-helper talk` and `look-into PID` are in `talker`. `cosched-fault-helper spin` uses CPU time until it is killed;
//! `cosched-fault-helper session` does so on every CPU, in a session of its own. With any other arguments it is the guard.

use std::error::Error;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use cosched_core::Disposition;
use cosched_linux::beat::Beat;
use cosched_linux::guard::{GuardOptions, guard_main, spawn_guard};
use cosched_linux::kernel_agent::KernelAgent;
use cosched_linux::{Entry, Layout, Place, SlotConfig, SlotThread, Table, Tree, mechanism, observe};

mod talker;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[1..] {
        ["spin"] => spin(),
        ["session"] => session(),
        ["talk"] => told(talker::talk(false)),
        ["talk", "apart"] => told(talker::talk(true)),
        ["look-into", pid] => told(talker::look_into(pid)),
        ["daemon", name, lease_ms, mechanism, run_dir] => told(daemon(name, lease_ms, mechanism, run_dir)),
        _ => guard_main(std::env::args_os()),
    }
}

fn told(outcome: Result<(), Box<dyn Error>>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("cosched-fault-helper: {e}");
            ExitCode::FAILURE
        }
    }
}

/// A session with one spinning thread on each CPU.
fn session() -> ! {
    rustix::process::setsid().expect("a child does not lead its group");
    let pinned = |cpu: u32| {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu as usize);
        rustix::thread::sched_setaffinity(None, &set).expect("a CPU that we may use");
        spin()
    };
    let cpus = observe::cpus_allowed();
    for &cpu in &cpus[1..] {
        std::thread::spawn(move || pinned(cpu));
    }
    pinned(cpus[0])
}

fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

fn daemon(name: &str, lease_ms: &str, wanted: &str, run_dir: &str) -> Result<(), Box<dyn Error>> {
    let exe = std::env::current_exe()?;
    let tree = Tree::open(&Layout::detect()?, Place::Root { name: name.into() })?;
    let beat = Arc::new(Beat::create(lease_ms.parse::<u64>()? * 1_000_000)?);
    let (agent, agent_word) = match run_dir {
        "-" => (None, "none".to_string()),
        dir => match KernelAgent::arm(Path::new(dir), name, &exe, &tree) {
            Ok(agent) => (Some(agent), "armed".to_string()),
            Err(problem) => (None, problem.to_string()),
        },
    };
    let mechanism = mechanism::choose(&tree, false, Some(wanted))?;
    if let Some(agent) = &agent {
        agent.set_signals(mechanism.uses_signals())?;
    }
    let fences = Path::new(run_dir).join("fences");
    let guard = spawn_guard(&exe, &GuardOptions { paths: tree.thaw_paths(), beat: &beat, fences: &fences })?;
    // The driver reports only one round.
    if let Ok(limit_ms) = std::env::var("DRIVER_LIMIT_MS") {
        beat.driver_went_round(limit_ms.parse::<u64>()? * 1_000_000);
    }
    let slots = SlotThread::start(SlotConfig { priority: 10, beat: Some(beat) }, mechanism)?;
    slots.install(table(&tree)?);
    println!("ready {} {agent_word}", guard.pid());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    slots.stop();
    guard.dismiss();
    agent.map_or(Ok(()), KernelAgent::disarm)?;
    Ok(())
}

fn table(tree: &Tree) -> Result<Table, Box<dyn Error>> {
    let mut jobs = Vec::new();
    for id in tree.jobs()? {
        jobs.push(Entry { switch: tree.open_job(id)?.switch_handle(), weight: 100, otherwise: Disposition::Stop });
    }
    let turns = (0..jobs.len() as u16).map(|job| vec![job]).collect();
    Ok(Table { epoch_ns: observe::realtime_ns() as u64, slot_length_ns: 20_000_000, jobs, turns, ..Table::empty() })
}
