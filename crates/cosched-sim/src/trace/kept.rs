//! Where jobs ran: for figures and for Batsim's list of allocated resources.

use crate::observe::{JobChange, Message, Observer, Slice};

/// A job's place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its nodes, in the order of its tasks; empty before it has started.
    pub nodes: Vec<u32>,
    /// Its row of the matrix, if there is one.
    pub row: Option<u32>,
}

/// Keeps the place of every job: memory is proportional to all tasks of the job list.
#[derive(Clone, Debug, Default)]
pub struct Places {
    places: Vec<Place>,
}

impl Places {
    /// For this many jobs.
    pub fn new(jobs: usize) -> Places {
        Places { places: vec![Place::default(); jobs] }
    }

    /// The places in the order of the job list.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The nodes alone, in the order of the job list.
    pub fn nodes(&self) -> Vec<Vec<u32>> {
        self.places.iter().map(|place| place.nodes.clone()).collect()
    }
}

impl Observer for Places {
    fn slice(&mut self, _: Slice) {}

    fn message(&mut self, _: Message) {}

    fn job(&mut self, _: u64, job: u32, change: JobChange, nodes: &[u32], row: Option<u32>) {
        if change == JobChange::Started {
            let job = job as usize;
            if self.places.len() <= job {
                self.places.resize(job + 1, Place::default());
            }
            self.places[job] = Place { nodes: nodes.to_vec(), row };
        }
    }

    fn row(&mut self, _: u64, _: u32) {}
}
