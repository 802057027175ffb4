//! A user, or a container, without cgroups of their own: only programs, and a directory.

use crate::users::ANN;
use crate::{bin_dir, procs, wait_until};
use rustix::process::Signal;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// In this place cgroups are read-only, there is no /dev/shm, and no capability.
const CONTAINER: &str = "for dir in $(awk '$0 ~ / - cgroup2? / { print $5 }' /proc/self/mountinfo); do
        mount --bind $dir $dir && mount -o remount,bind,ro $dir || exit 99
    done
    mount -t tmpfs -o ro none /dev/shm || exit 99
    exec setpriv --inh-caps=-all --bounding-set=-all \"$@\"";
/// In this place a user has a number and no name, and there is no /dev/shm.
const STRANGER: &str = "mount -t tmpfs -o ro none /dev/shm || exit 99
    id=$1; shift; exec setpriv --reuid $id --regid 0 --clear-groups \"$@\"";

/// The kind of user.
#[derive(Clone, Copy)]
enum Who {
    User,
    Container,
    Stranger(u32),
}

/// The programs in a place that every user can reach, and an empty home. Its daemon, if there is one, is killed at the end.
pub struct Uncontrolled {
    installed: tempfile::TempDir,
    home: tempfile::TempDir,
    who: Who,
}

impl Uncontrolled {
    /// A user who is not root, in a plain shell; `more` programs are installed, too.
    pub fn user(more: &[&str]) -> Uncontrolled {
        let all = Uncontrolled::install(more, Who::User);
        chown(all.home.path(), Some(ANN), Some(ANN)).unwrap();
        all
    }

    /// Root in a container.
    pub fn container(more: &[&str]) -> Uncontrolled {
        Uncontrolled::install(more, Who::Container)
    }

    /// A user as in a Pod: its number is in no list of users, there is no home, no runtime directory and no /dev/shm. `home` is another's.
    pub fn stranger() -> Uncontrolled {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = 1_000_660_000 + std::process::id() * 10 + NEXT.fetch_add(1, Ordering::Relaxed);
        Uncontrolled::install(&[], Who::Stranger(number))
    }

    /// Where the daemon of a stranger has its socket and its state.
    ///
    /// # Panics
    /// When this is none.
    pub fn in_tmp(&self) -> PathBuf {
        let Who::Stranger(uid) = self.who else { panic!("a stranger's") };
        format!("/tmp/cosched-{uid}").into()
    }

    fn install(more: &[&str], who: Who) -> Uncontrolled {
        let (installed, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let own = ["cosched", "coschedd", "cosched-guard", "libcosched_wait.so", "libcosched_preload.so"];
        for file in own.iter().map(|name| bin_dir().join(name)).chain(more.iter().map(PathBuf::from)) {
            std::fs::copy(&file, installed.path().join(file.file_name().unwrap()))
                .expect("`cargo build --workspace` makes it");
        }
        std::fs::set_permissions(installed.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Uncontrolled { installed, home, who }
    }

    /// Where the programs are.
    pub fn bin(&self, name: &str) -> String {
        self.installed.path().join(name).display().to_string()
    }

    /// The user's directory.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Writes the configuration.
    pub fn configure(&self, text: &str) {
        let dir = self.home().join(".config/cosched");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("cosched.toml"), text).unwrap();
    }

    /// `cosched WORDS`, killed after a minute.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", "60"]);
        let mut inside = |script| {
            command.args(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]);
        };
        match self.who {
            Who::User => {
                command.uid(ANN).gid(ANN);
            }
            Who::Container => inside(CONTAINER),
            Who::Stranger(uid) => {
                inside(STRANGER);
                command.arg(uid.to_string());
            }
        }
        command.arg(self.bin("cosched")).args(words).current_dir(self.home()).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        if matches!(self.who, Who::Stranger(_)) {
            command.env("HOME", "/nonexistent").current_dir("/");
            return command;
        }
        command.env("HOME", self.home());
        command.env("XDG_RUNTIME_DIR", self.home()).env("COSCHED_WAIT_STATS", self.home().join("stats"));
        if matches!(self.who, Who::Container) {
            command.env("COSCHED_SOCKET", self.home().join("run/s"));
        }
        command
    }

    /// The same to its end.
    pub fn cosched(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// The same, without waiting.
    pub fn spawn(&self, words: &[&str]) -> Child {
        self.command(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The processes of these programs with `word` as their first argument, such as a guard's `watch`.
    pub fn of_ours(&self, program: &str, word: &str) -> Vec<i32> {
        let path = self.bin(program);
        let is_it = |pid: &i32| {
            let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = words.split('\0');
            words.next() == Some(&path) && (word.is_empty() || words.next() == Some(word))
        };
        procs::all().into_iter().filter(is_it).collect()
    }
}

impl Drop for Uncontrolled {
    fn drop(&mut self) {
        // The keepers first: what they have stopped is killed, too.
        for keeper in self.of_ours("cosched-guard", "keep") {
            let below = descendants(keeper);
            below.into_iter().chain([keeper]).for_each(|pid| procs::signal(pid, Signal::KILL));
        }
        // A daemon that has not ended yet writes into the home while it is removed, which then is left; and a launcher whose `timeout` or keeper was
        // killed starts one, to report that.
        wait_until(|| {
            // By the program that they execute: the one that starts a daemon has the name /proc/self/exe.
            let ours = ["cosched", "coschedd"].map(|name| PathBuf::from(self.bin(name)));
            let is_ours =
                |pid: &i32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| ours.contains(&exe));
            let left: Vec<i32> = procs::all().into_iter().filter(is_ours).collect();
            left.iter().for_each(|pid| procs::signal(*pid, Signal::KILL));
            left.is_empty()
        });
        if let Who::Stranger(_) = self.who {
            let _ = std::fs::remove_dir_all(self.in_tmp());
        }
    }
}

/// The descendants of a process.
pub fn descendants(pid: i32) -> Vec<i32> {
    let children: Vec<i32> = procs::all().into_iter().filter(|child| procs::ppid(*child) == Some(pid)).collect();
    let below = children.iter().flat_map(|child| descendants(*child)).collect::<Vec<i32>>();
    children.into_iter().chain(below).collect()
}
