//! The pods of this node that ask to be gangs, and which of their containers run.

use crate::messages::{Container, Event, PodSandbox};
use crate::place;
use std::collections::{BTreeMap, BTreeSet};

/// The beginning of the annotations that matter.
pub(crate) const PREFIX: &str = "cosched.io/";
/// The one without which a pod is none of ours.
pub(crate) const GANG: &str = "cosched.io/gang";
/// The longest part of a pod's name or namespace that is shown, in characters. Kubernetes has shorter ones.
const SHOWN_MAX: usize = 253;

/// What the runtime tells.
#[derive(Debug, PartialEq)]
pub(crate) enum News {
    /// All that it has: after a start of it, or of the plug-in.
    All {
        pods: Vec<PodSandbox>,
        containers: Vec<Container>,
    },
    Happened {
        event: Event,
        pod: Option<PodSandbox>,
        container: Option<Container>,
    },
}

/// A pod with the annotation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pod {
    /// For display: its namespace and name.
    pub(crate) shown: String,
    /// Pods of two namespaces are never one gang.
    pub(crate) namespace: String,
    /// Its cgroup, or why it has none.
    pub(crate) cgroup: Result<String, String>,
    /// Those that begin with [`PREFIX`].
    pub(crate) annotations: BTreeMap<String, String>,
    running: BTreeSet<String>,
    /// A container may end before it is told that it has started.
    ended: BTreeSet<String>,
}

/// All of them, by the ids of their sandboxes: a pod that is started again has another one.
#[derive(Debug, Default)]
pub(crate) struct Pods(BTreeMap<String, Pod>);

impl Pods {
    pub(crate) fn apply(&mut self, news: News) {
        match news {
            News::All { pods, containers } => {
                self.0 = pods.into_iter().filter_map(Pod::new).collect();
                for container in containers.into_iter().filter(Container::has_started) {
                    self.start(container);
                }
            }
            News::Happened { event, pod, container } => self.happened(event, pod, container),
        }
    }

