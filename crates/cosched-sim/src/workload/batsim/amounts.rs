//! What a job's program computes, sends and waits for altogether, and the profile that says so.
//!
//! A profile of Batsim is one computation with all of its messages, at once. So the order of operations, how often they are
//! repeated and in how many messages the bytes are sent are lost, and messages without bytes, as those of barriers.

use super::programs::{STATEMENTS_MAX, compute, ns_of, size_of};
use crate::general::ProgramJob;
use crate::params::Params;
use crate::program::{Code, Op};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most numbers of a table of messages: a thousand processors.
const TABLE_MAX: u64 = 1_000_000;

/// The sums over a job's operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    /// CPU time of each task.
    pub(super) compute_ns: Vec<u128>,
    /// From a task to another; those that are 0 are left out.
    pub(super) bytes: BTreeMap<(u32, u32), u128>,
    /// Devices and held CPUs, of the task that has most of them.
    pub(super) fixed_ns: u128,
}

impl Amounts {
    /// Of a job's program, without skewness.
    pub(super) fn of(job: &ProgramJob, params: &Params) -> Result<Amounts, String> {
        let codes = job.codes(params).map_err(|error| error.what)?;
        let mut amounts = Amounts::default();
        for (task, code) in (0..).zip(&codes) {
            amounts.add(task, code);
        }
        Ok(amounts)
    }

    fn add(&mut self, task: u32, code: &Code) {
        let totals = code.totals();
        self.compute_ns.push(totals.compute_ns);
        self.fixed_ns = self.fixed_ns.max(totals.fixed_ns);
        code.each(|op, loops| {
            if let Op::Send { to, bytes: bytes @ 1.. } = op {
                let times: u64 = loops.iter().product();
                *self.bytes.entry((task, *to)).or_default() += u128::from(times) * u128::from(*bytes);
            }
        });
    }

    /// Profiles by the endings of their names: the one with the empty ending is the job's. `flops` is the speed of a processor.
    pub(super) fn profiles(&self, name: &str, flops: f64) -> Result<Vec<(String, Value)>, String> {
        let computes = !self.bytes.is_empty() || self.compute_ns.iter().any(|ns| *ns > 0);
        let delay =
            || Ok::<_, String>(json!({ "type": "DelayProfile", "delay": ns_of(self.fixed_ns as f64)? as f64 / 1e9 }));
        if self.fixed_ns == 0 {
            return Ok(vec![(name.to_owned(), self.parallel(flops)?)]);
        }
        if !computes {
            return Ok(vec![(name.to_owned(), delay()?)]);
        }
        let parts = [format!("{name}_parallel"), format!("{name}_delay")];
        let whole = json!({ "type": "SequentialCompositionProfile", "repeat": 1, "seq": parts });
        let [parallel, waits] = parts;
        Ok(vec![(name.to_owned(), whole), (parallel, self.parallel(flops)?), (waits, delay()?)])
    }

    /// One number each where all processors do the same, else a list and a table.
    fn parallel(&self, flops: f64) -> Result<Value, String> {
        let cpu = self.compute_ns.iter().map(|ns| flop(*ns, flops)).collect::<Result<Vec<f64>, String>>()?;
        if let Some(bytes) = self.equal() {
            let kind = "ParallelTaskHomogeneousProfile";
            let com = size_of(bytes as f64)?;
            return Ok(
                json!({ "type": kind, "cpu": cpu[0], "com": com, "generation_strategy": "DefinedAmountsUsedForEachValue" }),
            );
        }
        let size = self.compute_ns.len() as u64;
        if size * size > TABLE_MAX {
            return Err(format!("needs a table of more than {TABLE_MAX} numbers for its messages"));
        }
        if size as usize + 2 * self.bytes.len() > STATEMENTS_MAX {
            return Err("has too many messages".into());
        }
        let mut com = vec![0; (size * size) as usize];
        for ((from, to), bytes) in &self.bytes {
            com[(u64::from(*from) * size + u64::from(*to)) as usize] = size_of(*bytes as f64)?;
        }
        Ok(json!({ "type": "ParallelTaskProfile", "cpu": cpu, "com": com }))
    }

    /// What each sends to each other, if all compute and send as much.
    fn equal(&self) -> Option<u128> {
        let (size, pairs) = (self.compute_ns.len(), self.bytes.len());
        common(self.compute_ns.iter())?;
        if pairs == 0 {
            return Some(0);
        }
        common(self.bytes.values()).filter(|_| pairs == size * (size - 1))
    }
}

/// The value, if all are equal.
fn common<'a>(mut values: impl Iterator<Item = &'a u128>) -> Option<u128> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(*first)
}

/// An amount that the reader takes back.
fn flop(ns: u128, flops: f64) -> Result<f64, String> {
    let flop = ns as f64 / 1e9 * flops;
    compute(flop / flops * 1e9).map(|_| flop)
}
