//! The bytes of NRI: ttrpc messages, in pieces, on two connections that share one socket.
//!
//! A piece has a head of two numbers (connection, length). The pieces of a connection, put together, are ttrpc messages with a head of ten bytes: length,
//! stream, kind and flags. All numbers are big-endian. What the runtime sends is bounded, although it is trusted.

use std::io::{self, Read, Write};

/// On it the runtime calls the plug-in.
pub(crate) const PLUGIN: u32 = 1;
/// On it the plug-in calls the runtime.
pub(crate) const RUNTIME: u32 = 2;

/// A ttrpc message that calls a method.
pub(crate) const REQUEST: u8 = 1;
/// A ttrpc message that answers one.
pub(crate) const RESPONSE: u8 = 2;

const HEAD_BYTES: usize = 10;
/// The longest body of a message: ttrpc's own limit.
const BODY_BYTES_MAX: usize = 4 << 20;
/// The longest piece that is sent: the runtime's reader has a buffer of this length, and refuses a longer piece.
const PIECE_BYTES: usize = 4096;

/// A message of one of the two connections.
#[derive(Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) connection: u32,
    /// Which call it belongs to.
    pub(crate) stream: u32,
    pub(crate) kind: u8,
    pub(crate) body: Vec<u8>,
}

/// Puts pieces together.
pub(crate) struct Reader<R> {
    trunk: R,
    /// What has come of each connection, and is no whole message yet.
    begun: [Vec<u8>; 2],
}

impl<R: Read> Reader<R> {
    pub(crate) fn new(trunk: R) -> Reader<R> {
        Reader { trunk, begun: [Vec::new(), Vec::new()] }
    }

    /// Blocks until a whole message has come.
    ///
    /// # Errors
    /// The socket's, `UnexpectedEof` when it was closed, and `InvalidData` if a length is above the protocol's limit.
    pub(crate) fn next(&mut self) -> io::Result<Message> {
        loop {
            for connection in [PLUGIN, RUNTIME] {
                let begun = &mut self.begun[connection as usize - 1];
                if let Some(message) = first_message(connection, begun)? {
                    return Ok(message);
                }
            }
            self.read_piece()?;
        }
    }

    fn read_piece(&mut self) -> io::Result<()> {
        let mut head = [0; 8];
        self.trunk.read_exact(&mut head)?;
        let length = number(&head[4..]) as usize;
        check_length(length, HEAD_BYTES + BODY_BYTES_MAX)?;
        let mut other = Vec::new();
        let begun = match number(&head[..4]) {
            connection @ (PLUGIN | RUNTIME) => &mut self.begun[connection as usize - 1],
            _ => &mut other,
        };
        // The buffer grows with what really comes.
        let read = (&mut self.trunk).take(length as u64).read_to_end(begun)?;
        if read < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

/// Takes the first message out of what has come, if all of it has.
fn first_message(connection: u32, begun: &mut Vec<u8>) -> io::Result<Option<Message>> {
    if begun.len() < HEAD_BYTES {
        return Ok(None);
    }
    let length = number(&begun[..4]) as usize;
    check_length(length, BODY_BYTES_MAX)?;
    if begun.len() < HEAD_BYTES + length {
        return Ok(None);
    }
    let (stream, kind) = (number(&begun[4..8]), begun[8]);
    let body = begun[HEAD_BYTES..HEAD_BYTES + length].to_vec();
    begun.drain(..HEAD_BYTES + length);
    Ok(Some(Message { connection, stream, kind, body }))
}

/// Sends a message.
///
/// # Errors
/// The socket's.
pub(crate) fn send(trunk: &mut impl Write, message: &Message) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + message.body.len());
    bytes.extend((message.body.len() as u32).to_be_bytes());
    bytes.extend(message.stream.to_be_bytes());
    bytes.extend([message.kind, 0]);
    bytes.extend(&message.body);
    for piece in bytes.chunks(PIECE_BYTES) {
        let head = [message.connection, piece.len() as u32].map(u32::to_be_bytes).concat();
        trunk.write_all(&[&head, piece].concat())?;
    }
    trunk.flush()
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

fn check_length(length: usize, most: usize) -> io::Result<()> {
    let why = || format!("it sends {length} bytes at once, more than NRI allows");
    if length > most { Err(io::Error::new(io::ErrorKind::InvalidData, why())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(connection: u32, length: usize) -> Message {
        Message { connection, stream: 3, kind: REQUEST, body: (0..length).map(|at| at as u8).collect() }
    }

    #[test]
    fn messages_come_out_as_they_went_in_whatever_their_pieces() {
        let mut bytes = Vec::new();
        let sent = [message(PLUGIN, 0), message(RUNTIME, 5), message(PLUGIN, 3 * PIECE_BYTES)];
        sent.iter().for_each(|message| send(&mut bytes, message).unwrap());
        let mut reader = Reader::new(&bytes[..]);
        sent.iter().for_each(|message| assert_eq!(&reader.next().unwrap(), message));
        assert_eq!(reader.next().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn pieces_of_two_connections_may_alternate_and_others_are_ignored() {
        let part = |connection: u32, bytes: &[u8]| {
            [&[connection, bytes.len() as u32].map(u32::to_be_bytes).concat(), bytes].concat()
        };
        let mut whole = Vec::new();
        send(&mut whole, &message(PLUGIN, 20)).unwrap();
        let whole = &whole[8..];
        let mut other = Vec::new();
        send(&mut other, &message(RUNTIME, 1)).unwrap();
        let bytes = [part(PLUGIN, &whole[..4]), part(9, b"xyz"), other, part(PLUGIN, &whole[4..])].concat();
        let mut reader = Reader::new(&bytes[..]);
        assert_eq!(reader.next().unwrap(), message(RUNTIME, 1));
        assert_eq!(reader.next().unwrap(), message(PLUGIN, 20));
    }

    #[test]
    fn lengths_above_the_limit_are_refused_before_anything_is_read() {
        let piece = [PLUGIN, 64 << 20].map(u32::to_be_bytes).concat();
        assert_eq!(Reader::new(&piece[..]).next().unwrap_err().kind(), io::ErrorKind::InvalidData);
        let head = [&[PLUGIN, 10, 5 << 20, 1].map(u32::to_be_bytes).concat()[..], &[1, 0]].concat();
        assert_eq!(Reader::new(&head[..]).next().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
