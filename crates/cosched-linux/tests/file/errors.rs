//! Each error has a type of its own, says where and why, and returns the memory.

use std::path::Path;
use std::sync::Arc;

use cosched_linux::file::{BlockFile, Caching, Cause, Doing, Engine, Extent, FileError};

use crate::support::{Pages, pattern, read, run, scratch, transfers};

fn open(path: &Path) -> FileError {
    BlockFile::open(path, Caching::Direct).unwrap_err()
}

/// Checks that all three parts of the message exist and name the file.
fn assert_told(error: &FileError, words: &[&str]) {
    let problem = error.problem();
    assert!(!problem.why.is_empty() && !problem.hint.is_empty(), "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} is missing: {error}");
    }
}

#[test]
fn a_read_behind_the_end_is_short() {
    let dir = scratch();
    let path = dir.path().join("data");
    for (len, wanted) in [(0, 1), (1, 2), (4096, 8192), (10_000, 10_001), (100_000, 200_000)] {
        std::fs::write(&path, pattern(len)).unwrap();
        for engine in Engine::ALL {
            let error = read(engine, &path, wanted).unwrap_err();
            let Cause::ShortRead { end, len: found } = error.cause else { panic!("{engine}: {error}") };
            assert_eq!((end, found), (wanted as u64, len as u64), "{engine}");
            assert_told(&error, &["data", "ends at byte", "range"]);
        }
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_read_says_so() {
    let dir = scratch();
    let path = dir.path().join("data");
    for engine in Engine::ALL {
        std::fs::write(&path, pattern(400_000)).unwrap();
        let file = Arc::new(BlockFile::open(&path, engine.caching()).unwrap());
        let mut transfers = transfers(engine);
        transfers.read(&file, &[Extent::start(0, 100_000)], Pages::new(100_000));
        transfers.wait().unwrap().result.unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(150_001).unwrap();
        for block in 1..4u64 {
            transfers.read(&file, &[Extent::start(block * 100_000, 100_000)], Pages::new(100_000));
        }
        for _ in 1..4 {
            let error = transfers.wait().unwrap().result.unwrap_err();
            assert!(matches!(error.cause, Cause::Shrank { expected: 400_000, now: 150_001 }), "{engine}: {error}");
            assert_told(&error, &["shrank from 400000 to 150001", "complete"]);
        }
        assert!(matches!(file.check_unchanged().unwrap_err().cause, Cause::Shrank { .. }));
        // The queue continues: an error concerns one block.
        transfers.read(&file, &[Extent::start(0, 100_000)], Pages::new(100_000));
        transfers.wait().unwrap().result.unwrap();
    }
}

#[test]
fn a_file_that_grows_says_so() {
    let dir = scratch();
    let path = dir.path().join("data");
    std::fs::write(&path, pattern(1000)).unwrap();
    let file = BlockFile::open(&path, Caching::Direct).unwrap();
    file.check_unchanged().unwrap();
    std::fs::write(&path, pattern(1001)).unwrap();
    let error = file.check_unchanged().unwrap_err();
    assert!(matches!(error.cause, Cause::Grew { expected: 1000, now: 1001 }), "{error}");
    assert_told(&error, &["grew from 1000 to 1001"]);
}

#[test]
fn a_file_that_is_overwritten_says_so_also_when_its_times_are_set_back() {
    let dir = scratch();
    let path = dir.path().join("data");
    std::fs::write(&path, pattern(1000)).unwrap();
    let file = BlockFile::open(&path, Caching::Direct).unwrap();
    // The kernel's timestamps of files may advance in steps of some milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let writer = std::fs::File::options().write(true).open(&path).unwrap();
    let before = writer.metadata().unwrap().modified().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&writer, b"xy", 500).unwrap();
    assert!(matches!(file.check_unchanged().unwrap_err().cause, Cause::Changed));
    writer.set_modified(before).unwrap();
    let error = file.check_unchanged().unwrap_err();
    assert!(matches!(error.cause, Cause::Changed), "{error}");
    assert_told(&error, &["was changed while it was read", "start again"]);
    BlockFile::open(&path, Caching::Direct).unwrap().check_unchanged().unwrap();
}

#[test]
fn what_has_no_offsets_is_refused_without_waiting() {
    let dir = scratch();
    let pipe = dir.path().join("pipe");
    assert!(run("mkfifo", &[&pipe]));
    // An ordinary open would wait for a writer.
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(open(&pipe)));
    let error = told.recv_timeout(std::time::Duration::from_secs(20)).expect("it waits for a writer");
    assert!(matches!(error.cause, Cause::NotAFile("pipe")), "{error}");
    assert_told(&error, &["pipe", "offsets", "regular file"]);
    assert!(matches!(open(dir.path()).cause, Cause::NotAFile("directory")));
    assert!(matches!(open(Path::new("/dev/null")).cause, Cause::NotAFile("character device")));
    let error = BlockFile::open_update(dir.path(), Caching::Direct).unwrap_err();
    assert!(matches!(error.cause, Cause::NotAFile("directory")), "{error}");
}

