//! Looks at the daemon's jobs for some seconds.

use crate::format::now_unix_ms;
use crate::out::{EXIT_NO_JOB, EXIT_REFUSED, Failure};
use crate::record::Looks;
use cosched_api::{Class, Client, Job, JobState, Policy, Status, WaitMode};
use cosched_sim::general::Own;
use cosched_sim::{Sharing, SlotShare, Wait};
use cosched_study::profile::Profile;
use cosched_study::whatif::{Machine, Observed, Waits, rest_of};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Threads with less than this part of the busiest one's CPU time are helpers.
const BUSY_FROM: f64 = 0.2;

/// A job that uses less in a second sleeps: to be stopped and continued takes some, too.
const ASLEEP_BELOW_US: f64 = 1000.0;

/// The jobs at one time.
pub(super) struct Snapshot {
    pub(super) at: Instant,
    pub(super) jobs: Vec<Job>,
}

impl Snapshot {
    /// Asks the daemon.
    pub(super) fn take(client: &mut Client) -> Result<Snapshot, Failure> {
        let before = Instant::now();
        let jobs = client.jobs(false)?.jobs;
        // Its counters were read in between.
        Ok(Snapshot { at: before + before.elapsed() / 2, jobs })
    }

    pub(super) fn find(&self, id: u64) -> Option<&Job> {
        self.jobs.iter().find(|job| job.id == id)
    }
}

/// What was seen.
pub(super) struct Looked {
    pub(super) machine: Machine,
    /// The machine's settings, for people.
    pub(super) policy: String,
    pub(super) last: Snapshot,
    pub(super) seconds: f64,
    pub(super) jobs: Vec<JobLooked>,
    pub(super) notes: Vec<String>,
}

/// A job as it is at the end of the look.
pub(super) struct JobLooked {
    pub(super) job: Job,
    pub(super) observed: Observed,
}

/// Looks for this time, or a little longer.
pub(super) fn look(client: &mut Client, time: Duration, profiles: &[PathBuf]) -> Result<Looked, Failure> {
    let profiles = profiles.iter().map(|path| crate::profile::read(path)).collect::<Result<Vec<Profile>, Failure>>()?;
    let status = client.status()?;
    let first = Snapshot::take(client)?;
    if !first.jobs.iter().any(is_seen) {
        let hint = "start some: cosched run --detach -- COMMAND";
        return Err(Failure::explained(
            EXIT_NO_JOB,
            "there is no job to predict",
            "no job runs on this node now",
            hint,
        ));
    }
    std::thread::sleep(whole_cycles(&status, time));
    let last = Snapshot::take(client)?;
    let seconds = (last.at - first.at).as_secs_f64();
    let mut looked = Looked {
        machine: machine(&status),
        policy: policy(&status),
        seconds,
        jobs: Vec::new(),
        notes: Vec::new(),
        last,
    };
    for before in first.jobs.iter().filter(|job| is_seen(job)) {
        match looked.last.find(before.id).filter(|now| is_seen(now)) {
            None => looked.notes.push(format!("job {} ended or was stopped while it was looked at", before.id)),
            Some(now) if (cpu_us(now).saturating_sub(cpu_us(before)) as f64) < ASLEEP_BELOW_US * seconds => {
                looked
                    .notes
                    .push(format!("job {} used no CPU time to speak of: nothing is known of it yet", before.id));
            }
            Some(now) => {
                let observed = observed(before, now, seconds);
                looked.jobs.push(JobLooked { job: now.clone(), observed });
            }
        }
    }
    let begun = looked.last.jobs.iter().filter(|job| is_seen(job) && first.find(job.id).is_none());
    looked.notes.extend(begun.map(|job| format!("job {} has just begun: nothing is known of it yet", job.id)));
    if looked.jobs.is_empty() {
        let (why, hint) = (looked.notes.join("; "), "try again when jobs run, or look longer: --look 30s");
        return Err(Failure::explained(EXIT_REFUSED, "nothing was observed that could be predicted", &why, hint));
    }
    looked.machine.others = others(client, &status, &looked)?;
    for profile in &profiles {
        recorded(client, profile, &mut looked)?;
    }
    Ok(looked)
}

