//! What the page asks of the simulator: each run is a child process with limits (`child.rs`), and what it finds is kept in the user's
//! state directory (`shelf.rs`), so nothing that the browser sends can end the page's server (decision 0076).

mod child;
mod shelf;
mod wanted;

pub(crate) use child::{WORK, work};

use super::http::{Answer, Request};
use super::json_error;
use crate::format::now_unix_ms;
use child::Ended;
use cosched_api::SocketChoice;
use serde::Serialize;
use shelf::{Record, Shelf, State};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use wanted::Task;

/// The largest request to start a run: with it comes a trace.
pub(super) const BYTES_MAX: usize = 8 << 20;
/// The rest waits, in its order.
const RUNNING_MAX: usize = 2;
const UNFINISHED_MAX: usize = 8;
/// What a page gets of a run's output.
const TEXT_MAX: usize = 256 << 10;
pub(super) const RUNS: &str = "/ask/runs";
/// A browser opens these in a tab of their own, where the page cannot send its key along; their names cannot be guessed.
pub(super) const REPORTS: &str = "/ask/reports/";

/// The runs of this server.
#[derive(Debug)]
pub(super) struct Ask {
    shelf: Shelf,
    /// The daemon's socket, if the user named one.
    socket: Option<PathBuf>,
    unfinished: Mutex<Vec<Unfinished>>,
    /// One has ended or was cancelled.
    changed: Condvar,
}

#[derive(Debug)]
struct Unfinished {
    id: String,
    is_running: bool,
    is_cancelled: bool,
}

/// A run and its texts.
#[derive(Serialize)]
struct Shown {
    run: Record,
    /// What it wrote to standard output.
    output: String,
    /// The end of what it wrote to standard error.
    messages: String,
}

