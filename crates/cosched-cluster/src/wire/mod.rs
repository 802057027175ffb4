//! What lies in the store: JSON with the name of its format and a version.
//!
//! Every value is `{"format": …, "version": …, "body": …}`. A format or version that is not known is refused, before the
//! body is looked at, so that an older daemon never half understands what a newer one wrote. A version stands for exactly
//! one set of fields. Large values are compressed (gzip), because the store limits the size of a request: `zcat` shows
//! them to people.

mod config;
mod decided;
mod job;
mod names;
mod node;
mod request;
mod state;
mod terms;

pub use config::{FairShare, Queue, Rights, Shares};
pub use decided::Decided;
pub use job::{
    Attempt, End, Event, Exit, Job, JobAsk, KillHow, MainProcess, NodeAsk, OutOfMemory, PartEnd, WaitAsk, WantAsk, Why,
};
pub use names::{Class, OnNodeLoss, Packing, Period, Policy, Reason, Sharing};
pub(crate) use node::Name;
pub use node::{Ack, Clock, Measured, Node, Written};
pub use request::{Answer, Ask, By, Reply, Request};
pub use terms::{AfterAsk, TermsAsk};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::io::{Read, Write};

/// Values whose text is longer are compressed, in bytes.
const COMPRESS_BYTES: usize = 4096;

/// No value is longer than this when it is decompressed, in bytes.
const TEXT_BYTES_MAX: u64 = 256 << 20;

/// The first bytes of gzip; no JSON begins so.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Something that lies in the store.
pub trait Stored: Sized {
    /// The name of its format.
    const FORMAT: &'static str;
    /// The version of its format.
    const VERSION: u32;
    /// What is written.
    type Body: Serialize + DeserializeOwned;

    /// As it is written.
    fn to_body(&self) -> Self::Body;

    /// As it was meant.
    ///
    /// # Errors
    /// What was written cannot be.
    fn from_body(body: Self::Body) -> Result<Self, String>;
}

/// A value of the store that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Not a value of ours.
    #[error("it is not a value of cosched: {0}")]
    NotOurs(String),
    /// Something else than was expected.
    #[error("it is of the format `{found}`, and `{expected}` belongs there")]
    Format {
        /// What it says that it is.
        found: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// Another version.
    #[error(
        "`{format}` has version {found}, and this coschedd knows {known} only: run the same version of cosched on all nodes"
    )]
    Version {
        /// The format.
        format: &'static str,
        /// Its version.
        found: u32,
        /// The version that is known.
        known: u32,
    },
    /// The fields are not those of the version, or contradict each other.
    #[error("`{format}` version {version} is damaged: {why}")]
    Body {
        /// The format.
        format: &'static str,
        /// Its version.
        version: u32,
        /// What is wrong.
        why: String,
    },
}

#[derive(Serialize)]
struct Outer<'a, B> {
    format: &'a str,
    version: u32,
    body: B,
}

#[derive(Deserialize)]
struct Inner<'a> {
    format: String,
    version: u32,
    #[serde(borrow)]
    body: &'a RawValue,
}

/// The bytes of a value, as they lie in the store.
pub fn encode<T: Stored>(value: &T) -> Vec<u8> {
    let whole = Outer { format: T::FORMAT, version: T::VERSION, body: value.to_body() };
    // Fails for maps with keys that are no text only; ours are numbers and names.
    packed(serde_json::to_vec(&whole).unwrap_or_default())
}

/// A value as people read it.
///
/// # Errors
/// It is no text.
pub(crate) fn text_of(bytes: &[u8]) -> Result<String, FormatError> {
    let text = if bytes.starts_with(&GZIP) { unpack(bytes)? } else { bytes.to_vec() };
    String::from_utf8(text).map_err(|e| FormatError::NotOurs(e.to_string()))
}

/// The bytes of a value as they lie in the store, from its text.
pub(crate) fn packed(text: Vec<u8>) -> Vec<u8> {
    if text.len() <= COMPRESS_BYTES {
        return text;
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let packed = gzip.write_all(&text).and_then(|()| gzip.finish());
    packed.unwrap_or(text)
}

/// A value from its bytes.
///
/// # Errors
/// It is of another format or version, or damaged.
pub fn decode<T: Stored>(bytes: &[u8]) -> Result<T, FormatError> {
    let unpacked;
    let text = if bytes.starts_with(&GZIP) {
        unpacked = unpack(bytes)?;
        &unpacked
    } else {
        bytes
    };
    let read: Inner = serde_json::from_slice(text).map_err(|e| FormatError::NotOurs(e.to_string()))?;
    if read.format != T::FORMAT {
        return Err(FormatError::Format { found: read.format, expected: T::FORMAT });
    }
    if read.version != T::VERSION {
        return Err(FormatError::Version { format: T::FORMAT, found: read.version, known: T::VERSION });
    }
    let damaged = |why| FormatError::Body { format: T::FORMAT, version: T::VERSION, why };
    let body = serde_json::from_str(read.body.get()).map_err(|e| damaged(e.to_string()))?;
    T::from_body(body).map_err(damaged)
}

fn unpack(bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    let mut text = Vec::new();
    let not_ours = |e: std::io::Error| FormatError::NotOurs(e.to_string());
    GzDecoder::new(bytes).take(TEXT_BYTES_MAX + 1).read_to_end(&mut text).map_err(not_ours)?;
    if text.len() as u64 > TEXT_BYTES_MAX {
        return Err(FormatError::NotOurs(format!("it has more than {TEXT_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// A type that is written as it is.
macro_rules! stored_as_is {
    ($type:ty, $format:literal, $version:literal) => {
        impl crate::wire::Stored for $type {
            const FORMAT: &'static str = $format;
            const VERSION: u32 = $version;
            type Body = $type;

            fn to_body(&self) -> $type {
                self.clone()
            }

            fn from_body(body: $type) -> Result<$type, String> {
                Ok(body)
            }
        }
    };
}
pub(crate) use stored_as_is;

/// The layout of the whole tree of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// The version of cosched that made it, for people.
    pub made_by: String,
    /// When it was made, by the wall clock, in nanoseconds: what tells it from one that was there before.
    #[serde(default)]
    pub made_ns: u64,
}
stored_as_is!(Tree, "cosched-tree", 1);
