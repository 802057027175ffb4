//! The audit log: each change with its user, time and result, a line of JSON each, in `audit.log` beside the journal.
//!
//! No request waits for it (`logfile.rs`). Lines that could not be written (a full disk, a full queue) are counted, and the number is written as soon
//! as that is possible. No single user can fill it: a user's lines beyond a rate are only counted, in at most one line a minute.

use crate::logfile;
use crate::refuse::Answer;
use crate::rights::Peer;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The rate of a user's lines: a burst of this number, then one in this time.
const BURST: f64 = 1000.0;
const LINE_EVERY: Duration = Duration::from_secs(6);
/// How often the number of lines that were not written is logged.
const SUMMARY_EVERY: Duration = Duration::from_secs(60);
/// The length of the part of a request that a line contains, in bytes.
const DETAIL_BYTES_MAX: usize = 512;

/// The handle of the log's writer; copies lead to the same writer.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    to_writer: SyncSender<String>,
    users: BTreeMap<u32, Rate>,
    /// Lines that the queue did not take.
    lost: u64,
}

/// The number of lines that a user may still write, and of those that were left out.
#[derive(Debug)]
struct Rate {
    tokens: f64,
    at: Instant,
    done: u64,
    refused: u64,
    told: Instant,
}

/// The user who made the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    /// The user and the process.
    pub(crate) peer: Peer,
    /// The group.
    pub(crate) gid: u32,
    /// Administrators' lines are not limited.
    pub(crate) admin: bool,
}

/// The request.
#[derive(Debug)]
pub(crate) struct Act {
    verb: &'static str,
    job: Option<u64>,
    detail: String,
}

impl Act {
    /// A request by its name, with the job that it is about, if any, and its body.
    pub(crate) fn new(verb: &'static str, job: Option<u64>, body: &impl Serialize) -> Act {
        let text = serde_json::to_string(body).unwrap_or_default();
        Act { verb, job, detail: crate::sizes::cut(&text, DETAIL_BYTES_MAX).to_owned() }
    }
}

impl Audit {
    /// Opens the log in this directory and starts its writer.
    pub(crate) fn start(dir: &Path) -> io::Result<Audit> {
        let to_writer = logfile::start(dir.join("audit.log"), "audit")?;
        let audit = Audit { shared: Arc::new(Mutex::new(Shared { to_writer, users: BTreeMap::new(), lost: 0 })) };
        audit.line(json!({"act": "start", "version": env!("CARGO_PKG_VERSION"), "pid": std::process::id()}));
        Ok(audit)
    }

    /// Writes a request and its result; `None`: its client has not waited for that.
    pub(crate) fn write<T>(&self, who: Who, act: Act, job: Option<u64>, outcome: Option<&Answer<T>>) {
        let refused = outcome.and_then(|outcome| outcome.as_ref().err());
        if !who.admin && !self.may_have_a_line(who.peer.uid, refused.is_some(), Instant::now()) {
            return;
        }
        let mut line = json!({
            "uid": who.peer.uid, "gid": who.gid, "pid": who.peer.pid, "act": act.verb, "job": act.job.or(job),
            "outcome": outcome.map_or("unanswered", |_| if refused.is_some() { "refused" } else { "done" }),
        });
        if !matches!(act.detail.as_str(), "" | "{}" | "null") {
            line["request"] = act.detail.into();
        }
        if let Some(body) = refused {
            line["code"] = serde_json::to_value(body.code).unwrap_or(Value::Null);
            line["why"] = crate::sizes::cut(&body.what, DETAIL_BYTES_MAX).into();
        }
        self.line(line);
    }

    /// Takes one of the user's tokens; a line without a token is counted, and the count is logged from time to time.
    fn may_have_a_line(&self, uid: u32, refused: bool, now: Instant) -> bool {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if !shared.users.contains_key(&uid) {
            shared.users.retain(|_, rate| !rate.is_idle(now));
        }
        let new = Rate { tokens: BURST, at: now, done: 0, refused: 0, told: now };
        let rate = shared.users.entry(uid).or_insert(new);
        (rate.tokens, rate.at) = (rate.tokens_at(now), now);
        let may = rate.tokens >= 1.0;
        if may {
            rate.tokens -= 1.0;
        } else if refused {
            rate.refused += 1;
        } else {
            rate.done += 1;
        }
        let left_out = rate.done + rate.refused > 0 && now.duration_since(rate.told) >= SUMMARY_EVERY;
        if left_out {
            let (done, refused) = (std::mem::take(&mut rate.done), std::mem::take(&mut rate.refused));
            rate.told = now;
            drop(shared);
            self.line(json!({"uid": uid, "act": "more", "done": done, "refused": refused}));
        }
        may
    }

