//! A trace in the JSON format of Chrome's tracing, which Perfetto opens.
//!
//! A process is a node (pid), its thread its CPU (tid). A CPU's activities are complete events (X), which do not
//! overlap; I/O and blocking are asynchronous (b, e), because the CPU does something else meanwhile; messages are flows
//! (s, f). One more process is the cluster: jobs that wait and run (b, e), the current row (X), the queue's length and
//! the busy CPUs (C). Times are in µs with three decimals: exact.

use super::busy::Busy;
use super::{Window, takes_cpu, word};
use crate::job::JobSpec;
use crate::observe::{JobChange, Message, Observer, Slice};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes a window of time as Chrome trace JSON.
#[derive(Debug)]
pub struct ChromeTrace<'a, W> {
    out: W,
    window: Window,
    jobs: &'a [JobSpec],
    result: io::Result<()>,
    is_first: bool,
    /// When the last slice of each thread of each node ended; nodes and threads get names once they have an entry here.
    threads: Vec<Vec<u64>>,
    /// The number of the process that represents the cluster.
    cluster: u32,
    flows: u64,
    /// When the jobs in the arrival queue entered it.
    waiting: BTreeMap<u32, u64>,
    /// When the running jobs started.
    running: BTreeMap<u32, u64>,
    is_queue_told: bool,
    /// The current row, and when it became current.
    row: Option<(u32, u64)>,
    busy: Busy,
}

/// The first CPU's thread. Perfetto takes a thread 0 for that with the number of its process, which is another CPU's.
const CPU: usize = 1;
/// The cluster's thread for rows.
const ROWS: usize = 1;

impl<'a, W: Write> ChromeTrace<'a, W> {
    /// For a cluster of this many nodes. The head of the file is written at once.
    pub fn new(mut out: W, window: Window, nodes: u32, jobs: &'a [JobSpec]) -> ChromeTrace<'a, W> {
        let result = out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
        let mut trace = ChromeTrace {
            out,
            window,
            jobs,
            result,
            is_first: true,
            threads: vec![Vec::new(); nodes as usize],
            cluster: nodes,
            flows: 0,
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            is_queue_told: false,
            row: None,
            busy: Busy::new(window.start_ns),
        };
        trace.name(nodes, "cluster", "rows", -1);
        trace
    }

    /// Writes open events and the file's end. `end_ns` is the end of the simulation.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn finish(mut self, end_ns: u64) -> io::Result<()> {
        for (job, since) in std::mem::take(&mut self.waiting) {
            self.phase(job, "waits", since, end_ns);
        }
        for (job, since) in std::mem::take(&mut self.running) {
            self.phase(job, "runs", since, end_ns);
        }
        self.end_row(end_ns);
        let pid = self.cluster;
        for (time, mean) in self.busy.clone().means() {
            let time = micros(time);
            self.event(&format!(
                r#"{{"name":"busy CPUs","ph":"C","pid":{pid},"ts":{time},"args":{{"mean":{mean:.3}}}}}"#
            ));
        }
        self.result?;
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }

    fn event(&mut self, json: &str) {
        if self.result.is_ok() {
            let separator = if std::mem::take(&mut self.is_first) { "\n" } else { ",\n" };
            self.result = self.out.write_all(separator.as_bytes()).and_then(|()| self.out.write_all(json.as_bytes()));
        }
    }

