//! The record of a soak run: requests and answers, what the jobs' programs did, and the faults.

use std::fmt;

/// Milliseconds since the Unix epoch: all nodes of a run are on one machine, so their clocks agree.
pub(super) type Ms = u64;

/// A change that a client requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Register a job with this name, which is unique.
    Submit(String),
    /// Suspend a job.
    Suspend(u64),
    /// Resume a job.
    Resume(u64),
    /// kill -9.
    Kill(u64),
    /// The main process ended with this code.
    Exit(u64, i32),
    /// A value that holds until the next one is set: a job's class, whether a node is drained, the ceiling.
    Set(Register, String),
}

/// A setting with one value at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Register {
    /// A job's class.
    Class(u64),
    /// Whether a node gets no new jobs.
    Drains(String),
    /// The maximum part of the time for gangs that span nodes.
    Ceiling,
    /// The time limit of the first queue.
    TimeLimit,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is done; for a submission: the job's number.
    Done(u64),
    /// It is refused, and nothing has changed.
    Refused(String),
    /// It may have happened, or may happen yet.
    Unknown(String),
}

/// One operation.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The number of the client.
    pub(super) client: usize,
    /// The node whose daemon received the request.
    pub(super) node: usize,
    /// When it was sent.
    pub(super) begin: Ms,
    /// When the answer came, or the client gave up.
    pub(super) end: Ms,
    /// The request.
    pub(super) ask: Ask,
    /// The answer.
    pub(super) heard: Heard,
}

impl Entry {
    /// Whether it may have had an effect.
    pub(super) fn may_count(&self) -> bool {
        !matches!(self.heard, Heard::Refused(_))
    }

    /// Whether it was acknowledged.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.heard, Heard::Done(_))
    }
}

/// A job as a daemon showed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// Its number.
    pub(super) id: u64,
    /// Its name.
    pub(super) name: String,
    /// Its state's name.
    pub(super) state: String,
    /// Its class's name.
    pub(super) class: String,
    /// The exit code of its main process.
    pub(super) code: Option<i32>,
    /// Why it ended, unless by itself.
    pub(super) why: Option<String>,
}

impl Shown {
    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "ended" | "lost")
    }
}

/// A list of all jobs, as one node showed it.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// The node.
    pub(super) node: usize,
    /// When the request was sent.
    pub(super) begin: Ms,
    /// When the answer arrived.
    pub(super) end: Ms,
    /// All jobs.
    pub(super) jobs: Vec<Shown>,
}

/// A process of a job, known from the beats that it wrote.
#[derive(Clone, Debug)]
pub(super) struct Life {
    /// The job's name.
    pub(super) name: String,
    /// The node on which it ran.
    pub(super) node: usize,
    /// The number of the process.
    pub(super) pid: i32,
    /// The processes that the client started are life 0 of the job; each process that a daemon started is a life of its
    /// own.
    pub(super) life: usize,
    /// The times at which it wrote, in order.
    pub(super) beats: Vec<Ms>,
    /// The exit code, if it ended by itself.
    pub(super) ended: Option<i32>,
}

/// A fault.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// When it began.
    pub(super) from: Ms,
    /// When it ended.
    pub(super) to: Ms,
    /// Its description.
    pub(super) what: String,
    /// The node whose daemon is dead or hangs: its jobs are not held, and when the daemon is back it has to stop them
    /// again.
    pub(super) lets_go: Option<usize>,
}

/// A whole run.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The operations, in any order.
    pub(super) entries: Vec<Entry>,
    /// The lists that nodes returned during the run.
    pub(super) looks: Vec<Look>,
    /// The lists of all nodes at the end, when nothing was broken.
    pub(super) last: Vec<Look>,
    /// The values at the end, as each node reports them.
    pub(super) values: Vec<(Register, String)>,
    /// The values at the beginning.
    pub(super) initial: Vec<(Register, String)>,
    /// The processes of the jobs.
    pub(super) lives: Vec<Life>,
    /// The faults.
    pub(super) faults: Vec<Fault>,
    /// A node that is silent for this long is given up.
    pub(super) lease_ms: Ms,
    /// The length of a slot.
    pub(super) slot_ms: Ms,
}

impl History {
    /// The longest time within [from, to] in which nothing was broken.
    pub(super) fn calm(&self, from: Ms, to: Ms) -> Ms {
        let (mut at, mut longest) = (from, 0);
        let mut faults: Vec<&Fault> = self.faults.iter().filter(|f| f.to > from && f.from < to).collect();
        faults.sort_by_key(|f| f.from);
        for fault in faults {
            longest = longest.max(fault.from.saturating_sub(at));
            at = at.max(fault.to);
        }
        longest.max(to.saturating_sub(at))
    }

    /// The number of the job with this name, if any answer contained it.
    pub(super) fn id_of(&self, name: &str) -> Option<u64> {
        let told = self.entries.iter().find_map(|e| match (&e.ask, &e.heard) {
            (Ask::Submit(of), Heard::Done(id)) if of == name => Some(*id),
            _ => None,
        });
        told.or_else(|| self.all_looks().flat_map(|look| &look.jobs).find(|job| job.name == name).map(|job| job.id))
    }

    /// All lists, including the last ones.
    pub(super) fn all_looks(&self) -> impl Iterator<Item = &Look> {
        self.looks.iter().chain(&self.last)
    }
}

impl fmt::Display for History {
    /// One line each, in chronological order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<(Ms, String)> = Vec::new();
        lines.extend(
            self.entries.iter().map(|e| {
                (e.begin, format!("{} client {} node {} {:?} -> {:?}", e.end, e.client, e.node, e.ask, e.heard))
            }),
        );
        lines.extend(self.faults.iter().map(|x| (x.from, format!("{} FAULT {}", x.to, x.what))));
        for life in &self.lives {
            let (first, last) = (life.beats.first().copied().unwrap_or(0), life.beats.last().copied().unwrap_or(0));
            let (name, node, pid, of, n) = (&life.name, life.node, life.pid, life.life, life.beats.len());
            let words = format!("{last} LIFE {of} of {name} node {node} pid {pid} beats {n} ended {:?}", life.ended);
            lines.push((first, words));
        }
        let mut seen = std::collections::BTreeMap::new();
        let mut looks: Vec<&Look> = self.all_looks().collect();
        looks.sort_by_key(|look| look.begin);
        for look in looks {
            for job in &look.jobs {
                // An unchanged job is left out.
                if seen.insert((look.node, job.id), job.clone()).as_ref() != Some(job) {
                    lines.push((look.begin, format!("{} node {} shows {job:?}", look.end, look.node)));
                }
            }
        }
        lines.sort();
        for (begin, line) in lines {
            writeln!(f, "{begin} {line}")?;
        }
        writeln!(f, "values at the end: {:?}", self.values)
    }
}
