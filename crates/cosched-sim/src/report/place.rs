//! Where jobs ran: the Gantt chart (nodes × time) and the matrix over time (rows × time).

use crate::job::JobSpec;
use crate::metrics::intervals;
use crate::outcome::Outcome;
use crate::trace::Place;
use cosched_report::{Chart, IDLE, Point, Series, Shape, axis};

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
    /// Its rectangles, each from one to another height, for the time that it had nodes.
    fn rects(&self, shape: Shape, heights: impl Iterator<Item = (f64, f64)>) -> Series {
        let name = format!("job {} ({}, {} tasks)", self.index, self.spec.kind, self.spec.tasks);
        let [start, end] = [self.start_ns, self.end_ns].map(|ns| ns as f64 / 1e9);
        let rect = |(low, high)| Point { end: Some((end, high)), ..(start, low).into() };
        Series::new(name, self.index % IDLE, shape, heights.map(rect))
    }
}

/// Nodes × time: jobs that share nodes overlap, so they are translucent.
pub(super) fn gantt(jobs: &[Drawn<'_>], caption: &str) -> Chart {
    let series = jobs.iter().map(|job| {
        let spans = intervals(&job.place.nodes).into_iter();
        job.rects(Shape::Clear, spans.map(|(first, last)| (f64::from(first), f64::from(last) + 1.0)))
    });
    Chart::new("Which jobs were on which nodes", caption, axis("simulated time", "s"), axis("node", ""), series)
}

/// Rows × time: each row is a band of all nodes. Without rows, a node's processes take the lowest free place.
pub(super) fn matrix(jobs: &[Drawn<'_>], nodes: u32, caption: &str) -> Chart {
    let lanes = lanes(jobs, nodes);
    let rows = lanes.iter().flatten().map(|(row, ..)| row + 1).max().unwrap_or(1);
    // Some space between the bands.
    let band = 0.92 / f64::from(nodes.max(1));
    let height = |(row, first, last): &(usize, u32, u32)| {
        let from = *row as f64 + 0.04;
        (from + f64::from(*first) * band, from + f64::from(*last + 1) * band)
    };
    let series = jobs.iter().zip(&lanes).map(|(job, parts)| job.rects(Shape::Rects, parts.iter().map(height)));
    let y = axis("row", "").named((0..rows).map(|row| format!("row {row}")));
    Chart::new("Which jobs were in which row", caption, axis("simulated time", "s"), y, series)
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
        let spec = JobSpec {
            arrival_ns: 0,
            tasks: 2,
            exec_ns: 1,
            kind: JobType::J1,
            class: cosched_core::Class::Batch,
            footprint: crate::job::Footprint::default(),
        };
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
