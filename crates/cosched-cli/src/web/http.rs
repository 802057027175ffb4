//! The part of HTTP/1.1 that a page on the same machine needs: one request, one answer, and the connection is closed.

use std::io::{self, Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;

/// The headers of every answer: no caching.
pub(super) const HEADERS: &str = "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\nConnection: close\r\n";
/// What the page may do: no other sources, no frames.
const PAGE: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n";
/// What a report may do: run its own script, in an origin of its own, without a request. So it has no cookie and no token.
const REPORT: &str = "Content-Security-Policy: sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
    style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

/// The type of data.
pub(super) const JSON: &str = "application/json";

/// A request.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// The part after the question mark.
    pub(super) query: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    /// All before the body, as it arrived.
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// The length of the whole body, as announced.
    pub(super) length: usize,
}

impl Request {
    /// A header that occurs exactly once.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        found.next().filter(|_| found.next().is_none())
    }

    /// A value of the query that needs no unescaping.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) cookie: Option<String>,
    pub(super) is_report: bool,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn text(status: u16, text: &str) -> Answer {
        Answer::of(status, "text/plain; charset=utf-8", text.as_bytes().to_vec())
    }

    pub(super) fn json(value: &impl serde::Serialize) -> Answer {
        Answer::of(200, JSON, serde_json::to_vec(value).unwrap_or_default())
    }

    pub(super) fn report(body: Vec<u8>) -> Answer {
        Answer { is_report: true, ..Answer::of(200, "text/html; charset=utf-8", body) }
    }

    pub(super) fn of(status: u16, kind: &'static str, body: Vec<u8>) -> Answer {
        Answer { status, kind, cookie: None, is_report: false, body }
    }
}

/// Reads a request up to its body, of which a part may be read, too; or returns the status code of its refusal.
pub(super) fn read(stream: &mut impl Read) -> io::Result<Result<Request, u16>> {
    let mut buffer = Vec::new();
    let (mut request, used) = loop {
        match parse(&buffer) {
            Ok(Some(found)) => break found,
            Ok(None) if buffer.len() <= HEAD_BYTES_MAX => more(stream, &mut buffer)?,
            Ok(None) => return Ok(Err(431)),
            Err(status) => return Ok(Err(status)),
        }
    };
    request.body = buffer.split_off(used);
    request.head = buffer;
    Ok(Ok(request))
}

/// Reads the rest of the body, which may not be longer than this.
pub(super) fn body(stream: &mut impl Read, request: &mut Request, bytes_max: usize) -> io::Result<Result<(), u16>> {
    if request.length > bytes_max {
        return Ok(Err(413));
    }
    while request.body.len() < request.length {
        more(stream, &mut request.body)?;
    }
    request.body.truncate(request.length);
    Ok(Ok(()))
}

fn more(stream: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = [0; 16 << 10];
    match stream.read(&mut piece)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => {
            buffer.extend_from_slice(&piece[..count]);
            Ok(())
        }
    }
}

/// The request without its body, and the length of its head.
fn parse(buffer: &[u8]) -> Result<Option<(Request, usize)>, u16> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let used = match head.parse(buffer).map_err(|_| 400_u16)? {
        httparse::Status::Complete(used) => used,
        httparse::Status::Partial => return Ok(None),
    };
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).map_err(|_| 400_u16);
    let target = head.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = head.headers.iter().map(|field| Ok((field.name.to_ascii_lowercase(), text(field.value)?)));
    let mut request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: headers.collect::<Result<_, u16>>()?,
        ..Request::default()
    };
    if request.headers.iter().any(|(name, _)| name == "transfer-encoding") {
        return Err(411);
    }
    if request.headers.iter().any(|(name, _)| name == "content-length") {
        request.length = request.header("content-length").and_then(|value| value.parse().ok()).ok_or(400_u16)?;
    }
    Ok(Some((request, used)))
}

/// Writes an answer, with the time, from which the page computes the difference of its clock.
pub(super) fn answer(stream: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let cookie = answer.cookie.as_ref().map(|cookie| format!("Set-Cookie: {cookie}\r\n")).unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let head = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCosched-Unix-Us: {now}\r\n{cookie}{}{HEADERS}\r\n",
        answer.status,
        if answer.status < 400 { "OK" } else { "Refused" },
        answer.kind,
        answer.body.len(),
        if answer.is_report { REPORT } else { PAGE }
    );
    stream.write_all(&[head.as_bytes(), &answer.body].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Request, u16> {
        let stream = &mut text.as_bytes();
        let mut request = read(stream).unwrap()?;
        body(stream, &mut request, 64 << 10).unwrap().map(|()| request)
    }

    #[test]
    fn reads_a_request_and_refuses_what_is_too_much_or_none() {
        let request =
            of("POST /v1/jobs/7/kill?a=1&b=2 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}rest").unwrap();
        assert_eq!(
            (request.method.as_str(), request.path.as_str(), request.body.as_slice()),
            ("POST", "/v1/jobs/7/kill", &b"{}"[..])
        );
        assert_eq!((request.query("b"), request.query("c"), request.header("host")), (Some("2"), None, Some("x")));
        let twice = of("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n").unwrap();
        assert_eq!(twice.header("host"), None, "which one is meant?");
        for (text, status) in [
            ("SSH-2.0\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        ] {
            assert_eq!(of(text).unwrap_err(), status, "{text}");
        }
        let endless = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(40_000));
        assert_eq!(of(&endless).unwrap_err(), 431);
        assert!(read(&mut &b"GET / HTTP/1.1\r\n"[..]).is_err());
    }

    #[test]
    fn an_answer_says_what_a_browser_may_do_with_it() {
        let mut out = Vec::new();
        answer(&mut out, &Answer { cookie: Some("a=b".into()), ..Answer::text(403, "no") }).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("HTTP/1.1 403 ") && text.ends_with("\r\n\r\nno"), "{text}");
        assert!(
            text.contains("default-src 'none'") && text.contains("Set-Cookie: a=b\r\n") && text.contains("no-store")
        );
        let mut out = Vec::new();
        answer(&mut out, &Answer::report(b"<p>".to_vec())).unwrap();
        let text = String::from_utf8(out).unwrap();
        let policies: Vec<&str> = text.lines().filter(|line| line.starts_with("Content-Security-Policy")).collect();
        assert!(policies.len() == 1 && policies[0].contains(": sandbox allow-scripts; default-src 'none'"), "{text}");
        assert!(!text.contains("allow-same-origin") && !text.contains("connect-src"), "{text}");
    }
}
