//! Little memory and little disk space.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{PROGRAM, Place, done, finish, has, is_root, skipped};

/// A memory cgroup of version 1; removed when the test ends.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(name: &str, limit_bytes: u64) -> Result<Cgroup, String> {
        let root = Path::new("/sys/fs/cgroup/memory");
        if !root.join("memory.limit_in_bytes").exists() {
            return Err("no memory controller of cgroup version 1".into());
        }
        let path = root.join(format!("cst-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|e| format!("no cgroup: {e}"))?;
        let cgroup = Cgroup(path);
        std::fs::write(cgroup.0.join("memory.limit_in_bytes"), limit_bytes.to_string()).map_err(|e| e.to_string())?;
        Ok(cgroup)
    }

    fn number(&self, file: &str) -> u64 {
        std::fs::read_to_string(self.0.join(file)).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Its processes have ended; the kernel may still be cleaning up.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[test]
fn a_file_larger_than_the_memory_of_its_cgroup() {
    const MIB: u64 = 1 << 20;
    if !is_root() {
        return skipped("a memory limit needs root");
    }
    for io in ["uring", "buffered"] {
        let cgroup = match Cgroup::new(&format!("columnsort-{io}"), 20 * MIB) {
            Ok(cgroup) => cgroup,
            Err(why) => return skipped(&why),
        };
        let place = Place::new();
        place.json(&["generate", "in", "--bytes", "40M"]);
        let script = format!(
            "echo $$ > {}/cgroup.procs && exec {PROGRAM} sort in -o out --memory 6M --io {io} --json",
            cgroup.0.display()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        let report: serde_json::Value = serde_json::from_str(&done(finish(place.here(command)))).unwrap();
        assert!(report["plan"]["memory"]["total_bytes"].as_u64().unwrap() <= 6 * MIB);
        assert!(cgroup.number("memory.max_usage_in_bytes") <= 20 * MIB);
        assert_eq!(place.json(&["check", "out", "--against", "in"])["same"], true);
        if io != "buffered" && report["why_buffered"].is_null() {
            // Without the page cache, memory consists of the buffers, the program, and little else.
            let most = cgroup.number("memory.max_usage_in_bytes");
            assert!(most < 18 * MIB, "{most} bytes with --io {io}");
        }
    }
}

/// Runs a script in a directory on a small file system of its own, in a mount namespace that ends with the
/// script.
fn in_small_file_system(bytes: &str, script: &str) -> Option<(std::process::Output, Place)> {
    if !is_root() || !has("unshare") {
        skipped("a small file system needs root and unshare");
        return None;
    }
    let place = Place::new();
    std::fs::create_dir(place.path("small")).unwrap();
    let mut command = Command::new("unshare");
    let script = format!("mount -t tmpfs -o size={bytes} cst-small small || exit 77; {script}");
    command.args(["-m", "sh", "-c", &script]);
    place.json(&["generate", "in", "--records", "20000"]);
    let output = finish(place.here(command));
    if output.status.code() == Some(77) {
        skipped("no tmpfs can be mounted");
        return None;
    }
    Some((output, place))
}

#[test]
fn a_disk_that_is_too_small_is_known_before_the_work() {
    for (what, options) in [("output", "-o small/out"), ("working file", "-o out --temp small --columns 4")] {
        let script = format!("{PROGRAM} sort in {options} --quiet; echo code $?; ls -A small");
        let Some((output, place)) = in_small_file_system("1m", &script) else { return };
        let (said, message) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(said, "code 1\n", "{what}: {message}");
        assert!(message.contains("the disk is full"), "{what}: {message}");
        assert!(!place.path("out").exists());
    }
}

#[test]
fn a_disk_that_is_just_large_enough() {
    // The output uses the working file's space, so one and a half times the input is plenty.
    let script =
        format!("{PROGRAM} sort in -o small/out --columns 4 --quiet && {PROGRAM} check small/out --against in --json");
    let Some((output, _)) = in_small_file_system("3m", &script) else { return };
    let text = done(output);
    assert!(text.contains("\"same\":true"), "{text}");
}

#[test]
fn a_disk_that_fills_while_records_are_made() {
    let script = format!("{PROGRAM} generate small/new --records 20000 --quiet; echo code $?; ls -A small");
    let Some((output, _)) = in_small_file_system("1m", &script) else { return };
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "code 1\n");
    assert!(String::from_utf8(output.stderr).unwrap().contains("the disk is full"));
}
