//! A trace in the format of Paje, for ViTE, pj_dump and what reads their tables.

use super::{Window, takes_cpu, word};
use crate::metrics::seconds;
use crate::observe::{Activity, JobChange, Message, Observer, Slice};
use std::io::{self, Write};

/// The kinds of events in the order of their numbers, with their fields.
const EVENTS: [(&str, &[&str]); 9] = [
    ("PajeDefineContainerType", &["Alias string", "Type string", "Name string"]),
    ("PajeDefineStateType", &["Alias string", "Type string", "Name string"]),
    (
        "PajeDefineLinkType",
        &["Alias string", "Type string", "StartContainerType string", "EndContainerType string", "Name string"],
    ),
    ("PajeDefineEntityValue", &["Alias string", "Type string", "Name string", "Color color"]),
    ("PajeCreateContainer", &["Time date", "Alias string", "Type string", "Container string", "Name string"]),
    ("PajeDestroyContainer", &["Time date", "Type string", "Name string"]),
    ("PajeSetState", &["Time date", "Type string", "Container string", "Value string"]),
    (
        "PajeStartLink",
        &["Time date", "Type string", "Container string", "StartContainer string", "Value string", "Key string"],
    ),
    (
        "PajeEndLink",
        &["Time date", "Type string", "Container string", "EndContainer string", "Value string", "Key string"],
    ),
];

const ACTIVITIES: [(Activity, &str); 6] = [
    (Activity::Compute, "0.2 0.6 0.3"),
    (Activity::Message, "0.3 0.5 0.8"),
    (Activity::Spin, "0.9 0.4 0.2"),
    (Activity::Switch, "0.5 0.5 0.5"),
    (Activity::Interrupt, "0.6 0.3 0.7"),
    (Activity::Scheduler, "0.7 0.6 0.2"),
];

/// Collects a window and writes it at its end, in the order of time, as the format wants it; memory is proportional to what happens in
/// the window.
#[derive(Debug)]
pub struct PajeTrace<W> {
    out: W,
    window: Window,
    /// When the last slice of each CPU of each node ended.
    cpus: Vec<Vec<u64>>,
    /// Time, whether something begins, and the event from its number on.
    events: Vec<(u64, bool, String)>,
    links: u64,
}

impl<W: Write> PajeTrace<W> {
    /// For a machine of this many nodes.
    pub fn new(out: W, window: Window, nodes: u32) -> PajeTrace<W> {
        PajeTrace { out, window, cpus: vec![vec![0]; nodes as usize], events: Vec::new(), links: 0 }
    }

    /// Writes all.
    ///
    /// # Errors
    /// An error of the writer, such as a full disk.
    pub fn finish(mut self, sim_end_ns: u64) -> io::Result<()> {
        let out = &mut self.out;
        for (number, (name, fields)) in EVENTS.iter().enumerate() {
            writeln!(out, "%EventDef {name} {number}")?;
            fields.iter().try_for_each(|field| writeln!(out, "% {field}"))?;
            writeln!(out, "%EndEventDef")?;
        }
        writeln!(out, "0 M 0 machine\n0 N M node\n0 C N CPU\n1 S C activity\n2 L M N N message")?;
        writeln!(out, "3 idle S idle \"0.95 0.95 0.95\"\n3 m L message \"0.3 0.3 0.3\"")?;
        for (activity, color) in ACTIVITIES {
            writeln!(out, "3 {0} S {0} \"{color}\"", word(activity))?;
        }
        let start_ns = self.window.start_ns.min(sim_end_ns);
        let (start, end) = (seconds(start_ns), seconds(sim_end_ns.min(self.window.end_ns)));
        writeln!(out, "4 {start} m0 M 0 machine")?;
        for (node, cpus) in self.cpus.iter().enumerate() {
            writeln!(out, "4 {start} n{node} N m0 \"node {node}\"")?;
            for cpu in 0..cpus.len() {
                writeln!(out, "4 {start} n{node}c{cpu} C n{node} \"CPU {cpu} of node {node}\"")?;
                writeln!(out, "6 {start} S n{node}c{cpu} idle")?;
            }
        }
        self.events.sort_by_key(|(time_ns, begins, _)| (*time_ns, *begins));
        for (time_ns, _, event) in &self.events {
            let (number, rest) = event.split_at(1);
            writeln!(out, "{number} {}{rest}", seconds(*time_ns))?;
        }
        for (node, cpus) in self.cpus.iter().enumerate() {
            (0..cpus.len()).try_for_each(|cpu| writeln!(out, "5 {end} C n{node}c{cpu}"))?;
            writeln!(out, "5 {end} N n{node}")?;
        }
        writeln!(out, "5 {end} M m0")?;
        out.flush()
    }

    /// The CPU of a node on which a slice overlaps no other: the one that was busy last.
    fn cpu(&mut self, slice: &Slice) -> usize {
        let ends = &mut self.cpus[slice.node as usize];
        let free = (0..ends.len()).filter(|cpu| ends[*cpu] <= slice.start_ns);
        let cpu = free.max_by_key(|cpu| (ends[*cpu], usize::MAX - cpu)).unwrap_or_else(|| {
            ends.push(0);
            ends.len() - 1
        });
        ends[cpu] = slice.end_ns;
        cpu
    }
}

impl<W: Write> Observer for PajeTrace<W> {
    fn slice(&mut self, slice: Slice) {
        let Some((start, end)) = self.window.cut(slice.start_ns, slice.end_ns) else { return };
        if takes_cpu(slice.activity) {
            let (node, cpu) = (slice.node, self.cpu(&slice));
            self.events.push((start, true, format!("6 S n{node}c{cpu} {}", word(slice.activity))));
            self.events.push((end, false, format!("6 S n{node}c{cpu} idle")));
        }
    }

    fn message(&mut self, message: Message) {
        if self.window.has(message.sent_ns) && self.window.has(message.delivered_ns) {
            let (from, to, key) = (message.from.1, message.to.1, self.links);
            self.links += 1;
            self.events.push((message.sent_ns, true, format!("7 L m0 n{from} m k{key}")));
            self.events.push((message.delivered_ns, true, format!("8 L m0 n{to} m k{key}")));
        }
    }

    fn job(&mut self, _: u64, _: u32, _: JobChange, _: &[u32], _: Option<u32>) {}

    fn row(&mut self, _: u64, _: u32) {}
}
