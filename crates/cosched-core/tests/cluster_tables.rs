//! Text tables of the cluster's matrix: events in, the printed matrix and the cycle out.
//!
//! Every file of `testdata/cluster` is a script, a line `----`, and the script's output. `COSCHED_UPDATE=1` writes
//! the present output; check the difference before you trust it. Commands, one per line:
//!
//! - first: `packing first-fit|best-fit|buddy`, `rows N`, `fair-share HALF-LIFE WEIGHT` (slots), `ceiling PERMILLE`,
//!   `queue NAME [exclusive] [memory=N] [disk=N] [slots=N] [user-memory=N] [user-jobs=N]` (the first queue replaces the default one);
//! - at any time: `node ID cpus=N [memory=N] [disk=N]`, `leave ID`, `drain ID`, `undrain ID`, `load ID THREADS`,
//!   `submit ID cpus=N|a:2,b:2 [memory=N] [disk=N] [class=C] [queue=N] [owner=N] [lost=kill|keep|requeue]` (nodes by number),
//!   `end ID`, `cleared ID`, `suspend ID`, `resume ID`, `class ID C`, `used ID NODE MEMORY`, `hours working|off`,
//!   `rebalance`, `slot N` (it is slot N now), `print`, `jobs`, `starts` (the latest start of the waiting jobs).
//!
//! Plans take effect two slots after they are made. Actions for the hosts are printed as they come. The line of the cycle has
//! `ROW:JOBS`, with `-` for open turns and `+` before a job of another row; `|` separates the line-ups of a row.

use cosched_core::cluster::{
    Action, Capacity, Cells, Config, FairShare, Input, JobSpec, NodeWant, OnNodeLoss, Packing, Period, Plan, Planner,
    Queue, Stage, State, Want,
};
use cosched_core::{Class, JobId, NodeId, Time};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const SEPARATOR: &str = "----\n";
const SLOT_NS: u64 = 100_000_000;

