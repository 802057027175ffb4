//! The table of a sweep: one row for all cells that differ only in the seed.

use super::measure::{MEASURES, Measure};
use super::plan::{Cell, Plan, micros};
use super::result::{CellResult, Taken};
use crate::metrics::{Estimate, difference, ratio};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// A sweep's results as rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Table {
    /// In the order of the plan.
    pub rows: Vec<Row>,
}

/// The replications of one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The first of its cells; the others differ in the seed only.
    pub cell: Cell,
    /// The seeds that gave results, and their results.
    pub results: Vec<(u64, CellResult)>,
    /// The seeds without a result, with the reasons.
    pub failures: Vec<(u64, String)>,
    /// Means over the seeds for each of [`MEASURES`]; a single seed has no intervals.
    pub estimates: Vec<Option<Estimate>>,
    /// Jobs that had not ended when their run was cut, over all seeds: if there are any, the means are of the others
    /// only.
    pub unfinished: u64,
    /// Mean response relative to that of the first strategy under the same setting, in pairs of the same seed. `None`
    /// for that strategy itself.
    pub response_ratio: Option<Estimate>,
    /// The mean difference of the same pairs in s.
    pub response_difference_s: Option<Estimate>,
}

impl Table {
    /// Builds the table from a sweep's results.
    pub fn new(plan: &Plan, taken: &[Taken]) -> Table {
        let mut rows: Vec<Row> = Vec::new();
        for (cell, taken) in plan.cells.iter().zip(taken) {
            match rows.last_mut() {
                Some(row) if cell.is_replication_of(&row.cell) => row.add(cell, taken),
                _ => {
                    let mut row = Row::empty(cell);
                    row.add(cell, taken);
                    rows.push(row);
                }
            }
        }
        rows.iter_mut().for_each(Row::estimate);
        compare(&mut rows);
        Table { rows }
    }

    /// The number of rows whose mean response is less precise than wanted, because a bound was reached.
    pub fn imprecise(&self, part: f64) -> usize {
        let is_wide = |row: &&Row| {
            row.value("mean_response_s").is_some_and(|e| e.ci95.is_none_or(|half| half > part * e.mean.abs()))
        };
        self.rows.iter().filter(is_wide).count()
    }

    /// Workloads that have the same list for several seeds.
    pub fn single_lists(&self) -> impl Iterator<Item = &str> {
        let is_single = |row: &&Row| row.results.len() > 1 && row.lists() == 1;
        self.rows.iter().filter(is_single).map(|row| row.cell.wanted.workload.as_str())
    }

    /// The maximum number of replications of a row.
    pub fn seeds(&self) -> usize {
        self.rows.iter().map(|row| row.results.len() + row.failures.len()).max().unwrap_or(0)
    }
}

/// Compares each row with the first of its rivals.
fn compare(rows: &mut [Row]) {
    let mut base = 0;
    for place in 0..rows.len() {
        if !rows[place].cell.is_rival_of(&rows[base].cell) {
            base = place;
        }
        if place != base {
            let (values, bases) = pairs(&rows[place], &rows[base]);
            rows[place].response_ratio = ratio(&values, &bases);
            rows[place].response_difference_s = difference(&values, &bases);
        }
    }
}

/// The responses of the same seeds.
fn pairs(row: &Row, base: &Row) -> (Vec<f64>, Vec<f64>) {
    let response = |result: &CellResult| result.metrics.response_s.map(|summary| summary.mean);
    let of_seed = |seed: u64| base.results.iter().find(|(other, _)| *other == seed).map(|(_, result)| result);
    let pair = |(seed, result): &(u64, CellResult)| response(result).zip(response(of_seed(*seed)?));
    row.results.iter().filter_map(pair).unzip()
}

impl Row {
    fn empty(cell: &Cell) -> Row {
        Row {
            cell: cell.clone(),
            results: Vec::new(),
            failures: Vec::new(),
            estimates: Vec::new(),
            unfinished: 0,
            response_ratio: None,
            response_difference_s: None,
        }
    }

    fn add(&mut self, cell: &Cell, taken: &Taken) {
        match taken {
            Taken::Done(result) => {
                self.unfinished += result.metrics.jobs - result.metrics.finished;
                self.results.push((cell.config.params.seed, (**result).clone()));
            }
            Taken::Failed(reason) => self.failures.push((cell.config.params.seed, reason.clone())),
        }
    }

