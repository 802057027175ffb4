//! A user without a home: a number that is in no list of users, nothing that it may write but /tmp, and no /dev/shm.

use cosched_tests::uncontrolled::Uncontrolled;
use cosched_tests::users::BOB;
use cosched_tests::{needs_root, procs, stderr, stdout, wait_until};
use rustix::process::Signal;
use std::os::unix::fs::{MetadataExt, chown, symlink};

const STATE: &str = "the jobs' journal and history are in ";

#[test]
fn its_jobs_are_jobs_and_it_is_told_where_their_state_is() {
    if !needs_root() {
        return;
    }
    let place = Uncontrolled::stranger();
    let state = place.in_tmp().join("state");
    let out = place.cosched(&["run", "--", "sh", "-c", "id -u; exit 7"]);
    let said = stderr(&out);
    assert_eq!(out.status.code(), Some(7), "{said}");
    let first = format!(
        "cosched: {STATE}{}: /nonexistent/.local/state/cosched cannot be written: Permission denied",
        state.display()
    );
    assert!(said.starts_with(&first) && said.contains("job 1 is switched by signals"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    for dir in [place.in_tmp(), state] {
        assert_eq!(std::fs::metadata(&dir).unwrap().mode() & 0o7777, 0o700, "{}", dir.display());
    }

    // The daemon is there already: it is not said again. Detached, the output has a place, too.
    let id = stdout(&place.cosched(&["run", "-d", "--", "sh", "-c", "echo heard; sleep 1000"]));
    assert_eq!(id.trim(), "2");
    assert!(wait_until(|| stdout(&place.cosched(&["log", "2"])).ends_with("heard\n")));
    let listed = stdout(&place.cosched(&["ps", "--all"]));
    let uid = place.in_tmp().display().to_string().replace("/tmp/cosched-", "");
    assert_eq!(listed.lines().filter(|line| line.contains(&uid)).count(), 2, "{listed}");
    let status = stdout(&place.cosched(&["status"]));
    assert!(status.contains(STATE) && status.contains("XDG_STATE_HOME"), "{status}");

    // The next daemon has the jobs of this one.
    let daemon = place.of_ours("coschedd", "")[0];
    procs::signal(daemon, Signal::KILL);
    assert!(wait_until(|| procs::state(daemon).is_none_or(|state| state == 'Z')));
    let out = place.cosched(&["run", "--", "true"]);
    assert!(stderr(&out).contains("job 3 "), "{}", stderr(&out));
    let out = place.cosched(&["kill", "-s", "KILL", "2"]);
    assert!(out.status.success(), "{}", stderr(&out));
}

#[test]
fn what_another_user_made_in_its_place_is_refused() {
    if !needs_root() {
        return;
    }
    let place = Uncontrolled::stranger();
    let there = place.in_tmp();
    std::fs::create_dir(&there).unwrap();
    chown(&there, Some(BOB), Some(BOB)).unwrap();
    let refused = |why: &str| {
        assert!(!place.cosched(&["run", "-d", "--", "true"]).status.success());
        for words in [&["run", "--", "true"][..], &["ps"]] {
            let out = place.cosched(words);
            let said = stderr(&out);
            assert!(!out.status.success() && said.contains(&format!("{} {why}", there.display())), "{words:?}: {said}");
            assert!(said.contains("XDG_RUNTIME_DIR"), "{words:?}: {said}");
        }
        let there = std::fs::read_dir(&there).map_or(0, Iterator::count);
        assert_eq!(there, 0, "nothing was put there");
    };
    refused(&format!("belongs to another user (uid {BOB})"));
    std::fs::remove_dir(&there).unwrap();
    // Of root's and sticky, as /var/tmp is: a link there may be another name of root's own.
    symlink(place.home(), &there).unwrap();
    std::fs::set_permissions(place.home(), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
    refused("is a link of another user's (uid 0)");
    std::fs::remove_file(&there).unwrap();
}
