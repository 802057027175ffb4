//! Measures the effect of boosting on programs that wait for each other across two nodes.
//!
//! `boost_pairs JOBS GRAIN_US ROUNDS SPIN_US [REPEATS]`: two nodes of one CPU each (a slot thread and job cgroups of its own), and JOBS jobs of two
//! processes, one on each node, that compute GRAIN_US of CPU time and exchange a byte over TCP, ROUNDS times. They wait by polling for SPIN_US and
//! then sleep (with a large number they never sleep). The ways take turns: `plain`; `pb` with samples every 2 ms and `pb1` every ms; `dcs` with
//! samples on arrival; `pulse` and `dcs-pulse` hold the others back for 200 µs only. Printed: the median time until all jobs have ended, in seconds,
//! as a multiple of one job's alone under plain (s_j), and the cost of the slot threads. Needs root.

mod scratch;

use std::error::Error;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cosched_core::Disposition;
use cosched_linux::mechanism::Freezer;
use cosched_linux::{
    Arrivals, Boost, BoostJob, BoostTiming, Choice, Chooser, Entry, JobCgroup, PageLayout, Seen, SlotConfig,
    SlotThread, SwitchStats, Table, Tree, WaitPage, observe,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, clock_gettime};
use scratch::in_scratch_tree;

/// One process per page: its number, and 0, 1 or 2 for computing, spinning, sleeping.
const LAYOUT: PageLayout =
    PageLayout { slots_at: 0, slot_size: 8, slots: 1, pid_at: 0, state_at: 4, spinning: 1, sleeping: 2 };
const WAYS: [&str; 6] = ["plain", "pb", "pb1", "pulse", "dcs", "dcs-pulse"];

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).map(String::as_str) == Some("rank") {
        return rank(&args[2..]);
    }
    if args.len() < 5 {
        return Err("usage: boost_pairs JOBS GRAIN_US ROUNDS SPIN_US [REPEATS]".into());
    }
    in_scratch_tree(|tree| measure(tree, &args))
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec) as u64
}

/// `rank CPU PAGE PORT(0: listens) GRAIN_US ROUNDS SPIN_US`: prints its port if it listens, waits for a line, exchanges.
fn rank(args: &[String]) -> Result<(), Box<dyn Error>> {
    let number = |i: usize| args[i].parse::<u64>();
    let mut set = rustix::thread::CpuSet::new();
    set.set(number(0)? as usize);
    rustix::thread::sched_setaffinity(None, &set)?;
    let page = File::options().write(true).open(&args[1])?;
    page.write_all_at(&std::process::id().to_ne_bytes(), 0)?;
    let mut peer = if number(2)? == 0 {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        println!("{}", listener.local_addr()?.port());
        listener.accept()?.0
    } else {
        TcpStream::connect(("127.0.0.1", number(2)? as u16))?
    };
    peer.set_nodelay(true)?;
    peer.set_nonblocking(true)?;
    std::io::stdin().read_exact(&mut [0])?;
    let (grain_ns, spin) = (number(3)? * 1000, Duration::from_micros(number(5)?));
    for _ in 0..number(4)? {
        let start_ns = cpu_ns();
        while cpu_ns() - start_ns < grain_ns {}
        peer.write_all(b"x")?;
        receive(&mut peer, spin, &page)?;
    }
    page.write_all_at(&[0; 8], 0)?;
    Ok(())
}

fn receive(peer: &mut TcpStream, spin: Duration, page: &File) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let mut noted = 0u32;
    let mut note = |state: u32| {
        let change = noted != state;
        noted = state;
        if change { page.write_all_at(&state.to_ne_bytes(), 4) } else { Ok(()) }
    };
    loop {
        match peer.read(&mut [0]) {
            Ok(0) => return Err("the other side has gone".into()),
            Ok(_) => return Ok(note(0)?),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(e.into()),
        }
        note(1)?;
        if start.elapsed() > spin {
            note(2)?;
            poll(&mut [PollFd::new(peer, PollFlags::IN)], None)?;
        }
    }
}

/// The current job while it computes or has a message, unless it is far ahead of another that could run; otherwise a job with a message, otherwise
/// one that computes, the one with less CPU time first.
struct Served {
    hold_ns: u64,
}

/// How far ahead a job may be, in CPU time.
const AHEAD_NS: u64 = 20_000_000;

impl Chooser for Served {
    fn choose(&mut self, _now_ns: u64, current: Option<usize>, jobs: &[Seen]) -> Option<Choice> {
        let served = |job: &Seen| job.unread && !job.blocked && job.spinning > 0;
        let computes = |job: &Seen| job.processes > 0 && !job.waiting && !job.blocked;
        let least = |fits: &dyn Fn(&Seen) -> bool| {
            let fitting = jobs.iter().enumerate().filter(|(_, job)| job.eligible && fits(job));
            fitting.min_by_key(|(_, job)| job.cpu_ns).map(|(place, _)| place)
        };
        let behind = least(&|job| served(job) || computes(job));
        let stays = current.filter(|&job| {
            let ahead = behind.is_some_and(|other| jobs[job].cpu_ns > jobs[other].cpu_ns + AHEAD_NS);
            (served(&jobs[job]) || computes(&jobs[job])) && !ahead
        });
        let job = stays.or_else(|| least(&served)).or(behind)?;
        Some(Choice { job, hold_ns: self.hold_ns })
    }
}

/// A rank with its job on one node.
struct Member {
    child: Child,
    cgroup: JobCgroup,
    page: File,
}