    /// Those with a running container: before that, and afterwards, only the process that holds a pod's namespaces would have slots.
    pub(crate) fn gangs(&self) -> impl Iterator<Item = (&String, &Pod)> {
        self.0.iter().filter(|(_, pod)| !pod.running.is_empty())
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    fn happened(&mut self, event: Event, pod: Option<PodSandbox>, container: Option<Container>) {
        let id = pod.as_ref().map(|pod| pod.id.clone()).unwrap_or_default();
        match (event, container) {
            (Event::PostStartContainer, Some(container)) => {
                if let Some((id, pod)) = pod.and_then(Pod::new) {
                    self.0.entry(id).or_insert(pod);
                }
                self.start(container);
            }
            (Event::StopContainer, Some(container)) => {
                if let Some(pod) = self.0.get_mut(&container.pod_sandbox_id) {
                    pod.running.remove(&container.id);
                    pod.ended.insert(container.id);
                }
            }
            (Event::RemoveContainer, Some(container)) => {
                if let Some(pod) = self.0.get_mut(&container.pod_sandbox_id) {
                    pod.running.remove(&container.id);
                    pod.ended.remove(&container.id);
                }
            }
            (Event::StopPodSandbox | Event::RemovePodSandbox, _) => drop(self.0.remove(&id)),
            _ => (),
        }
    }

    fn start(&mut self, container: Container) {
        if let Some(pod) = self.0.get_mut(&container.pod_sandbox_id).filter(|pod| !pod.ended.contains(&container.id)) {
            pod.running.insert(container.id);
        }
    }
}

impl Pod {
    /// None without the annotation.
    fn new(pod: PodSandbox) -> Option<(String, Pod)> {
        let shown = format!("{}/{}", plain(&pod.namespace), plain(&pod.name));
        let annotations: BTreeMap<_, _> =
            pod.annotations.into_iter().filter(|(key, _)| key.starts_with(PREFIX)).collect();
        if !annotations.contains_key(GANG) {
            if let Some(key) = annotations.keys().next() {
                tracing::warn!("pod {shown} is no gang: it has the annotation {}, but not {GANG}", plain(key));
            }
            return None;
        }
        let parent = pod.linux.map(|linux| linux.cgroup_parent).unwrap_or_default();
        let cgroup =
            place::of_pod(&pod.uid, &parent).map_err(|why| format!("{why} (the runtime says {:?})", plain(&parent)));
        let (running, ended) = Default::default();
        Some((pod.id, Pod { shown, namespace: plain(&pod.namespace), cgroup, annotations, running, ended }))
    }
}

/// A text as it may be logged and shown.
fn plain(text: &str) -> String {
    text.chars().take(SHOWN_MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::messages::LinuxPodSandbox;

    /// A pod as the kubelet has it made.
    pub(crate) fn sandbox(id: &str, annotations: &[(&str, &str)]) -> PodSandbox {
        PodSandbox {
            id: id.into(),
            name: format!("name-{id}"),
            uid: format!("uid-{id}"),
            namespace: "default".into(),
            annotations: annotations.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
            linux: Some(LinuxPodSandbox { cgroup_parent: format!("/kubepods/poduid-{id}") }),
        }
    }

    pub(crate) fn container(id: &str, pod: &str) -> Container {
        Container { id: id.into(), pod_sandbox_id: pod.into(), state: 3 }
    }

    pub(crate) fn started(pod: &PodSandbox, id: &str) -> News {
        happened(Event::PostStartContainer, pod, id)
    }

    fn happened(event: Event, pod: &PodSandbox, id: &str) -> News {
        News::Happened { event, pod: Some(pod.clone()), container: Some(container(id, &pod.id)) }
    }

    fn gangs(pods: &Pods) -> Vec<&str> {
        pods.gangs().map(|(id, _)| id.as_str()).collect()
    }

    #[test]
    fn a_pod_is_a_gang_while_it_has_a_running_container() {
        let (pod, other) = (sandbox("a", &[(GANG, "g")]), sandbox("b", &[("x", "y"), ("cosched.io/class", "batch")]));
        let mut pods = Pods::default();
        pods.apply(News::All { pods: vec![pod.clone(), other.clone()], containers: vec![] });
        assert!(gangs(&pods).is_empty() && pods.has("a") && !pods.has("b"));
        pods.apply(started(&pod, "1"));
        pods.apply(started(&pod, "2"));
        pods.apply(started(&other, "3"));
        pods.apply(happened(Event::StopContainer, &pod, "1"));
        assert_eq!(gangs(&pods), ["a"]);
        pods.apply(happened(Event::StopContainer, &pod, "2"));
        assert!(gangs(&pods).is_empty());
        pods.apply(happened(Event::RemoveContainer, &pod, "2"));
        pods.apply(started(&pod, "4"));
        assert_eq!(gangs(&pods), ["a"], "a container is started again");
        pods.apply(News::Happened { event: Event::StopPodSandbox, pod: Some(pod), container: None });
        assert!(!pods.has("a"));
    }

    #[test]
    fn a_container_that_ended_before_its_start_was_told_does_not_run() {
        let (pod, mut pods) = (sandbox("a", &[(GANG, "g")]), Pods::default());
        pods.apply(News::All { pods: vec![pod.clone()], containers: vec![] });
        pods.apply(happened(Event::StopContainer, &pod, "1"));
        pods.apply(started(&pod, "1"));
        assert!(gangs(&pods).is_empty());
    }

    #[test]
    fn what_the_runtime_has_replaces_what_was_known() {
        let (a, b) = (sandbox("a", &[(GANG, "g")]), sandbox("b", &[(GANG, "g")]));
        let mut pods = Pods::default();
        pods.apply(started(&a, "1"));
        let ended = Container { state: 4, ..container("3", "b") };
        pods.apply(News::All {
            pods: vec![b.clone()],
            containers: vec![container("2", "b"), ended, container("9", "x")],
        });
        assert_eq!(gangs(&pods), ["b"]);
        pods.apply(happened(Event::StopContainer, &b, "2"));
        assert!(gangs(&pods).is_empty());
    }

    #[test]
    fn names_are_shown_without_escapes_and_cut() {
        let mut pod = sandbox("a", &[(GANG, "g")]);
        (pod.name, pod.namespace) = ("\u{1b}[2J".into(), "n".repeat(9000));
        let (_, pod) = Pod::new(pod).unwrap();
        assert!(!pod.shown.contains('\u{1b}') && pod.shown.chars().count() < 300, "{}", pod.shown);
    }
}