    fn line(&self, mut line: Value) {
        line["at"] = jiff::Timestamp::now().to_string().into();
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.lost > 0 {
            line["lost_before"] = shared.lost.into();
        }
        match shared.to_writer.try_send(format!("{line}\n")) {
            Ok(()) => shared.lost = 0,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => shared.lost += 1,
        }
    }
}

impl Rate {
    fn tokens_at(&self, now: Instant) -> f64 {
        let earned = now.duration_since(self.at).as_secs_f64() / LINE_EVERY.as_secs_f64();
        (self.tokens + earned).min(BURST)
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.done + self.refused == 0 && self.tokens_at(now) >= BURST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refuse::refuse;
    use cosched_api::ErrorCode;
    use std::os::unix::fs::PermissionsExt;

    fn user(uid: u32) -> Who {
        Who { peer: Peer { uid, pid: Some(77) }, gid: 100, admin: false }
    }

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn wait_for(path: &Path, count: usize) -> Vec<Value> {
        let end = Instant::now() + Duration::from_secs(30);
        while lines(path).len() < count && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        lines(path)
    }

    #[test]
    fn a_line_says_who_did_what_and_what_came_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        std::fs::write(&path, "{\"act\":\"cut\"}").unwrap();
        let audit = Audit::start(dir.path()).unwrap();
        audit.write(user(1000), Act::new("class", Some(7), &json!({"class": "batch"})), None, Some(&Ok(())));
        let refused: Answer<()> = Err(refuse(ErrorCode::Forbidden, "job 7 is not yours", "", ""));
        audit.write(user(1001), Act::new("suspend", Some(7), &()), None, Some(&refused));
        let all = wait_for(&path, 4);
        assert_eq!((&all[1]["act"], &all[2]["uid"], &all[2]["gid"]), (&json!("start"), &json!(1000), &json!(100)));
        assert_eq!((&all[2]["request"], &all[2]["outcome"]), (&json!("{\"class\":\"batch\"}"), &json!("done")));
        assert_eq!((&all[3]["code"], &all[3]["why"]), (&json!("forbidden"), &json!("job 7 is not yours")));
        assert_eq!(all[3].get("request"), None);
        let fresh = tempfile::tempdir().unwrap();
        let _audit = Audit::start(fresh.path()).unwrap();
        wait_for(&fresh.path().join("audit.log"), 1);
        let mode = std::fs::metadata(fresh.path().join("audit.log")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn one_user_s_lines_are_bounded_and_the_rest_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::start(dir.path()).unwrap();
        let start = Instant::now();
        let had = (0..5000).filter(|n| audit.may_have_a_line(7, n % 2 == 0, start)).count();
        assert_eq!(had, 1000);
        assert!(audit.may_have_a_line(8, false, start), "another user is not concerned");
        assert!(audit.may_have_a_line(7, false, start + Duration::from_secs(61)));
        let all = wait_for(&dir.path().join("audit.log"), 2);
        assert_eq!((&all[1]["act"], &all[1]["done"], &all[1]["refused"]), (&json!("more"), &json!(2000), &json!(2000)));
    }

    #[test]
    fn administrators_lines_are_not_bounded_and_a_users_come_back_with_time() {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::start(dir.path()).unwrap();
        let start = Instant::now();
        (0..BURST as usize).for_each(|_| assert!(audit.may_have_a_line(7, false, start)));
        assert!(!audit.may_have_a_line(7, false, start));
        let later = |lines: u32| start + lines * LINE_EVERY;
        assert!(audit.may_have_a_line(7, false, later(1)));
        assert!(!audit.may_have_a_line(7, false, later(1)));
        assert_eq!((0..9).filter(|_| audit.may_have_a_line(7, false, later(4))).count(), 3);
        let root = Who { admin: true, ..user(7) };
        audit.write(root, Act::new("suspend", Some(1), &()), None, Some(&Ok(())));
        let all = wait_for(&dir.path().join("audit.log"), 2);
        assert_eq!((&all[1]["uid"], &all[1]["act"]), (&json!(7), &json!("suspend")));
    }

    #[test]
    fn users_who_have_all_their_lines_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::start(dir.path()).unwrap();
        let start = Instant::now();
        for uid in 0..1000 {
            audit.may_have_a_line(uid, false, start + LINE_EVERY * uid * 2);
        }
        assert!(audit.shared.lock().unwrap().users.len() <= 2);
    }

    #[test]
    fn no_request_makes_a_line_longer_than_it_may_be() {
        let act = Act::new("policy", Some(7), &json!({"text": "\u{1}".repeat(5000)}));
        assert!(crate::sizes::weight(&act.detail) <= DETAIL_BYTES_MAX);
        assert_eq!(Act::new("suspend", None, &()).detail, "null");
    }
}
