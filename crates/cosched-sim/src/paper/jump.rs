//! How the feedback engine is moved forward in time.

use super::engine::{Engine, Why};
use super::node::{NEVER_NS, NO_PROCESS, State};
use super::sampled::{Course, Jumps};
use crate::error::SimError;
use crate::observe::Observer;
use crate::outcome::{Outcome, Progress};

impl<O: Observer, const W: u8, const A: u8> Jumps for Engine<'_, O, W, A> {
    fn go(&mut self, limit: u64, to_change: bool, watch: &mut dyn FnMut(Progress) -> bool) -> Result<Why, SimError> {
        Engine::go(self, limit, to_change, watch)
    }

    fn now_ns(&self) -> u64 {
        self.all.now >> 3
    }

    fn next_arrival_ns(&self) -> Option<u64> {
        self.order.get(self.arrived).map(|job| self.all.jobs[*job as usize].arrival_ns)
    }

    /// Levels rise every second (D24).
    fn window_ns(&self, at_least_ns: u64) -> u64 {
        at_least_ns
    }

    fn courses(&self) -> Vec<Course> {
        let running = self.all.live.iter().enumerate().filter(|(_, live)| !live.at.is_empty());
        let course = |(job, live): (usize, &super::site::Live)| {
            let tasks = live.at.iter().map(|(n, place)| &self.tasks[*n as usize * self.places + *place as usize]);
            let (done, left) =
                tasks.fold((0, u64::MAX), |(done, left), p| (done + p.iteration, left.min(p.iterations - p.iteration)));
            Course { job: job as u32, tasks: live.at.len() as u64, done, left }
        };
        running.map(course).collect()
    }

    fn out(&self) -> &Outcome {
        &self.all.out
    }

    fn jump(&mut self, delta_ns: u64, iterations: &[(u32, u64)]) {
        for (job, count) in iterations {
            for (n, place) in &self.all.live[*job as usize].at {
                self.tasks[*n as usize * self.places + *place as usize].iteration += count;
                self.skipped += count;
            }
        }
        let later = |ns: &mut u64| *ns += if *ns == NEVER_NS { 0 } else { delta_ns };
        for process in self.processes.iter_mut().filter(|p| p.state == State::Io) {
            later(&mut process.io_ns);
        }
        self.keys.later(delta_ns << 3);
        for node in &mut self.nodes {
            for ns in [&mut node.cpu_end_ns, &mut node.io_end_ns, &mut node.run_start_ns, &mut node.cpu_start_ns] {
                later(ns);
            }
            for ns in [&mut node.next_tick_ns, &mut node.send_free_ns, &mut node.receive_free_ns] {
                later(ns);
            }
            // What the last tick saw stays unchanged.
            if node.current != NO_PROCESS || node.noted_ns > 0 {
                later(&mut node.current_since_ns);
                later(&mut node.noted_ns);
            }
            for message in node.incoming.iter_mut() {
                later(&mut message.delivered_ns);
                later(&mut message.reaches_ns);
            }
        }
    }
}
