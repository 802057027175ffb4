//! Limits on the length of users' texts: each is kept, listed and written again with each change of the job.

use crate::refuse::{Answer, invalid};
use cosched_api::JobRequest;

/// The length of the name of a job, a queue or a node.
pub(crate) const NAME_BYTES_MAX: usize = 256;

/// The length of a path (PATH_MAX).
const PATH_BYTES_MAX: usize = 4096;

/// The number of nodes that one job may name.
const NODES_MAX: usize = 4096;

/// Refuses texts that are too long to be kept.
pub(crate) fn check(request: &JobRequest) -> Answer<()> {
    let nodes = request.nodes.iter().map(|node| ("the name of a node", node.name.as_str(), NAME_BYTES_MAX));
    let adopt = request.adopt.as_ref();
    let texts = [
        ("`name`", request.name.as_deref(), NAME_BYTES_MAX),
        ("`queue`", request.queue.as_deref(), NAME_BYTES_MAX),
        ("`cwd`", request.cwd.as_deref(), PATH_BYTES_MAX),
        ("`log_path`", request.log_path.as_deref(), PATH_BYTES_MAX),
        ("`adopt.cgroup`", adopt.and_then(|adopt| adopt.cgroup.as_deref()), PATH_BYTES_MAX),
        ("`adopt.from`", adopt.and_then(|adopt| adopt.from.as_deref()), NAME_BYTES_MAX),
    ];
    let texts = texts.into_iter().filter_map(|(what, text, max)| Some((what, text?, max)));
    if let Some((what, text, max)) = texts.chain(nodes).find(|(_, text, max)| weight(text) > *max) {
        let why = format!("it takes {} bytes in a record, and {max} are kept", weight(text));
        return Err(invalid(format!("{what} is too long"), why, "Give a shorter one."));
    }
    if request.nodes.len() > NODES_MAX {
        let why = format!("it names {}, and a job may have at most {NODES_MAX}", request.nodes.len());
        return Err(invalid("the job names too many nodes", why, "Request CPUs instead (`cpus`)."));
    }
    Ok(())
}

/// The length of a text in a record, in bytes: JSON escapes quotes, backslashes and control characters.
pub(crate) fn weight(text: &str) -> usize {
    text.chars().map(weight_of).sum()
}

/// The longest beginning of a text that takes at most `bytes_max` bytes in a record.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut bytes = 0;
    let beyond = text.char_indices().find(|(_, c)| {
        bytes += weight_of(*c);
        bytes > bytes_max
    });
    beyond.map_or(text, |(end, _)| &text[..end])
}

fn weight_of(c: char) -> usize {
    match c {
        '\0'..='\x1f' => 6,
        '"' | '\\' => 2,
        _ => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_api::{ErrorCode, NodeResources};

    #[test]
    fn what_is_too_long_to_be_kept_is_refused() {
        let long = |bytes: usize| Some("é".repeat(bytes / 2));
        let fits = JobRequest { name: long(256), cwd: long(4096), log_path: long(4096), ..JobRequest::default() };
        assert!(check(&fits).is_ok());
        let node = NodeResources { name: "n".repeat(257), ..NodeResources::default() };
        for bad in [
            JobRequest { name: long(258), ..fits.clone() },
            JobRequest { cwd: long(4098), ..fits.clone() },
            JobRequest { log_path: long(4098), ..fits.clone() },
            JobRequest { queue: long(258), ..fits.clone() },
            JobRequest { nodes: vec![node], ..fits.clone() },
            JobRequest { nodes: vec![NodeResources::default(); 4097], ..fits.clone() },
        ] {
            assert_eq!(check(&bad).unwrap_err().code, ErrorCode::Invalid, "{bad:?}");
        }
        assert_eq!((cut("aéb", 2), cut("aéb", 3), cut("a", 9)), ("a", "aé", "a"));
        let control = JobRequest { name: Some("\x1b".repeat(43)), ..JobRequest::default() };
        assert!(check(&control).is_err(), "in a record it is longer");
        assert_eq!(cut("a\x01b\"", 9), "a\x01b");
    }
}
