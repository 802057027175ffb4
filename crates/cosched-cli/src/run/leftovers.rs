//! After the command's end: processes that it left still belong to the job.

use super::follow::Follow;
use super::options::Leftovers;
use super::signals::Signals;
use super::watch::wait;
use crate::jobs::without_store;
use crate::out::say;
use cosched_api::{Client, Job, KillRequest};
use std::time::{Duration, Instant};

/// Jobs whose last processes end within this time get no message.
const SILENT_FOR: Duration = Duration::from_secs(2);
/// What `--leftovers kill` gives processes between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long the launcher waits for an unavailable daemon, or for the cluster's store, before it gives up.
const PATIENCE: Duration = Duration::from_secs(10);
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// Waits until the job's last process has ended, or ends them first.
pub(crate) fn finish(what: Leftovers, client: &mut Client, signals: &Signals, job: &Job) {
    if what == Leftovers::Kill {
        let grace_ms = u64::try_from(GRACE.as_millis()).ok();
        if let Err(error) = client.kill(job.id, &KillRequest { signal: SIGTERM, grace_ms, here: false }) {
            say(&format!("the remaining processes of job {} could not be ended: {error}", job.id));
        }
    }
    // The user's signals are passed to all remaining processes, since the command has ended.
    let Ok(mut killer) = Client::connect(client.path()) else { return };
    let mut follow = Follow::new(client, job, Duration::ZERO);
    let started = Instant::now();
    let mut looks = [SILENT_FOR, PATIENCE].into_iter().peekable();
    let mut interrupts = 0;
    while !follow.is_over() {
        let message_due = looks.peek().map(|after| started + *after);
        let Ok(ready) = wait(signals, None, &follow, message_due) else { return };
        while let Some(signal) = signals.next() {
            let _ = killer.kill(job.id, &KillRequest { signal: signal.number, grace_ms: None, here: false });
            interrupts += u32::from(signal.number == SIGINT);
        }
        if interrupts > 1 {
            say(&format!("job {} continues in the background; `cosched kill {}` ends it", job.id, job.id));
            return;
        }
        follow.step(ready.daemon);
        if follow.away_for().is_some_and(|time| time >= PATIENCE) {
            say(&format!("the daemon is gone; processes of job {} may remain", job.id));
            return;
        }
        if let Some(after) = looks.next_if(|after| started.elapsed() >= *after)
            && tell(&mut killer, job, after == PATIENCE) == Waits::InVain
        {
            return;
        }
    }
}

/// Whether it is worthwhile to keep waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    On,
    InVain,
}

/// Says what the launcher waits for; a second time only if the store is still unavailable.
fn tell(client: &mut Client, job: &Job, again: bool) -> Waits {
    let Ok(now) = client.job(job.id) else { return Waits::On };
    let id = job.id;
    if now.state.has_ended() {
        return Waits::On;
    }
    if now.processes.unwrap_or(0) == 0
        && let Some(cluster) = without_store(client)
    {
        let (then, waits) = match again {
            false => ("waiting for it".to_owned(), Waits::On),
            true => (format!("the end of job {id} is kept, and written when it is back"), Waits::InVain),
        };
        say(&format!("the command has ended; the store of cluster {cluster} does not answer: {then}"));
        return waits;
    }
    if again {
        return Waits::On;
    }
    if now.restarts > 0 || now.state == cosched_api::JobState::Waiting {
        say(&format!("a node of job {id} was lost; the job is restarted (`cosched show {id}`, `cosched log -f {id}`)"));
        return Waits::On;
    }
    let count = match now.processes {
        Some(1) => "1 remaining process".to_owned(),
        Some(count) => format!("{count} remaining processes"),
        None => "remaining processes".to_owned(),
    };
    say(&format!("the command has ended; waiting for {count} (`cosched kill {id}` ends them)"));
    Waits::On
}
