//! Where jobs ran: the Gantt chart (nodes × time) and the matrix over time (rows × time).

use super::frame::{Frame, Scale, WIDTH};
use super::lines::colour;
use super::page::short;
use crate::job::JobSpec;
use crate::metrics::intervals;
use crate::outcome::Outcome;
use crate::trace::Place;

/// The maximum number of jobs that are drawn; more cannot be told apart and make a page of many MB.
pub(super) const JOBS_MAX: usize = 1500;

/// A job, prepared for drawing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Drawn<'a> {
    pub(super) index: usize,
    pub(super) spec: &'a JobSpec,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) place: &'a Place,
}

/// The jobs that started, by their start, up to the maximum that can be drawn.
pub(super) fn drawn<'a>(jobs: &'a [JobSpec], outcome: &Outcome, places: &'a [Place]) -> Vec<Drawn<'a>> {
    let mut found: Vec<Drawn<'_>> = jobs
        .iter()
        .zip(&outcome.jobs)
        .zip(places)
        .enumerate()
        .filter_map(|(index, ((spec, times), place))| {
            let start_ns = times.start_ns?;
            let end_ns = times.finish_ns.unwrap_or(outcome.sim_end_ns);
            Some(Drawn { index, spec, start_ns, end_ns, place })
        })
        .collect();
    found.sort_by_key(|job| (job.start_ns, job.index));
    found.truncate(JOBS_MAX);
    found
}

impl Drawn<'_> {
    fn title(&self) -> String {
        let seconds = |ns: u64| short(ns as f64 / 1e9);
        format!(
            "job {} ({}, {} tasks): {} to {} s",
            self.index,
            self.spec.kind,
            self.spec.tasks,
            seconds(self.start_ns),
            seconds(self.end_ns)
        )
    }
}

/// Nodes × time: jobs that share nodes overlap, so they are translucent.
pub(super) fn gantt(jobs: &[Drawn<'_>], nodes: u32) -> String {
    let mut frame = frame(jobs, f64::from(nodes), 300.0);
    frame.grid_x("simulated time in s");
    frame.grid_y("node");
    for job in jobs {
        for (first, last) in intervals(&job.place.nodes) {
            rect(&mut frame, "cell", job, f64::from(first), f64::from(last) + 1.0);
        }
    }
    frame.axes();
    frame.finish("Gantt chart: which jobs were on which nodes over time")
}

/// Rows × time: each row is a band of all nodes. Without rows, a node's processes take the lowest free place.
pub(super) fn matrix(jobs: &[Drawn<'_>], nodes: u32) -> String {
    let lanes = lanes(jobs, nodes);
    let rows = lanes.iter().flatten().map(|(row, ..)| row + 1).max().unwrap_or(1);
    let mut frame = frame(jobs, rows as f64, 70.0 + rows as f64 * 56.0);
    frame.grid_x("simulated time in s");
    let (left, right, ..) = frame.edges();
    // Some space between the bands.
    let band = 0.92 / f64::from(nodes.max(1));
    for (job, parts) in jobs.iter().zip(&lanes) {
        for (row, first, last) in parts {
            let from = *row as f64 + 0.04;
            rect(&mut frame, "solid", job, from + f64::from(*first) * band, from + f64::from(*last + 1) * band);
        }
    }
    for row in 0..rows {
        let (top, middle) = (frame.y(row as f64), frame.y(row as f64 + 0.5));
        frame.svg.push_str(&format!("<path class=\"axis\" fill=\"none\" d=\"M{left:.1} {top:.1}H{right:.1}\"/>\n"));
        frame.text(left - 6.0, middle + 4.0, "end", "", &format!("row {row}"));
    }
    frame.finish("The matrix over time: which jobs were in which row")
}

fn frame(jobs: &[Drawn<'_>], rows: f64, height: f64) -> Frame {
    let end = jobs.iter().map(|job| job.end_ns).max().unwrap_or(0) as f64 / 1e9;
    Frame::new(WIDTH, height, Scale::exact(0.0, end), Scale::exact(0.0, rows))
}

fn rect(frame: &mut Frame, class: &str, job: &Drawn<'_>, low: f64, high: f64) {
    let (from, to) = (frame.x(job.start_ns as f64 / 1e9), frame.x(job.end_ns as f64 / 1e9));
    let (top, bottom) = (frame.y(high), frame.y(low));
    let class = format!("{class} f{0} g{0}", colour(job.index));
    frame.rect(&class, (from, top), (to - from, bottom - top), &job.title());
}

/// For each job its rectangles: (row, first node, last node).
fn lanes(jobs: &[Drawn<'_>], nodes: u32) -> Vec<Vec<(usize, u32, u32)>> {
    let mut ends: Vec<Vec<u64>> = vec![Vec::new(); nodes as usize];
    jobs.iter()
        .map(|job| {
            let mut by_row: std::collections::BTreeMap<usize, Vec<u32>> = std::collections::BTreeMap::new();
            for node in &job.place.nodes {
                let row = job.place.row.map_or_else(|| free(&mut ends, *node, job), |row| row as usize);
                by_row.entry(row).or_default().push(*node);
            }
            let parts = |(row, nodes): (usize, Vec<u32>)| {
                intervals(&nodes).into_iter().map(move |(first, last)| (row, first, last))
            };
            by_row.into_iter().flat_map(parts).collect()
        })
        .collect()
}

/// The lowest place of a node that is free when the job starts; the job keeps it until its end.
fn free(ends: &mut Vec<Vec<u64>>, node: u32, job: &Drawn<'_>) -> usize {
    let node = node as usize;
    if ends.len() <= node {
        ends.resize(node + 1, Vec::new());
    }
    let places = &mut ends[node];
    let row = places.iter().position(|end| *end <= job.start_ns).unwrap_or(places.len());
    if row == places.len() {
        places.push(0);
    }
    places[row] = job.end_ns;
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobType;

    #[test]
    fn processes_take_the_lowest_free_place() {
        let spec =
            JobSpec { arrival_ns: 0, tasks: 2, exec_ns: 1, kind: JobType::J1, class: cosched_core::Class::Batch };
        let places = [vec![0, 1], vec![1, 2], vec![0], vec![1, 2]].map(|nodes| Place { nodes, row: None });
        let spans = [(0, 10), (2, 5), (3, 4), (5, 9)];
        let jobs: Vec<Drawn<'_>> = places
            .iter()
            .zip(spans)
            .enumerate()
            .map(|(index, (place, (start_ns, end_ns)))| Drawn { index, spec: &spec, start_ns, end_ns, place })
            .collect();
        let expected = [vec![(0, 0, 1)], vec![(0, 2, 2), (1, 1, 1)], vec![(1, 0, 0)], vec![(0, 2, 2), (1, 1, 1)]];
        assert_eq!(lanes(&jobs, 3), expected);
    }
}
