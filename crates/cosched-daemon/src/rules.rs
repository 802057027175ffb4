//! Rules that adopt what appears (`[[adopt]]`): a thread waits for cgroups that get processes, and asks the driver as a user would.
//!
//! The rules are those of whoever configures the daemon, so what is looked at is his: cgroups whose directories belong to the daemon's user. Units of the
//! system with `User=` do, cgroups that are delegated to users do not, whatever their names. The driver hears of one cgroup at a time.

use crate::call::{Call, Op, Reply};
use crate::config::AdoptRule;
use crate::containers::{Container, Described, Engines, has_containers};
use crate::refuse::Answer;
use crate::rights::Peer;
use crate::watchdogs;
use cosched_api::{Adopt, ErrorCode, Job, JobRequest, Terms, parse};
use cosched_linux::adopt::{procs_below, was_released};
use cosched_linux::appear::{self, Appear, CGROUPS_MAX, DIRS_MAX, Wanted};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Between two looks, and between two that are adopted: the driver has others to serve.
const PAUSE: Duration = Duration::from_millis(20);
/// A process executes its program a moment after it has come: so often it is looked which one that is.
const LOOKS: u32 = 10;
const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// When what was refused is tried again: after the first time, then twice as long each time, up to the second.
const RETRY: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(300)];

/// All rules, the first one that fits counts.
pub(crate) struct Rules(Vec<AdoptRule>);

impl Wanted for Rules {
    fn is(&self, path: &Path) -> bool {
        self.0.iter().any(|rule| fits(rule, path))
    }

    fn may_be_below(&self, path: &Path) -> bool {
        let is_slice = path.extension().is_some_and(|word| word == "slice");
        let by_name = |rule: &AdoptRule| is_slice || rule.container_labels && has_containers(path);
        let by_name = self.0.iter().filter(|rule| rule.cgroup.is_none()).any(by_name);
        by_name || self.0.iter().filter_map(|rule| rule.cgroup.as_deref()).any(|pattern| begins(pattern, path))
    }
}

/// Starts the thread; it ends with the daemon.
pub(crate) fn start(rules: Vec<AdoptRule>, mount: &Path, run_dir: PathBuf, calls: mpsc::Sender<Call>) {
    if rules.is_empty() {
        return;
    }
    let (uid, mount) = (rustix::process::geteuid().as_raw(), mount.to_owned());
    let begun = Appear::new(&mount, uid, Rules(rules)).and_then(|appear| {
        let work = move || adopt_all(appear, (&mount, run_dir), &calls, uid);
        std::thread::Builder::new().name("rules".into()).spawn(work)
    });
    if let Err(e) = begun {
        tracing::error!("the rules of [[adopt]] adopt nothing: cgroups cannot be watched: {e}");
    }
}

fn adopt_all(mut appear: Appear<Rules>, (mount, run_dir): (&Path, PathBuf), calls: &mpsc::Sender<Call>, uid: u32) {
    let mut engines = Engines::new(run_dir.clone());
    let mut refused: BTreeMap<PathBuf, Refused> = BTreeMap::new();
    let mut is_start = true;
    loop {
        // Each switch of an adopted job tells that its cgroup has changed.
        std::thread::sleep(PAUSE);
        engines.begin_round();
        for path in appear.populated() {
            // Whoever released it meant it, and that an earlier daemon was told.
            if (is_start || refused.contains_key(&path)) && was_released(&appear::at(mount, &path)) {
                refused.remove(&path);
                continue;
            }
            std::thread::sleep(PAUSE);
            match try_one(appear.wanted(), (mount, &run_dir, &mut engines), (calls, uid), &path) {
                Tried::Done => drop(refused.remove(&path)),
                Tried::Ended => return,
                // What has gone meanwhile is not missed.
                Tried::Refused(_) if !appear::at(mount, &path).is_dir() => (),
                Tried::Refused(why) => {
                    let before = refused.get(&path).map(|refused| refused.pause);
                    if before.is_none() {
                        tracing::warn!(cgroup = %path.display(), "a rule adopts nothing: {why}. It is tried again later");
                    }
                    let pause = before.map_or(RETRY[0], |pause| (pause * 2).min(RETRY[1]));
                    refused.insert(path, Refused { pause, again: Instant::now() + pause });
                }
            }
        }
        is_start = false;
        if appear.was_full() {
            tracing::warn!(
                "rules adopt no more than {CGROUPS_MAX} cgroups, and look into {DIRS_MAX} directories: some are left out. \
                 Name fewer with narrower rules"
            );
        }
        refused.retain(|path, _| appear::at(mount, path).is_dir());
        let next = refused.values().map(|refused| refused.again).min();
        if let Err(e) = appear.wait(next.map(|next| next.saturating_duration_since(Instant::now()))) {
            return tracing::error!("rules adopt nothing any more: cgroups cannot be watched: {e}");
        }
        let now = Instant::now();
        for (path, refused) in refused.iter_mut().filter(|(_, refused)| refused.again <= now) {
            refused.again = now + refused.pause;
            appear.see_again(path);
        }
    }
}

