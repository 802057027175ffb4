//! The version of the interface, which both sides send with every message, so that an old peer can be told from a broken
//! one.
//!
//! It is a header in each request and each answer. A daemon serves every client with its own MAJOR; a client with another
//! MAJOR is refused with an explanation. A client that requests from an older daemon something that came with a later MINOR
//! gets an explanation instead of "no such path". A peer that sends no header has version 1.0, which was the version before
//! the header was introduced.

use std::fmt;
use std::str::FromStr;

/// The header's name.
pub const VERSION_HEADER: &str = "cosched-api";

/// The version that this crate implements. MINOR is incremented with every path or field that is added.
pub const API_VERSION: ApiVersion = ApiVersion { major: 1, minor: 10 };

/// A version of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiVersion {
    /// Incremented when something is removed or changes its meaning.
    pub major: u32,
    /// Incremented when something is added.
    pub minor: u32,
}

impl ApiVersion {
    /// The version in the header's value; 1.0 if there is no header.
    ///
    /// # Errors
    /// The text, if it is not a version.
    pub fn of_header(value: Option<&str>) -> Result<ApiVersion, String> {
        value.map_or(Ok(ApiVersion { major: 1, minor: 0 }), |text| text.parse().map_err(|()| text.to_owned()))
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for ApiVersion {
    type Err = ();

    fn from_str(text: &str) -> Result<ApiVersion, ()> {
        let (major, minor) = text.trim().split_once('.').ok_or(())?;
        Ok(ApiVersion { major: major.parse().map_err(drop)?, minor: minor.parse().map_err(drop)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_two_numbers() {
        assert_eq!("1.12".parse(), Ok(ApiVersion { major: 1, minor: 12 }));
        assert_eq!(API_VERSION.to_string().parse(), Ok(API_VERSION));
        for text in ["", "1", "1.x", "1.2.3", "-1.0"] {
            assert_eq!(ApiVersion::of_header(Some(text)), Err(text.to_owned()));
        }
        assert_eq!(ApiVersion::of_header(None), Ok(ApiVersion { major: 1, minor: 0 }));
    }
}
