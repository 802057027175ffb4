//! Recent events, for `GET /v1/events`: a ring of bounded length that the driver writes and every stream reads.
//!
//! The driver never waits for a reader: it writes, and wakes the readers. A reader has only its position in the ring; a reader whose position was
//! overwritten is told about the gap. So a stream holds one event at a time, however slowly it is read (decision 0056).

use crate::clock::unix_ms;
use crate::privacy::Privacy;
use crate::refuse::{Answer, invalid};
use crate::rights::Peer;
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use cosched_api::{EventKind, JobEvent, PlanEvent, StreamEvent, Warning};
use hyper::body::{Body as HttpBody, Frame};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// The limits of the ring: the number of events, and their total length in bytes.
const EVENTS_MAX: usize = 8192;
const BYTES_MAX: usize = 2 << 20;
/// The longest event; a longer plan is cut.
pub(crate) const EVENT_BYTES_MAX: usize = 64 << 10;
/// After this time without an event a reader gets a sign that the daemon lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug)]
struct Entry {
    kind: EventKind,
    /// The owner of the job that it is about.
    uid: Option<u32>,
    json: Bytes,
}

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The number of the first entry.
    first: u64,
    /// The newest of each kind that a new reader gets first.
    plan: Option<Bytes>,
    problems: Option<Bytes>,
}

/// The ring, shared by the driver and all streams.
#[derive(Clone, Debug)]
pub(crate) struct EventLog {
    ring: Arc<Mutex<Ring>>,
    /// The number of the next event.
    next: Arc<watch::Sender<u64>>,
    /// The start time of the daemon: another daemon's numbers mean other events.
    instance: u64,
}

/// A reader's position.
#[derive(Debug)]
pub(crate) struct Place {
    /// The number of the reader's next event.
    next: u64,
    /// The events that the reader gets first, in reverse.
    first: Vec<(EventKind, Bytes)>,
}

impl EventLog {
    /// A ring of a daemon that started at this time.
    pub(crate) fn new(started_unix_ms: u64) -> EventLog {
        EventLog { ring: Arc::default(), next: Arc::new(watch::Sender::new(0)), instance: started_unix_ms }
    }

    /// Adds an event of a job.
    pub(crate) fn job(&self, job: JobEvent) {
        let uid = job.uid;
        self.push(Some(uid), &StreamEvent { job: Some(job), ..event(EventKind::Job) });
    }

    /// Adds an event: a new plan is in force.
    pub(crate) fn plan(&self, plan: PlanEvent) {
        let mut told = StreamEvent { plan: Some(plan), ..event(EventKind::Plan) };
        if json(&told).len() > EVENT_BYTES_MAX
            && let Some(plan) = &mut told.plan
        {
            (plan.matrix.rows, plan.matrix.turns, plan.cut) = (Vec::new(), Vec::new(), true);
            plan.matrix.columns.clear();
        }
        self.push(None, &told);
    }

    /// Adds an event: the list of problems has changed.
    pub(crate) fn problems(&self, problems: Vec<Warning>) {
        self.push(None, &StreamEvent { problems: Some(problems), ..event(EventKind::Problems) });
    }

    fn push(&self, uid: Option<u32>, event: &StreamEvent) {
        let json = json(event);
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        match event.kind {
            EventKind::Plan => ring.plan = Some(json.clone()),
            EventKind::Problems => ring.problems = Some(json.clone()),
            EventKind::Job | EventKind::Gap => (),
        }
        ring.bytes += json.len();
        ring.entries.push_back(Entry { kind: event.kind, uid, json });
        while ring.entries.len() > EVENTS_MAX || ring.bytes > BYTES_MAX {
            let Some(old) = ring.entries.pop_front() else { break };
            ring.bytes -= old.json.len();
            ring.first += 1;
        }
        let next = ring.first + ring.entries.len() as u64;
        drop(ring);
        self.next.send_replace(next);
    }