/// It runs, and this node can tell what it uses.
fn is_seen(job: &Job) -> bool {
    job.state == JobState::Running && !job.stopped && job.use_of_nodes.is_none()
}

/// Gangs are seen in whole cycles.
fn whole_cycles(status: &Status, time: Duration) -> Duration {
    let cycle_ms = u64::from(status.matrix.cycle_slots) * status.slot_length_ms;
    let ms = time.as_millis() as u64;
    Duration::from_millis(if cycle_ms > 0 { ms.div_ceil(cycle_ms) * cycle_ms } else { ms })
}

fn machine(status: &Status) -> Machine {
    let sharing = match status.sharing {
        cosched_api::Sharing::Strict => Sharing::Strict,
        cosched_api::Sharing::Paired => Sharing::Paired,
        cosched_api::Sharing::Soft => Sharing::Soft,
    };
    let ceiling = status.cluster.as_ref().map_or(1.0, |cluster| cluster.ceiling);
    Machine {
        cpus: status.cpus.len() as u32,
        slot_ns: status.slot_length_ms * 1_000_000,
        policy: if status.policy == Policy::Gang { cosched_sim::Policy::Gang } else { cosched_sim::Policy::Local },
        sharing,
        ceiling_permille: (ceiling * 1000.0).round().clamp(1.0, 1000.0) as u32,
        others: 0.0,
        costs: None,
    }
}

pub(super) fn policy(status: &Status) -> String {
    match status.policy {
        Policy::Gang => format!("gang, {} sharing, slots of {} ms", status.sharing.name(), status.slot_length_ms),
        other => other.name().to_owned(),
    }
}

pub(super) fn cpu_us(job: &Job) -> u64 {
    job.r#use.as_ref().map_or(job.cpu_time_ms * 1000, |used| used.cpu_time_us)
}

/// The time spent spinning, where it is measured.
pub(super) fn spin_ms(job: &Job) -> Option<u64> {
    job.waiting.as_ref().filter(|waiting| waiting.waits > 0).map(|waiting| waiting.spin_ms)
}

/// What was set for a job: when it changes, its prediction no longer holds.
pub(super) fn settings(job: &Job) -> String {
    let share = job.share_max.map_or(String::new(), |share| format!(", share {share}"));
    format!("{}, {}{share}", in_force(job).name(), job.class.name())
}

/// Under auto what that has chosen.
fn in_force(job: &Job) -> Policy {
    job.chosen.as_ref().filter(|_| job.policy == Policy::Auto).map_or(job.policy, |chosen| chosen.policy)
}

fn observed(before: &Job, now: &Job, seconds: f64) -> Observed {
    let outside = |job: &Job| job.outside_ms.unwrap_or(0);
    let waits = before.waiting.as_ref().zip(now.waiting.as_ref()).map(|(before, now)| Waits {
        polls: now.polls.saturating_sub(before.polls),
        waits: now.waits.saturating_sub(before.waits),
        spin_s: now.spin_ms.saturating_sub(before.spin_ms) as f64 / 1e3,
        block_s: now.block_ms.saturating_sub(before.block_ms) as f64 / 1e3,
    });
    let gang = in_force(now) == Policy::Gang;
    let wait = now.waiting.as_ref().and_then(|waiting| match waiting.mode {
        WaitMode::Busy => Some(Wait::Busy),
        WaitMode::SpinBlock => Some(Wait::SpinBlock),
        WaitMode::SpinYield | WaitMode::Micro => Some(Wait::SpinYield),
        WaitMode::Auto => None,
    });
    Observed {
        cpus: now.cpus,
        tasks: busy_threads(now),
        seconds,
        cpu_s: (cpu_us(now) - cpu_us(before)) as f64 / 1e6,
        outside_s: outside(now).saturating_sub(outside(before)) as f64 / 1e3,
        due: now.share_due.filter(|_| gang),
        waits,
        class: class(now.class),
        own: Own {
            policy: Some(if gang { cosched_sim::Policy::Gang } else { cosched_sim::Policy::Local }),
            slot_share: now.share_max.and_then(|share| SlotShare::new((share * 1000.0).round() as u32)),
            wait,
            ..Own::default()
        },
        limit_s: limit_s(now, now_unix_ms()),
        rest: None,
        done: None,
    }
}