#[test]
fn the_tables_hold() {
    let update = std::env::var_os("COSCHED_UPDATE").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/cluster");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10, "the tables are missing: {files:?}");
    let mut wrong = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let (script, expected) = text.split_once(SEPARATOR).unwrap_or((&text, ""));
        assert!(script.starts_with("# "), "{}: it opens by saying what it shows", file.display());
        let printed = Script::default().run(script).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        if update {
            std::fs::write(file, format!("{script}{SEPARATOR}{printed}")).unwrap();
        } else if printed != expected {
            wrong.push(format!("{}\nexpected:\n{expected}\nprinted:\n{printed}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(Default)]
struct Script {
    config: Config,
    named_queues: usize,
    planner: Option<Planner>,
    slot: u64,
    printed: String,
}

impl Script {
    fn run(mut self, script: &str) -> Result<String, String> {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            self.command(&words).map_err(|e| format!("`{line}`: {e}"))?;
        }
        Ok(self.printed)
    }

    fn command(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["print"] => print(&self.planner().plan().clone(), &mut self.printed),
            ["jobs"] => self.print_jobs(),
            ["starts"] => self.print_starts(),
            ["slot", n] => {
                self.slot = number(n)?;
                let now = self.now();
                self.planner().handle_timeout(now, Time(now.0 + 2 * SLOT_NS));
                self.print_actions();
            }
            _ if self.configure(words)? => (),
            _ => {
                let (now, input) = (self.now(), input(words)?);
                if let Err(e) = self.planner().handle(now, Time(now.0 + 2 * SLOT_NS), input) {
                    self.printed += &format!("refused: {}: {e}\n", words.join(" "));
                }
                self.print_actions();
            }
        }
        Ok(())
    }

    fn now(&self) -> Time {
        Time(self.slot * SLOT_NS)
    }

    fn configure(&mut self, words: &[&str]) -> Result<bool, String> {
        match words {
            ["packing", "first-fit"] => self.config.packing = Packing::FirstFit,
            ["packing", "best-fit"] => self.config.packing = Packing::BestFit,
            ["packing", "buddy"] => self.config.packing = Packing::Buddy,
            ["rows", n] => self.config.rows_max = number(n)?,
            ["fair-share", half_life, weight] => {
                let (half_life_ns, weight_ns) = (number::<u64>(half_life)? * SLOT_NS, number::<u64>(weight)? * SLOT_NS);
                self.config.fair_share = Some(FairShare { half_life_ns, weight_ns });
            }
            ["ceiling", n] if self.planner.is_none() => self.config.ceiling_permille = number(n)?,
            ["queue", name, options @ ..] => {
                let mut queue = Queue { name: name.to_string(), ..Queue::default() };
                for option in options {
                    match option.split_once('=') {
                        None if *option == "exclusive" => queue.exclusive = true,
                        Some(("memory", n)) => queue.memory_bytes_max = Some(number(n)?),
                        Some(("disk", n)) => queue.disk_bytes_max = Some(number(n)?),
                        Some(("user-memory", n)) => queue.rights.memory_bytes_max = Some(number(n)?),
                        Some(("user-jobs", n)) => queue.rights.jobs_max = Some(number(n)?),
                        Some(("slots", n)) => queue.time_ns_max = Some(number::<u64>(n)? * SLOT_NS),
                        _ => return Err(format!("no option {option}")),
                    }
                }
                self.config.queues.truncate(self.named_queues);
                self.config.queues.push(queue);
                self.named_queues += 1;
            }
            _ => return Ok(false),
        }
        if self.planner.is_some() { Err("this comes first".into()) } else { Ok(true) }
    }

    fn planner(&mut self) -> &mut Planner {
        let config = &self.config;
        let new = || Planner::new(State { config: config.clone(), ..State::default() }).unwrap();
        self.planner.get_or_insert_with(new)
    }

    /// Prints all actions except plans, which `print` is for.
    fn print_actions(&mut self) {
        while let Some(action) = self.planner().poll_action() {
            let line = match action {
                Action::Publish(..) => continue,
                Action::Start(job) => format!("start {job}"),
                Action::Wait(job, reason) => format!("{job} waits: {reason}"),
                Action::Kill(job, reason) => format!("kill {job}: {reason}"),
                Action::Requeue(job, reason) => format!("requeue {job}: {reason}"),
                Action::GoOnWithout(job, node) => format!("{job} goes on without node {}", node.0),
                Action::Unsound(flaw) => format!("contradicts itself: {flaw}"),
            };
            self.printed += &format!("{line}\n");
        }
    }

    fn print_starts(&mut self) {
        let now = self.now();
        for (id, at) in self.planner().expected_starts(now) {
            self.printed += &format!("job {id} starts in slot {} at the latest\n", at.0 / SLOT_NS);
        }
        self.printed += "\n";
    }

    fn print_jobs(&mut self) {
        let jobs = self.planner().state().jobs.clone();
        for (id, job) in jobs {
            let parts = job.place.iter().flat_map(|place| &place.parts);
            let nodes: Vec<String> = parts.map(|part| format!("{}:{}", part.node.0, part.cpus)).collect();
            let stage = match job.stage {
                Stage::Waiting(reason) => format!("waits, {reason}"),
                Stage::Ready => "ready".into(),
                Stage::Clearing => "is being cleared".into(),
                Stage::Ending(reason) => format!("is to end, {reason}"),
            };
            let nodes = if nodes.is_empty() { "none".into() } else { nodes.join(",") };
            self.printed += &format!("job {id}: {stage}; nodes {nodes}\n");
        }
        self.printed += "\n";
    }
}

fn input(words: &[&str]) -> Result<Input, String> {
    let job = |id: &str| number(id).map(JobId);
    let node = |id: &str| number(id).map(NodeId);
    Ok(match words {
        ["node", id, options @ ..] => {
            let mut capacity = Capacity { cpus: 1, memory_bytes: 100, disk_bytes: 100 };
            for option in options {
                match option.split_once('=') {
                    Some(("cpus", n)) => capacity.cpus = number(n)?,
                    Some(("memory", n)) => capacity.memory_bytes = number(n)?,
                    Some(("disk", n)) => capacity.disk_bytes = number(n)?,
                    _ => return Err(format!("no option {option}")),
                }
            }
            Input::Join(node(id)?, capacity)
        }
        ["leave", id] => Input::Leave(node(id)?),
        ["drain", id] => Input::Drain(node(id)?, true),
        ["undrain", id] => Input::Drain(node(id)?, false),
        ["load", id, threads] => Input::Load(node(id)?, number(threads)?),
        ["submit", id, options @ ..] => Input::Submit(spec(job(id)?, options)?),
        ["end", id] => Input::End(job(id)?),
        ["cleared", id] => Input::Cleared(job(id)?),
        ["suspend", id] => Input::Suspend(job(id)?),
        ["resume", id] => Input::Resume(job(id)?),
        ["class", id, name] => Input::Class(job(id)?, class(name)?),
        ["used", id, at, memory] => Input::Memory(job(id)?, node(at)?, number(memory)?),
        ["hours", "working"] => Input::Period(Period::Working),
        ["hours", "off"] => Input::Period(Period::Off),
        ["ceiling", n] => Input::Ceiling(number(n)?),
        ["rebalance"] => Input::Rebalance,
        _ => return Err("no such command".into()),
    })
}

fn spec(id: JobId, options: &[&str]) -> Result<JobSpec, String> {
    let (mut cpus, mut memory, mut disk) = ("1", 0, 0);
    let mut spec = JobSpec::new(id, Class::Batch, Want::PerNode(vec![]));
    for option in options {
        match option.split_once('=').ok_or("an option is NAME=VALUE")? {
            ("cpus", value) => cpus = value,
            ("memory", n) => memory = number(n)?,
            ("disk", n) => disk = number(n)?,
            ("class", name) => spec.class = class(name)?,
            ("queue", n) => spec.queue = number(n)?,
            ("owner", n) => spec.owner = number(n)?,
            ("lost", "kill") => spec.on_node_loss = OnNodeLoss::Kill,
            ("lost", "keep") => spec.on_node_loss = OnNodeLoss::Keep,
            ("lost", "requeue") => spec.on_node_loss = OnNodeLoss::Requeue,
            (name, _) => return Err(format!("no option {name}")),
        }
    }
    spec.want = match cpus.parse() {
        Ok(cpus) => Want::Total { cpus, memory_per_cpu_bytes: memory, disk_bytes: disk },
        Err(_) => {
            let want = |part: &str| {
                let (node, cpus) = part.split_once(':').ok_or("a part is NODE:CPUS")?;
                let (node, cpus) = (NodeId(number(node)?), number(cpus)?);
                Ok::<_, String>(NodeWant { node, cpus, cpus_min: cpus, memory_bytes: memory, disk_bytes: disk })
            };
            Want::PerNode(cpus.split(',').map(want).collect::<Result<_, _>>()?)
        }
    };
    Ok(spec)
}

fn number<N: std::str::FromStr>(word: &str) -> Result<N, String> {
    word.parse().map_err(|_| format!("{word} is no number"))
}

fn class(word: &str) -> Result<Class, String> {
    Class::ALL.into_iter().find(|c| format!("{c:?}").to_lowercase() == word).ok_or(format!("no class {word}"))
}

/// The matrix, the cycle in lines of eight turns, and each gang's part of it.
fn print(plan: &Plan, out: &mut String) {
    *out += &format!("generation {} from slot {}\nrow", plan.generation, plan.from_slot);
    for laid in plan.layout.nodes() {
        (0..laid.span.count).for_each(|cpu| write!(out, " {:>4}", format!("{}.{cpu}", laid.id.0)).unwrap());
    }
    for (row, planned) in plan.rows.iter().enumerate().filter(|(row, _)| !plan.is_open(*row as u32)) {
        write!(out, "\n{row:>3}").unwrap();
        for column in 0..plan.layout.columns() {
            let has = |id: &&JobId| {
                let (_, spans) = plan.jobs[id].home.as_ref().unwrap();
                spans.iter().any(|span| (span.first..span.end()).contains(&column))
            };
            let cell = planned.residents.iter().find(has).map_or(".".into(), JobId::to_string);
            write!(out, " {cell:>4}").unwrap();
        }
    }
    let lineup = |row: usize| {
        let name = |id: &JobId| {
            let lives = plan.rows[row].residents.contains(id);
            format!("{}{id}", if lives { "" } else { "+" })
        };
        let names = |ids: &Vec<JobId>| match &ids[..] {
            [] => "nobody".into(),
            ids => ids.iter().map(name).collect::<Vec<_>>().join(","),
        };
        plan.rows[row].lineups.iter().map(names).collect::<Vec<_>>().join(" | ")
    };
    for row in 0..plan.rows.len() {
        if plan.row_turns[row] > 0 {
            let name = if plan.is_open(row as u32) { "open".into() } else { format!("row {row}") };
            write!(out, "\n{name} runs {}", lineup(row)).unwrap();
        }
    }
    let turns: Vec<String> =
        plan.turns.iter().map(|turn| if plan.is_open(turn.row) { "-".into() } else { turn.row.to_string() }).collect();
    write!(out, "\ncycle {} starts at {}\n", turns.join(" "), plan.start).unwrap();
    for id in plan.jobs.keys() {
        if let Some((own, of)) = plan.share(*id) {
            let early = if plan.early.contains(id) { ", may start early" } else { "" };
            *out += &format!("job {id}: {} of {} turns{early}\n", f64::from(own) / 16.0, of / 16);
        }
    }
    *out += "\n";
}

/// Cells are given by node and CPU, whatever columns they are.
#[test]
fn cells_are_told_by_node() {
    let mut planner = Planner::new(State::default()).unwrap();
    let capacity = Capacity { cpus: 2, memory_bytes: 1, disk_bytes: 1 };
    for node in [3, 7] {
        planner.handle(Time(0), Time(0), Input::Join(NodeId(node), capacity)).unwrap();
    }
    planner.handle(Time(0), Time(0), Input::Submit(spec(JobId(1), &["cpus=3:2,7:1"]).unwrap())).unwrap();
    let cells = |planner: &Planner| planner.state().jobs[&JobId(1)].place.as_ref().unwrap().home.clone().unwrap().1;
    let before = cells(&planner);
    let expected = |node, count| Cells { node: NodeId(node), cpus: cosched_core::cluster::Span { first: 0, count } };
    assert_eq!(before, [expected(3, 2), expected(7, 1)]);
    planner.handle(Time(0), Time(0), Input::Join(NodeId(1), capacity)).unwrap();
    assert_eq!(cells(&planner), before);
    assert_eq!(planner.plan().jobs[&JobId(1)].home.as_ref().unwrap().1[0].first, 2, "but the columns are others");
}
