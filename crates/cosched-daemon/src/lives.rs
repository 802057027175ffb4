//! Determines which earlier instances of this machine's daemon are dead: a cluster then gives their place to the next one at once.
//!
//! Problem: a copy of a machine has its machine-id, its name and its state, and must not take the place of the instance that runs on the original.
//! Rule: each instance writes down the boot and its process. If it began in the present boot and its process no longer exists, it is known to be
//! dead; a daemon that finds any other instance in its place waits until the lease of that one has expired.

use cosched_linux::process::start_ticks;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

const FILE: &str = "lives";

/// The number of instances that are remembered.
const LIVES_MAX: usize = 32;

/// The longest file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 10;

/// Writes down this instance; returns those that are known to be dead. An instance that cannot write its line counts as unknown later.
pub(crate) fn begin(dir: &Path, boot: &str, instance: u64) -> BTreeSet<u64> {
    let pid = std::process::id() as i32;
    let own = format!("{boot} {instance} {pid} {}", start_ticks(pid).unwrap_or(0));
    let lines: Vec<String> = read(dir).lines().filter(|line| life(line, boot).is_some()).map(str::to_owned).collect();
    let dead = lines.iter().filter_map(|line| life(line, boot)).filter(|(_, lives)| !lives).map(|(id, _)| id);
    let dead = dead.collect();
    let kept = lines.iter().skip(lines.len().saturating_sub(LIVES_MAX - 1));
    let text: String = kept.chain([&own]).map(|line| format!("{line}\n")).collect();
    if let Err(e) = write(dir, &text) {
        tracing::warn!(
            "{}/{FILE} cannot be written: {e}. A restart waits until this daemon's lease has expired",
            dir.display()
        );
    }
    dead
}

fn read(dir: &Path) -> String {
    let path = dir.join(FILE);
    let is_short = fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= BYTES_MAX);
    if is_short { fs::read_to_string(path).unwrap_or_default() } else { String::new() }
}

fn write(dir: &Path, text: &str) -> io::Result<()> {
    let new = dir.join(format!("{FILE}.new"));
    fs::write(&new, text)?;
    fs::rename(&new, dir.join(FILE))
}

/// The instance of a line, and whether its process lives; `None` for another boot of the machine.
fn life(line: &str, boot: &str) -> Option<(u64, bool)> {
    let mut words = line.rsplit(' ');
    let ticks: u64 = words.next()?.parse().ok()?;
    let pid: i32 = words.next()?.parse().ok()?;
    let instance = words.next()?.parse().ok()?;
    let of = words.collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join(" ");
    (of == boot).then(|| (instance, start_ticks(pid) == Some(ticks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lives_of_this_start_whose_process_is_gone_are_over() {
        let dir = tempfile::tempdir().unwrap();
        let begin = |boot, instance| begin(dir.path(), boot, instance);
        assert_eq!(begin("boot a", 1), [].into());
        // The process of both is this one, which lives.
        assert_eq!(begin("boot a", 2), [].into());
        let text = read(dir.path());
        let dead = format!("boot a 3 {} 1\nboot b 4 {} 1\nnonsense\n", i32::MAX, i32::MAX);
        fs::write(dir.path().join(FILE), text + &dead).unwrap();
        assert_eq!(begin("boot a", 5), [3].into());
        // Nothing is known about instances of another boot.
        assert_eq!(begin("boot c", 6), [].into());
        assert_eq!(read(dir.path()).lines().count(), 1);
        fs::write(dir.path().join(FILE), vec![b'x'; BYTES_MAX as usize + 1]).unwrap();
        assert_eq!(begin("boot c", 7), [].into());
    }

    #[test]
    fn so_many_lives_are_remembered_and_no_file_is_longer_than_they_are() {
        let dir = tempfile::tempdir().unwrap();
        for instance in 0..100 {
            begin(dir.path(), "boot", instance);
        }
        let text = read(dir.path());
        assert_eq!(text.lines().count(), LIVES_MAX);
        assert!(text.lines().last().unwrap().starts_with("boot 99 "), "{text}");
    }

    #[test]
    fn a_process_of_the_same_number_is_another_one() {
        let pid = std::process::id() as i32;
        let ticks = start_ticks(pid).unwrap();
        assert_eq!(life(&format!("boot 3 {pid} {ticks}"), "boot"), Some((3, true)));
        assert_eq!(life(&format!("boot 3 {pid} {}", ticks + 1), "boot"), Some((3, false)));
        assert_eq!(life(&format!("boot of two words 3 {pid} {ticks}"), "boot of two words"), Some((3, true)));
        for line in ["", "boot", "boot 3 4", "boot x 4 5", "boot 3 4 5 6", "boots 3 4 5"] {
            assert_eq!(life(line, "boot"), None, "{line}");
        }
    }
}
