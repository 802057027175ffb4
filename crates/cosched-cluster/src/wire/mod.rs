//! The values in the store: JSON with the name of its format and a version.
//!
//! Every value is `{"format": …, "version": …, "body": …}`. An unknown format or version is refused before the body is
//! parsed, so that an older daemon never half understands a value of a newer one. A version stands for exactly
//! one set of fields. Large values are compressed (gzip), because the store limits the size of a request: `zcat` shows
//! them as text.

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
pub use names::{By, Class, OnNodeLoss, Packing, Period, Policy, Reason, Sharing};
pub(crate) use node::Name;
pub use node::{Ack, Clock, Measured, Node, Written};
pub use request::{Answer, Ask, Reply, Request};
pub use terms::{AfterAsk, TermsAsk};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::io::{Read, Write};

/// Values whose text is longer than this are compressed, in bytes.
const COMPRESS_BYTES: usize = 4096;

/// The maximum length of a decompressed value, in bytes.
const TEXT_BYTES_MAX: u64 = 256 << 20;

/// The first bytes of gzip; JSON never begins with them.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A type of values in the store.
pub trait Stored: Sized {
    /// The name of its format.
    const FORMAT: &'static str;
    /// The version of its format.
    const VERSION: u32;
    /// What is serialised.
    type Body: Serialize + DeserializeOwned;

    /// The value as it is serialised.
    fn to_body(&self) -> Self::Body;

    /// The value from its serialised form.
    ///
    /// # Errors
    /// The serialised fields contradict each other.
    fn from_body(body: Self::Body) -> Result<Self, String>;
}

/// Why a value of the store cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Not a value of cosched.
    #[error("it is not a value of cosched: {0}")]
    NotOurs(String),
    /// Another format than expected.
    #[error("its format is `{found}`, not `{expected}`")]
    Format {
        /// The value's format.
        found: String,
        /// The expected format.
        expected: &'static str,
    },
    /// Another version.
    #[error(
        "`{format}` has version {found}, and this coschedd supports only {known}: run the same version of cosched on \
         all nodes"
    )]
    Version {
        /// The format.
        format: &'static str,
        /// The format's version in the value.
        found: u32,
        /// The version that this daemon knows.
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

/// The bytes of a value as they are stored.
pub fn encode<T: Stored>(value: &T) -> Vec<u8> {
    let whole = Outer { format: T::FORMAT, version: T::VERSION, body: value.to_body() };
    // Only fails for maps with keys that are not text; ours are numbers and names.
    packed(serde_json::to_vec(&whole).unwrap_or_default())
}

/// The text of a value, decompressed.
///
/// # Errors
/// It is not UTF-8 text.
pub(crate) fn text_of(bytes: &[u8]) -> Result<String, FormatError> {
    let text = if bytes.starts_with(&GZIP) { unpack(bytes)? } else { bytes.to_vec() };
    String::from_utf8(text).map_err(|e| FormatError::NotOurs(e.to_string()))
}

/// The bytes of a value as they are stored, from its text.
pub(crate) fn packed(text: Vec<u8>) -> Vec<u8> {
    if text.len() <= COMPRESS_BYTES {
        return text;
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let packed = gzip.write_all(&text).and_then(|()| gzip.finish());
    packed.unwrap_or(text)
}

/// Decodes a value.
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

/// A type that is serialised as it is.
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

/// The version and creation time of a cluster's whole tree of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// The version of cosched that created it, for display.
    pub made_by: String,
    /// When it was created, by the wall clock, in nanoseconds: this distinguishes it from earlier trees.
    #[serde(default)]
    pub made_ns: u64,
}
stored_as_is!(Tree, "cosched-tree", 1);
