//! Compressed logs: gzip is recognised by its first bytes, whatever the file's name is.

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Read};

/// The first bytes of compressed files that are not decompressed here, with the program for it.
const OTHERS: [(&[u8], &str); 4] =
    [(b"\xfd7zXZ\0", "xz -d"), (b"\x28\xb5\x2f\xfd", "zstd -d"), (b"BZh", "bzip2 -d"), (b"PK\x03\x04", "unzip")];

/// The text of a reader that may be compressed with gzip.
///
/// # Errors
/// An error of the reader; another compression, with the program that decompresses it.
pub fn unpack<'a>(mut input: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut first = Vec::new();
    input.by_ref().take(6).read_to_end(&mut first)?;
    if let Some((_, program)) = OTHERS.iter().find(|(magic, _)| first.starts_with(magic)) {
        let message = format!("it is packed in a way that is not read here; unpack it with `{program}`");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let is_gzip = first.starts_with(b"\x1f\x8b");
    let whole = BufReader::with_capacity(1 << 16, io::Cursor::new(first).chain(input));
    if is_gzip {
        return Ok(Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(whole))));
    }
    Ok(Box::new(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn text(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        unpack(bytes)?.read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn packed_and_plain_texts_are_the_same() {
        for plain in ["", "1", "12345", "1 2 3 4 5 6 7 8 9\n"] {
            assert_eq!(text(plain.as_bytes()).unwrap(), plain);
            assert_eq!(text(&packed(plain.as_bytes())).unwrap(), plain);
        }
        let twice = [packed(b"one\n"), packed(b"two\n")].concat();
        assert_eq!(text(&twice).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn other_packings_are_named() {
        assert!(text(b"\xfd7zXZ\0 and more").unwrap_err().to_string().contains("xz -d"));
    }

    #[test]
    fn what_ends_early_is_an_error() {
        let whole = packed("1 2 3 4 5 6\n".repeat(1000).as_bytes());
        for length in 2..whole.len() {
            assert_eq!(text(&whole[..length]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{length}");
        }
    }
}
