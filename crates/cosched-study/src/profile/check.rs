//! Checks of a profile that was read: its invariants, and whether its messages match.

use super::{By, Event, Profile, TASKS_MAX, Task, steps};
use std::collections::BTreeMap;

impl Profile {
    /// Checks the invariants. The error says which one is violated.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.tasks == 0 || self.tasks > TASKS_MAX || self.each.len() != self.tasks as usize {
            return Err(format!("it says \"tasks\":{} and describes {}", self.tasks, self.each.len()));
        }
        positive("elapsed_s", self.elapsed_s)?;
        if let Some(network) = self.network {
            positive("alpha_us", network.alpha_us)?;
            positive("beta_us_per_word", network.beta_us_per_word)?;
        }
        let all: Vec<u32> = (0..self.tasks).collect();
        if self.by == By::Mpi && self.groups.first() != Some(&all) {
            return Err("its first group is not all tasks".into());
        }
        for group in &self.groups {
            let mut sorted = group.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.is_empty() || sorted.len() != group.len() || sorted.last() >= Some(&self.tasks) {
                return Err("a group is empty, names a task twice, or one that does not exist".into());
            }
        }
        self.each.iter().enumerate().try_for_each(|(place, task)| self.check_task(place, task))
    }

    fn check_task(&self, place: usize, task: &Task) -> Result<(), String> {
        if task.task as usize != place {
            return Err(format!("task {} is in the place of task {place}", task.task));
        }
        let times = [
            ("compute_s", task.compute_s),
            ("message_s", task.message_s),
            ("message_cpu_s", task.message_cpu_s),
            ("io_s", task.io_s),
            ("wait_s", task.wait_s),
        ];
        for (name, value) in times {
            positive(name, value).map_err(|why| format!("task {place}: {why}"))?;
        }
        let mut result = Ok(());
        steps::visit(&task.operations, 1, &mut |call, times| {
            if result.is_ok() {
                result = self.check_call(task.task, &call.does, times).map_err(|why| format!("task {place}: {why}"));
            }
        });
        result
    }

    fn check_call(&self, task: u32, does: &[Event<u32>], times: u64) -> Result<(), String> {
        if times > 1_000_000_000_000 {
            return Err("loops in loops are done more than 10^12 times".into());
        }
        for event in does {
            match event {
                Event::Send { to: other, .. } | Event::Receive { from: other, .. } if *other >= self.tasks => {
                    return Err(format!("there is no task {other} to send to or receive from"));
                }
                Event::Together(c) | Event::Begin(c) | Event::End(c) => {
                    let Some(group) = self.groups.get(c.among as usize).filter(|group| group.contains(&task)) else {
                        return Err(format!("it acts together with group {}, in which it is not", c.among));
                    };
                    if c.root.is_some_and(|root| !group.contains(&root)) {
                        return Err("a root is not in its group".into());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Messages between pairs of tasks whose numbers of sends and receives differ, as sentences; at most `max`.
    pub(super) fn unmatched(&self, max: usize) -> Vec<String> {
        let mut balance: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
        for task in &self.each {
            steps::visit(&task.operations, 1, &mut |call, times| {
                for event in &call.does {
                    match event {
                        Event::Send { to, .. } => balance.entry((task.task, *to)).or_default().0 += times,
                        Event::Receive { from, .. } => balance.entry((*from, task.task)).or_default().1 += times,
                        _ => {}
                    }
                }
            });
        }
        let bad = balance.into_iter().filter(|(_, (sent, received))| sent != received);
        let said = bad.map(|((from, to), (sent, received))| {
            format!("task {from} sends {sent} messages to task {to}, which receives {received}")
        });
        said.take(max).collect()
    }
}

fn positive(name: &str, value: f64) -> Result<(), String> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(format!("{name} is {value}, and must be 0 or more")) }
}
