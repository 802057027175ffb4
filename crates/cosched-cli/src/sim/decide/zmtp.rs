//! A ZeroMQ REQ socket, as far as Batsim's protocol needs it: ZMTP 3.0 (RFC 23/ZMTP) with the mechanism NULL, over any stream.

use std::io::{self, Error, ErrorKind, Read, Write};

/// The largest answer.
const BYTES_MAX: u64 = 16 << 20;
/// The largest command of the handshake.
const COMMAND_BYTES_MAX: u64 = 4096;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

const READY: &[u8] = b"\x05READY";
const ERROR: &[u8] = b"\x05ERROR";
const PING: &[u8] = b"\x04PING";
const PONG: &[u8] = b"\x04PONG";
/// A ping's time to live.
const TTL_BYTES: usize = 2;

/// Signature, version 3.0, the mechanism's name in 20 bytes, not a server, 31 zeros.
fn greeting() -> [u8; 64] {
    let mut bytes = [0; 64];
    (bytes[0], bytes[9], bytes[10]) = (0xff, 0x7f, 3);
    bytes[12..16].copy_from_slice(b"NULL");
    bytes
}

fn wrong(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, what.into())
}

/// The handshake with a REP socket.
///
/// # Errors
/// [`ErrorKind::InvalidData`]: what the peer is instead; others: of the stream.
pub(crate) fn greet(stream: &mut (impl Read + Write)) -> io::Result<()> {
    stream.write_all(&greeting())?;
    let mut theirs = [0; 64];
    // An older version has a shorter greeting, and another protocol none.
    stream.read_exact(&mut theirs[..11])?;
    if theirs[0] != 0xff || theirs[9] != 0x7f {
        return Err(wrong("what it sends is not ZeroMQ"));
    }
    if theirs[10] < 3 {
        return Err(wrong("it speaks a version of ZeroMQ's protocol before 3.0 (of 2013)"));
    }
    stream.read_exact(&mut theirs[11..])?;
    if theirs[12..32] != greeting()[12..32] {
        return Err(wrong("it demands that its peers prove who they are, and has to bind without that"));
    }
    let ready = [READY, b"\x0bSocket-Type\0\0\0\x03REQ"].concat();
    write_frame(stream, COMMAND, &ready)?;
    let (flags, body) = read_frame(stream, COMMAND_BYTES_MAX)?;
    if flags & COMMAND == 0 {
        return Err(wrong("it sends a message before the handshake"));
    }
    match body.strip_prefix(READY).and_then(socket_type) {
        Some(b"REP" | b"ROUTER") => Ok(()),
        Some(other) => Err(wrong(format!("its socket is {} and not REP", other.escape_ascii()))),
        None => Err(refusal(&body).unwrap_or_else(|| wrong("its handshake is damaged"))),
    }
}

/// The value of the property of that name: a name and its length, a value and its length.
fn socket_type(mut properties: &[u8]) -> Option<&[u8]> {
    loop {
        let (length, rest) = properties.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return Some(value);
        }
        properties = rest;
    }
}

fn refusal(command: &[u8]) -> Option<Error> {
    let (_, reason) = command.strip_prefix(ERROR)?.split_first()?;
    Some(wrong(format!("it refuses the connection: {}", reason.escape_ascii())))
}

/// Sends a request and reads the answer.
///
/// # Errors
/// As [`greet`].
pub(crate) fn request(stream: &mut (impl Read + Write), body: &[u8]) -> io::Result<Vec<u8>> {
    write_frame(stream, MORE, b"")?;
    write_frame(stream, 0, body)?;
    if !matches!(next_part(stream)?, (MORE, empty) if empty.is_empty()) {
        return Err(wrong("its answer has no envelope, which a REP socket would make"));
    }
    match next_part(stream)? {
        (0, answer) => Ok(answer),
        _ => Err(wrong("its answer has several parts")),
    }
}

/// The next part of a message, with the flag whether there is more of it. Signs of life are answered.
fn next_part(stream: &mut (impl Read + Write)) -> io::Result<(u8, Vec<u8>)> {
    loop {
        let (flags, body) = read_frame(stream, BYTES_MAX)?;
        if flags & COMMAND == 0 {
            return Ok((flags & MORE, body));
        }
        if let Some(context) = body.strip_prefix(PING).and_then(|ping| ping.get(TTL_BYTES..)) {
            write_frame(stream, COMMAND, &[PONG, context].concat())?;
        } else if let Some(error) = refusal(&body) {
            return Err(error);
        }
    }
}

