//! Examples for tests, here and in the command.

use super::facts::{Company, Facts};

pub fn company(policy: &str, slowdown: f64, growth: f64) -> Company {
    Company {
        policy: policy.into(),
        runs: 3,
        slowdown: Some(slowdown),
        is_bound: false,
        cpu_share: Some(0.9),
        cpu_growth: Some(growth),
        why: None,
    }
}

pub fn facts(cpu_share: f64, voluntary_per_s: f64, company: Vec<Company>) -> Facts {
    Facts {
        cpus: 2,
        is_whole: true,
        alone_s: 2.0,
        cpu_share,
        cpu_s: 4.0 * cpu_share,
        memory_bytes: 1 << 30,
        memory_available_bytes: Some(8 << 30),
        voluntary_per_s,
        waits: None,
        company,
        others_cpu_share: 0.02,
    }
}
