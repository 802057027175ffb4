//! `cosched history`: jobs that have ended, and what they used.

use super::columns::{JobColumn, elapsed_ms, named};
use super::select::Filter;
use crate::context::Context;
use crate::format;
use crate::jobs::connect;
use crate::moment;
use crate::out::{Failure, terminal_width, use_colour};
use crate::table::Listing;
use clap::Args;
use cosched_api::{Client, Job};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::HISTORY)]
pub(crate) struct History {
    /// Jobs that ended after this time: a date, `today`, `yesterday`, 14:30, or how long ago, as 2h or 7d
    #[arg(long, short, value_name = "WHEN", default_value = "24h", value_parser = moment::back)]
    since: u64,

    /// Jobs that ended before this time [default: now]
    #[arg(long, value_name = "WHEN", value_parser = moment::back)]
    until: Option<u64>,

    /// Only jobs of these users, by name or number
    #[arg(long, short, value_name = "USER", value_delimiter = ',')]
    user: Vec<String>,

    /// Only jobs with this name; `*` stands for any text (may be repeated)
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,

    /// Only the totals, by user
    #[arg(long)]
    totals: bool,
}

const COLUMNS: [&str; 11] =
    ["id", "name", "user", "state", "cpus", "cpu", "elapsed", "peak", "start", "ended", "command"];

/// The sums over several jobs.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Total {
    jobs: u64,
    cpu_time_ms: u64,
    elapsed_ms: u64,
    /// The sum over the jobs of elapsed time times CPUs.
    cpu_elapsed_ms: u64,
}

#[derive(Serialize)]
struct Report<'a> {
    since_unix_ms: u64,
    until_unix_ms: u64,
    jobs: &'a [Job],
    users: &'a BTreeMap<String, Total>,
    total: &'a Total,
}

/// `cosched history`.
pub(crate) fn history(context: &Context, options: &History) -> Result<u8, Failure> {
    let mut client = connect(context)?;
    let (since, until) = (options.since, options.until.unwrap_or(u64::MAX));
    let mut jobs = all_between(&mut client, since, until)?;
    let filter = Filter { users: &options.user, names: &options.name, ..Filter::default() };
    jobs.retain(|job| filter.takes(job));
    jobs.sort_by_key(|job| (job.ended_unix_ms, job.id));
    let (users, total) = totals(&jobs);
    let until_unix_ms = options.until.unwrap_or_else(format::now_unix_ms);
    let report = Report { since_unix_ms: since, until_unix_ms, jobs: &jobs, users: &users, total: &total };
    context.give(&report, || {
        let list = if options.totals { String::new() } else { list(&jobs, terminal_width(), use_colour()) + "\n" };
        list + &table_of(&users, &total)
    })
}

/// All jobs that ended in an interval, page by page.
fn all_between(client: &mut Client, since: u64, until: u64) -> Result<Vec<Job>, Failure> {
    let mut all = Vec::new();
    let mut known = BTreeSet::new();
    let mut end = until;
    loop {
        let page = client.ended(since, end)?.jobs;
        let Some(earliest) = page.iter().filter_map(|job| job.ended_unix_ms).min() else { return Ok(all) };
        let before = all.len();
        all.extend(page.into_iter().filter(|job| known.insert((job.id, job.submitted_unix_ms, job.restarts))));
        // Jobs that ended in the same millisecond are repeated on the next page; a page of nothing but those would repeat
        // for ever.
        end = if all.len() == before { earliest.saturating_sub(1) } else { earliest };
        if end < since || end == 0 {
            return Ok(all);
        }
    }
}

fn totals(jobs: &[Job]) -> (BTreeMap<String, Total>, Total) {
    let (mut users, mut total) = (BTreeMap::<String, Total>::new(), Total::default());
    for job in jobs {
        let elapsed = elapsed_ms(job, format::now_unix_ms()).unwrap_or(0);
        for sum in [users.entry(job.user.clone()).or_default(), &mut total] {
            sum.jobs += 1;
            sum.cpu_time_ms += job.cpu_time_ms;
            sum.elapsed_ms += elapsed;
            sum.cpu_elapsed_ms += elapsed * u64::from(job.cpus);
        }
    }
    (users, total)
}

fn list(jobs: &[Job], width: Option<usize>, colour: bool) -> String {
    let columns = COLUMNS.iter().filter_map(|name| named(name).ok());
    let add = |list: Listing<_>, of: &JobColumn| list.column(of.column.clone(), |job| of.cell(job, colour));
    columns.fold(Listing::of(jobs), add).render(width)
}

fn table_of(users: &BTreeMap<String, Total>, total: &Total) -> String {
    let users = users.iter().map(|(name, total)| (name.as_str(), total));
    Listing::of(users.chain([("all", total)]))
        .words("USER", 0, |(name, _)| name)
        .numbers("JOBS", 0, |(_, of)| of.jobs.to_string())
        .numbers("CPU TIME", 0, |(_, of)| format::duration_ms(of.cpu_time_ms))
        .numbers("ELAPSED", 0, |(_, of)| format::duration_ms(of.elapsed_ms))
        .numbers("CPUS x ELAPSED", 0, |(_, of)| format::duration_ms(of.cpu_elapsed_ms))
        .render(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::job;
    use cosched_api::JobState;

    #[test]
    fn totals_are_by_user_and_of_all() {
        let mut jobs = [job(1, "a"), job(2, "b"), job(3, "c")];
        for job in &mut jobs {
            job.state = JobState::Ended;
            (job.started_unix_ms, job.ended_unix_ms) = (Some(1_700_000_000_000), Some(1_700_000_010_000));
        }
        jobs[2].user = "bob".into();
        let (users, total) = totals(&jobs);
        assert_eq!(total, Total { jobs: 3, cpu_time_ms: 37_020, elapsed_ms: 30_000, cpu_elapsed_ms: 60_000 });
        assert_eq!((users["ann"].jobs, users["bob"].elapsed_ms), (2, 10_000));
        let text = list(&jobs, None, false) + &table_of(&users, &total);
        assert!(text.contains("ELAPSED  PEAK  START") && text.contains("CPUS x ELAPSED"), "{text}");
        assert!(text.lines().last().unwrap().starts_with("all      3"), "{text}");
    }
}
