//! After the command's end: processes that it left are still the job.

use super::follow::Follow;
use super::is_over;
use super::signals::Signals;
use super::watch::wait;
use crate::args::Leftovers;
use crate::out::say;
use cosched_api::{Client, Job, KillRequest};
use std::time::{Duration, Instant};

/// Jobs whose last processes end within this time get no message.
const SILENT_FOR: Duration = Duration::from_secs(2);
/// What `--leftovers kill` gives processes between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long the launcher waits for a daemon that went away before it gives up.
const PATIENCE: Duration = Duration::from_secs(10);
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// Waits until the job's last process has ended, or ends them first.
pub(crate) fn finish(what: Leftovers, client: &mut Client, signals: &Signals, job: &Job) {
    if what == Leftovers::Kill {
        let grace_ms = u64::try_from(GRACE.as_millis()).ok();
        if let Err(error) = client.kill(job.id, &KillRequest { signal: SIGTERM, grace_ms }) {
            say(&format!("the processes that job {} left could not be ended: {error}", job.id));
        }
    }
    // Signals of the person go to all that is left, as the command is gone.
    let Ok(mut killer) = Client::connect(client.path()) else { return };
    let mut follow = Follow::new(client, job);
    let started = Instant::now();
    let (mut said, mut interrupts) = (false, 0);
    while !follow.is_over() {
        let message_due = (!said).then_some(started + SILENT_FOR);
        let Ok(ready) = wait(signals, None, &follow, message_due) else { return };
        while let Some(signal) = signals.next() {
            let _ = killer.kill(job.id, &KillRequest { signal: signal.number, grace_ms: None });
            interrupts += u32::from(signal.number == SIGINT);
        }
        if interrupts > 1 {
            say(&format!("job {} goes on without this terminal; `cosched kill {}` ends it", job.id, job.id));
            return;
        }
        follow.step(ready.daemon);
        if follow.away_for().is_some_and(|time| time >= PATIENCE) {
            say(&format!("the daemon has gone; processes of job {} may be left", job.id));
            return;
        }
        if !said && started.elapsed() >= SILENT_FOR {
            said = true;
            tell(&mut killer, job);
        }
    }
}

fn tell(client: &mut Client, job: &Job) {
    let Ok(now) = client.job(job.id) else { return };
    if now.restarts > 0 || now.state == cosched_api::JobState::Waiting {
        let id = job.id;
        return say(&format!(
            "a node of job {id} was lost; it is started anew (`cosched show {id}`, `cosched log -f {id}`)"
        ));
    }
    if is_over(&now) {
        return;
    }
    let count = match now.processes {
        Some(1) => "1 process that it left".to_owned(),
        Some(count) => format!("{count} processes that it left"),
        None => "processes that it left".to_owned(),
    };
    say(&format!("the command has ended; waiting for {count} (`cosched kill {}` ends them)", job.id));
}