fn start(tree: &Tree, node: usize, id: u64, port: u16, args: &[String]) -> Result<(Member, u16), Box<dyn Error>> {
    let page = tempfile_in_tmp(id)?;
    let cpu = observe::cpus_allowed()[node];
    let cgroup = tree.create_job(id)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["rank", &cpu.to_string(), &page.0, &port.to_string()]).args(&args[2..5]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    cgroup.attach(child.id() as i32)?;
    let mut text = String::new();
    if port == 0 {
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().ok_or("no output")?), &mut text)?;
    }
    let found = text.trim().parse().unwrap_or(0);
    Ok((Member { child, cgroup, page: page.1 }, found))
}

fn tempfile_in_tmp(id: u64) -> std::io::Result<(String, File)> {
    let path = format!("/tmp/cst-page-{}-{id}", std::process::id());
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    file.set_len(8)?;
    Ok((path, file))
}

/// The part of one node: its slot thread, and the watched sockets.
struct Node {
    slots: SlotThread,
    arrivals: Arrivals,
}

fn set_up(node: &mut Node, members: &[&Member], way: &str) -> Result<(), Box<dyn Error>> {
    let entry = |m: &&Member| Entry { switch: m.cgroup.switch_handle(), weight: 100, otherwise: Disposition::Run };
    node.slots.install(Table { jobs: members.iter().map(entry).collect(), ..Table::empty() });
    if way == "plain" {
        return Ok(());
    }
    let mut jobs = Vec::new();
    for member in members {
        let sockets = node.arrivals.watch(member.cgroup.id(), way.starts_with("dcs"))?;
        let scan = node.arrivals.rescan(member.cgroup.id(), &[member.child.id() as i32])?;
        if scan.added == 0 {
            return Err("no socket found".into());
        }
        let page = WaitPage::new(member.page.try_clone()?, LAYOUT);
        jobs.push(BoostJob::new(&member.cgroup, Some(sockets), Some(page), !way.starts_with("dcs"))?);
    }
    let period_ns = if way == "pb1" { 1_000_000 } else { 2_000_000 };
    let hold_ns = if way.ends_with("pulse") { 200_000 } else { Choice::UNTIL_NEXT_LOOK };
    let timing = BoostTiming { period_ns, ..BoostTiming::default() };
    let bell = (way.starts_with("dcs")).then(|| node.arrivals.bell());
    node.slots.set_boost(Boost::new(jobs, Box::new(Served { hold_ns }), bell, timing));
    Ok(())
}

/// The seconds until all jobs have ended, and the statistics of the slot threads.
fn run(tree: &Tree, args: &[String], jobs: usize, way: &str) -> Result<(f64, Vec<SwitchStats>), Box<dyn Error>> {
    let mut members: [Vec<Member>; 2] = Default::default();
    for job in 0..jobs as u64 {
        let (first, port) = start(tree, 0, job, 0, args)?;
        members[0].push(first);
        members[1].push(start(tree, 1, 1000 + job, port, args)?.0);
    }
    std::thread::sleep(Duration::from_millis(100));
    let mut nodes = Vec::new();
    for part in &members {
        let slots = SlotThread::start(SlotConfig { priority: 10, beat: None }, Box::new(Freezer::default()))?;
        let mut node = Node { slots, arrivals: Arrivals::new()? };
        set_up(&mut node, &part.iter().collect::<Vec<_>>(), way)?;
        nodes.push(node);
    }
    let begin = Instant::now();
    for member in members.iter_mut().flatten() {
        member.child.stdin.take().ok_or("no input")?.write_all(b"x")?;
    }
    for member in members.iter_mut().flatten() {
        if !member.child.wait()?.success() {
            return Err("a rank failed".into());
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let stats = nodes.into_iter().map(|node| {
        let stats = node.slots.stats();
        node.slots.stop();
        stats
    });
    let stats = stats.collect();
    for member in members.iter().flatten() {
        while member.cgroup.populated()? {
            std::thread::sleep(Duration::from_millis(1));
        }
        member.cgroup.remove()?;
        std::fs::remove_file(format!("/tmp/cst-page-{}-{}", std::process::id(), member.cgroup.id()))?;
    }
    Ok((seconds, stats))
}

fn measure(tree: &Tree, args: &[String]) -> Result<(), Box<dyn Error>> {
    let jobs: usize = args[1].parse()?;
    let repeats: usize = args.get(5).map_or(Ok(3), |n| n.parse())?;
    let mut alone = Vec::new();
    let mut times: [Vec<f64>; WAYS.len()] = Default::default();
    let mut last: [Vec<SwitchStats>; WAYS.len()] = Default::default();
    for _ in 0..repeats {
        alone.push(run(tree, args, 1, "plain")?.0);
        for (way, name) in WAYS.iter().enumerate() {
            let (seconds, stats) = run(tree, args, jobs, name)?;
            times[way].push(seconds);
            last[way] = stats;
        }
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let alone = median(alone);
    println!("{} jobs, grain {} µs, spin {} µs: alone {alone:.3} s", args[1], args[2], args[4]);
    for ((name, seconds), stats) in WAYS.iter().zip(times).zip(last) {
        let seconds = median(seconds);
        let sum = |of: &dyn Fn(&SwitchStats) -> u64| stats.iter().map(of).sum::<u64>() as f64 / 2.0;
        println!(
            "  {name:5} {seconds:7.3} s, s_j {:6.2}; looks/s {:5.0} boosts/s {:4.0} rings/s {:4.0} cost {:.2} % of a CPU, errors {}",
            seconds / alone,
            sum(&|s| s.looks) / seconds,
            sum(&|s| s.boosts) / seconds,
            sum(&|s| s.rings) / seconds,
            sum(&|s| s.look_ns) / seconds / 1e7,
            sum(&|s| s.errors),
        );
    }
    Ok(())
}