impl Ask {
    pub(super) fn new(socket: &SocketChoice) -> Ask {
        // A run has another working directory.
        let socket = match socket {
            SocketChoice::Named(path) => Some(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
            SocketChoice::Usual { .. } => None,
        };
        Ask { shelf: Shelf::of_user(), socket, unfinished: Mutex::default(), changed: Condvar::new() }
    }

    /// Whether runs have not ended.
    pub(super) fn is_busy(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Answers a request for a path of `/ask/`.
    pub(super) fn answer(self: &Arc<Ask>, request: &Request) -> Answer {
        let path = request.path.as_str();
        if let Some(id) = path.strip_prefix(REPORTS).filter(|_| request.method == "GET") {
            return self.shelf.report(id).map_or_else(no_such, Answer::report);
        }
        let rest = path.strip_prefix(RUNS).unwrap_or("/?");
        let parts: Vec<&str> = rest.split('/').collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", [""]) => self.list(),
            ("POST", [""]) => self.start(&request.body),
            ("GET", ["", id]) => self.show(id).unwrap_or_else(no_such),
            ("POST", ["", id, "cancel"]) => self.cancel(id),
            _ => no_such(),
        }
    }

    fn list(&self) -> Answer {
        match self.shelf.list(&self.own()) {
            Ok(runs) => Answer::json(&serde_json::json!({ "runs": runs })),
            Err(e) => self.no_shelf(&e),
        }
    }

    fn show(&self, id: &str) -> Option<Answer> {
        let run = self.shelf.record(id, &self.own())?;
        let [output, messages] = self.shelf.texts(id, TEXT_MAX);
        Some(Answer::json(&Shown { run, output, messages }))
    }

    fn start(self: &Arc<Ask>, body: &[u8]) -> Answer {
        let mut task = match Task::read(body) {
            Ok(task) => task,
            Err(why) => return json_error(422, "this cannot be run", &why, "Correct the form, and send it again."),
        };
        let mut unfinished = self.lock();
        if unfinished.len() >= UNFINISHED_MAX {
            let why = format!("{UNFINISHED_MAX} runs are running or waiting");
            return json_error(429, "no more runs are taken", &why, "Wait for one, or cancel one.");
        }
        let others: Vec<String> = unfinished.iter().map(|run| run.id.clone()).collect();
        let record = Record::new(task.title.clone(), task.kind, now_unix_ms());
        let (record, place) = match self.shelf.add(record, task.upload.take(), &others) {
            Ok(made) => made,
            Err(e) => return self.no_shelf(&e),
        };
        unfinished.push(Unfinished { id: record.id.clone(), is_running: false, is_cancelled: false });
        let (ask, taken) = (Arc::clone(self), record.clone());
        // The thread waits for the child, which is killed when its parent thread ends.
        let started = std::thread::Builder::new().spawn(move || ask.run(taken, &task, place));
        if let Err(e) = started {
            unfinished.retain(|run| run.id != record.id);
            return json_error(503, "the run cannot be started", &e.to_string(), "Try again later.");
        }
        Answer::json(&record)
    }

    /// Waits for its turn, runs, and keeps what came of it.
    fn run(&self, mut record: Record, task: &Task, place: shelf::Place) {
        let mut unfinished = self.lock();
        while !may_start(&unfinished, &record.id) {
            unfinished = self.changed.wait(unfinished).unwrap_or_else(PoisonError::into_inner);
        }
        let own = unfinished.iter_mut().find(|run| run.id == record.id && !run.is_cancelled);
        let is_on = own.map(|own| own.is_running = true).is_some();
        drop(unfinished);
        // The next one may start beside it.
        self.changed.notify_all();
        let ended = if is_on {
            record.state = State::Running;
            record.begun_unix_ms = now_unix_ms();
            let _ = place.write(&record);
            let is_cancelled = || self.lock().iter().any(|run| run.id == record.id && run.is_cancelled);
            child::run(task, &place, self.socket.as_deref(), &is_cancelled)
        } else {
            Ended::Cancelled
        };
        record.ended_unix_ms = Some(now_unix_ms());
        (record.state, record.why) = match ended {
            Ended::Well => (State::Done, String::new()),
            Ended::Cancelled => (State::Cancelled, String::new()),
            Ended::Badly(why) => (State::Failed, why),
        };
        let _ = place.finish(&record);
        self.lock().retain(|run| run.id != record.id);
        self.changed.notify_all();
    }

    fn cancel(&self, id: &str) -> Answer {
        let mut unfinished = self.lock();
        let Some(run) = unfinished.iter_mut().find(|run| run.id == id) else {
            let why = "it has ended, or another `cosched web` has started it";
            return json_error(409, "this run cannot be cancelled", why, "Look at the list of runs.");
        };
        run.is_cancelled = true;
        self.changed.notify_all();
        Answer::json(&serde_json::json!({}))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Unfinished>> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The unfinished runs of this server.
    fn own(&self) -> Vec<String> {
        self.lock().iter().map(|run| run.id.clone()).collect()
    }

    fn no_shelf(&self, error: &std::io::Error) -> Answer {
        let what = format!("runs cannot be kept in {}", self.shelf.path().display());
        json_error(500, &what, &error.to_string(), "Set XDG_STATE_HOME to a directory of your own for `cosched web`.")
    }
}

/// Whether it is this run's turn, or there is nothing to wait for any more.
fn may_start(unfinished: &[Unfinished], id: &str) -> bool {
    let running = unfinished.iter().filter(|run| run.is_running).count();
    let next = unfinished.iter().find(|run| !run.is_running && !run.is_cancelled);
    let is_cancelled = unfinished.iter().any(|run| run.id == id && run.is_cancelled);
    is_cancelled || running < RUNNING_MAX && next.is_none_or(|next| next.id == id)
}

fn no_such() -> Answer {
    json_error(404, "there is no such run", "it was removed, or never made", "Look at the list of runs.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_start_in_their_order_and_a_cancelled_one_waits_for_nothing() {
        let run = |id: &str, is_running, is_cancelled| Unfinished { id: id.into(), is_running, is_cancelled };
        let all = [run("a", true, false), run("b", false, true), run("c", false, false), run("d", false, false)];
        let may: Vec<bool> = ["b", "c", "d"].iter().map(|id| may_start(&all, id)).collect();
        assert_eq!(may, [true, true, false]);
        let full = [run("a", true, false), run("e", true, false), run("c", false, false)];
        assert!(!may_start(&full, "c"));
    }
}
