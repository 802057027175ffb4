//! The constants of a machine, as a machine file (TOML) has them.
//!
//! The names are those of Strazdins & Uhlmann 2004, sections 2.2 and 5: a message of n words of 8 bytes takes
//! alpha + beta n; of that, alpha_CPU + beta_CPU n is CPU time of the process that takes part in it.

mod parse;
mod shipped;

pub use parse::MachineError;
pub use shipped::{SHIPPED, shipped};

use serde::Serialize;

/// Bytes of a word: a double.
pub const WORD_BYTES: u64 = 8;

/// A machine: what computing, messages and context switches cost. Every constant is finite and not negative.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Short, for people.
    pub name: String,
    /// One line.
    pub description: String,
    /// Where the constants are from.
    pub source: String,
    /// CPUs of each node; at least 1.
    pub cpus_per_node: u32,
    /// α_c, the time of a context switch in µs.
    pub context_switch_us: f64,
    /// The costs of floating point operations.
    pub compute: Compute,
    /// Messages between nodes.
    pub network: Link,
    /// Messages within a node; where there is none, they cost what those between nodes do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_memory: Option<Link>,
    /// What a word costs in the collective operations of certain programs.
    #[serde(skip_serializing_if = "Programs::is_empty")]
    pub programs: Programs,
    /// For the cost of cache pollution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
}

/// Costs of a floating point operation in ns, by the level of the BLAS routine that does it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compute {
    /// γ_3: matrix with matrix; above 0.
    pub flop_ns_level3: f64,
    /// γ_2: matrix with vector; above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flop_ns_level2: Option<f64>,
    /// γ_1: vector with vector; above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flop_ns_level1: Option<f64>,
}

impl Compute {
    /// γ_2 in ns; where the machine file has none, γ_3: a lower bound.
    pub fn level2_ns(&self) -> f64 {
        self.flop_ns_level2.unwrap_or(self.flop_ns_level3)
    }
}

/// What a message of n words costs in time, α + β n, and of that in CPU time, α_CPU + β_CPU n.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link {
    /// α, in µs.
    pub alpha_us: f64,
    /// β, in µs per word.
    pub beta_us_per_word: f64,
    /// α_CPU, in µs; at most α. A file that does not say has α: processes spin while they wait.
    pub alpha_cpu_us: f64,
    /// β_CPU, in µs per word; at most β. A file that does not say has β.
    pub beta_cpu_us_per_word: f64,
}

impl Link {
    /// The time of a message of `words` words, in µs.
    pub fn time_us(&self, words: f64) -> f64 {
        self.alpha_us + self.beta_us_per_word * words
    }

    /// Its CPU time on a process that sends or receives it, in µs.
    pub fn cpu_us(&self, words: f64) -> f64 {
        self.alpha_cpu_us + self.beta_cpu_us_per_word * words
    }
}

/// Measured costs per word of the collective operations of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Programs {
    /// Of the matrix multiply program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matmul: Option<GridCosts>,
    /// Of LU factorisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lu: Option<GridCosts>,
}

impl Programs {
    fn is_empty(&self) -> bool {
        *self == Programs::default()
    }
}

/// β_v and β_h: what a word costs down the columns and along the rows of a grid of processes, in µs. They hold contention
/// and what goes through shared memory (section 5.2, equations 9 and 10).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GridCosts {
    /// β_v.
    pub beta_vertical_us_per_word: f64,
    /// β_h.
    pub beta_horizontal_us_per_word: f64,
    /// The CPU time of a word in them, where it is not the network's β_CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta_cpu_us_per_word: Option<f64>,
}

/// What a word costs a program on its grid, in µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Betas {
    /// Down the columns.
    pub vertical_us: f64,
    /// Along the rows.
    pub horizontal_us: f64,
    /// CPU time in either direction.
    pub cpu_us: f64,
}

/// A CPU's cache, for what it costs to fill it again after a switch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cache {
    /// Of each CPU; above 0.
    pub size_bytes: u64,
    /// To read a KiB from memory into it, in µs.
    pub refill_us_per_kib: f64,
}

impl Machine {
    /// Reads and checks a machine file. `name` stands for the file in messages.
    ///
    /// # Errors
    /// [`MachineError`], with the line where the text has one, for what is no TOML, missing, unknown, of another type,
    /// negative, not finite, zero where it must not be, or CPU time above time.
    pub fn parse(text: &str, name: &str) -> Result<Machine, MachineError> {
        parse::machine(text, name)
    }

    /// The messages of a job of `processes` processes, and what a word costs in them. A job that fits into a node talks
    /// within it; else all is as between nodes, with the program's own β where the machine has them.
    pub fn links_of(&self, processes: u64, own: Option<GridCosts>) -> (Link, Betas) {
        let inside = processes <= u64::from(self.cpus_per_node);
        let link = if inside { *self.within_node() } else { self.network };
        let own = own.filter(|_| !inside);
        let betas = Betas {
            vertical_us: own.map_or(link.beta_us_per_word, |own| own.beta_vertical_us_per_word),
            horizontal_us: own.map_or(link.beta_us_per_word, |own| own.beta_horizontal_us_per_word),
            cpu_us: own.and_then(|own| own.beta_cpu_us_per_word).unwrap_or(link.beta_cpu_us_per_word),
        };
        (link, betas)
    }

    /// Messages within a node: shared memory, or the network where the machine has none.
    pub fn within_node(&self) -> &Link {
        self.shared_memory.as_ref().unwrap_or(&self.network)
    }
}