fn write_frame(stream: &mut impl Write, flags: u8, body: &[u8]) -> io::Result<()> {
    let mut frame = match u8::try_from(body.len()) {
        Ok(length) => vec![flags, length],
        Err(_) => [&[flags | LONG][..], &(body.len() as u64).to_be_bytes()].concat(),
    };
    frame.extend_from_slice(body);
    stream.write_all(&frame)
}

fn read_frame(stream: &mut impl Read, bytes_max: u64) -> io::Result<(u8, Vec<u8>)> {
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    let [flags] = byte;
    if flags & !(MORE | LONG | COMMAND) != 0 {
        return Err(wrong("what it sends is not ZeroMQ"));
    }
    let length = if flags & LONG == 0 {
        stream.read_exact(&mut byte)?;
        u64::from(byte[0])
    } else {
        let mut length = [0; 8];
        stream.read_exact(&mut length)?;
        u64::from_be_bytes(length)
    };
    if length > bytes_max {
        return Err(wrong(format!("it sends {length} bytes at once, and at most {bytes_max} are taken")));
    }
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body)?;
    Ok((flags, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a peer sends is known beforehand; what it is sent is kept.
    #[derive(Default)]
    struct Peer {
        sends: io::Cursor<Vec<u8>>,
        sent: Vec<u8>,
    }

    impl Read for Peer {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.sends.read(bytes)
        }
    }

    impl Write for Peer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.sent.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn peer(parts: &[&[u8]]) -> Peer {
        Peer { sends: io::Cursor::new(parts.concat()), sent: Vec::new() }
    }

    const REP: &[u8] = b"\x04\x26\x05READY\x08Identity\0\0\0\0\x0bSocket-Type\0\0\0\x03REP";

    #[test]
    fn a_request_is_answered_between_signs_of_life() {
        let long = vec![b'x'; 300];
        let head = [&b"\x02"[..], &300_u64.to_be_bytes()].concat();
        let mut of = peer(&[&greeting(), REP, b"\x04\x09\x04PING\0\x0aab", b"\x01\0", b"\x04\x03\x02HI", &head, &long]);
        greet(&mut of).unwrap();
        assert_eq!(of.sent.len(), 64 + 2 + 6 + 12 + 4 + 3);
        of.sent.clear();
        assert_eq!(request(&mut of, b"hello").unwrap(), long);
        assert_eq!(of.sent, b"\x01\0\0\x05hello\x04\x07\x04PONGab");
        of.sent.clear();
        assert_eq!(request(&mut of, &long).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(of.sent, [&b"\x01\0"[..], &head, &long].concat());
    }

    #[test]
    fn what_a_peer_is_instead_is_said() {
        let mut curve = greeting();
        curve[12..17].copy_from_slice(b"CURVE");
        let mut old = greeting();
        old[10] = 1;
        let sub = [&REP[..REP.len() - 3], b"SUB"].concat();
        let huge = [&b"\x02"[..], &u64::MAX.to_be_bytes()].concat();
        let cases: [(&[&[u8]], &str); 9] = [
            (&[b"SSH-2.0-OpenSSH_9.2p1 Debian"], "not ZeroMQ"),
            (&[&old], "before 3.0"),
            (&[&curve], "prove who they are"),
            (&[&greeting(), &sub], "its socket is SUB and not REP"),
            (&[&greeting(), b"\x04\x09\x05ERROR\x02no"], "it refuses the connection: no"),
            (&[&greeting(), b"\x04\x07\x05READY\xff"], "its handshake is damaged"),
            (&[&greeting(), b"\0\0"], "a message before the handshake"),
            (&[&greeting(), &huge], "18446744073709551615 bytes at once"),
            (&[&greeting(), b"\xf0"], "not ZeroMQ"),
        ];
        for (parts, part) in cases {
            let error = greet(&mut peer(parts)).unwrap_err();
            assert!(error.kind() == ErrorKind::InvalidData && error.to_string().contains(part), "{part}: {error}");
        }
        let cases: [(&[&[u8]], &str); 4] = [
            (&[b"\0\x02{}"], "no envelope"),
            (&[b"\x01\0\x01\x02{}\0\0"], "several parts"),
            (&[b"\x01\0", &huge], "at most 16777216 are taken"),
            (&[b"\x04\x08\x05ERROR\x01x"], "it refuses the connection: x"),
        ];
        for (parts, part) in cases {
            let error = request(&mut peer(parts), b"").unwrap_err();
            assert!(error.kind() == ErrorKind::InvalidData && error.to_string().contains(part), "{part}: {error}");
        }
    }
}
