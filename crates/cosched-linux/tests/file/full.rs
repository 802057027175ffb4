//! A disk that becomes full, on small file systems of our own.

use std::path::Path;
use std::sync::Arc;

use cosched_linux::file::{BlockFile, Cause, Doing, Engine, Extent, FileError, Output, OutputOptions};

use crate::support::{Pages, pattern, run, scratch, transfers, with_mount};

fn assert_full(error: &FileError, doing: Doing) {
    let Cause::DiskFull { wanted, free } = error.cause else { panic!("{error}") };
    assert_eq!(error.doing, doing, "{error}");
    assert!(wanted > 0 && free.is_some(), "{error}");
    assert!(error.to_string().contains("the disk is full") && error.to_string().contains("make room"), "{error}");
}

fn free(dir: &Path) -> u64 {
    rustix::fs::statvfs(dir).map(|facts| facts.f_bavail * facts.f_frsize).unwrap()
}

/// Waits until a file system has this much room again: what was dropped is freed when the last reference to it goes, which the kernel's workers may hold.
fn until_free(dir: &Path, bytes: u64) {
    let start = std::time::Instant::now();
    while free(dir) < bytes {
        assert!(start.elapsed().as_secs() < 20, "{} of {bytes} bytes are free: something holds the rest", free(dir));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Reserving detects it before the work, writing at the byte; nothing is left of the output.
fn fill(dir: &Path, room: u64) {
    let at_first = free(dir);
    for engine in Engine::ALL {
        let target = dir.join("output");
        let create =
            || Output::create(&target, &OutputOptions { caching: engine.caching(), ..OutputOptions::default() });
        let mut output = create().unwrap();
        assert_full(&output.reserve(2 * room).unwrap_err(), Doing::Reserve);
        drop(output);
        until_free(dir, at_first);

        // It continues in steps to the end of the room, although there is no room for a whole step.
        let mut output = create().unwrap();
        let mut end = 0;
        let error = loop {
            match output.ensure(end + 65_536) {
                Ok(()) => end += 65_536,
                Err(error) => break error,
            }
        };
        assert_full(&error, Doing::Reserve);
        assert!(end > room / 3, "only {end} of {room} bytes could be had");
        drop(output);

        let output = create().unwrap();
        let mut transfers = transfers(engine);
        let block = 128 << 10;
        for number in 0..2 * room / block {
            transfers.write(
                output.file(),
                &[Extent::start(number * block, block as usize)],
                Pages::of(&pattern(block as usize)),
            );
        }
        let mut failed = 0;
        while let Some(done) = transfers.wait() {
            if let Err(error) = done.result {
                assert_full(&error, Doing::Write);
                assert!(error.offset.is_some_and(|offset| offset >= room / 3), "{error}");
                failed += 1;
            }
        }
        // With the page cache some file systems allocate the room only at write-back.
        assert!(failed > 0 || output.file().sync().is_err(), "{engine} wrote twice as much as there is room");
        drop((output, transfers));
        until_free(dir, at_first);
        let left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name == "lost+found"), "{engine} left {left:?}");
    }
}

#[test]
fn a_small_tmpfs_fills() {
    with_mount(&["-t", "tmpfs", "-o", "size=1m", "cst"], |dir| fill(dir, 1 << 20));
}

#[test]
fn a_small_ext4_fills() {
    let disk = scratch();
    let image = disk.path().join("disk");
    std::fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
    let quiet = ["-q", "-F", "-O", "^has_journal"];
    if !run("mkfs.ext4", &[quiet.map(std::ffi::OsStr::new).as_slice(), &[image.as_os_str()]].concat()) {
        println!("SKIPPED: there is no mkfs.ext4");
        return;
    }
    with_mount(&["-o", "loop", image.to_str().unwrap()], |dir| fill(dir, 7 << 20));
}

/// A block device has a length and can be read; it is not written.
#[test]
fn a_block_device_is_read() {
    let disk = scratch();
    let image = disk.path().join("disk");
    std::fs::write(&image, pattern(3 << 20)).unwrap();
    let found = std::process::Command::new("losetup").args(["--find", "--show", "--read-only"]).arg(&image).output();
    let device = match found {
        Ok(found) if found.status.success() => String::from_utf8(found.stdout).unwrap().trim().to_owned(),
        _ => {
            println!("SKIPPED: no loop device can be had");
            return;
        }
    };
    let _detach = Detach(device.clone());
    for engine in Engine::ALL {
        let file = Arc::new(BlockFile::open(Path::new(&device), engine.caching()).unwrap());
        assert_eq!(file.len(), 3 << 20);
        let mut transfers = transfers(engine);
        transfers.read(&file, &[Extent::start(5000, 1 << 20)], Pages::new(1 << 20));
        let mut done = transfers.wait().unwrap();
        done.result.unwrap();
        let bytes = cosched_linux::file::Memory::storage(&mut done.memory);
        assert!(bytes == &pattern(3 << 20)[5000..5000 + (1 << 20)], "{engine} read the device otherwise");
        file.check_unchanged().unwrap();
    }
    let error = Output::create(Path::new(&device), &OutputOptions::default()).unwrap_err();
    assert!(matches!(error.cause, Cause::NotAFile("block device")), "{error}");
}

struct Detach(String);

impl Drop for Detach {
    fn drop(&mut self) {
        run("losetup", &["--detach", &self.0]);
    }
}
