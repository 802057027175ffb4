//! The cost of a parallel job that runs alone: named terms, each with its time and the CPU time within it.

use crate::machine::Link;
use serde::Serialize;

/// What a term is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Floating point operations, or other work of the CPU: all of it is CPU time.
    Compute,
    /// Startups of messages: α each, of which α_CPU is CPU time.
    Startup,
    /// Words of messages: β each, of which β_CPU is CPU time.
    Volume,
    /// Input, output, or waiting for a partner: no CPU time.
    Wait,
}

/// One term of t_1, of the process on the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Term {
    /// A name of a word or two; docs/model.md derives each term.
    pub name: &'static str,
    /// What it is made of.
    pub kind: Kind,
    /// The number of messages, for startups; else 0.
    pub messages: f64,
    /// The number of words of 8 bytes, for volumes; else 0.
    pub words: f64,
    /// Its part of t_1, in s.
    pub time_s: f64,
    /// The CPU time within that, in s, without context switches.
    pub cpu_s: f64,
}

impl Term {
    /// Work of the CPU.
    pub fn compute(name: &'static str, time_s: f64) -> Term {
        Term { name, kind: Kind::Compute, messages: 0.0, words: 0.0, time_s, cpu_s: time_s }
    }

    /// Time without CPU use.
    pub fn wait(name: &'static str, time_s: f64) -> Term {
        Term { name, kind: Kind::Wait, messages: 0.0, words: 0.0, time_s, cpu_s: 0.0 }
    }

    /// The startups of `messages` messages.
    pub fn startup(name: &'static str, link: &Link, messages: f64) -> Term {
        let (time_s, cpu_s) = (messages * link.alpha_us * 1e-6, messages * link.alpha_cpu_us * 1e-6);
        Term { name, kind: Kind::Startup, messages, words: 0.0, time_s, cpu_s }
    }

    /// The transfer of `words` words, which take β and β_CPU µs each.
    pub fn volume(name: &'static str, words: f64, beta_us: f64, beta_cpu_us: f64) -> Term {
        let (time_s, cpu_s) = (words * beta_us * 1e-6, words * beta_cpu_us * 1e-6);
        Term { name, kind: Kind::Volume, messages: 0.0, words, time_s, cpu_s }
    }
}

/// The terms of t_1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// In the order of the derivation.
    pub terms: Vec<Term>,
}

impl Cost {
    /// t_1(α, β), in s.
    pub fn time_s(&self) -> f64 {
        self.terms.iter().map(|term| term.time_s).sum()
    }

    /// t_1(α_CPU, β_CPU): the CPU time of a process of a job that runs alone, in s. Context switches while it waits are
    /// within the measured α, not within α_CPU (section 5.1).
    pub fn cpu_s(&self) -> f64 {
        self.terms.iter().map(|term| term.cpu_s).sum()
    }

    /// The part of that which is not for messages, in s.
    pub fn compute_s(&self) -> f64 {
        self.terms.iter().filter(|term| term.kind == Kind::Compute).map(|term| term.time_s).sum()
    }

    /// The number of messages.
    pub fn messages(&self) -> f64 {
        self.terms.iter().map(|term| term.messages).sum()
    }

    /// The number of words of 8 bytes.
    pub fn words(&self) -> f64 {
        self.terms.iter().map(|term| term.words).sum()
    }

    /// t_1(α_c + α_CPU, β_CPU): the CPU time of a process if each message that it waits for causes a context switch to
    /// another job, in s (section 5.1). `switch_us` is α_c plus any other cost of a switch.
    pub fn shared_cpu_s(&self, switch_us: f64) -> f64 {
        self.cpu_s() + self.messages() * switch_us * 1e-6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_paid_for_each_message_and_only_in_company() {
        let link = Link { alpha_us: 80.0, beta_us_per_word: 0.85, alpha_cpu_us: 28.0, beta_cpu_us_per_word: 0.14 };
        let terms = vec![
            Term::compute("compute", 1.0),
            Term::startup("startups", &link, 1000.0),
            Term::volume("volume", 1e6, link.beta_us_per_word, link.beta_cpu_us_per_word),
            Term::wait("disk", 0.5),
        ];
        let cost = Cost { terms };
        assert!((cost.time_s() - (1.0 + 0.08 + 0.85 + 0.5)).abs() < 1e-12);
        assert!((cost.cpu_s() - (1.0 + 0.028 + 0.14)).abs() < 1e-12);
        assert!((cost.shared_cpu_s(2.5) - cost.cpu_s() - 0.0025).abs() < 1e-12);
        assert_eq!((cost.messages(), cost.words(), cost.compute_s()), (1000.0, 1e6, 1.0));
        assert!((link.time_us(100.0) - 165.0).abs() < 1e-9 && (link.cpu_us(100.0) - 42.0).abs() < 1e-9);
    }
}
