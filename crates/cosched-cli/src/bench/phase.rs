//! The time of a program's main phase, as the program says it.

use crate::out::Failure;
use regex::Regex;

/// Where it stands in the output.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// In a line of JSON with `main_phase_s`, as the programs of cosched write it.
    Json,
    /// Where the first group of an expression matches; the last match counts.
    Group(Regex),
}

impl Phase {
    /// # Errors
    /// When the expression is invalid, or has no group.
    pub(crate) fn new(expression: Option<&str>) -> Result<Phase, Failure> {
        let Some(expression) = expression else { return Ok(Phase::Json) };
        let hint = "as in --phase-regex 'elapsed: ([0-9.]+) s'";
        let invalid = |why: &str| Failure::explained(2, "--phase-regex cannot be used", why, hint);
        let regex = Regex::new(expression).map_err(|e| invalid(&e.to_string()))?;
        if regex.captures_len() < 2 { Err(invalid("it has no group for the seconds")) } else { Ok(Phase::Group(regex)) }
    }

    /// In seconds; none when the output does not say it.
    pub(crate) fn find(&self, output: &str) -> Option<f64> {
        let found = match self {
            Phase::Json => output.lines().rev().find_map(|line| {
                let value: serde_json::Value = serde_json::from_str(line.trim()).ok()?;
                value.get("main_phase_s")?.as_f64()
            }),
            Phase::Group(regex) => regex.captures_iter(output).last()?.get(1)?.as_str().parse().ok(),
        };
        found.filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_programs_time() {
        let output = "mpirun warns\n{\"program\":\"lu\",\"main_phase_s\":1.25}\nthe end\n";
        assert_eq!(Phase::new(None).unwrap().find(output), Some(1.25));
        assert_eq!(Phase::new(None).unwrap().find("{\"main_phase_s\":\"x\"}\n3"), None);
        let phase = Phase::new(Some(r"(?m)^Time: ([0-9.]+)")).unwrap();
        assert_eq!(phase.find("Time: 7\nTime: 8.5 s\n"), Some(8.5));
        assert_eq!(phase.find("no time"), None);
    }

    #[test]
    fn expressions_that_cannot_work_are_refused() {
        assert!(Phase::new(Some("(")).unwrap_err().message.contains("--phase-regex"));
        assert!(Phase::new(Some("time")).unwrap_err().message.contains("no group"));
    }
}