    /// The position after an event; without an id the position after all events, with the present plan and problems first.
    ///
    /// # Errors
    /// The text is not an event's id.
    pub(crate) fn place(&self, after: Option<&str>) -> Answer<Place> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let end = ring.first + ring.entries.len() as u64;
        let Some(after) = after else {
            let problems = ring.problems.iter().map(|json| (EventKind::Problems, json.clone()));
            let plan = ring.plan.iter().map(|json| (EventKind::Plan, json.clone()));
            return Ok(Place { next: end, first: problems.chain(plan).collect() });
        };
        if after == "0" {
            return Ok(Place { next: ring.first, first: Vec::new() });
        }
        let number = |text: &str| text.parse::<u64>().ok();
        let id = after.split_once('-').and_then(|(of, seq)| Some((number(of)?, number(seq)?)));
        let (instance, seq) = id.ok_or_else(|| not_an_id(after))?;
        if instance == self.instance && seq < end {
            return Ok(Place { next: seq + 1, first: Vec::new() });
        }
        let why = if instance == self.instance {
            "this daemon has had no such event yet"
        } else {
            "the daemon was restarted"
        };
        let gap = StreamEvent { gap: Some(why.to_owned()), ..event(EventKind::Gap) };
        Ok(Place { next: ring.first, first: vec![(EventKind::Gap, json(&gap))] })
    }

    /// The next event that a reader may see, in the form in which it is sent.
    fn next_for(&self, place: &mut Place, sees: impl Fn(Option<u32>) -> bool) -> Option<Bytes> {
        // The id of the last event that the reader has: a reader that resumes there misses nothing.
        let text = |kind, next: u64, json: &Bytes| Some(sent(kind, self.instance, next.wrapping_sub(1), json));
        if let Some((kind, json)) = place.first.pop() {
            return text(kind, place.next, &json);
        }
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        if place.next < ring.first {
            place.next = ring.first;
            let gap = "events were dropped: they were read too slowly, or too late".to_owned();
            return text(EventKind::Gap, ring.first, &json(&StreamEvent { gap: Some(gap), ..event(EventKind::Gap) }));
        }
        loop {
            let entry = ring.entries.get((place.next - ring.first) as usize)?;
            place.next += 1;
            if sees(entry.uid) {
                return text(entry.kind, place.next, &entry.json);
            }
        }
    }

    /// An answer that streams every event that this user may see, or ends after the stored ones.
    pub(crate) fn stream(&self, mut place: Place, follow: bool, privacy: Privacy, peer: Peer) -> Response {
        let (out, lines) = mpsc::channel::<Bytes>(1);
        let log = self.clone();
        let sees = move |uid: Option<u32>| uid.is_none_or(|uid| uid == peer.uid || !privacy.hides_jobs(peer));
        tokio::spawn(async move {
            let mut news = log.next.subscribe();
            let mut sign_due = Instant::now() + KEEP_ALIVE;
            loop {
                news.mark_unchanged();
                while let Some(text) = log.next_for(&mut place, &sees) {
                    if out.send(text).await.is_err() {
                        return;
                    }
                    sign_due = Instant::now() + KEEP_ALIVE;
                }
                if !follow {
                    return;
                }
                // Events that this reader may not see do not put the sign off.
                tokio::select! {
                    _ = news.changed() => (),
                    () = out.closed() => return,
                    () = tokio::time::sleep_until(sign_due) => {
                        if out.send(Bytes::from_static(b":\n\n")).await.is_err() {
                            return;
                        }
                        sign_due = Instant::now() + KEEP_ALIVE;
                    }
                }
            }
        });
        let kind = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
        (kind, Body::new(Lines(lines))).into_response()
    }
}

fn event(kind: EventKind) -> StreamEvent {
    StreamEvent { id: String::new(), unix_ms: unix_ms(), kind, job: None, plan: None, problems: None, gap: None }
}

fn json(event: &StreamEvent) -> Bytes {
    // The wire types have string keys and no failing serializers, so this cannot fail.
    serde_json::to_vec(event).unwrap_or_default().into()
}

