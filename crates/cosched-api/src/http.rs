//! The subset of HTTP/1.1 that a client of one local daemon needs: one request, one answer, connections
//! kept open.

use crate::version::{API_VERSION, VERSION_HEADER};
use std::io::{self, Read, Write};

const HEAD_BYTES_MAX: usize = 64 << 10;
const BODY_BYTES_MAX: usize = 64 << 20;
const HEADERS_MAX: usize = 64;
/// The maximum length of a line of a streamed answer.
const LINE_BYTES_MAX: usize = 1 << 20;

/// An answer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Whether the connection may be used for another request.
    pub(crate) keep: bool,
    /// The daemon's version of the interface, from the header.
    pub(crate) version: Option<String>,
}

enum Body {
    Length(usize),
    Chunked,
    UntilClose,
}

struct Head {
    status: u16,
    body: Body,
    keep: bool,
    version: Option<String>,
}

/// Sends one request in a single write, so that it reaches the daemon in one piece.
pub(crate) fn send(stream: &mut impl Write, method: &str, target: &str, body: Option<&[u8]>) -> io::Result<()> {
    let version = format!("{VERSION_HEADER}: {API_VERSION}");
    let mut request =
        format!("{method} {target} HTTP/1.1\r\nHost: cosched\r\nAccept: application/json\r\n{version}\r\n")
            .into_bytes();
    if let Some(body) = body {
        let fields = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        request.extend_from_slice(fields.as_bytes());
        request.extend_from_slice(body);
    } else {
        request.extend_from_slice(b"\r\n");
    }
    stream.write_all(&request)
}

/// Reads one answer. `InvalidData` means that it is not HTTP; `UnexpectedEof` that the daemon closed the
/// connection.
pub(crate) fn receive(stream: &mut impl Read) -> io::Result<Response> {
    let mut input = Input::new(stream);
    let head = input.final_head()?;
    input.response(head)
}

/// The lines of an answer that continues for as long as the connection.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: Input<R>,
    /// What has been received of the incomplete line, and what follows it.
    text: Vec<u8>,
}

/// Reads the head of a streamed answer; if the answer is not streamed, all of it.
pub(crate) fn receive_lines<R: Read>(stream: R) -> io::Result<Result<Lines<R>, Response>> {
    let mut input = Input::new(stream);
    let head = input.final_head()?;
    match head.body {
        Body::Chunked if (200..300).contains(&head.status) => Ok(Ok(Lines { input, text: Vec::new() })),
        _ => input.response(head).map(Err),
    }
}

impl<R: Read> Lines<R> {
    /// The next line, without its end; None when the answer has ended.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                return String::from_utf8(line).map(|line| Some(line.trim_end().to_owned())).map_err(|_| not_text());
            }
            if self.text.len() > LINE_BYTES_MAX {
                return Err(invalid("a line of the answer is longer than 1 MiB"));
            }
            match self.input.chunk()? {
                Some(mut chunk) => self.text.append(&mut chunk),
                None => return Ok(None),
            }
        }
    }
}

#[derive(Debug)]
struct Input<R> {
    stream: R,
    /// What was read but not consumed yet.
    buffer: Vec<u8>,
}

impl<R: Read> Input<R> {
    fn new(stream: R) -> Input<R> {
        Input { stream, buffer: Vec::with_capacity(4096) }
    }

    /// The head of the answer; 1xx answers are skipped, they only announce it.
    fn final_head(&mut self) -> io::Result<Head> {
        loop {
            let head = self.head()?;
            if !(100..200).contains(&head.status) {
                return Ok(head);
            }
        }
    }

    fn response(&mut self, head: Head) -> io::Result<Response> {
        let body = self.body(&head.body)?;
        let keep = head.keep && self.buffer.is_empty();
        Ok(Response { status: head.status, body, keep, version: head.version })
    }

    /// Reads more; false at the end of the stream.
    fn more(&mut self) -> io::Result<bool> {
        let mut piece = [0; 16 << 10];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    self.buffer.extend_from_slice(&piece[..n]);
                    return Ok(true);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn need_more(&mut self) -> io::Result<()> {
        if self.more()? { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn head(&mut self) -> io::Result<Head> {
        loop {
            if let Some((head, used)) = parse_head(&self.buffer)? {
                self.buffer.drain(..used);
                return Ok(head);
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(invalid("the head of the answer is longer than 64 KiB"));
            }
            self.need_more()?;
        }
    }

    fn body(&mut self, kind: &Body) -> io::Result<Vec<u8>> {
        match kind {
            Body::Length(length) => self.take(*length),
            Body::Chunked => self.chunks(),
            Body::UntilClose => {
                while self.buffer.len() <= BODY_BYTES_MAX {
                    if !self.more()? {
                        return Ok(std::mem::take(&mut self.buffer));
                    }
                }
                Err(too_long())
            }
        }
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > BODY_BYTES_MAX {
            return Err(too_long());
        }
        while self.buffer.len() < length {
            self.need_more()?;
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(mut chunk) = self.chunk()? {
            if chunk.len() > BODY_BYTES_MAX - body.len() {
                return Err(too_long());
            }
            body.append(&mut chunk);
        }
        Ok(body)
    }

    /// The next chunk; None after the last one.
    fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let size = self.chunk_size()?;
        if size == 0 {
            return self.trailers().map(|()| None);
        }
        if size > BODY_BYTES_MAX {
            return Err(too_long());
        }
        let mut chunk = self.take(size + 2)?;
        if !chunk.ends_with(b"\r\n") {
            return Err(invalid("a chunk of the answer does not end where it says"));
        }
        chunk.truncate(size);
        Ok(Some(chunk))
    }

    fn chunk_size(&mut self) -> io::Result<usize> {
        loop {
            match httparse::parse_chunk_size(&self.buffer) {
                Ok(httparse::Status::Complete((used, size))) => {
                    self.buffer.drain(..used);
                    return usize::try_from(size).map_err(|_| too_long());
                }
                Ok(httparse::Status::Partial) => self.need_more()?,
                Err(_) => return Err(invalid("a chunk of the answer has no valid size")),
            }
        }
    }

    /// Skips the trailer fields after the last chunk, up to the empty line.
    fn trailers(&mut self) -> io::Result<()> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                self.buffer.drain(..end + 2);
                if end == 0 {
                    return Ok(());
                }
            } else if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(invalid("the trailer of the answer is longer than 64 KiB"));
            } else {
                self.need_more()?;
            }
        }
    }
}

