//! Text tables of the matrix: arrivals and departures in, the printed matrix and the cycle out.
//!
//! Every file of `testdata/matrix` is a script, a line `----`, and the script's output. `COSCHED_UPDATE=1` writes
//! the present output; check the difference before you trust it. Commands, one per line:
//!
//! - before the first job: `node ID cpus N` (or `cpus N`, which is node 0), `packing first-fit|best-fit`,
//!   `shares EXPRESS INTERACTIVE BATCH STANDBY`;
//! - at any time, with P being gang, local, pb, dcs or auto: `policy P`, `sharing strict|paired|soft`,
//!   `submit ID cpus=N [class=C] [policy=P] [node=ID]`, `end ID`, `suspend ID`, `resume ID`, `asleep ID`, `awake ID`,
//!   `class ID C`, `job-policy ID P|machine`, `choice ID P waits-much|waits-little`, `print`.
//!
//! A printed turn is `ROW:JOBS`; `+` marks a job of another row. A refused command prints its error.

use cosched_core::{
    Class, Job, JobId, Node, NodeId, Packing, Plan, PlannedJob, Planner, PlannerConfig, PlannerInput, Policy, Reason,
    Shares, Sharing, Standing, Time, Turn,
};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const SEPARATOR: &str = "----\n";

#[test]
fn the_tables_hold() {
    let update = std::env::var_os("COSCHED_UPDATE").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/matrix");
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

struct Script {
    config: PlannerConfig,
    planner: Option<Planner>,
    printed: String,
}

impl Default for Script {
    fn default() -> Script {
        let config = PlannerConfig {
            nodes: Vec::new(),
            slot_length_ns: 100_000_000,
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        };
        Script { config, planner: None, printed: String::new() }
    }
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
            ["print"] => {
                let plan = self.planner().plan().clone();
                print(&plan, &mut self.printed);
                return Ok(());
            }
            _ if self.configure(words)? => return Ok(()),
            _ => (),
        }
        let input = input(words)?;
        if let Err(e) = self.planner().handle(Time(0), input) {
            writeln!(self.printed, "refused: {}: {e}\n", words.join(" ")).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Whether this is a command that must come before the first job.
    fn configure(&mut self, words: &[&str]) -> Result<bool, String> {
        let node = |id: &str, cpus: &str| Ok::<_, String>(Node { id: NodeId(number(id)?), cpus: number(cpus)? });
        match words {
            ["cpus", cpus] => self.config.nodes.push(node("0", cpus)?),
            ["node", id, "cpus", cpus] => self.config.nodes.push(node(id, cpus)?),
            ["packing", "first-fit"] => self.config.packing = Packing::FirstFit,
            ["packing", "best-fit"] => self.config.packing = Packing::BestFit,
            ["shares", e, i, b, s] => {
                let [express, interactive, batch, standby] = [number(e)?, number(i)?, number(b)?, number(s)?];
                self.config.shares = Shares { express, interactive, batch, standby };
            }
            _ => return Ok(false),
        }
        if self.planner.is_some() { Err("this comes before the first job".into()) } else { Ok(true) }
    }

    fn planner(&mut self) -> &mut Planner {
        self.planner.get_or_insert_with(|| Planner::new(self.config.clone()))
    }
}

fn input(words: &[&str]) -> Result<PlannerInput, String> {
    let job = |id: &str| number(id).map(JobId);
    Ok(match words {
        ["submit", id, options @ ..] => PlannerInput::Submit(submitted(job(id)?, options)?),
        ["end", id] => PlannerInput::End(job(id)?),
        ["suspend", id] => PlannerInput::Suspend(job(id)?),
        ["resume", id] => PlannerInput::Resume(job(id)?),
        ["asleep", id] => PlannerInput::Asleep(job(id)?),
        ["awake", id] => PlannerInput::Awake(job(id)?),
        ["class", id, name] => PlannerInput::Class(job(id)?, class(name)?),
        ["job-policy", id, "machine"] => PlannerInput::JobPolicy(job(id)?, None),
        ["job-policy", id, name] => PlannerInput::JobPolicy(job(id)?, Some(policy(name)?)),
        ["policy", name] => PlannerInput::MachinePolicy(policy(name)?),
        ["sharing", "strict"] => PlannerInput::MachineSharing(Sharing::Strict),
        ["sharing", "paired"] => PlannerInput::MachineSharing(Sharing::Paired),
        ["sharing", "soft"] => PlannerInput::MachineSharing(Sharing::Soft),
        ["choice", id, name, "waits-much"] => PlannerInput::Choice(job(id)?, policy(name)?, Reason::WaitsMuch),
        ["choice", id, name, "waits-little"] => PlannerInput::Choice(job(id)?, policy(name)?, Reason::WaitsLittle),
        _ => return Err("no such command".into()),
    })
}

fn submitted(id: JobId, options: &[&str]) -> Result<Job, String> {
    let mut job = Job { id, owner: 0, class: Class::Batch, policy: None, cpus: 1, node: None };
    for option in options {
        match option.split_once('=').ok_or("an option is NAME=VALUE")? {
            ("cpus", n) => job.cpus = number(n)?,
            ("class", name) => job.class = class(name)?,
            ("policy", name) => job.policy = Some(policy(name)?),
            ("node", n) => job.node = Some(NodeId(number(n)?)),
            (name, _) => return Err(format!("no option {name}")),
        }
    }
    Ok(job)
}

fn number<N: std::str::FromStr>(word: &str) -> Result<N, String> {
    word.parse().map_err(|_| format!("{word} is no number"))
}

fn class(word: &str) -> Result<Class, String> {
    Class::ALL.into_iter().find(|c| format!("{c:?}").to_lowercase() == word).ok_or(format!("no class {word}"))
}

fn policy(word: &str) -> Result<Policy, String> {
    match word {
        "gang" => Ok(Policy::Gang),
        "local" => Ok(Policy::Local),
        "pb" => Ok(Policy::Pb),
        "dcs" => Ok(Policy::Dcs),
        "auto" => Ok(Policy::Auto),
        _ => Err(format!("no policy {word}")),
    }
}

/// The matrix, the cycle in lines of eight turns, and a line for each job.
fn print(plan: &Plan, out: &mut String) {
    let turn = |t: &Turn| {
        let home = |id: &JobId| plan.jobs[id].home.as_ref().is_some_and(|(row, _)| *row == t.row);
        let jobs: Vec<String> = t.run.iter().map(|id| format!("{}{id}", if home(id) { "" } else { "+" })).collect();
        format!("{}:{}", t.row, jobs.join(","))
    };
    let turns: Vec<String> = plan.turns.iter().map(turn).collect();
    *out += &format!("generation {}\n{}\n", plan.generation, plan.matrix);
    for line in turns.chunks(8) {
        *out += &format!("cycle {}\n", line.join("  "));
    }
    for (id, job) in &plan.jobs {
        *out += &format!("job {id}: {}\n", words(plan, *id, job));
    }
    *out += "\n";
}

fn words(plan: &Plan, id: JobId, job: &PlannedJob) -> String {
    let class = format!("{:?}", job.class).to_lowercase();
    let state = match (job.standing, job.policy, plan.share(id)) {
        (Standing::Suspended, ..) => "suspended".into(),
        (Standing::Asleep, ..) => "asleep".into(),
        (_, policy, _) if policy.is_local() => format!("{policy:?}").to_lowercase(),
        (.., Some((own, cycle))) => format!("{own} of {cycle} turns, otherwise {:?}", plan.otherwise(id)),
        (.., None) => "a gang without turns".into(),
    };
    let chosen = if job.auto { "auto: " } else { "" };
    format!("{class}, {chosen}{state}, weight {}", job.weight)
}
