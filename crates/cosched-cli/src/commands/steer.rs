//! The commands that change something, and `wait`.

use super::status;
use crate::args::{ChangeClass, ChangePolicy, Cli, Kill};
use crate::format;
use crate::jobs::{connect, for_each};
use crate::out::{Failure, print, print_json, say};
use cosched_api::{ClassRequest, Client, ClientError, Job, JobState, KillRequest, Policy, PolicyRequest};
use std::time::Duration;

/// Less than the daemon's limit for one poll.
const POLL_TIME: Duration = Duration::from_secs(50);
const GRACE: Duration = Duration::from_secs(5);
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// `cosched suspend JOB…`.
pub(crate) fn suspend(cli: &Cli, words: &[String]) -> Result<u8, Failure> {
    each(cli, words, Client::suspend)
}

/// `cosched resume JOB…`.
pub(crate) fn resume(cli: &Cli, words: &[String]) -> Result<u8, Failure> {
    each(cli, words, Client::resume)
}

/// `cosched kill JOB…`.
pub(crate) fn kill(cli: &Cli, options: &Kill) -> Result<u8, Failure> {
    let request = kill_request(options);
    each(cli, &options.jobs, |client, id| client.kill(id, &request))
}

fn kill_request(options: &Kill) -> KillRequest {
    let signal = if options.nine { SIGKILL } else { options.signal.unwrap_or(SIGTERM) };
    let usual = (options.signal.is_none() && !options.nine).then_some(GRACE);
    let grace = options.grace.or(usual);
    KillRequest { signal, grace_ms: grace.and_then(|grace| u64::try_from(grace.as_millis()).ok()) }
}

/// `cosched class JOB… CLASS`.
pub(crate) fn class(cli: &Cli, options: &ChangeClass) -> Result<u8, Failure> {
    let request = ClassRequest { class: options.class };
    each(cli, &options.jobs, |client, id| client.set_class(id, &request))
}

/// `cosched policy`.
pub(crate) fn policy(cli: &Cli, options: &ChangePolicy) -> Result<u8, Failure> {
    let policy = Policy::ALL.into_iter().find(|p| options.policy.as_deref() == Some(p.name()));
    let slot_length_ms = options.slot.map(|slot| u64::try_from(slot.as_millis()).unwrap_or(u64::MAX));
    let request = PolicyRequest { policy, sharing: options.sharing, slot_length_ms, ceiling: options.ceiling };
    if !options.job.is_empty() {
        return each(cli, &options.job, |client, id| client.set_job_policy(id, &request));
    }
    if options.policy.as_deref() == Some("default") {
        let why = "the machine's policy is the default that jobs follow";
        return Err(Failure::explained(2, "`default` needs --job", why, "cosched policy default --job JOB"));
    }
    let mut client = connect(cli)?;
    let nothing = request == PolicyRequest::default();
    let status = if nothing { client.status()? } else { client.set_policy(&request)? };
    if cli.json {
        print_json(&status)?;
    } else if nothing {
        print(&format!("{}\n", status::policy(&status)))?;
    } else {
        say(&format!("now {}", status::policy(&status)));
    }
    Ok(0)
}

/// `cosched wait JOB…`: the exit code is the first of the jobs' that is not 0.
pub(crate) fn wait(cli: &Cli, words: &[String]) -> Result<u8, Failure> {
    for_each(cli, words, |client, id| {
        let job = until_ended(client, id)?;
        if cli.json {
            print_json(&job)?;
        }
        match job.exit {
            Some(exit) => Ok(crate::run::shell_code(exit)),
            None => Err(Failure::other(format!(
                "job {id} is over ({}), but nobody saw how it ended",
                format::state(job.state)
            ))),
        }
    })
}

fn until_ended(client: &mut Client, id: u64) -> Result<Job, ClientError> {
    loop {
        let job = client.wait(id, POLL_TIME)?;
        if matches!(job.state, JobState::Ended | JobState::Lost) {
            return Ok(job);
        }
        // So that a daemon that answers at once cannot make this busy.
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One request a job; the answers are printed only as JSON.
fn each(
    cli: &Cli,
    words: &[String],
    mut request: impl FnMut(&mut Client, u64) -> Result<Job, ClientError>,
) -> Result<u8, Failure> {
    for_each(cli, words, |client, id| {
        let job = request(client, id)?;
        if cli.json {
            print_json(&job)?;
        }
        Ok(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kill_has_the_grace_of_its_kind() {
        let kill = |signal, grace, nine| kill_request(&Kill { signal, grace, nine, jobs: Vec::new() });
        assert_eq!(kill(None, None, false), KillRequest { signal: 15, grace_ms: Some(5000) });
        assert_eq!(kill(Some(10), None, false), KillRequest { signal: 10, grace_ms: None });
        assert_eq!(kill(None, None, true), KillRequest { signal: 9, grace_ms: None });
        let second = Some(Duration::from_secs(1));
        assert_eq!(kill(Some(2), second, false), KillRequest { signal: 2, grace_ms: Some(1000) });
    }
}
