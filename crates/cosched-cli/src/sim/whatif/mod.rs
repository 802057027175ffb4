//! `cosched sim whatif`: what the jobs of the running daemon will do, under its policy and under others; and how right that was.

mod checked;
mod kept;
mod look;
mod text;

use super::progress::watch;
use crate::bench::policy::Choice;
use crate::context::Context;
use crate::format::{duration_ms, now_unix_ms};
use crate::jobs;
use crate::model::machines;
use crate::out::{EXIT_REFUSED, Failure, print, print_json, say};
use clap::Args;
use cosched_api::{Client, parse};
use cosched_study::live::costs;
use cosched_study::whatif::{Predicted, Setting, predict};
use kept::{Kept, KeptJob};
use look::{Looked, Snapshot};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The name of the setting without a change.
const NOW: &str = "now";
/// Longer than anybody should trust a prediction.
const TIME: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);

/// Options of `cosched sim whatif`.
#[derive(Args, Debug)]
#[command(after_help = super::help::WHATIF)]
pub(crate) struct WhatIf {
    /// Show only these jobs, by id or name; all running ones are simulated
    #[arg(value_name = "JOB", conflicts_with = "check")]
    jobs: Vec<String>,

    /// The time that is predicted, as 30s or 5min
    #[arg(long = "for", value_name = "TIME", value_parser = seconds, default_value = "60s")]
    time: Duration,

    /// How long the jobs are looked at first; it is extended to whole cycles of the gangs
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "10s")]
    look: Duration,

    /// The policies to compare with the present one, as of `cosched bench slowdown`
    #[arg(
        long,
        visible_alias = "policy",
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "gang-soft,gang-strict,local,local+spin-block,auto,linux"
    )]
    policies: Vec<String>,

    /// Profiles from `cosched record`, for the jobs with the same command: they tell how much there is to do (may be repeated)
    #[arg(long, value_name = "FILE")]
    profile: Vec<PathBuf>,

    /// The machine's costs: a file of `cosched model calibrate`, or the name of a shipped machine
    #[arg(long, value_name = "MACHINE")]
    machine: Option<String>,

    /// Stay until the time has passed, and say how right the prediction was
    #[arg(long)]
    stay: bool,

    /// Predict nothing: say how right earlier predictions were whose time has passed
    #[arg(long, conflicts_with_all = ["stay", "profile", "machine"])]
    check: bool,

    /// Write a page with a calibration plot of all predictions that were checked
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let time = parse::duration(text).map_err(|error| error.to_string())?;
    if TIME.contains(&time) { Ok(time) } else { Err("give 1 s to 1 hour, as 30s or 5min".to_owned()) }
}

pub(crate) fn whatif(context: &Context, options: &WhatIf) -> Result<u8, Failure> {
    let mut client = jobs::connect(context)?;
    let file = kept::file();
    if options.check {
        let done = checked::overdue(&mut client, &file)?;
        return report(context, options, &file, &done);
    }
    let settings = settings(&options.policies)?;
    let shown = options.jobs.iter().map(|word| jobs::find(&mut client, word)).collect::<Result<Vec<u64>, Failure>>()?;
    let looked = look::look(&mut client, options.look, &options.profile)?;
    let (kept, begin) = forecast(&mut client, options, &settings, &looked)?;
    kept::append(&file, &kept::Line::Predicted(kept.clone()))?;
    looked.notes.iter().for_each(|note| say(note));
    let names: Vec<&str> = settings.iter().map(|(name, _)| name.as_str()).collect();
    let asked = kept.only(&shown);
    context.give(&asked, || text::page(&asked, &names))?;
    if !options.stay {
        return Ok(0);
    }
    let end = begin + options.time;
    if !options.quiet {
        say(&format!("waiting {} to see what happens", duration_ms(options.time.as_millis() as u64)));
    }
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
    let after = Snapshot::take(&mut client)?;
    let done = checked::after(&mut client, &kept, Some(&after))?;
    kept::append(&file, &kept::Line::Checked(done.clone()))?;
    report(context, options, &file, &[done])
}

/// The present, and the policies.
fn settings(names: &[String]) -> Result<Vec<(String, Setting)>, Failure> {
    let mut all = vec![(NOW.to_owned(), Setting::Present)];
    for choice in Choice::parse_all(names)? {
        let strategy = choice.strategy().ok_or_else(|| {
            let what = format!("{} cannot be simulated", choice.name);
            Failure::explained(2, &what, "the simulator has no such policy", "leave it out of --policies")
        })?;
        all.push((choice.name, Setting::As(strategy)));
    }
    Ok(all)
}

/// Predicts, and makes of it what is kept. The time begins when all is computed, because that takes CPU time.
fn forecast(
    client: &mut Client,
    options: &WhatIf,
    settings: &[(String, Setting)],
    looked: &Looked,
) -> Result<(Kept, Instant), Failure> {
    let mut machine = looked.machine;
    if let Some(name) = &options.machine {
        machine.costs = Some(costs(&machines::find(name)?)?);
    }
    let each: Vec<Setting> = settings.iter().map(|(_, setting)| *setting).collect();
    let observed: Vec<_> = looked.jobs.iter().map(|job| job.observed.clone()).collect();
    let all = predict(&machine, &observed, &each, options.time.as_secs_f64(), &mut watch(options.quiet))?;
    let begin = Snapshot::take(client)?;
    let computed_s = (begin.at - looked.last.at).as_secs_f64();
    let from_now = |predicted: Predicted| Predicted {
        ends_s: predicted.ends_s.map(|end| (end - computed_s).max(0.0)),
        ..predicted
    };
    let job = |(place, job): (usize, &look::JobLooked)| {
        let now = begin.find(job.job.id)?;
        let each = settings.iter().zip(&all).map(|((name, _), each)| (name.clone(), from_now(each[place])));
        Some(KeptJob {
            id: now.id,
            name: now.name.clone(),
            submitted_unix_ms: now.submitted_unix_ms,
            cpu_us: look::cpu_us(now),
            spin_ms: look::spin_ms(now),
            settings: look::settings(now),
            predicted: each.collect(),
        })
    };
    let at_unix_ms = now_unix_ms().saturating_sub(begin.at.elapsed().as_millis() as u64);
    let kept = Kept {
        at_unix_ms,
        for_s: options.time.as_secs_f64(),
        look_s: looked.seconds,
        socket: client.path().display().to_string(),
        policy: looked.policy.clone(),
        cpus: machine.cpus,
        others: machine.others,
        jobs: looked.jobs.iter().enumerate().filter_map(job).collect(),
    };
    Ok((kept, begin.at))
}

fn report(context: &Context, options: &WhatIf, file: &std::path::Path, done: &[kept::Done]) -> Result<u8, Failure> {
    let past = kept::read(file)?;
    if context.json {
        done.iter().try_for_each(print_json)?;
    } else if done.is_empty() && past.done.is_empty() {
        let why = "no prediction was made whose time has passed";
        return Err(Failure::explained(
            EXIT_REFUSED,
            "there is nothing to check",
            why,
            "cosched sim whatif --for 60s; then --check",
        ));
    } else {
        print(&text::checked(done, &past))?;
    }
    if let Some(html) = &options.html {
        crate::target::Target::prepare(html)?.write(&text::calibration_page(&past))?;
    }
    Ok(0)
}
