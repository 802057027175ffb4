//! The commands that change something, and `wait`.

use super::each::each;
use super::options::{ChangeClass, ChangePolicy, ChangeShare, Kill, Steer};
use super::select::change;
use super::status;
use crate::context::Context;
use crate::format;
use crate::jobs::{connect, for_each, patiently};
use crate::out::{Failure, print, print_json, say};
use cosched_api::{
    Class, ClassRequest, ClassShares, Client, ClientError, Job, JobState, KillRequest, Policy, PolicyRequest,
    ShareRequest,
};
use std::time::Duration;

/// Shorter than the daemon's limit for one poll.
const POLL_TIME: Duration = Duration::from_secs(50);
const GRACE: Duration = Duration::from_secs(5);
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// `cosched suspend JOB…`.
pub(crate) fn suspend(context: &Context, options: &Steer) -> Result<u8, Failure> {
    let fit = [JobState::Running, JobState::Asleep, JobState::Dropped];
    change(context, options, &fit, "suspend", Client::suspend)
}

/// `cosched resume JOB…`.
pub(crate) fn resume(context: &Context, options: &Steer) -> Result<u8, Failure> {
    let fit = [JobState::Suspended, JobState::Dropped];
    change(context, options, &fit, "resume", Client::resume)
}

/// `cosched release JOB…`.
pub(crate) fn release(context: &Context, words: &[String]) -> Result<u8, Failure> {
    each(context, words, Client::release)
}

/// `cosched kill JOB…`.
pub(crate) fn kill(context: &Context, options: &Kill) -> Result<u8, Failure> {
    let request = kill_request(options);
    let fit = JobState::ALL.into_iter().filter(|state| !state.has_ended());
    let deed = format!("send {} to", format::signal(request.signal));
    change(context, &options.which, &fit.collect::<Vec<_>>(), &deed, |client, id| client.kill(id, &request))
}

fn kill_request(options: &Kill) -> KillRequest {
    let signal = if options.nine { SIGKILL } else { options.signal.unwrap_or(SIGTERM) };
    let usual = (options.signal.is_none() && !options.nine).then_some(GRACE);
    let grace = options.grace.or(usual);
    KillRequest { signal, grace_ms: grace.and_then(|grace| u64::try_from(grace.as_millis()).ok()), here: false }
}

/// `cosched class JOB… CLASS`.
pub(crate) fn class(context: &Context, options: &ChangeClass) -> Result<u8, Failure> {
    let request = ClassRequest { class: options.class };
    each(context, &options.jobs, |client, id| client.set_class(id, &request))
}

/// `cosched share JOB… PART`.
pub(crate) fn share(context: &Context, options: &ChangeShare) -> Result<u8, Failure> {
    let request = ShareRequest { share_max: options.share.0 };
    let code = each(context, &options.jobs, |client, id| client.set_share(id, &request))?;
    if let (Some(share), false) = (options.share.0, context.json) {
        say_of_ceiling(&mut connect(context)?, share);
    }
    Ok(code)
}

/// A ceiling below a share holds instead of it, which nothing else would say.
fn say_of_ceiling(client: &mut Client, share: f64) {
    let cluster = client.status().ok().and_then(|status| status.cluster);
    let Some(cluster) = cluster.filter(|cluster| cluster.ceiling < share) else { return };
    let of = if cluster.alone { "all gangs" } else { "gangs that span nodes" };
    let ceiling = format::percent(cluster.ceiling);
    say(&format!(
        "the ceiling of {of} is {ceiling}, and the smaller one holds (`cosched policy --ceiling` changes it)"
    ));
}

