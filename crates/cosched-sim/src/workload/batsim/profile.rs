//! How long a profile takes: what can be computed without a platform.

use serde_json::Value;
use std::collections::HashMap;

/// The maximum number of parts of nested compositions: a small file could request an endless number.
pub(super) const PARTS_MAX: u32 = 10_000;
/// The maximum nesting depth.
pub(super) const DEPTH_MAX: u32 = 16;

/// The profiles of a workload.
pub(super) struct Profiles<'a> {
    all: &'a serde_json::Map<String, Value>,
    /// Speed of a processor, flop/s.
    flops: Option<f64>,
    /// Profiles that do not depend on the job's size are looked up often.
    delays: HashMap<&'a str, f64>,
}

impl<'a> Profiles<'a> {
    pub(super) fn new(all: &'a serde_json::Map<String, Value>, flops: Option<f64>) -> Profiles<'a> {
        let delay = |(name, profile): (&'a String, &Value)| {
            let is_delay = matches!(kind(profile), "delay" | "DelayProfile");
            Some((name.as_str(), profile["delay"].as_f64().filter(|_| is_delay)?))
        };
        Profiles { all, flops, delays: all.iter().filter_map(delay).collect() }
    }

    /// The run time of a profile on `size` processors, s; or why it is unknown.
    pub(super) fn run_s(&self, name: &str, size: u32) -> Result<f64, String> {
        let seconds =
            self.delays.get(name).map_or_else(|| self.nested(name, size, 0, &mut { PARTS_MAX }), |delay| Ok(*delay))?;
        if seconds > 0.0 && seconds.is_finite() { Ok(seconds) } else { Err("takes no time".into()) }
    }

    fn nested(&self, name: &str, size: u32, depth: u32, parts_left: &mut u32) -> Result<f64, String> {
        let profile = self.all.get(name).ok_or("is not in the file")?;
        *parts_left = parts_left.checked_sub(1).ok_or("is composed of too many parts")?;
        let number = |key: &str| profile[key].as_f64();
        let of_type = kind(profile);
        match of_type {
            "delay" | "DelayProfile" => number("delay").ok_or_else(|| "has no delay".into()),
            "composed" | "SequentialCompositionProfile" if depth == DEPTH_MAX => Err("is composed too deeply".into()),
            "composed" | "SequentialCompositionProfile" => {
                let parts = profile["seq"].as_array().ok_or("has no seq")?;
                let run_s = |part: &Value| self.nested(part.as_str().unwrap_or_default(), size, depth + 1, parts_left);
                let once: f64 = parts.iter().map(run_s).sum::<Result<f64, String>>()?;
                Ok(once * number("repeat").or_else(|| number("nb")).unwrap_or(1.0))
            }
            "parallel" | "ParallelTaskProfile" => {
                let cpu = profile["cpu"].as_array().ok_or("has no cpu")?;
                self.compute(cpu.iter().filter_map(Value::as_f64).fold(0.0, f64::max))
            }
            "parallel_homogeneous" => self.compute(number("cpu").unwrap_or_default()),
            "parallel_homogeneous_total" => self.compute(number("cpu").unwrap_or_default() / f64::from(size)),
            "ParallelTaskHomogeneousProfile" => {
                let is_total = profile["generation_strategy"] == "DefinedAmountsSpreadUniformly";
                let parts = if is_total { f64::from(size) } else { 1.0 };
                self.compute(number("cpu").unwrap_or_default() / parts)
            }
            other => Err(format!("is of type {other}, whose time depends on the platform")),
        }
    }

    fn compute(&self, flop: f64) -> Result<f64, String> {
        let speed = self.flops.ok_or("computes, and the processors' speed is not given")?;
        Ok(flop / speed)
    }
}

pub(super) fn kind(profile: &Value) -> &str {
    profile["type"].as_str().unwrap_or("?")
}