fn parse_head(buffer: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let used = match response.parse(buffer) {
        Ok(httparse::Status::Complete(used)) => used,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(e) => return Err(invalid(&format!("not an HTTP answer ({e})"))),
    };
    let status = response.code.unwrap_or_default();
    let field = |name: &str| response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value);
    let has = |name: &str, word: &[u8]| field(name).is_some_and(|value| value.eq_ignore_ascii_case(word));
    let body = if has("transfer-encoding", b"chunked") {
        Body::Chunked
    } else if let Some(length) = field("content-length") {
        let length = std::str::from_utf8(length).ok().and_then(|text| text.trim().parse().ok());
        Body::Length(length.ok_or_else(|| invalid("the answer's Content-Length is not a number"))?)
    } else if status < 200 || status == 204 || status == 304 {
        Body::Length(0)
    } else {
        Body::UntilClose
    };
    let keep = !matches!(body, Body::UntilClose) && !has("connection", b"close") && response.version == Some(1);
    let version = field(VERSION_HEADER).map(|value| String::from_utf8_lossy(value).into_owned());
    Ok(Some((Head { status, body, keep, version }, used)))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn not_text() -> io::Error {
    invalid("a line of the answer is not UTF-8")
}

fn too_long() -> io::Error {
    invalid("the answer is longer than 64 MiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns its bytes one at a time, like the worst possible network.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            out[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn both(text: &str) -> io::Result<Response> {
        let slow = receive(&mut Slow(text.as_bytes()));
        let quick = receive(&mut text.as_bytes());
        if let (Ok(slow), Ok(quick)) = (&slow, &quick) {
            assert_eq!((slow.status, &slow.body), (quick.status, &quick.body));
        }
        assert_eq!(slow.is_ok(), quick.is_ok());
        slow
    }

    #[test]
    fn reads_bodies_of_every_kind() {
        let answer = both("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        assert_eq!((answer.status, answer.body.as_slice(), answer.keep), (200, b"{}".as_slice(), true));
        let chunked = "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{\"\r\n3;x=y\r\na\":\r\n2\r\n1}\r\n0\r\nA: b\r\n\r\n";
        let answer = both(chunked).unwrap();
        assert_eq!((answer.status, answer.body.as_slice(), answer.keep), (201, b"{\"a\":1}".as_slice(), true));
        let answer = both("HTTP/1.0 404 Not Found\r\nCosched-Api: 1.7\r\n\r\nno").unwrap();
        assert_eq!(answer.version.as_deref(), Some("1.7"));
        assert_eq!((answer.status, answer.body.as_slice(), answer.keep), (404, b"no".as_slice(), false));
        let answer = both("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
        assert_eq!((answer.status, answer.body.is_empty(), answer.keep), (204, true, false));
    }

    #[test]
    fn reads_lines_as_they_come_across_chunks() {
        let text = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nid: \r\n5\r\n7\n\nda\r\n6\r\nta: x\n\r\n0\r\n\r\n";
        let mut lines = receive_lines(Slow(text.as_bytes())).unwrap().unwrap();
        let all: Vec<String> = std::iter::from_fn(|| lines.next_line().unwrap()).collect();
        assert_eq!(all, ["id: 7", "", "data: x"]);
        let refused = receive_lines(&b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\n{}"[..]).unwrap().unwrap_err();
        assert_eq!((refused.status, refused.body), (403, b"{}".to_vec()));
        let mut cut = receive_lines(&text.as_bytes()[..60]).unwrap().unwrap();
        assert_eq!(cut.next_line().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn refuses_what_is_not_an_answer() {
        let kind = |text: &str| both(text).unwrap_err().kind();
        assert_eq!(kind(""), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}"), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind("SSH-2.0-OpenSSH\r\n\r\n"), io::ErrorKind::InvalidData);
        assert_eq!(kind("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), io::ErrorKind::InvalidData);
        assert_eq!(kind("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"), io::ErrorKind::InvalidData);
        assert_eq!(kind("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), io::ErrorKind::InvalidData);
        assert_eq!(
            kind("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n"),
            io::ErrorKind::InvalidData
        );
    }
}