/// `cosched policy`.
pub(crate) fn policy(context: &Context, options: &ChangePolicy) -> Result<u8, Failure> {
    let policy = Policy::ALL.into_iter().find(|p| options.policy.as_deref() == Some(p.name()));
    let slot_length_ms = options.slot.map(|slot| u64::try_from(slot.as_millis()).unwrap_or(u64::MAX));
    let request = PolicyRequest {
        policy,
        sharing: options.sharing,
        slot_length_ms,
        ceiling: options.ceiling,
        node_dead_after_ms: options.node_dead_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
        packing: options.packing,
        rows_max: options.rows,
        ..PolicyRequest::default()
    };
    if !options.job.is_empty() {
        return each(context, &options.job, |client, id| client.set_job_policy(id, &request));
    }
    if options.policy.as_deref() == Some("default") {
        let why = "jobs follow the machine's policy by default; the machine itself has no default to follow";
        return Err(Failure::explained(2, "`default` needs --job", why, "cosched policy default --job JOB"));
    }
    let mut client = connect(context)?;
    let request = with_shares(request, options, &mut client)?;
    let nothing = request == PolicyRequest::default();
    let socket = client.path().to_owned();
    let status = if nothing { client.status()? } else { patiently(&socket, || client.set_policy(&request))? };
    if context.json {
        print_json(&status)?;
    } else if nothing {
        print(&format!("{}\n", status::policy_of_all(&status)))?;
    } else {
        say(&format!("now {}", status::policy_of_all(&status)));
    }
    Ok(0)
}

/// Changes the shares of the named classes; the others keep theirs.
fn with_shares(
    mut request: PolicyRequest,
    options: &ChangePolicy,
    client: &mut Client,
) -> Result<PolicyRequest, Failure> {
    if options.shares.is_empty() && options.off_hours.is_empty() {
        return Ok(request);
    }
    let present = client.status()?.cluster.and_then(|cluster| Some((cluster.shares?, cluster.off_hours?)));
    // Without a cluster the daemon refuses the request.
    let nothing = ClassShares { express: 1, interactive: 1, batch: 1, standby: 1 };
    let (working, off) = present.unwrap_or((nothing, nothing));
    let over = |present, changes: &[(Class, u32)]| (!changes.is_empty()).then(|| over(present, changes));
    (request.shares, request.off_hours) = (over(working, &options.shares), over(off, &options.off_hours));
    Ok(request)
}

fn over(mut shares: ClassShares, changes: &[(Class, u32)]) -> ClassShares {
    for (class, share) in changes {
        *match class {
            Class::Express => &mut shares.express,
            Class::Interactive => &mut shares.interactive,
            Class::Batch => &mut shares.batch,
            Class::Standby => &mut shares.standby,
        } = *share;
    }
    shares
}

/// `cosched wait JOB…`: the exit code is the first of the jobs' that is not 0.
pub(crate) fn wait(context: &Context, words: &[String]) -> Result<u8, Failure> {
    for_each(context, words, |client, id| {
        let job = until_ended(client, id)?;
        if context.json {
            print_json(&job)?;
        }
        exit_code(&job)
    })
}

/// The exit code of an ended job, as a shell says it.
pub(super) fn exit_code(job: &Job) -> Result<u8, Failure> {
    let unknown = || format!("job {} has ended ({}), but its exit status is unknown", job.id, job.state.name());
    job.exit.map(crate::run::shell_code).ok_or_else(|| Failure::other(unknown()))
}

fn until_ended(client: &mut Client, id: u64) -> Result<Job, ClientError> {
    loop {
        let job = client.wait(id, POLL_TIME)?;
        if job.state.has_ended() {
            return Ok(job);
        }
        // So that a daemon that answers at once does not make this a busy loop.
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_are_not_named_stay() {
        let present = ClassShares { express: 9, interactive: 8, batch: 7, standby: 6 };
        let changed = over(present, &[(Class::Batch, 1), (Class::Express, 2)]);
        assert_eq!(changed, ClassShares { express: 2, interactive: 8, batch: 1, standby: 6 });
    }

    #[test]
    fn kill_has_the_grace_of_its_kind() {
        let kill = |signal, grace, nine| {
            let which = Steer { selection: Default::default(), jobs: Vec::new() };
            kill_request(&Kill { signal, grace, nine, which })
        };
        assert_eq!(kill(None, None, false), KillRequest { signal: 15, grace_ms: Some(5000), here: false });
        assert_eq!(kill(Some(10), None, false), KillRequest { signal: 10, grace_ms: None, here: false });
        assert_eq!(kill(None, None, true), KillRequest { signal: 9, grace_ms: None, here: false });
        let second = Some(Duration::from_secs(1));
        assert_eq!(kill(Some(2), second, false), KillRequest { signal: 2, grace_ms: Some(1000), here: false });
    }
}