/// What a rule means, but coschedd has refused: the store may be away, or it has too many processes for a moment.
struct Refused {
    pause: Duration,
    again: Instant,
}

enum Tried {
    /// It is a job, or no rule means it.
    Done,
    Refused(String),
    /// The driver has ended.
    Ended,
}

fn try_one(
    rules: &Rules,
    (mount, run_dir, engines): (&Path, &Path, &mut Engines),
    (calls, uid): (&mpsc::Sender<Call>, u32),
    path: &Path,
) -> Tried {
    let Found { at, terms, container } = match rule_of(rules, (mount, engines), path) {
        Ok(Some(found)) => found,
        Ok(None) => return Tried::Done,
        Err(why) => return Tried::Refused(why),
    };
    match ask(calls, uid, Op::Register(Box::new(request(at, terms, container, path)))) {
        None => Tried::Ended,
        Some(Ok(_)) => {
            tracing::info!(rule = at + 1, cgroup = %path.display(), "adopted by a rule");
            warn_of_watchdog(run_dir, path);
            Tried::Done
        }
        // After a restart of the daemon, say.
        Some(Err(e)) if e.code == ErrorCode::Conflict && is_job(calls, uid, path) => Tried::Done,
        Some(Err(e)) => {
            Tried::Refused(format!("rule {}: {} ({}). {}", at + 1, e.what, e.why, e.hint.trim_end_matches('.')))
        }
    }
}

/// What `cosched adopt` tells its user.
fn warn_of_watchdog(run_dir: &Path, path: &Path) {
    if let Ok(Some(watched)) = watchdogs::of(run_dir, path, watchdogs::ANSWER_TIME_MAX) {
        tracing::warn!(
            cgroup = %path.display(),
            "what a rule has adopted has WatchdogSec={}s, and systemd ends it when it gives no sign of life for that long. Keep the time between \
             its slots below half of that",
            watched.limit.as_secs_f64()
        );
    }
}

/// A rule that fits.
struct Found {
    at: usize,
    terms: Terms,
    container: Option<Described>,
}

/// The first one; why none, where a container's labels cannot be had or not be kept. Rules without labels hold for such a container, too: an image
/// must not escape them by a wrong label.
fn rule_of(rules: &Rules, (mount, engines): (&Path, &mut Engines), path: &Path) -> Result<Option<Found>, String> {
    let (mut known, mut refused) = (None, None);
    for (at, rule) in rules.0.iter().enumerate().filter(|(_, rule)| fits(rule, path)) {
        if rule.executable.as_deref().is_some_and(|program| !executes(mount, path, program)) {
            continue;
        }
        if !rule.container_labels {
            if let Some(why) = refused {
                tracing::warn!(rule = at + 1, "this rule adopts what an earlier one does not: {why}");
            }
            return Ok(Some(Found { at, terms: rule.terms.clone(), container: None }));
        }
        let Some(container) = Container::of(path) else { continue };
        if known.is_none() && refused.is_none() {
            match engines.describe(&container) {
                Ok(container) => known = Some(container),
                Err(why) => refused = Some(why),
            }
        }
        let Some(container) = known.take() else { continue };
        match container.terms(&rule.terms) {
            Ok(Some(terms)) => return Ok(Some(Found { at, terms, container: Some(container) })),
            Ok(None) => (),
            Err(e) => {
                refused.get_or_insert_with(|| format!("{}: {} ({}). {}", container.from, e.what, e.why, e.hint));
            }
        }
        known = Some(container);
    }
    refused.map_or(Ok(None), Err)
}

fn executes(mount: &Path, path: &Path, program: &Path) -> bool {
    let dir = appear::at(mount, path);
    (0..LOOKS).any(|look| {
        if look > 0 {
            std::thread::sleep(LOOK_PERIOD);
        }
        let is_it = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
        procs_below(&dir).unwrap_or_default().iter().any(is_it)
    })
}

fn request(at: usize, terms: Terms, container: Option<Described>, path: &Path) -> JobRequest {
    let cgroup = path.to_string_lossy().into_owned();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".service").unwrap_or(&name).to_owned();
    let (name, from) = container.map_or_else(|| (name, cgroup.clone()), |container| (container.name, container.from));
    let from = format!("rule {}: {from}", at + 1);
    JobRequest {
        command: vec![cgroup.clone()],
        name: Some(name),
        adopt: Some(Adopt { cgroup: Some(cgroup), pid: None, from: Some(from) }),
        ..terms.into_request()
    }
}

/// None when the driver has ended.
fn ask(calls: &mpsc::Sender<Call>, uid: u32, op: Op) -> Option<Answer<Reply>> {
    let (reply, answer) = oneshot::channel();
    calls.blocking_send(Call { peer: Peer { uid, pid: None }, op, reply }).ok()?;
    answer.blocking_recv().ok()
}

