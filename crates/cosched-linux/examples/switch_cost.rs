//! Measures switches with processes that spin and record when they run.
//!
//! `switch_cost MECHANISM JOBS PER_CPU SLOT_MS SECONDS [in|out] [idle|half|nap:US]` makes JOBS jobs of PER_CPU processes on each CPU, lets each run
//! in its turn, and prints one line: when the first process of the incoming gang runs on each CPU and the last of the outgoing one runs for the last
//! time (µs from the boundary), the CPU share of processes that should not run (stray), the share of the CPU time that went to the right gang, and
//! the statistics of the slot thread. With `idle` the first job has no process, with `half` one on all CPUs but the first, with `nap:US` its
//! processes sleep for US after each US of CPU time; then the stray is the use that the others make of its slots. Needs root. Source of the method:
//! reference/live-mechanisms.md, §2.

mod scratch;

use std::error::Error;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use cosched_core::{Disposition, Fill};
use cosched_linux::mechanism::{self, Freezer, Mechanism, Order, Soft};
use cosched_linux::{Entry, IdleProbe, JobCgroup, SlotConfig, SlotThread, Table, Tree, observe};
use scratch::in_scratch_tree;

/// A gap of this length between two readings of the clock means that the process did not run meanwhile.
const GAP_NS: i64 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).map(String::as_str) == Some("spin") {
        let number = |i: usize| args[i].parse::<i64>();
        return spin(
            &Times { epoch: number(2)?, slot: number(3)?, end: number(4)? },
            number(5)?,
            number(6)?,
            number(7)?,
            number(8)?,
        );
    }
    if args.get(1).map(String::as_str) == Some("probe") {
        cosched_linux::guard::guard_main(std::env::args_os());
        return Ok(());
    }
    measure(&args)
}

struct Times {
    epoch: i64,
    slot: i64,
    end: i64,
}

/// A process of a job: records time in its own turns and outside them, and the latencies of both kinds of boundary.
fn spin(times: &Times, turns: i64, own: i64, cpu: i64, nap_us: i64) -> Result<(), Box<dyn Error>> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set)?;
    let (mut inside, mut stray) = (0, 0);
    let (mut starts, mut ends): (Vec<(i64, i64)>, Vec<i64>) = (Vec::new(), Vec::new());
    let mut last = observe::realtime_ns();
    let mut started = i64::MIN;
    let mut awake_ns = 0;
    while last < times.end {
        if nap_us > 0 && awake_ns > nap_us * 1000 {
            sleep(Duration::from_micros(nap_us as u64));
            awake_ns = 0;
            last = observe::realtime_ns();
        }
        let now = observe::realtime_ns();
        awake_ns += if now - last < GAP_NS { now - last } else { 0 };
        let slot = (now - times.epoch).div_euclid(times.slot);
        let mine = slot.rem_euclid(turns) == own;
        let since = now - times.epoch - slot * times.slot;
        if now >= times.epoch {
            if now - last < GAP_NS {
                *(if mine { &mut inside } else { &mut stray }) += now - last;
            }
            if mine && started != slot {
                started = slot;
                starts.push((slot, since));
                ends.push(0);
            } else if !mine && started == slot - 1 && since < times.slot / 2 {
                *ends.last_mut().ok_or("no start")? = since;
            }
        }
        last = now;
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{inside} {stray}")?;
    for ((slot, start), end) in starts.iter().zip(&ends) {
        writeln!(out, "{slot} {cpu} {start} {end}")?;
    }
    Ok(())
}

/// The mechanism by name, with the requested order.
fn wanted(tree: &Tree, args: &[String]) -> Result<Box<dyn Mechanism>, Box<dyn Error>> {
    let order = match args.get(6).map(String::as_str) {
        Some("in") => Some(Order::IncomingFirst),
        Some("out") => Some(Order::OutgoingFirst),
        _ => None,
    };
    Ok(match args[1].as_str() {
        "freezer" => Box::new(Freezer { order: order.unwrap_or(Freezer::default().order), ..Freezer::default() }),
        name @ ("freeze-idle" | "freeze-shares") => {
            let mut soft = if name == "freeze-idle" { Soft::idle() } else { Soft::shares() };
            soft.order = order.unwrap_or(soft.order);
            Box::new(soft)
        }
        name => mechanism::choose(tree, false, Some(name))?,
    })
}

fn measure(args: &[String]) -> Result<(), Box<dyn Error>> {
    if args.len() < 6 {
        return Err("usage: switch_cost MECHANISM JOBS PER_CPU SLOT_MS SECONDS [in|out] [idle|half|nap:US]".into());
    }
    in_scratch_tree(|tree| run(tree, args))
}