#[test]
fn a_missing_file_is_missing() {
    let error = open(&scratch().path().join("nowhere"));
    assert!(matches!((error.doing, &error.cause), (Doing::Open, Cause::Missing)), "{error}");
    assert_told(&error, &["cannot open", "nowhere", "no such file"]);
}

#[test]
fn another_users_file_is_not_read() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can become another user");
        return;
    }
    let dir = scratch();
    let path = dir.path().join("secret");
    std::fs::write(&path, "s").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let error = std::thread::spawn(move || {
        // SAFETY: the bare system call changes this thread's user alone, and the thread ends.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) }, 0);
        open(&path)
    })
    .join()
    .unwrap();
    assert!(matches!(error.cause, Cause::Permission), "{error}");
    assert_told(&error, &["secret", "permission denied", "mode"]);
}

/// Nothing is mapped at a process's address 0, and the kernel reports EIO, like a broken disk.
#[test]
fn a_device_that_fails_says_so() {
    for engine in Engine::ALL {
        let file = Arc::new(BlockFile::open(Path::new("/proc/self/mem"), engine.caching()).unwrap());
        let mut transfers = transfers(engine);
        transfers.read(&file, &[Extent::start(0, 5000)], Pages::new(5000));
        let error = transfers.wait().unwrap().result.unwrap_err();
        assert!(matches!((error.doing, &error.cause), (Doing::Read, Cause::Device)), "{engine}: {error}");
        assert_told(&error, &["/proc/self/mem at byte 0", "EIO"]);
    }
}

#[test]
fn an_extent_outside_of_the_memory_never_reaches_the_kernel() {
    let dir = scratch();
    let path = dir.path().join("data");
    std::fs::write(&path, pattern(10_000)).unwrap();
    for engine in Engine::ALL {
        let file = Arc::new(BlockFile::open(&path, engine.caching()).unwrap());
        let mut transfers = transfers(engine);
        for extent in [
            Extent { offset: 0, range: 4000..5001 },
            Extent { offset: u64::MAX - 10, range: 0..100 },
            Extent { offset: 0, range: std::ops::Range { start: 10, end: 9 } },
        ] {
            transfers.read(&file, &[Extent::start(0, 10), extent], Pages::new(5000));
            let error = transfers.wait().unwrap().result.unwrap_err();
            assert!(matches!(error.cause, Cause::Invalid(_)), "{engine}: {error}");
        }
        assert_eq!(transfers.stats().requests, 0);
    }
}

#[test]
fn a_file_that_was_opened_for_reading_stays_as_it_is() {
    let dir = scratch();
    let path = dir.path().join("data");
    std::fs::write(&path, pattern(10_000)).unwrap();
    for engine in Engine::ALL {
        let file = Arc::new(BlockFile::open(&path, engine.caching()).unwrap());
        let mut transfers = transfers(engine);
        transfers.write(&file, &[Extent::start(0, 8192)], Pages::new(8192));
        transfers.wait().unwrap().result.unwrap_err();
        assert!(std::fs::read(&path).unwrap() == pattern(10_000), "{engine} wrote into it");
    }
}
