//! Programs that run as another user from their first instruction on.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes `command` run as this user with these groups and no other right of ours. What it executes, its environment's
/// `LD_PRELOAD` included, is loaded by that user.
pub fn run_as(command: &mut Command, uid: u32, gid: u32, groups: Vec<u32>) {
    let change = move || {
        crate::realtime::lower_open_files();
        let check = |result: i32| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        // SAFETY: the pointer and the length are those of a vector that lives as long as the closure; the kernel reads it only.
        check(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })?;
        // SAFETY: no memory is involved. The order is that of rights: who has given up his uid may not change groups.
        check(unsafe { libc::setresgid(gid, gid, gid) })?;
        // SAFETY: no memory is involved.
        check(unsafe { libc::setresuid(uid, uid, uid) })
    };
    // SAFETY: between fork and exec the closure makes system calls and allocates nothing.
    unsafe { command.pre_exec(change) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_runs_as_the_user_in_his_groups() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: becoming another user needs root");
            return;
        }
        let mut command = Command::new("/usr/bin/id");
        run_as(&mut command, 65534, 65533, vec![65533, 65532]);
        let out = command.output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(text.starts_with("uid=65534") && text.contains("gid=65533"), "{text}");
        assert!(text.contains("65532") && !text.contains("=0("), "{text}");
    }

    #[test]
    fn its_limit_of_open_files_is_not_the_daemon_s() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: becoming another user needs root");
            return;
        }
        let limit = || {
            let mut command = Command::new("sh");
            run_as(command.args(["-c", "ulimit -n"]), 65534, 65534, vec![]);
            String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
        };
        let before = limit();
        crate::realtime::raise_open_files();
        assert_eq!(limit(), before);
    }
}
