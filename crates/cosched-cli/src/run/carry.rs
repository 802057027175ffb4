//! The job in the environment: `COSCHED_JOB` for the command, and how it reaches ranks on other nodes.
//!
//! MPICH's launcher (hydra) passes its whole environment to every rank. Open MPI's does not, but starts its daemon on
//! other nodes by a *launch agent*, a command of several words that the environment names; ranks inherit that daemon's
//! environment. So the agent becomes `env COSCHED_JOB=7 … orted`. Open MPI's list of variables (`mca_base_env_list`) is
//! not used: where it is set, `mpirun -x` fails. Sockets and the job's page belong to one node and are not carried. Open
//! MPI 4 (ORTE, `orte_plm_base_setup_orted_cmd`) and 5 (PRRTE, `prte_plm_base_setup_prted_cmd`).

use super::files::of_user;
use super::waiting::Plan;
use crate::format::is_bare;
use cosched_api::Job;
use std::ffi::OsString;

/// The job's id.
pub(crate) const JOB: &str = "COSCHED_JOB";
/// When the job was registered, in ms since the Unix epoch: another daemon's job of the same id is not this job.
pub(crate) const SUBMITTED: &str = "COSCHED_JOB_SUBMITTED";

/// The launch agents: the variable, and the daemon that is started when the variable is not set.
const AGENTS: [(&str, &str); 2] = [("OMPI_MCA_orte_launch_agent", "orted"), ("PRTE_MCA_prte_launch_agent", "prted")];

/// The additions to the command's environment; `own` are the user's (`--env`).
pub(crate) fn environment(job: &Job, waiting: Option<&Plan>, own: &[(String, String)]) -> Vec<(String, OsString)> {
    let page = job.waiting.as_ref().and_then(|waiting| waiting.page.as_deref());
    let mut carried: Vec<(String, OsString)> = vec![
        (JOB.to_owned(), job.id.to_string().into()),
        (SUBMITTED.to_owned(), job.submitted_unix_ms.to_string().into()),
    ];
    carried.extend(waiting.map(Plan::carried).unwrap_or_default());
    let mut all = waiting.map(|plan| plan.environment(page, own)).unwrap_or_default();
    all.extend(carried.iter().take(2).cloned());
    let words = agent_words(&carried);
    for (name, daemon) in AGENTS {
        let theirs = of_user(own, name).unwrap_or_default();
        all.push((name.to_owned(), agent(&words, &theirs.to_string_lossy(), daemon).into()));
    }
    all
}

/// `NAME=VALUE` for values that a shell and splitting at blanks leave unchanged; others are not carried.
fn agent_words(carried: &[(String, OsString)]) -> Vec<String> {
    let word =
        |(name, value): &(String, OsString)| Some(format!("{name}={}", value.to_str().filter(|text| is_bare(text))?));
    carried.iter().filter_map(word).collect()
}

/// The agent that carries `words` and then runs the user's agent `theirs`, or starts the daemon.
fn agent(words: &[String], theirs: &str, daemon: &str) -> String {
    let mut own: Vec<&str> = theirs.split_ascii_whitespace().collect();
    // A job that was started in a job: what was added for the outer job no longer applies.
    if own.len() > 1 && own[0] == "env" && own[1].starts_with(&format!("{JOB}=")) {
        let first = own.iter().skip(1).position(|word| !word.contains('=')).map_or(own.len(), |at| at + 1);
        own.drain(..first);
    }
    let own = if own.is_empty() { daemon.to_owned() } else { own.join(" ") };
    format!("env {} {own}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[(&str, &str)]) -> Vec<String> {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), OsString::from(value));
        agent_words(&all.iter().map(pair).collect::<Vec<_>>())
    }

    #[test]
    fn the_agent_carries_and_keeps_what_the_user_has_set() {
        let seven = words(&[(JOB, "7"), ("LD_PRELOAD", "/opt/a b/lib.so"), ("COSCHED_WAIT", "spin-block:50us")]);
        assert_eq!(seven, ["COSCHED_JOB=7", "COSCHED_WAIT=spin-block:50us"], "a blank does not pass a shell");
        assert_eq!(agent(&seven, "", "orted"), "env COSCHED_JOB=7 COSCHED_WAIT=spin-block:50us orted");
        assert_eq!(agent(&seven[..1], "valgrind -q orted", "orted"), "env COSCHED_JOB=7 valgrind -q orted");
        assert_eq!(agent(&seven[..1], "env A=1 orted", "orted"), "env COSCHED_JOB=7 env A=1 orted");
    }

    #[test]
    fn a_job_in_a_job_replaces_the_outer_ones_words() {
        let eight = words(&[(JOB, "8")]);
        let outer = agent(&words(&[(JOB, "7"), ("COSCHED_WAIT", "busy")]), "valgrind orted", "orted");
        assert_eq!(agent(&eight, &outer, "orted"), "env COSCHED_JOB=8 valgrind orted");
        assert_eq!(agent(&eight, "env COSCHED_JOB=7", "prted"), "env COSCHED_JOB=8 prted");
    }

    #[test]
    fn what_a_shell_would_read_is_not_carried() {
        for bad in ["a b", "$HOME", "a;b", "`a`", "a'b", "a\"b", "a\\b", "a\nb", "ä"] {
            assert!(words(&[("X", bad)]).is_empty(), "{bad}");
        }
    }
}