    fn name(&mut self, pid: u32, process: &str, thread: &str, order: i64) {
        let args = [
            ("process_name", format!(r#"{{"name":"{process}"}}"#)),
            ("process_sort_index", format!(r#"{{"sort_index":{order}}}"#)),
        ];
        for (what, args) in args {
            self.event(&format!(r#"{{"name":"{what}","ph":"M","pid":{pid},"args":{args}}}"#));
        }
        self.name_thread(pid, CPU, thread);
    }

    fn name_thread(&mut self, pid: u32, tid: usize, name: &str) {
        self.event(&format!(r#"{{"name":"thread_name","ph":"M","pid":{pid},"tid":{tid},"args":{{"name":"{name}"}}}}"#));
    }

    /// Gives a node a name and a thread before its first event.
    fn node(&mut self, node: u32) -> &mut Vec<u64> {
        let place = node as usize;
        if self.threads.len() <= place {
            self.threads.resize(place + 1, Vec::new());
        }
        if self.threads[place].is_empty() {
            self.threads[place].push(0);
            self.name(node, &format!("node {node}"), "CPU 0", node.into());
        }
        &mut self.threads[place]
    }

    /// The node's thread on which a slice overlaps no other: the one that was busy last. One CPU needs one thread.
    fn thread(&mut self, node: u32, start_ns: u64, end_ns: u64) -> usize {
        let ends = self.node(node);
        let free =
            (0..ends.len()).filter(|&cpu| ends[cpu] <= start_ns).max_by_key(|&cpu| (ends[cpu], usize::MAX - cpu));
        if let Some(cpu) = free {
            ends[cpu] = end_ns;
            return CPU + cpu;
        }
        ends.push(end_ns);
        let cpu = ends.len() - 1;
        self.name_thread(node, CPU + cpu, &format!("CPU {cpu}"));
        CPU + cpu
    }

    fn complete(&mut self, slice: &Slice, start_ns: u64, end_ns: u64) {
        let (what, pid) = (word(slice.activity), slice.node);
        let tid = self.thread(pid, start_ns, end_ns);
        let (name, args) = match slice.process {
            Some((job, task)) => (format!("job {job} {what}"), format!(r#"{{"job":{job},"task":{task}}}"#)),
            None => (what.to_owned(), "{}".to_owned()),
        };
        let (ts, dur) = (micros(start_ns), micros(end_ns - start_ns));
        self.event(&format!(
            r#"{{"name":"{name}","cat":"{what}","ph":"X","ts":{ts},"dur":{dur},"pid":{pid},"tid":{tid},"args":{args}}}"#
        ));
    }

    /// An activity that lasts without a CPU.
    fn lasting(&mut self, pid: u32, category: &str, id: &str, name: &str, (start_ns, end_ns): (u64, u64)) {
        for (phase, ns) in [("b", start_ns), ("e", end_ns)] {
            let ts = micros(ns);
            self.event(&format!(
                r#"{{"name":"{name}","cat":"{category}","ph":"{phase}","id":"{id}","ts":{ts},"pid":{pid},"tid":{CPU}}}"#
            ));
        }
    }

    fn phase(&mut self, job: u32, what: &str, since_ns: u64, until_ns: u64) {
        if let Some(span) = self.window.cut(since_ns, until_ns) {
            let of = self.jobs.get(job as usize);
            let kind = of.map_or(String::new(), |spec| format!(" ({}, {} tasks)", spec.kind, spec.tasks));
            self.lasting(self.cluster, "job", &format!("j{job}"), &format!("job {job} {what}{kind}"), span);
        }
    }

    fn queue(&mut self, time_ns: u64) {
        let (pid, ts, length) = (self.cluster, micros(time_ns), self.waiting.len());
        self.event(&format!(r#"{{"name":"arrival queue","ph":"C","pid":{pid},"ts":{ts},"args":{{"jobs":{length}}}}}"#));
    }

    /// The queue's length at the window's start, before the first change in it.
    fn queue_at_start(&mut self, time_ns: u64) {
        if time_ns >= self.window.start_ns && !std::mem::replace(&mut self.is_queue_told, true) {
            self.queue(self.window.start_ns);
        }
    }

    fn end_row(&mut self, time_ns: u64) {
        if let Some((row, since_ns)) = self.row.take()
            && let Some((start, end)) = self.window.cut(since_ns, time_ns)
        {
            let (pid, ts, dur) = (self.cluster, micros(start), micros(end - start));
            self.event(&format!(
                r#"{{"name":"row {row}","cat":"row","ph":"X","ts":{ts},"dur":{dur},"pid":{pid},"tid":{ROWS},"args":{{}}}}"#
            ));
        }
    }
}

impl<W: Write> Observer for ChromeTrace<'_, W> {
    fn slice(&mut self, slice: Slice) {
        let Some((start, end)) = self.window.cut(slice.start_ns, slice.end_ns) else { return };
        self.node(slice.node);
        if takes_cpu(slice.activity) {
            self.busy.add(start, end);
            self.complete(&slice, start, end);
        } else if let Some((job, task)) = slice.process {
            let what = word(slice.activity);
            self.lasting(slice.node, what, &format!("{job}.{task}"), &format!("job {job} {what}"), (start, end));
        }
    }

    fn message(&mut self, message: Message) {
        if !self.window.has(message.sent_ns) || !self.window.has(message.delivered_ns) {
            return;
        }
        self.flows += 1;
        let (id, job) = (self.flows, message.job);
        let ends =
            [("s", "", message.from.1, message.sent_ns), ("f", r#""bp":"e","#, message.to.1, message.delivered_ns)];
        for (phase, binding, pid, ns) in ends {
            self.node(pid);
            let ts = micros(ns);
            self.event(&format!(
                r#"{{"name":"message","cat":"job {job}","ph":"{phase}",{binding}"id":{id},"ts":{ts},"pid":{pid},"tid":{CPU}}}"#
            ));
        }
    }

    fn job(&mut self, time_ns: u64, job: u32, change: JobChange, _: &[u32], _: Option<u32>) {
        self.queue_at_start(time_ns);
        let before = self.waiting.len();
        match change {
            JobChange::Arrived => drop(self.waiting.insert(job, time_ns)),
            JobChange::Started => {
                if let Some(since) = self.waiting.remove(&job) {
                    self.phase(job, "waits", since, time_ns);
                }
                self.running.insert(job, time_ns);
            }
            JobChange::Finished => {
                if let Some(since) = self.running.remove(&job) {
                    self.phase(job, "runs", since, time_ns);
                }
            }
        }
        if self.waiting.len() != before && self.window.has(time_ns) {
            self.queue(time_ns);
        }
    }

    fn row(&mut self, time_ns: u64, row: u32) {
        self.end_row(time_ns);
        self.row = Some((row, time_ns));
    }
}

/// Nanoseconds as microseconds with three decimals.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
