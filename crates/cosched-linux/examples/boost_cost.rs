//! Measures ways to give one of several spinning jobs the CPUs at once.
//!
//! `boost_cost WAY JOBS PERIOD_US SECONDS` makes JOBS jobs with a spinning process on each CPU. Every PERIOD_US a real-time thread names the next job
//! and boosts it in this WAY. Printed: the time until the boosted job's process runs on each CPU (µs, median and 99th percentile), the boosted jobs'
//! share of the CPU time, the share in which no job ran, and the cost of the writes (µs). Ways: `none`; `hold` freezes the others until they are
//! named; `pulse:US` freezes them for this time only; `current` freezes and thaws the one that was named before; `idle` and `weight` flip cpu.idle
//! and the weights; `soft:US` flips cpu.idle and freezes the others for this time; `fifo` makes the boosted ones real-time. Needs root.

mod scratch;

use std::error::Error;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cosched_linux::{JobCgroup, Tree, observe, realtime};
use scratch::in_scratch_tree;

/// A gap of this length between two readings of the clock means that the process did not run meanwhile.
const GAP_NS: u64 = 15_000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).map(String::as_str) == Some("spin") {
        return spin(args[2].parse()?, args[3].parse()?);
    }
    if args.len() != 5 {
        return Err("usage: boost_cost WAY JOBS PERIOD_US SECONDS".into());
    }
    in_scratch_tree(|tree| measure(tree, &args))
}

/// Prints the intervals in which it ran.
fn spin(cpu: usize, end_ns: u64) -> Result<(), Box<dyn Error>> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set)?;
    let mut ran: Vec<(u64, u64)> = Vec::with_capacity(1 << 16);
    let mut last = observe::monotonic_ns();
    ran.push((last, last));
    while last < end_ns {
        let now = observe::monotonic_ns();
        if now - last > GAP_NS {
            ran.push((now, now));
        }
        if let Some(open) = ran.last_mut() {
            open.1 = now;
        }
        last = now;
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (from, to) in ran {
        writeln!(out, "{from} {to}")?;
    }
    Ok(())
}

fn set_fifo(pid: i32, priority: i32) {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a live sched_param that the call reads.
    let failed = unsafe { libc::sched_setscheduler(pid, if priority > 0 { libc::SCHED_FIFO } else { 0 }, &param) } != 0;
    if failed {
        eprintln!("sched_setscheduler: {}", std::io::Error::last_os_error());
    }
}

struct Jobs {
    cgroups: Vec<JobCgroup>,
    pids: Vec<Vec<i32>>,
}

impl Jobs {
    fn others(&self, but: usize) -> impl Iterator<Item = &JobCgroup> {
        self.cgroups.iter().enumerate().filter(move |(j, _)| *j != but).map(|(_, c)| c)
    }

    fn boost(&self, way: &str, pause: Duration, to: usize, from: usize) -> Result<(), Box<dyn Error>> {
        let (new, old) = (self.cgroups[to].switch_handle(), self.cgroups[from].switch_handle());
        let freeze = |frozen| self.others(to).try_for_each(|job| job.switch_handle().set_frozen(frozen));
        match way {
            "none" => {}
            "hold" => {
                new.set_frozen(false)?;
                freeze(true)?;
            }
            "pulse" => {
                freeze(true)?;
                std::thread::sleep(pause);
                freeze(false)?;
            }
            "current" => {
                old.set_frozen(true)?;
                old.set_frozen(false)?;
            }
            "idle" => {
                new.set_idle(false)?;
                self.others(to).try_for_each(|job| job.switch_handle().set_idle(true))?;
            }
            "weight" => {
                new.set_weight(10_000)?;
                self.others(to).try_for_each(|job| job.switch_handle().set_weight(1))?;
            }
            "soft" => {
                freeze(true)?;
                new.set_idle(false)?;
                self.others(to).try_for_each(|job| job.switch_handle().set_idle(true))?;
                std::thread::sleep(pause);
                freeze(false)?;
            }
            "fifo" => {
                self.pids[from].iter().for_each(|&pid| set_fifo(pid, 0));
                self.pids[to].iter().for_each(|&pid| set_fifo(pid, 1));
            }
            _ => return Err("unknown way".into()),
        }
        Ok(())
    }
}

