//! The time of a program's main phase, as reported by the program.

use regex::Regex;

/// Where to find it in the output.
#[derive(Clone, Debug)]
pub enum Phase {
    /// In a line of JSON with `main_phase_s`, as written by the programs of cosched.
    Json,
    /// In the first group of a regular expression; the last match counts.
    Group(Regex),
}

impl Phase {
    /// # Errors
    /// If the expression is invalid, or has no group.
    pub fn new(expression: Option<&str>) -> Result<Phase, String> {
        let Some(expression) = expression else { return Ok(Phase::Json) };
        let regex = Regex::new(expression).map_err(|e| e.to_string())?;
        if regex.captures_len() < 2 { Err("it has no group for the seconds".into()) } else { Ok(Phase::Group(regex)) }
    }

    /// The time in seconds; None if the output does not contain it.
    pub fn find(&self, output: &str) -> Option<f64> {
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
        assert!(Phase::new(Some("(")).unwrap_err().contains("unclosed group"));
        assert!(Phase::new(Some("time")).unwrap_err().contains("no group"));
    }
}
