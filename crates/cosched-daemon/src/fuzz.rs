//! Entry points for the fuzz tests to items that are not public.

use crate::config::Config;
use crate::http::{ListQuery, LoadQuery, WaitQuery};
use axum::extract::Query;
use axum::http::Uri;
use cosched_api::{
    ClassRequest, ExitReport, ImportRequest, JobRequest, KillRequest, NodeRequest, PolicyRequest, ProcessRequest,
    QueuesRequest, RepairRequest, ResourcesRequest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Parses a request's body, for every path that takes one, and the query of a path.
pub fn request(data: &[u8]) {
    /// A parsed value must be the same after it is written and parsed again.
    fn body<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(data: &[u8]) -> Option<T> {
        let value = serde_json::from_slice::<T>(data).ok()?;
        assert_eq!(serde_json::from_slice::<T>(&serde_json::to_vec(&value).unwrap()).unwrap(), value);
        Some(value)
    }
    if let Some(request) = body::<JobRequest>(data) {
        let _ = crate::sizes::check(&request);
    }
    body::<ClassRequest>(data);
    body::<ExitReport>(data);
    body::<ImportRequest>(data);
    body::<KillRequest>(data);
    body::<NodeRequest>(data);
    body::<ProcessRequest>(data);
    body::<QueuesRequest>(data);
    body::<RepairRequest>(data);
    body::<ResourcesRequest>(data);
    body::<PolicyRequest>(data);
    if let Ok(uri) = Uri::try_from([b"/?", data].concat()) {
        let _ = Query::<ListQuery>::try_from_uri(&uri);
        let _ = Query::<LoadQuery>::try_from_uri(&uri);
        let _ = Query::<WaitQuery>::try_from_uri(&uri);
    }
}

/// Parses a journal.
pub fn journal(data: &[u8]) {
    as_it_is_and_summed(data, crate::store::read_for_fuzzer);
}

/// Reads the data as they are and also with corrected checksums, so that the text behind a wrong sum is parsed, too.
fn as_it_is_and_summed(data: &[u8], read: fn(&[u8], u64)) {
    let mark = u64::from(data.first().copied().unwrap_or(0));
    read(data, mark);
    let mut whole = Vec::new();
    for line in data.split(|byte| *byte == b'\n') {
        let rest = line.get(9..).unwrap_or(line);
        whole.extend(format!("{:08x} ", crc32fast::hash(rest)).into_bytes());
        whole.extend(rest);
        whole.push(b'\n');
    }
    read(&whole, mark);
}

/// Parses a wait page.
pub fn wait_page(data: &[u8]) {
    crate::waitpage::count(data);
}

/// Parses a configuration.
pub fn configuration(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = Config::parse(text);
    }
}
