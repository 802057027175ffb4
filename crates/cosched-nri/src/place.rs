//! Which cgroup a pod has.
//!
//! The kubelet makes one for each pod, the containers' cgroups are in it, and the runtime is told its path (or its slice, with systemd's cgroups). It is computed and
//! not looked up, so the plug-in needs neither the host's processes nor its cgroups: coschedd looks itself. A parent that is not the pod's own (`crictl` without
//! one) is refused: what else is in it would be stopped, too.

/// The path of the pod's cgroup, as in /proc/PID/cgroup.
///
/// # Errors
/// It has none of its own.
pub(crate) fn of_pod(uid: &str, parent: &str) -> Result<String, String> {
    let base = parent.rsplit('/').next().unwrap_or_default();
    let is_own = match base.strip_suffix(".slice") {
        // systemd takes a dash for a level.
        Some(name) => is_of(uid.replace('-', "_").as_str(), name.rsplit('-').next()),
        None => is_of(uid, Some(base)),
    };
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic()) && text.len() <= 1024;
    if !is_own || !is_plain(parent) || parent.split('/').any(|part| part == "..") {
        return Err("it has no cgroup of its own, as the kubelet makes one for each pod".to_owned());
    }
    Ok(match base.strip_suffix(".slice") {
        Some(name) => in_slices(name),
        None => format!("/{}", parent.trim_start_matches('/')),
    })
}

/// Whether a name is that of the pod with this uid.
fn is_of(uid: &str, name: Option<&str>) -> bool {
    !uid.is_empty() && name.and_then(|name| name.strip_prefix("pod")) == Some(uid)
}

/// Where systemd puts a slice: `a-b.slice` is in `a.slice`.
fn in_slices(name: &str) -> String {
    let ends = name.match_indices('-').map(|(at, _)| at).chain([name.len()]);
    ends.map(|end| format!("/{}.slice", &name[..end])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "4a5c-9f";

    #[test]
    fn the_kubelets_cgroups_are_found_with_both_drivers() {
        for (parent, path) in [
            ("/kubepods/burstable/pod4a5c-9f", "/kubepods/burstable/pod4a5c-9f"),
            ("kubepods/pod4a5c-9f", "/kubepods/pod4a5c-9f"),
            ("kubepods-pod4a5c_9f.slice", "/kubepods.slice/kubepods-pod4a5c_9f.slice"),
            (
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod4a5c_9f.slice",
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod4a5c_9f.slice",
            ),
        ] {
            assert_eq!(of_pod(UID, parent).as_deref(), Ok(path), "{parent}");
        }
    }

    #[test]
    fn one_that_others_may_be_in_is_refused() {
        let parents = [
            "",
            "/",
            "/k8s.io",
            "/kubepods",
            "/kubepods/pod4a5c",
            "/kubepods/pod4a5c-9f0",
            "kubepods-pod4a5c-9f.slice",
            "/../pod4a5c-9f",
            "/a\u{1b}/pod4a5c-9f",
            "system.slice",
        ];
        for parent in parents {
            assert!(of_pod(UID, parent).is_err(), "{parent}");
        }
        assert!(of_pod("", "/kubepods/pod").is_err());
        assert!(of_pod("x/../..", "/kubepods/podx/../..").is_err());
    }
}