fn run(tree: &Tree, args: &[String]) -> Result<(), Box<dyn Error>> {
    let (jobs, per_cpu): (u64, u64) = (args[2].parse()?, args[3].parse()?);
    let (slot, seconds): (i64, i64) = (args[4].parse::<i64>()? * 1_000_000, args[5].parse()?);
    // The number of CPUs that the first job leaves idle.
    let idle =
        if args.iter().any(|a| a == "idle") { usize::MAX } else { usize::from(args.iter().any(|a| a == "half")) };
    let nap_us = args.iter().find_map(|a| a.strip_prefix("nap:")).map_or(Ok(0), str::parse)?;
    // Enough time for all processes to start on a busy machine.
    let epoch = observe::realtime_ns() + 2_000_000_000;
    let times = Times { epoch, slot, end: epoch + seconds * 1_000_000_000 };
    cosched_linux::realtime::lock_memory()?;
    let mechanism = wanted(tree, args)?;
    let slots = SlotThread::start(SlotConfig { priority: 10, beat: None }, mechanism)?;
    slots.set_probe(IdleProbe::spawn(&std::env::current_exe()?, tree)?);
    let mut children = Vec::new();
    let mut cgroups = Vec::new();
    for job in 0..jobs {
        let cgroup = tree.create_job(job)?;
        // Otherwise the first jobs would take CPU time from the start of the others.
        cgroup.switch_handle().set_frozen(true)?;
        let cpus = observe::cpus_allowed().into_iter().skip(if job == 0 { idle } else { 0 });
        for cpu in cpus.flat_map(|cpu| vec![cpu; per_cpu as usize]) {
            children.push((job, start(&cgroup, &times, jobs, job, cpu, if job == 0 { nap_us } else { 0 })?));
        }
        cgroups.push(cgroup);
    }
    slots.install(Table {
        epoch_ns: epoch as u64,
        slot_length_ns: slot as u64,
        jobs: cgroups
            .iter()
            .map(|c| Entry { switch: c.switch_handle(), weight: 100, otherwise: Disposition::Background })
            .collect(),
        turns: (0..jobs as u16).map(|job| vec![job]).collect(),
        fill: Fill::All,
        ..Table::empty()
    });
    slots.reset_stats();
    let before = own_cpu_us(tree);
    sleep(Duration::from_nanos((times.end - observe::realtime_ns()) as u64));
    let stats = slots.stats();
    let own_us = own_cpu_us(tree) - before;
    slots.stop();
    let total = (observe::cpus_allowed().len() as i64 * (times.end - times.epoch)) as f64;
    report(args, children, total, jobs)?;
    println!(
        "    thread: {} switches, late {}, missed {}, errors {}, fills {}; wake {:.0}/{:.0} done {:.0}/{:.0}",
        stats.count,
        stats.late,
        stats.missed,
        stats.errors,
        stats.fills,
        stats.wake.p50_us,
        stats.wake.p99_us,
        stats.done.p50_us,
        stats.done.p99_us
    );
    println!("    slot thread and probe: {:.3} % of one CPU", own_us as f64 / 1e4 / (seconds as f64 + 2.0));
    Ok(())
}

/// The CPU time of this process (which only sleeps beside its slot thread) and of the probe, in microseconds.
fn own_cpu_us(tree: &Tree) -> i64 {
    let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let probe = std::fs::read_to_string(tree.v2_dir().join("probe/cpu.stat")).unwrap_or_default();
    let probe_us = probe.split_whitespace().nth(1).and_then(|us| us.parse::<i64>().ok()).unwrap_or(0);
    own.tv_sec * 1_000_000 + own.tv_nsec / 1000 + probe_us
}

fn start(
    cgroup: &JobCgroup,
    times: &Times,
    turns: u64,
    own: u64,
    cpu: u32,
    nap_us: u64,
) -> Result<Child, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("spin").args([times.epoch, times.slot, times.end].map(|n| n.to_string()));
    let child =
        command.args([turns, own, u64::from(cpu), nap_us].map(|n| n.to_string())).stdout(Stdio::piped()).spawn()?;
    cgroup.attach(child.id() as i32)?;
    Ok(child)
}

fn report(args: &[String], children: Vec<(u64, Child)>, total: f64, jobs: u64) -> Result<(), Box<dyn Error>> {
    let (mut inside, mut stray, mut first_job) = (0.0, 0.0, 0.0);
    // For each slot and CPU the first process to run; for each slot the last one to stop.
    let mut first = std::collections::BTreeMap::new();
    let mut last = std::collections::BTreeMap::new();
    for (job, mut child) in children {
        let mut text = String::new();
        child.stdout.take().ok_or("no output")?.read_to_string(&mut text)?;
        child.wait()?;
        let mut lines =
            text.lines().map(|line| line.split(' ').map(|n| n.parse::<i64>()).collect::<Result<Vec<_>, _>>());
        let sums = lines.next().ok_or("no sums")??;
        inside += sums[0] as f64;
        first_job += if job == 0 { sums[0] as f64 } else { 0.0 };
        stray += sums[1] as f64;
        for line in lines {
            let line = line?;
            let start = first.entry((line[0], line[1])).or_insert(line[2]);
            *start = line[2].min(*start);
            let end = last.entry(line[0]).or_insert(0);
            *end = line[3].max(*end);
        }
    }
    let quantile = |mut values: Vec<i64>, share: f64| {
        values.sort_unstable();
        let index = ((values.len() as f64 - 1.0).max(0.0) * share).round() as usize;
        values.get(index).copied().unwrap_or(0) as f64 / 1000.0
    };
    let (first, last): (Vec<i64>, Vec<i64>) = (first.into_values().collect(), last.into_values().collect());
    println!(
        "{}: in {:.0}/{:.0} out {:.0}/{:.0} µs (p50/p99), stray {:.3} %, right {:.2} %",
        args[1..].join(" "),
        quantile(first.clone(), 0.5),
        quantile(first, 0.99),
        quantile(last.clone(), 0.5),
        quantile(last, 0.99),
        100.0 * stray / total,
        100.0 * inside / total
    );
    let slots = total / jobs as f64;
    println!(
        "    the first job used {:.1} % of its slots; of the rest the others had {:.1} % at most",
        100.0 * first_job / slots,
        100.0 * stray / (slots - first_job)
    );
    Ok(())
}
