//! `[traces]`: a collector that is told of ended jobs.

use super::{ConfigError, error};
use serde::Deserialize;
use std::path::PathBuf;

/// A collector of OpenTelemetry.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Traces {
    /// Where it takes OTLP over gRPC.
    pub(crate) url: String,
    /// The certificates of the authorities that sign its own; for https.
    pub(crate) ca_file: Option<PathBuf>,
}

impl Traces {
    pub(super) fn check(self) -> Result<Traces, ConfigError> {
        let what = || format!("`url = \"{}\"` of `[traces]` cannot be used", self.url);
        let hint =
            "Write \"http://127.0.0.1:4317\" for a collector on this machine, or \"https://host:4317\" with `ca_file`.";
        match self.url.split_once("://") {
            Some(("http", rest)) if !rest.is_empty() && self.ca_file.is_none() => Ok(self),
            Some(("http", rest)) if !rest.is_empty() => Err(error(what(), "`ca_file` is only for https", hint)),
            Some(("https", rest)) if !rest.is_empty() && self.ca_file.is_some() => Ok(self),
            Some(("https", _)) => {
                Err(error(what(), "https needs `ca_file`, to check the certificate of the collector", hint))
            }
            _ => Err(error(what(), "it has to begin with http:// or https:// and to name a host", hint)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn a_collector_has_an_address_and_for_https_certificates() {
        let read = |text: &str| Config::parse(&format!("[traces]\n{text}")).map(|config| config.traces.unwrap().url);
        assert_eq!(read("url = \"http://c:4317\"").unwrap(), "http://c:4317");
        assert_eq!(read("url = \"https://c:4317\"\nca_file = \"/ca\"").unwrap(), "https://c:4317");
        for (text, word) in [
            ("url = \"https://c:4317\"", "https needs `ca_file`"),
            ("url = \"http://c:4317\"\nca_file = \"/ca\"", "only for https"),
            ("url = \"c:4317\"", "has to begin with"),
            ("url = \"http://\"", "name a host"),
            ("ca_file = \"/ca\"", "url"),
            ("url = \"http://c\"\nuser = \"x\"", "user"),
        ] {
            let told = read(text).unwrap_err().to_string();
            assert!(told.contains(word), "{text}: {told}");
        }
    }
}
