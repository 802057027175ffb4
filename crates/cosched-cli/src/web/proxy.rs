//! Passes the page's requests to the daemon's socket, as this user: only those that the page needs.

use super::http::{Answer, HEADERS, JSON, Request};
use super::json_error as error;
use cosched_api::{Client, ClientError, SocketChoice};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The daemon's metrics. They are among the paths for which the guard wants more than a cookie.
const METRICS: &str = "/v1/metrics";

/// The permitted requests; `*` is one part of a path.
const ALLOWED: [(&str, &str); 14] = [
    ("GET", METRICS),
    ("GET", "/v1/status"),
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/*/events"),
    ("GET", "/v1/limits"),
    ("GET", "/v1/samples"),
    ("POST", "/v1/jobs/*/suspend"),
    ("POST", "/v1/jobs/*/resume"),
    ("POST", "/v1/jobs/*/kill"),
    ("POST", "/v1/jobs/*/class"),
    ("POST", "/v1/jobs/*/share"),
    ("POST", "/v1/jobs/*/policy"),
    ("POST", "/v1/jobs/*/resources"),
    ("PUT", "/v1/nodes/*"),
];

/// The page itself waits for data a little longer than this: so it learns which of the two is silent.
const LOOK_TIMEOUT: Duration = Duration::from_secs(8);

/// The daemon's answer to a request.
pub(super) fn ask(socket: &SocketChoice, request: &Request) -> Answer {
    if !ALLOWED.iter().any(|(method, path)| *method == request.method && matches(path, &request.path)) {
        return error(
            404,
            "the page may not send this request",
            "it is not in the page's list of requests",
            "Use `cosched` or the socket.",
        );
    }
    let is_metrics = request.path == METRICS;
    let path = if is_metrics { "/metrics" } else { &request.path };
    let target = match request.query.as_str() {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    };
    let body = (request.method != "GET").then_some(request.body.as_slice());
    let forward = |mut client: Client| {
        if body.is_none() {
            client.set_answer_timeout(LOOK_TIMEOUT);
        }
        client.forward(&request.method, &target, body)
    };
    match socket.connect().and_then(forward) {
        Ok((200, body)) if is_metrics => Answer::of(200, "text/plain; charset=utf-8", body),
        Ok((status, body)) => Answer::of(status, JSON, body),
        Err(e) => unreachable(&e),
    }
}

/// The daemon sends something every 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Passes on the daemon's events as long as both sides are connected. Each sign of the daemon shows whether the browser's side is closed.
pub(super) fn events(socket: &SocketChoice, request: &Request, mut browser: impl Write) -> io::Result<()> {
    let client = match socket.connect() {
        Ok(client) => client,
        Err(e) => return super::http::answer(&mut browser, &unreachable(&e)),
    };
    let mut daemon = UnixStream::connect(client.path())?;
    daemon.set_read_timeout(Some(SILENCE_MAX))?;
    let query = &request.query;
    let last = request.header("last-event-id").map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    write!(daemon, "GET /v1/events?{query} HTTP/1.1\r\nHost: cosched\r\nConnection: close\r\n{last}\r\n")?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        daemon.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    head.truncate(head.len() - 2);
    browser.write_all(&[&head, HEADERS.as_bytes(), b"\r\n"].concat())?;
    io::copy(&mut daemon, &mut browser).map(drop)
}

fn matches(pattern: &str, path: &str) -> bool {
    let is_plain = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-%".contains(&b));
    let mut parts = path.split('/');
    let fit = pattern.split('/').all(|want| {
        parts
            .next()
            .is_some_and(|part| want == part || want == "*" && !part.is_empty() && part != ".." && is_plain(part))
    });
    fit && parts.next().is_none()
}

fn unreachable(error: &ClientError) -> Answer {
    let hint = "The page tries again by itself. `systemctl status coschedd` shows whether the daemon is running.";
    self::error(502, "the daemon does not answer", &error.to_string(), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_page_needs_is_handed_on() {
        assert!(matches("/v1/jobs/*/kill", "/v1/jobs/7/kill") && matches("/v1/jobs", "/v1/jobs"));
        for path in [
            "/v1/jobs/7",
            "/v1/jobs//kill",
            "/v1/jobs/../kill",
            "/v1/jobs/7/kill/x",
            "/v1/jobs/7 /kill",
            "/v1/jobs/7\u{a0}/kill",
        ] {
            assert!(!matches("/v1/jobs/*/kill", path), "{path}");
        }
        let none = SocketChoice::Named("/nowhere/x.sock".into());
        let of = |method: &str, path: &str| {
            ask(&none, &Request { method: method.into(), path: path.into(), ..Request::default() }).status
        };
        assert_eq!((of("GET", "/v1/status"), of("GET", "/v1/metrics"), of("POST", "/v1/jobs/7/kill")), (502, 502, 502));
        for (method, path) in [
            ("GET", "/metrics"),
            ("POST", "/v1/metrics"),
            ("POST", "/v1/jobs"),
            ("DELETE", "/v1/jobs/7/processes"),
            ("GET", "/v1/cluster/export"),
        ] {
            assert_eq!(of(method, path), 404, "{method} {path}");
        }
    }
}