/// When its time limit ends a job. The time for which it was suspended does not count.
fn limit_s(job: &Job, now_unix_ms: u64) -> Option<f64> {
    let (most, started) = job.time_ms_max.zip(job.started_unix_ms)?;
    let ran = now_unix_ms.saturating_sub(started).saturating_sub(job.suspended_ms.unwrap_or(0));
    Some(most.saturating_sub(ran) as f64 / 1e3)
}

/// The threads that use CPU time, of the processes that can be seen; else the processes that wait, or the CPUs.
fn busy_threads(job: &Job) -> u32 {
    let mut looks = Looks::of(u32::try_from(job.pid).unwrap_or(0));
    if job.pid > 0 {
        looks.look();
    }
    let times: Vec<u64> = looks.threads().iter().map(|thread| thread.cpu_ns).collect();
    let most = times.iter().copied().max().unwrap_or(0);
    let busy = times.iter().filter(|ns| **ns > 0 && **ns as f64 >= most as f64 * BUSY_FROM).count();
    let waiting = job.waiting.as_ref().map_or(0, |waiting| waiting.processes);
    match busy {
        0 if waiting > 0 => waiting,
        0 => job.cpus,
        busy => busy as u32,
    }
}

fn class(class: Class) -> cosched_sim::Class {
    match class {
        Class::Express => cosched_sim::Class::Express,
        Class::Interactive => cosched_sim::Class::Interactive,
        Class::Batch => cosched_sim::Class::Batch,
        Class::Standby => cosched_sim::Class::Standby,
    }
}

/// The part of the CPU time that went to processes outside of jobs.
fn others(client: &mut Client, status: &Status, looked: &Looked) -> Result<f64, Failure> {
    let begin_ms = now_unix_ms().saturating_sub((looked.seconds * 1e3) as u64);
    let busy: Vec<f64> =
        client.samples()?.samples.iter().filter(|s| s.unix_ms >= begin_ms).map(|sample| sample.busy).collect();
    let jobs_s: f64 = looked.jobs.iter().map(|job| job.observed.cpu_s).sum();
    let jobs = jobs_s / (status.cpus.len().max(1) as f64 * looked.seconds);
    let mean = busy.iter().sum::<f64>() / busy.len().max(1) as f64;
    Ok((mean - jobs).clamp(0.0, 0.99))
}

/// The jobs with a profile's command continue as it says.
fn recorded(client: &mut Client, profile: &Profile, looked: &mut Looked) -> Result<(), Failure> {
    let program = profile.program()?;
    let all_s: f64 = profile.each.iter().map(|task| task.compute_s + task.message_cpu_s).sum();
    let mut found = false;
    for looked_job in &mut looked.jobs {
        // A list has the beginning of a command only.
        let Ok(job) = client.job(looked_job.job.id) else { continue };
        if job.command != profile.command {
            continue;
        }
        found = true;
        let done = cpu_us(&looked_job.job) as f64 / 1e6 / all_s.max(1e-9);
        match rest_of(&program, profile.tasks, done).filter(|_| done < 1.0) {
            Some(rest) => {
                looked_job.observed.rest = Some((Arc::new(rest), profile.tasks));
                looked_job.observed.done = Some(done);
            }
            None => looked.notes.push(format!(
                "job {} has used more CPU time than its recording has: it is predicted by what was observed",
                job.id
            )),
        }
    }
    if !found {
        let command = crate::format::command_line(&profile.command);
        looked.notes.push(format!("no running job has the command of a profile: {command}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspended_time_is_no_run_time() {
        let text = r#"{"id": 1, "name": "a", "uid": 0, "user": "root", "class": "batch", "policy": "gang", "cpus": 2, "state": "running", "command": [],
            "pid": 0, "submitted_unix_ms": 1000, "started_unix_ms": 2000, "cpu_time_ms": 0, "detached": false, "cgroup": "", "time_ms_max": 60000}"#;
        let job: Job = serde_json::from_str(text).unwrap();
        let suspended = Job { suspended_ms: Some(30_000), ..job.clone() };
        assert_eq!([limit_s(&job, 42_000), limit_s(&suspended, 42_000)], [Some(20.0), Some(50.0)]);
        assert_eq!(limit_s(&Job { time_ms_max: None, ..job }, 42_000), None);
    }
}
