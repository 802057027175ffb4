//! What became of predictions: by the counters at the end of their time, or later by the daemon's samples of the last hour.

use super::kept::{Done, DoneJob, Kept, KeptJob, Line, append, read};
use super::look::{Snapshot, cpu_us, policy, settings, spin_ms};
use crate::format::{duration_ms, now_unix_ms};
use crate::out::{Failure, say};
use cosched_api::{Client, Job, Samples};
use cosched_study::whatif::{Found, check};
use std::path::Path;

/// Checks this daemon's predictions whose time has passed.
pub(super) fn overdue(client: &mut Client, file: &Path) -> Result<Vec<Done>, Failure> {
    let socket = client.path().display().to_string();
    let mut all = Vec::new();
    for kept in read(file)?.open.iter().filter(|kept| kept.socket == socket) {
        let left_ms = kept.end_unix_ms().saturating_sub(now_unix_ms());
        if left_ms > 0 {
            say(&format!("a prediction's time passes in {}", duration_ms(left_ms)));
            continue;
        }
        let done = after(client, kept, None)?;
        append(file, &Line::Checked(done.clone()))?;
        all.push(done);
    }
    Ok(all)
}

/// Checks a prediction, with the counters at the end of its time, if these were read.
pub(super) fn after(client: &mut Client, kept: &Kept, end: Option<&Snapshot>) -> Result<Done, Failure> {
    let jobs = client.jobs(true)?.jobs;
    let samples = client.samples()?;
    let mut done = Done {
        at_unix_ms: kept.at_unix_ms,
        socket: kept.socket.clone(),
        policy: kept.policy.clone(),
        changed: changes(client, kept, &jobs)?,
        jobs: Vec::new(),
    };
    for job in &kept.jobs {
        let now = jobs.iter().find(|now| now.id == job.id && now.submitted_unix_ms == job.submitted_unix_ms);
        let found = now.and_then(|now| found(kept, job, now, end, &samples));
        let predicted = job.predicted.get(super::NOW);
        match found.zip(predicted).and_then(|(found, predicted)| check(predicted, &found)) {
            Some(checked) => done.jobs.push(DoneJob { id: job.id, name: job.name.clone(), checked }),
            None => done.changed.push(format!("what job {} did is not known any more", job.id)),
        }
    }
    Ok(done)
}

/// What is not as it was when it was predicted.
fn changes(client: &mut Client, kept: &Kept, jobs: &[Job]) -> Result<Vec<String>, Failure> {
    let now = policy(&client.status()?);
    let mut changed = Vec::new();
    if now != kept.policy {
        changed.push(format!("the machine's policy is {now}"));
    }
    let during = kept.at_unix_ms..kept.end_unix_ms();
    for job in jobs {
        let known = kept.jobs.iter().find(|other| other.id == job.id);
        let ended = job.ended_unix_ms.filter(|at| during.contains(at));
        match known {
            None if job.started_unix_ms.is_some_and(|at| during.contains(&at)) => {
                changed.push(format!("job {} began", job.id));
            }
            Some(known) if job.ended_unix_ms.is_none() && settings(job) != known.settings => {
                changed.push(format!("job {} is {}", job.id, settings(job)));
            }
            Some(known) if ended.is_some() && known.predicted.get(super::NOW).is_none_or(|p| p.ends_s.is_none()) => {
                changed.push(format!("job {} ended", job.id));
            }
            _ => (),
        }
    }
    Ok(changed)
}

/// What a job did in the time, if that can still be known.
fn found(kept: &Kept, job: &KeptJob, now: &Job, end: Option<&Snapshot>, samples: &Samples) -> Option<Found> {
    let since = |now: &Job| cpu_us(now).saturating_sub(job.cpu_us) as f64 / 1e6;
    let ended = now.ended_unix_ms.filter(|at| *at <= kept.end_unix_ms());
    let ended_s = ended.map(|at| at.saturating_sub(kept.at_unix_ms) as f64 / 1e3);
    if let Some(now) = end.and_then(|end| end.find(job.id)) {
        let spun = job.spin_ms.zip(spin_ms(now)).map(|(was, is)| is.saturating_sub(was) as f64 / 1e3);
        return Some(Found { cpu_s: since(now), work_s: spun.map(|spun| since(now) - spun), ended_s: None });
    }
    if ended_s.is_some() {
        return Some(Found { cpu_s: since(now), work_s: None, ended_s });
    }
    let cpu_s = sampled_s(samples, job.id, kept)?;
    Some(Found { cpu_s, work_s: None, ended_s: None })
}

/// The CPU time of a job in the predicted time; None if the samples do not reach back that far.
fn sampled_s(samples: &Samples, id: u64, kept: &Kept) -> Option<f64> {
    let begin = kept.at_unix_ms;
    samples.samples.first().filter(|first| first.unix_ms <= begin + samples.period_ms)?;
    let during = samples.samples.iter().filter(|sample| (begin..kept.end_unix_ms()).contains(&sample.unix_ms));
    let (mut sum, mut count) = (0.0, 0_u32);
    for sample in during {
        count += 1;
        sum += sample.jobs.iter().find(|job| job.id == id).map_or(0.0, |job| job.received);
    }
    (count > 0).then(|| sum / f64::from(count) * f64::from(kept.cpus) * kept.for_s)
}
