//! The thread that talks to the daemon: it fetches news, and passes orders on.

use cosched_api::{Class, ClassRequest, Client, ClientError, Job, KillRequest, Sample, SocketChoice, Status};
use serde::Serialize;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// A daemon that takes longer than this has a problem, which is reported.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The daemon takes a sample as often.
const PAST_PERIOD: Duration = Duration::from_secs(10);
const GRACE_MS: u64 = 5000;

/// The daemon's state at one moment.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Shot {
    pub(super) status: Status,
    pub(super) jobs: Vec<Job>,
}

impl Shot {
    pub(super) fn take(client: &mut Client) -> Result<Shot, ClientError> {
        Ok(Shot { status: client.status()?, jobs: client.jobs(false)?.jobs })
    }
}

/// What the user wants to do to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Suspend(u64),
    Resume(u64),
    Kill(u64),
    Class(u64, Class),
}

impl Order {
    pub(super) fn job(self) -> u64 {
        match self {
            Order::Suspend(id) | Order::Resume(id) | Order::Kill(id) | Order::Class(id, _) => id,
        }
    }

    /// The message after it was done.
    fn done(self) -> String {
        match self {
            Order::Suspend(id) => format!("job {id} is suspended"),
            Order::Resume(id) => format!("job {id} is resumed"),
            Order::Kill(id) => format!("job {id} got TERM; KILL follows in {} s", GRACE_MS / 1000),
            Order::Class(id, class) => format!("job {id} is {} now", class.name()),
        }
    }

    fn carry_out(self, client: &mut Client) -> Result<Job, ClientError> {
        match self {
            Order::Suspend(id) => client.suspend(id),
            Order::Resume(id) => client.resume(id),
            Order::Kill(id) => client.kill(id, &KillRequest { signal: 15, grace_ms: Some(GRACE_MS), here: false }),
            Order::Class(id, class) => client.set_class(id, &ClassRequest { class }),
        }
    }
}

/// What the thread reports.
#[derive(Debug)]
pub(super) enum News {
    Shot(Box<Shot>),
    /// The last hour, the oldest sample first.
    Past(Vec<Sample>),
    /// Why nothing new is available.
    Trouble(String),
    /// An order was carried out.
    Done(String),
    /// An order was refused.
    Refused(String),
}

/// Starts the thread; it ends when the sender of orders is dropped.
pub(super) fn start(socket: SocketChoice, first: Client, interval: Duration) -> (Sender<Order>, Receiver<News>) {
    let (orders, ordered) = channel();
    let (news, heard) = channel();
    std::thread::spawn(move || feed(&socket, Some(first), interval, &ordered, &news));
    (orders, heard)
}

fn feed(
    socket: &SocketChoice,
    mut client: Option<Client>,
    interval: Duration,
    orders: &Receiver<Order>,
    news: &Sender<News>,
) {
    let mut past_due = Instant::now();
    loop {
        if past_due <= Instant::now() {
            past_due = Instant::now() + PAST_PERIOD;
            // A daemon that cannot be asked is reported below; one of before has no samples.
            let samples = ask(socket, &mut client, Client::samples).map(|past| past.samples).unwrap_or_default();
            if news.send(News::Past(samples)).is_err() {
                return;
            }
        }
        let said = match ask(socket, &mut client, Shot::take) {
            Ok(shot) => News::Shot(Box::new(shot)),
            Err(e) => News::Trouble(in_a_line(&e)),
        };
        if news.send(said).is_err() {
            return;
        }
        let order: Order = match orders.recv_timeout(interval) {
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let said = match ask(socket, &mut client, |client| order.carry_out(client)) {
            Ok(_) => News::Done(order.done()),
            Err(e) => News::Refused(in_a_line(&e)),
        };
        if news.send(said).is_err() {
            return;
        }
    }
}

/// Asks on the existing connection, or on a new one, so that a restarted daemon is found again.
fn ask<T>(
    socket: &SocketChoice,
    client: &mut Option<Client>,
    question: impl FnOnce(&mut Client) -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let connected = match client {
        Some(client) => client,
        None => client.insert(socket.connect()?),
    };
    connected.set_answer_timeout(ANSWER_TIMEOUT);
    let answer = question(connected);
    if matches!(answer, Err(ClientError::Unreachable { .. } | ClientError::Protocol(_))) {
        *client = None;
    }
    answer
}

/// What, why and hint in one line.
fn in_a_line(error: &ClientError) -> String {
    match error {
        ClientError::Refused(body) => format!("{}: {}. {}", body.what, body.why, body.hint),
        _ => error.to_string().replace("\n  why:", ":").lines().next().unwrap_or_default().to_owned(),
    }
}
