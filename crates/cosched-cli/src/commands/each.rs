//! One request for each job, several at a time: requests that reach the daemon together are planned and written together.

use crate::context::Context;
use crate::jobs::{Answers, code_of, connect, find_all, patiently};
use crate::out::Failure;
use cosched_api::{Client, ClientError, Job};
use std::thread;

/// The number of requests in flight at a time.
const AT_ONCE: usize = 16;

/// Sends a request for each job; continues after failures, the first of which determines the exit code. The answers are printed only as
/// JSON, in the order of the words.
pub(super) fn each(
    context: &Context,
    words: &[String],
    request: impl Fn(&mut Client, u64) -> Result<Job, ClientError> + Sync,
) -> Result<u8, Failure> {
    let mut clients = vec![connect(context)?];
    let path = clients[0].path().to_owned();
    for _ in 1..AT_ONCE.min(words.len()) {
        clients.push(Client::connect(&path)?);
    }
    let mut shown = Answers::new(context);
    let mut first = 0;
    for some in words.chunks(AT_ONCE) {
        let ids = find_all(&mut clients[0], some)?;
        let answers = patiently(&path, || ask(&mut clients, ids, &request));
        for answer in answers {
            let code = code_of(answer.map(|job| shown.show(&job)).map(|()| 0))?;
            first = if first == 0 { code } else { first };
        }
    }
    shown.end(first)
}

/// Each client takes the next job until none is left.
fn ask(
    clients: &mut [Client],
    ids: Vec<Result<u64, Failure>>,
    request: &(impl Fn(&mut Client, u64) -> Result<Job, ClientError> + Sync),
) -> Vec<Result<Job, Failure>> {
    thread::scope(|scope| {
        let asked = clients.iter_mut().zip(ids);
        let asked: Vec<_> = asked.map(|(client, id)| id.map(|id| scope.spawn(move || request(client, id)))).collect();
        let answer = |thread: thread::ScopedJoinHandle<'_, Result<Job, ClientError>>| match thread.join() {
            Ok(answer) => answer.map_err(Failure::from),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        asked.into_iter().map(|asked| asked.and_then(answer)).collect()
    })
}
