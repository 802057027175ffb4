//! What NRI's messages say, as far as it matters here (package `nri.pkg.api.v1alpha1`): prost skips the fields that are not listed. Written down by hand,
//! as etcd's are (decisions 0015 and 0073): no protoc is needed to build, and the numbers are fixed for ever.

use prost::Message;
use std::collections::BTreeMap;

/// The service of the plug-in.
pub(crate) const PLUGIN_SERVICE: &str = "nri.pkg.api.v1alpha1.Plugin";
/// The service of the runtime.
pub(crate) const RUNTIME_SERVICE: &str = "nri.pkg.api.v1alpha1.Runtime";

/// A ttrpc call.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Request {
    #[prost(string, tag = "1")]
    pub(crate) service: String,
    #[prost(string, tag = "2")]
    pub(crate) method: String,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) payload: Vec<u8>,
}

/// Its answer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Response {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<Status>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) payload: Vec<u8>,
}

/// Why a call failed; code 0: it did not.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RegisterPlugin {
    #[prost(string, tag = "1")]
    pub(crate) plugin_name: String,
    #[prost(string, tag = "2")]
    pub(crate) plugin_idx: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Configure {
    #[prost(string, tag = "1")]
    pub(crate) config: String,
    #[prost(string, tag = "2")]
    pub(crate) runtime_name: String,
    #[prost(string, tag = "3")]
    pub(crate) runtime_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Configured {
    /// The events that are wanted, a bit each.
    #[prost(int32, tag = "2")]
    pub(crate) events: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Synchronize {
    #[prost(message, repeated, tag = "1")]
    pub(crate) pods: Vec<PodSandbox>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) containers: Vec<Container>,
    /// Others follow in another message.
    #[prost(bool, tag = "3")]
    pub(crate) more: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Synchronized {
    #[prost(bool, tag = "2")]
    pub(crate) more: bool,
}

/// An event without a method of its own.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StateChange {
    #[prost(int32, tag = "1")]
    pub(crate) event: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) pod: Option<PodSandbox>,
    #[prost(message, optional, tag = "3")]
    pub(crate) container: Option<Container>,
}

/// The request of a method that has the name of its event.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Happened {
    #[prost(message, optional, tag = "1")]
    pub(crate) pod: Option<PodSandbox>,
    #[prost(message, optional, tag = "2")]
    pub(crate) container: Option<Container>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodSandbox {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(string, tag = "3")]
    pub(crate) uid: String,
    #[prost(string, tag = "4")]
    pub(crate) namespace: String,
    #[prost(btree_map = "string, string", tag = "6")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[prost(message, optional, tag = "8")]
    pub(crate) linux: Option<LinuxPodSandbox>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LinuxPodSandbox {
    #[prost(string, tag = "3")]
    pub(crate) cgroup_parent: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Container {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, tag = "2")]
    pub(crate) pod_sandbox_id: String,
    #[prost(int32, tag = "4")]
    pub(crate) state: i32,
}

impl Container {
    /// Its state is `CONTAINER_PAUSED` or `CONTAINER_RUNNING`.
    pub(crate) fn has_started(&self) -> bool {
        matches!(self.state, 2 | 3)
    }
}

/// The events that matter here, with NRI's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    StopPodSandbox = 2,
    RemovePodSandbox = 3,
    PostStartContainer = 7,
    StopContainer = 10,
    RemoveContainer = 11,
}

impl Event {
    const ALL: [Event; 5] = [
        Event::StopPodSandbox,
        Event::RemovePodSandbox,
        Event::PostStartContainer,
        Event::StopContainer,
        Event::RemoveContainer,
    ];

    /// A bit for each of them.
    pub(crate) fn mask() -> i32 {
        Event::ALL.iter().map(|event| 1 << (*event as i32 - 1)).sum()
    }

    pub(crate) fn of_number(number: i32) -> Option<Event> {
        Event::ALL.into_iter().find(|event| *event as i32 == number)
    }

    /// The one that has this method: newer runtimes have a method for each event.
    pub(crate) fn of_method(name: &str) -> Option<Event> {
        Event::ALL.into_iter().find(|event| format!("{event:?}") == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_nris_numbers_and_methods() {
        assert_eq!(Event::mask(), 0b110_0100_0110);
        assert_eq!(Event::of_number(7), Some(Event::PostStartContainer));
        assert_eq!(Event::of_method("StopPodSandbox"), Some(Event::StopPodSandbox));
        assert_eq!((Event::of_number(1), Event::of_method("CreateContainer")), (None, None));
    }
}