    fn estimate(&mut self) {
        let of = |measure: &Measure| {
            let values: Option<Vec<f64>> = self.results.iter().map(|(_, result)| measure.value(result)).collect();
            Estimate::of_positive(&values?)
        };
        self.estimates = MEASURES.iter().map(of).collect();
    }

    /// The number of different job lists of its seeds: one for a file, one for each seed if they are generated.
    pub fn lists(&self) -> usize {
        self.results.iter().map(|(_, result)| result.list).collect::<BTreeSet<u64>>().len()
    }

    /// The mean of one of [`MEASURES`] by its name.
    pub fn value(&self, name: &str) -> Option<Estimate> {
        *self.estimates.get(Measure::place(name)?)?
    }

    /// The inputs: names and values, in the order of the columns.
    fn inputs(&self) -> Vec<(&'static str, String, bool)> {
        let (p, wanted) = (&self.cell.config.params, &self.cell.wanted);
        let rows = p.strategy.has_turns();
        vec![
            ("strategy", p.strategy.to_string(), true),
            ("workload", wanted.workload.clone(), true),
            ("load", wanted.load.map(|load| load.to_string()).unwrap_or_default(), false),
            ("nodes", p.nodes.to_string(), false),
            ("mpl", p.mpl.to_string(), false),
            ("skew", p.skew.to_string(), false),
            ("grain", self.cell.grain.to_string(), false),
            ("cs_us", micros(p.switch_ns).to_string(), false),
            ("intr_us", micros(p.interrupt_ns).to_string(), false),
            ("quantum_ms", if rows { (micros(p.quantum_ns) / 1e3).to_string() } else { String::new() }, false),
            ("seeds", self.results.len().to_string(), false),
            ("job_lists", self.lists().to_string(), false),
            ("failed_seeds", self.failures.len().to_string(), false),
            ("unfinished_jobs", self.unfinished.to_string(), false),
        ]
    }

    /// The outputs: names and estimates, in the order of the columns.
    fn outputs(&self) -> impl Iterator<Item = (&'static str, Option<Estimate>)> {
        let measured = MEASURES.iter().zip(&self.estimates).map(|(measure, estimate)| (measure.name, *estimate));
        let compared = [("response_ratio", self.response_ratio), ("response_difference_s", self.response_difference_s)];
        measured.chain(compared)
    }
}

/// Writes the table as CSV: inputs, then each quantity and half the width of its 95 % interval (`_ci95`). Unknown values
/// are empty.
///
/// # Errors
/// An error of the writer, such as a full disk.
pub fn write_csv(mut out: impl Write, table: &Table) -> io::Result<()> {
    let Some(first) = table.rows.first() else { return out.flush() };
    let mut titles: Vec<String> = first.inputs().into_iter().map(|(name, ..)| name.to_owned()).collect();
    titles.extend(first.outputs().flat_map(|(name, _)| [name.to_owned(), format!("{name}_ci95")]));
    writeln!(out, "{}", titles.join(","))?;
    for row in &table.rows {
        let mut words: Vec<String> = row.inputs().into_iter().map(|(_, value, _)| quoted(&value)).collect();
        let word = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        for (_, estimate) in row.outputs() {
            words.push(word(estimate.map(|estimate| estimate.mean)));
            words.push(word(estimate.and_then(|estimate| estimate.ci95)));
        }
        writeln!(out, "{}", words.join(","))?;
    }
    out.flush()
}

/// A word of CSV.
fn quoted(word: &str) -> String {
    if word.contains([',', '"', '\n', '\r']) { format!("\"{}\"", word.replace('"', "\"\"")) } else { word.to_owned() }
}

impl Serialize for Row {
    /// The columns of the CSV as an object; numbers are numbers, unknown values are null, failures have their reasons.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value, is_word) in self.inputs() {
            match value.parse::<f64>() {
                _ if is_word => map.serialize_entry(name, &value)?,
                Ok(number) if number.fract() == 0.0 && number < 9e15 => map.serialize_entry(name, &(number as u64))?,
                Ok(number) => map.serialize_entry(name, &number)?,
                Err(_) => map.serialize_entry(name, &None::<f64>)?,
            }
        }
        for (name, estimate) in self.outputs() {
            map.serialize_entry(name, &estimate.map(|estimate| estimate.mean))?;
            map.serialize_entry(&format!("{name}_ci95"), &estimate.and_then(|estimate| estimate.ci95))?;
        }
        let reasons: Vec<&String> = self.failures.iter().map(|(_, reason)| reason).collect();
        map.serialize_entry("failures", &reasons)?;
        map.end()
    }
}
