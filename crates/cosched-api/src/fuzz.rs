//! Access to private functions for the fuzzer.

use crate::terms::{Asking, Terms};
use crate::types::Class;

/// Labels of a container, a line each: what they ask for is within what is given, and what is said of them can be printed.
pub fn labels(data: &[u8]) {
    let most = Terms { class: Some(Class::Batch), share: Some(0.5), cpus: Some(4), ..Terms::default() };
    let asking =
        Asking { prefix: "cosched.", kind: "labels", giver: "is given", hint: "Change it.", most: &most, queues: &[] };
    let text = String::from_utf8_lossy(data);
    match asking.terms(text.split('\n').filter_map(|line| line.split_once('='))) {
        Ok(Some(terms)) => {
            assert!(terms.class >= most.class && terms.cpus <= most.cpus && terms.queue.is_none(), "{terms:?}");
            assert!(
                terms.share.is_some_and(|share| share > 0.0 && share <= 0.5) && !terms.share_from_quota,
                "{terms:?}"
            );
        }
        Ok(None) => (),
        Err(e) => assert!(!e.to_string().contains(char::is_control) && e.to_string().len() < 1000, "{e:?}"),
    }
}

/// Parses an answer, as a client does.
pub fn answer(data: &[u8]) {
    let _ = crate::http::receive(&mut &*data);
}
