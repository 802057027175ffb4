//! From text to a [`Machine`]: every constant is checked, and every refusal says which one, where and
//! why.

use super::{Cache, Compute, GridCosts, Link, Machine, Programs};
use serde::Deserialize;
use toml::Spanned;

/// Why a machine file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {why}", place = self.place())]
pub struct MachineError {
    /// The name of the file, as given by the caller.
    pub file: String,
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// The constant, such as `network.alpha_us`; None if the text is not TOML.
    pub key: Option<String>,
    /// What is wrong.
    pub why: String,
    /// What to do about it.
    pub hint: String,
}

impl MachineError {
    /// The file, with the line if it is known.
    pub fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.file),
            None => self.file.clone(),
        }
    }
}

type Number = Option<Spanned<f64>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    source: String,
    cpus_per_node: Option<Spanned<i64>>,
    context_switch_us: Number,
    compute: Option<RawCompute>,
    network: Option<RawLink>,
    shared_memory: Option<RawLink>,
    #[serde(default)]
    programs: RawPrograms,
    cache: Option<RawCache>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCompute {
    flop_ns_level3: Number,
    flop_ns_level2: Number,
    flop_ns_level1: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLink {
    alpha_us: Number,
    beta_us_per_word: Number,
    alpha_cpu_us: Number,
    beta_cpu_us_per_word: Number,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPrograms {
    matmul: Option<RawGrid>,
    lu: Option<RawGrid>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGrid {
    beta_vertical_us_per_word: Number,
    beta_horizontal_us_per_word: Number,
    beta_cpu_us_per_word: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCache {
    size_bytes: Option<Spanned<i64>>,
    refill_us_per_kib: Number,
}

/// The text, for line numbers, and the file's name.
struct Source<'a> {
    text: &'a str,
    file: &'a str,
}

pub(super) fn machine(text: &str, file: &str) -> Result<Machine, MachineError> {
    let source = Source { text, file };
    let raw: Raw = toml::from_str(text).map_err(|error| source.no_toml(&error))?;
    let name = raw.name.filter(|name| !name.trim().is_empty()).ok_or_else(|| source.missing("name"))?;
    let network = raw.network.ok_or_else(|| source.missing("network.alpha_us"))?;
    let compute = raw.compute.ok_or_else(|| source.missing("compute.flop_ns_level3"))?;
    let network = source.link("network", network, true)?;
    let shared_memory = raw.shared_memory.map(|link| source.link("shared_memory", link, false)).transpose()?;
    Ok(Machine {
        name,
        description: raw.description,
        source: raw.source,
        cpus_per_node: source.cpus("cpus_per_node", raw.cpus_per_node)?,
        context_switch_us: source.cost("context_switch_us", raw.context_switch_us)?,
        compute: source.compute(compute)?,
        network,
        shared_memory,
        programs: Programs {
            matmul: raw.programs.matmul.map(|grid| source.grid("programs.matmul", grid)).transpose()?,
            lu: raw.programs.lu.map(|grid| source.grid("programs.lu", grid)).transpose()?,
        },
        cache: raw.cache.map(|cache| source.cache(cache)).transpose()?,
    })
}

impl Source<'_> {
    fn compute(&self, raw: RawCompute) -> Result<Compute, MachineError> {
        let optional = |key, number: Number| number.map(|number| self.above_zero(key, Some(number))).transpose();
        Ok(Compute {
            flop_ns_level3: self.above_zero("compute.flop_ns_level3", raw.flop_ns_level3)?,
            flop_ns_level2: optional("compute.flop_ns_level2", raw.flop_ns_level2)?,
            flop_ns_level1: optional("compute.flop_ns_level1", raw.flop_ns_level1)?,
        })
    }

    /// A link; missing CPU parts are set to the whole time: the processes spin.
    fn link(&self, table: &str, raw: RawLink, needs_cpu: bool) -> Result<Link, MachineError> {
        let alpha_us = self.cost(&format!("{table}.alpha_us"), raw.alpha_us)?;
        let beta_us_per_word = self.cost(&format!("{table}.beta_us_per_word"), raw.beta_us_per_word)?;
        let part = |key: &str, number: Number, whole: f64, of: &str| {
            let key = format!("{table}.{key}");
            match number {
                None if !needs_cpu => Ok(whole),
                number => self.part(&key, number, whole, of),
            }
        };
        Ok(Link {
            alpha_us,
            beta_us_per_word,
            alpha_cpu_us: part("alpha_cpu_us", raw.alpha_cpu_us, alpha_us, "alpha_us")?,
            beta_cpu_us_per_word: part(
                "beta_cpu_us_per_word",
                raw.beta_cpu_us_per_word,
                beta_us_per_word,
                "beta_us_per_word",
            )?,
        })
    }

    fn grid(&self, table: &str, raw: RawGrid) -> Result<GridCosts, MachineError> {
        let cost = |name: &str, number: Number| self.cost(&format!("{table}.{name}"), number);
        let cpu = raw.beta_cpu_us_per_word.map(|number| cost("beta_cpu_us_per_word", Some(number)));
        Ok(GridCosts {
            beta_vertical_us_per_word: cost("beta_vertical_us_per_word", raw.beta_vertical_us_per_word)?,
            beta_horizontal_us_per_word: cost("beta_horizontal_us_per_word", raw.beta_horizontal_us_per_word)?,
            beta_cpu_us_per_word: cpu.transpose()?,
        })
    }

    fn cache(&self, raw: RawCache) -> Result<Cache, MachineError> {
        let key = "cache.size_bytes";
        let size = raw.size_bytes.ok_or_else(|| self.missing(key))?;
        let size_bytes = u64::try_from(*size.get_ref()).ok().filter(|&size| size > 0);
        let hint = "give the bytes of one CPU's cache, as 262144";
        let size_bytes = size_bytes.ok_or_else(|| self.refused(key, &size, "must be above 0", hint))?;
        Ok(Cache { size_bytes, refill_us_per_kib: self.cost("cache.refill_us_per_kib", raw.refill_us_per_kib)? })
    }

    fn cpus(&self, key: &str, number: Option<Spanned<i64>>) -> Result<u32, MachineError> {
        let number = number.ok_or_else(|| self.missing(key))?;
        let cpus = u32::try_from(*number.get_ref()).ok().filter(|&cpus| cpus > 0);
        cpus.ok_or_else(|| self.refused(key, &number, "must be a whole number from 1", "give the CPUs of one node"))
    }

    /// A cost: finite and not negative.
    fn cost(&self, key: &str, number: Number) -> Result<f64, MachineError> {
        let number = number.ok_or_else(|| self.missing(key))?;
        let value = *number.get_ref();
        if !value.is_finite() {
            return Err(self.refused(
                key,
                &number,
                "must be a finite number",
                "measure it with `cosched model calibrate`",
            ));
        }
        if value < 0.0 {
            return Err(self.refused(key, &number, "must not be negative", "nothing takes less than no time"));
        }
        Ok(value)
    }

    /// A cost that must be above 0, because it is a divisor, or because nothing would take time without
    /// it.
    fn above_zero(&self, key: &str, number: Number) -> Result<f64, MachineError> {
        let shown = number.clone();
        match (self.cost(key, number)?, shown) {
            (0.0, Some(shown)) => {
                let hint = "a rate of F MFLOPS is 1000/F ns for each operation";
                Err(self.refused(key, &shown, "must be above 0", hint))
            }
            (value, _) => Ok(value),
        }
    }

    /// The CPU time within a time: at most that time.
    fn part(&self, key: &str, number: Number, whole: f64, of: &str) -> Result<f64, MachineError> {
        let shown = number.clone();
        let value = self.cost(key, number)?;
        match shown {
            Some(shown) if value > whole => {
                let why = format!("must be at most {of} = {whole}");
                Err(self.refused(key, &shown, &why, "CPU time of a message is a part of its time"))
            }
            _ => Ok(value),
        }
    }

    fn missing(&self, key: &str) -> MachineError {
        MachineError {
            file: self.file.into(),
            line: None,
            key: Some(key.into()),
            why: format!("{key} is missing"),
            hint: "`cosched model machines --show bunyip` prints a complete machine file".into(),
        }
    }

    fn refused<T: std::fmt::Debug>(&self, key: &str, at: &Spanned<T>, why: &str, hint: &str) -> MachineError {
        let value = self.text.get(at.span()).map_or_else(|| format!("{:?}", at.get_ref()), str::to_owned);
        MachineError {
            file: self.file.into(),
            line: Some(self.line(at.span().start)),
            key: Some(key.into()),
            why: format!("{key} = {value} {why}"),
            hint: hint.into(),
        }
    }

    fn no_toml(&self, error: &toml::de::Error) -> MachineError {
        MachineError {
            file: self.file.into(),
            line: error.span().map(|span| self.line(span.start)),
            key: None,
            why: error.message().trim().replace('\n', "; "),
            hint: "`cosched model machines --show bunyip` prints a machine file; docs/model.md explains each line"
                .into(),
        }
    }

    /// The line number of a byte offset, from 1.
    fn line(&self, byte: usize) -> usize {
        1 + self.text.as_bytes().iter().take(byte).filter(|&&byte| byte == b'\n').count()
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
