//! For the fuzzer: what is not public.

use crate::config::Config;
use cosched_api::{
    ClassRequest, JobRequest, KillRequest, NodeRequest, PolicyRequest, ProcessRequest, QueuesRequest, ResourcesRequest,
};
use serde::de::DeserializeOwned;

/// Reads a request's body, for every path that takes one.
pub fn request(data: &[u8]) {
    fn read<T: DeserializeOwned>(data: &[u8]) {
        let _ = serde_json::from_slice::<T>(data);
    }
    read::<JobRequest>(data);
    read::<KillRequest>(data);
    read::<ClassRequest>(data);
    read::<PolicyRequest>(data);
    read::<NodeRequest>(data);
    read::<QueuesRequest>(data);
    read::<ResourcesRequest>(data);
    read::<ProcessRequest>(data);
}

/// Reads a journal. Sums that are wrong are made right too, so that what is behind a sum is read.
pub fn journal(data: &[u8]) {
    let mark = u64::from(data.first().copied().unwrap_or(0));
    crate::store::read_for_fuzzer(data, mark);
    let mut whole = Vec::new();
    for line in data.split(|byte| *byte == b'\n') {
        let rest = line.get(9..).unwrap_or(line);
        whole.extend(format!("{:08x} ", crc32fast::hash(rest)).into_bytes());
        whole.extend(rest);
        whole.push(b'\n');
    }
    crate::store::read_for_fuzzer(&whole, mark);
}

/// Reads a wait page.
pub fn wait_page(data: &[u8]) {
    crate::waitpage::count(data);
}

/// Reads a configuration.
pub fn configuration(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = Config::parse(text);
    }
}