fn measure(tree: &Tree, args: &[String]) -> Result<(), Box<dyn Error>> {
    let (way, pause) = args[1].split_once(':').unwrap_or((&args[1], "0"));
    let pause = Duration::from_micros(pause.parse()?);
    let (count, period_ns): (usize, u64) = (args[2].parse()?, args[3].parse::<u64>()? * 1000);
    let start_ns = observe::monotonic_ns() + 1_000_000_000;
    let end_ns = start_ns + args[4].parse::<u64>()? * 1_000_000_000;
    let cpus = observe::cpus_allowed();
    let mut jobs = Jobs { cgroups: Vec::new(), pids: Vec::new() };
    let mut children: Vec<(usize, usize, Child)> = Vec::new();
    for job in 0..count {
        let cgroup = tree.create_job(job as u64)?;
        let mut pids = Vec::new();
        for (place, cpu) in cpus.iter().enumerate() {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("spin").args([cpu.to_string(), end_ns.to_string()]).stdout(Stdio::piped());
            let child = command.spawn()?;
            cgroup.attach(child.id() as i32)?;
            pids.push(child.id() as i32);
            children.push((job, place, child));
        }
        jobs.cgroups.push(cgroup);
        jobs.pids.push(pids);
    }
    let mut decisions: Vec<(u64, usize)> = Vec::new();
    let mut costs = Vec::new();
    let outcome = std::thread::scope(|scope| {
        let decide = || -> Result<(), String> {
            realtime::become_realtime(10).map_err(|e| e.to_string())?;
            let mut due_ns = start_ns;
            let mut from = count - 1;
            while due_ns < end_ns - period_ns {
                std::thread::sleep(Duration::from_nanos(due_ns.saturating_sub(observe::monotonic_ns())));
                let now_ns = observe::monotonic_ns();
                let to = (from + 1) % count;
                jobs.boost(way, pause, to, from).map_err(|e| e.to_string())?;
                costs.push((observe::monotonic_ns() - now_ns).saturating_sub(pause.as_nanos() as u64));
                decisions.push((now_ns, to));
                from = to;
                due_ns += period_ns;
            }
            for (job, pids) in jobs.cgroups.iter().zip(&jobs.pids) {
                job.switch_handle().set_frozen(false).map_err(|e| e.to_string())?;
                if way == "fifo" {
                    pids.iter().for_each(|&pid| set_fifo(pid, 0));
                }
            }
            Ok(())
        };
        scope.spawn(decide).join().map_err(|_| "the deciding thread died".to_string())?
    });
    let mut ran: Vec<Vec<Vec<(u64, u64)>>> = vec![vec![Vec::new(); cpus.len()]; count];
    for (job, place, mut child) in children {
        let mut text = String::new();
        child.stdout.take().ok_or("no output")?.read_to_string(&mut text)?;
        child.wait()?;
        let pair = |line: &str| {
            line.split_once(' ').and_then(|(from, to)| Some((from.parse::<u64>().ok()?, to.parse::<u64>().ok()?)))
        };
        ran[job][place] = text.lines().filter_map(pair).collect();
    }
    outcome?;
    report(args, &decisions, &ran, costs, period_ns);
    Ok(())
}

fn report(args: &[String], decisions: &[(u64, usize)], ran: &[Vec<Vec<(u64, u64)>>], costs: Vec<u64>, period_ns: u64) {
    let (mut waits, mut right, mut used) = (Vec::new(), 0, 0);
    for &(at, job) in decisions {
        let until = at + period_ns;
        for (other, places) in ran.iter().enumerate() {
            for intervals in places {
                let first = intervals.partition_point(|&(_, to)| to < at);
                let in_window = intervals[first..].iter().take_while(|&&(from, _)| from < until);
                let time: u64 = in_window.map(|&(from, to)| to.min(until) - from.max(at)).sum();
                used += time;
                if other == job {
                    right += time;
                    waits.push(intervals.get(first).map_or(period_ns, |&(from, _)| from.saturating_sub(at)));
                }
            }
        }
    }
    let total = (decisions.len() * ran[0].len()) as f64 * period_ns as f64;
    let quantile = |mut values: Vec<u64>, share: f64| {
        values.sort_unstable();
        values.get(((values.len() - 1) as f64 * share) as usize).copied().unwrap_or(0) as f64 / 1000.0
    };
    println!(
        "{}: runs after {:.0}/{:.0} µs, boosted {:.1} %, none boosted {:.1} %, writes {:.0}/{:.0} µs",
        args[1..4].join(" "),
        quantile(waits.clone(), 0.5),
        quantile(waits, 0.99),
        100.0 * right as f64 / total,
        100.0 - 100.0 * used as f64 / total,
        quantile(costs.clone(), 0.5),
        quantile(costs, 0.99),
    );
}
