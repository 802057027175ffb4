//! The constants of a machine, as in a machine file (TOML).
//!
//! The names are those of Strazdins & Uhlmann 2004, sections 2.2 and 5: a message of n words of 8 bytes takes alpha +
//! beta n; of that, alpha_CPU + beta_CPU n is CPU time of the sender or receiver.

mod parse;
mod shipped;

pub use parse::MachineError;
pub use shipped::{SHIPPED, shipped};

use serde::Serialize;

/// The size of a word in bytes: a double.
pub const WORD_BYTES: u64 = 8;

/// A machine: the costs of computing, messages and context switches. Every constant is finite and not negative.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// A short name for display.
    pub name: String,
    /// A description of one line.
    pub description: String,
    /// The source of the constants.
    pub source: String,
    /// The number of CPUs of each node; at least 1.
    pub cpus_per_node: u32,
    /// α_c, the time of a context switch in µs.
    pub context_switch_us: f64,
    /// The costs of floating point operations.
    pub compute: Compute,
    /// Messages between nodes.
    pub network: Link,
    /// Messages within a node; None if they cost as much as those between nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_memory: Option<Link>,
    /// The costs of a word in the collective operations of certain programs.
    #[serde(skip_serializing_if = "Programs::is_empty")]
    pub programs: Programs,
    /// The constants for the cost of cache pollution.
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
    /// γ_2 in ns; if the machine file has none, γ_3, which is a lower bound.
    pub fn level2_ns(&self) -> f64 {
        self.flop_ns_level2.unwrap_or(self.flop_ns_level3)
    }
}

/// The time of a message of n words, α + β n, and the CPU time within that, α_CPU + β_CPU n.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link {
    /// α, in µs.
    pub alpha_us: f64,
    /// β, in µs per word.
    pub beta_us_per_word: f64,
    /// α_CPU, in µs; at most α. If the file has none, it is α: processes spin while they wait.
    pub alpha_cpu_us: f64,
    /// β_CPU, in µs per word; at most β. If the file has none, it is β.
    pub beta_cpu_us_per_word: f64,
}

impl Link {
    /// The time of a message of `words` words, in µs.
    pub fn time_us(&self, words: f64) -> f64 {
        self.alpha_us + self.beta_us_per_word * words
    }

    /// The CPU time of a message on a process that sends or receives it, in µs.
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

/// β_v and β_h: the costs of a word down the columns and along the rows of a grid of processes, in µs. They include
/// contention and transfers through shared memory (section 5.2, equations 9 and 10).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GridCosts {
    /// β_v.
    pub beta_vertical_us_per_word: f64,
    /// β_h.
    pub beta_horizontal_us_per_word: f64,
    /// The CPU time of a word in these, if it is not the network's β_CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta_cpu_us_per_word: Option<f64>,
}

/// The costs of a word for a program on its grid, in µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Betas {
    /// Down the columns.
    pub vertical_us: f64,
    /// Along the rows.
    pub horizontal_us: f64,
    /// CPU time in either direction.
    pub cpu_us: f64,
}

/// A CPU's cache, for the cost of refilling it after a switch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cache {
    /// The size per CPU; above 0.
    pub size_bytes: u64,
    /// The time to read a KiB from memory into it, in µs.
    pub refill_us_per_kib: f64,
}

impl Machine {
    /// Parses and checks a machine file. `name` is the name of the file in messages.
    ///
    /// # Errors
    /// [`MachineError`], with the line if it is known, for a text that is not TOML, and for values that are missing,
    /// unknown, of a wrong type, negative, not finite, zero where that is not allowed, or CPU time above time.
    pub fn parse(text: &str, name: &str) -> Result<Machine, MachineError> {
        parse::machine(text, name)
    }

    /// The costs of messages of a job of `processes` processes, and of a word in its collectives. A job that fits into a
    /// node communicates within it; otherwise all messages cost as between nodes, with the program's own β if the machine
    /// has them.
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

    /// Messages within a node: through shared memory, or the network if the machine has no constants for that.
    pub fn within_node(&self) -> &Link {
        self.shared_memory.as_ref().unwrap_or(&self.network)
    }
}