fn sent(kind: EventKind, instance: u64, seq: u64, json: &Bytes) -> Bytes {
    let kind = match kind {
        EventKind::Job => "job",
        EventKind::Plan => "plan",
        EventKind::Problems => "problems",
        EventKind::Gap => "gap",
    };
    // Before the first event there is no event to resume after.
    let id = if seq == u64::MAX { "0".to_owned() } else { format!("{instance}-{seq}") };
    let mut text = format!("id: {id}\nevent: {kind}\ndata: ").into_bytes();
    text.extend_from_slice(json);
    text.extend_from_slice(b"\n\n");
    text.into()
}

fn not_an_id(text: &str) -> cosched_api::ErrorBody {
    let what = format!("`{}` is not the id of an event", text.chars().take(80).collect::<String>());
    invalid(what, "an id is the text after `id:` in the stream", "Leave it out to start with the present state.")
}

/// The body of a stream.
struct Lines(mpsc::Receiver<Bytes>);

impl HttpBody for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(log: &EventLog, id: u64, uid: u32, detail: &str) {
        let of = serde_json::json!({
            "what": "began", "detail": detail, "id": id, "name": "a", "uid": uid, "user": "ann", "class": "batch", "cpus": 1,
            "state": "running",
        });
        log.job(serde_json::from_value(of).unwrap());
    }

    /// The ids, with the job or the other kind of the event.
    fn read(log: &EventLog, place: &mut Place, uid: u32) -> Vec<(String, String)> {
        let sees = |of: Option<u32>| of.is_none_or(|of| of == uid);
        let mut all = Vec::new();
        while let Some(text) = log.next_for(place, sees) {
            let text = String::from_utf8(text.to_vec()).unwrap();
            let field = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).unwrap().to_owned();
            let event: StreamEvent = serde_json::from_str(&field("data: ")).unwrap();
            all.push((field("id: "), event.job.map_or_else(|| field("event: "), |job| job.id.to_string())));
        }
        all
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(id, what)| (id.to_string(), what.to_string())).collect()
    }

    #[test]
    fn a_reader_gets_what_he_may_see_once_and_resumes_where_he_was() {
        let log = EventLog::new(5);
        let mut new = log.place(None).unwrap();
        assert_eq!(read(&log, &mut new, 1), []);
        log.problems(Vec::new());
        job(&log, 10, 1, "");
        job(&log, 11, 2, "");
        assert_eq!(read(&log, &mut new, 1), pairs(&[("5-0", "problems"), ("5-1", "10")]));
        assert_eq!(read(&log, &mut new, 1), []);
        assert_eq!(read(&log, &mut log.place(Some("5-0")).unwrap(), 2), pairs(&[("5-2", "11")]));
        assert_eq!(read(&log, &mut log.place(None).unwrap(), 1), pairs(&[("5-2", "problems")]), "what holds now");
        assert_eq!(read(&log, &mut log.place(Some("0")).unwrap(), 1).len(), 2);
        let restarted = read(&log, &mut log.place(Some("4-2")).unwrap(), 1);
        assert_eq!(restarted[0].1, "gap");
        assert_eq!(restarted.len(), 3);
        for bad in ["", "x", "5", "5-", "5--1", "5-99999999999999999999999"] {
            assert!(log.place(Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_ring_is_bounded_and_who_falls_behind_is_told() {
        let log = EventLog::new(5);
        let mut slow = log.place(None).unwrap();
        for id in 0..(EVENTS_MAX as u64 + 10) {
            job(&log, id, 1, "");
        }
        let seen = read(&log, &mut slow, 1);
        assert_eq!((seen.len(), seen[0].1.as_str(), seen[1].1.as_str()), (EVENTS_MAX + 1, "gap", "10"));
        assert_eq!(read(&log, &mut log.place(Some(&seen[0].0)).unwrap(), 1)[0], seen[1], "it resumes behind the gap");
        let long = "x".repeat(1 << 16);
        (0..100).for_each(|id| job(&log, id, 1, &long));
        let ring = log.ring.lock().unwrap();
        assert!(ring.bytes <= BYTES_MAX && ring.entries.len() < 40, "{} {}", ring.bytes, ring.entries.len());
    }
}