/// Whether this cgroup is a job.
fn is_job(calls: &mpsc::Sender<Call>, uid: u32, path: &Path) -> bool {
    let is_it = |job: &Job| job.adopted.as_ref().is_some_and(|it| it.cgroup.as_deref().map(Path::new) == Some(path));
    match ask(calls, uid, Op::List { all: false }) {
        Some(Ok(Reply::Jobs(list))) => list.jobs.iter().any(is_it),
        _ => false,
    }
}

/// Whether a cgroup is meant, as far as its path says.
fn fits(rule: &AdoptRule, path: &Path) -> bool {
    let texts = || path.iter().filter_map(|part| part.to_str()).filter(|part| *part != "/");
    let name = texts().next_back().unwrap_or_default();
    // A slice contains units, and is none that a rule of units means.
    let of_unit = match (&rule.unit, &rule.slice, &rule.cgroup) {
        (Some(unit), ..) => matches(unit, name),
        (None, Some(_), None) => !name.ends_with(".slice"),
        _ => true,
    };
    let in_slice = |slice: &String| texts().rev().skip(1).any(|part| part == slice);
    let by_path = |pattern: &String| {
        let parts = pattern.split('/').filter(|part| !part.is_empty());
        parts.clone().count() == texts().count() && parts.zip(texts()).all(|(pattern, part)| matches(pattern, part))
    };
    let is_meant = !rule.container_labels || Container::of(path).is_some();
    is_meant && of_unit && rule.slice.as_ref().is_none_or(in_slice) && rule.cgroup.as_ref().is_none_or(by_path)
}

/// Whether what is below this path may match a pattern.
fn begins(pattern: &str, path: &Path) -> bool {
    let parts = path.iter().filter_map(|part| part.to_str()).filter(|part| *part != "/");
    let patterns: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    parts.clone().count() < patterns.len() && parts.zip(patterns).all(|(part, pattern)| matches(pattern, part))
}

/// `*` stands for any number of characters, `?` for one.
fn matches(pattern: &str, text: &str) -> bool {
    parse::matches(pattern, text, Some('?'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(unit: Option<&str>, slice: Option<&str>, cgroup: Option<&str>) -> AdoptRule {
        let text = |word: Option<&str>| word.map(str::to_owned);
        AdoptRule { unit: text(unit), slice: text(slice), cgroup: text(cgroup), ..AdoptRule::default() }
    }

    #[test]
    fn a_rule_fits_by_all_that_it_names() {
        let fits = |rule: &AdoptRule, path: &str| fits(rule, Path::new(path));
        let unit = rule(Some("llama@*.service"), None, None);
        assert!(fits(&unit, "/system.slice/system-llama.slice/llama@1.service"));
        assert!(!fits(&unit, "/system.slice/web.service") && !fits(&unit, "/"));
        let slice = rule(None, Some("batch.slice"), None);
        assert!(fits(&slice, "/batch.slice/a.service") && fits(&slice, "/batch.slice/b.slice/c.scope"));
        assert!(!fits(&slice, "/batch.slice") && !fits(&slice, "/batch.slice/b.slice"), "slices are no units");
        let both = rule(Some("a*"), Some("batch.slice"), None);
        assert!(fits(&both, "/batch.slice/a.service") && !fits(&both, "/system.slice/a.service"));
        let path = rule(None, None, Some("/x/*/job-?"));
        assert!(fits(&path, "/x/y/job-1") && !fits(&path, "/x/job-1") && !fits(&path, "/x/y/job-1/z"));
        let id = "0123456789abcdef".repeat(4);
        let labels = AdoptRule { container_labels: true, ..rule(None, None, None) };
        assert!(fits(&labels, &format!("/libpod_parent/libpod-{id}")) && !fits(&labels, "/system.slice/web.service"));
        let of_labels = Rules(vec![labels]);
        assert!(of_labels.may_be_below(Path::new("/libpod_parent")));
        let rules = Rules(vec![unit, path]);
        assert!(rules.is(Path::new("/x/y/job-1")) && !rules.is(Path::new("/x/y")));
        let below = |path: &str| rules.may_be_below(Path::new(path));
        assert!(below("/") && below("/x") && below("/x/y") && below("/system.slice"));
        assert!(!below("/x/y/job-1") && !below("/user.slice/user-1.slice/user@1.service"));
    }

    #[test]
    fn a_job_says_which_rule_it_comes_from() {
        let terms = Terms { share: Some(0.5), ..Terms::default() };
        let request = request(1, terms, None, Path::new("/a.slice/llama.service"));
        assert_eq!((request.name.as_deref(), request.share_max), (Some("llama"), Some(0.5)));
        assert_eq!(request.adopt.unwrap().from.as_deref(), Some("rule 2: /a.slice/llama.service"));
    }
}
