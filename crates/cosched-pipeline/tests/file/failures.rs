//! After any failure: the stage is named, the error has its type, no partial file is left, and the input stays.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cosched_pipeline::file::{Engine, FileCause, FileError, Sink, SinkOptions, Source, SourceOptions};
use cosched_pipeline::{Cause, Failure, Options, Pipeline, Stage};

use crate::support::{Copy, io, names, pass, pattern, scratch, within};

/// The file error that a stage ended with.
fn file_error<'a>(failure: &'a Failure, stage: &str) -> &'a FileError {
    assert_eq!(failure.stage.as_deref(), Some(stage), "{failure}");
    match &failure.cause {
        Cause::Stage(error) => error.downcast_ref().unwrap_or_else(|| panic!("{failure}")),
        _ => panic!("{failure}"),
    }
}

/// Copies 500 000 bytes over an old output, and calls `event` in round 7.
fn copy_with(engine: Engine, event: impl Fn(&Path) + Send + Sync + Clone + 'static) -> Failure {
    let dir = scratch();
    let copy = Copy { expect: false, ..Copy::new(dir.path(), engine) };
    std::fs::write(&copy.from, pattern(500_000)).unwrap();
    std::fs::write(&copy.to, "old").unwrap();
    let (from, to) = (copy.from.clone(), copy.to.clone());
    let middle = Stage::compute("middle", move |buffer| {
        if buffer.round() == 7 {
            event(&from);
        }
        Ok(())
    });
    let failure = copy.through(middle).unwrap_err();
    assert_eq!(std::fs::read(&to).unwrap(), b"old");
    assert_eq!(names(dir.path()), ["from", "to"]);
    failure
}

#[test]
fn a_panic_leaves_no_half_file() {
    within(|| {
        for engine in Engine::ALL {
            let failure = copy_with(engine, |from| {
                assert!(std::fs::read(from).unwrap() == pattern(500_000));
                panic!("on purpose");
            });
            assert!(matches!(&failure.cause, Cause::Panic(text) if text == "on purpose"), "{failure}");
        }
    });
}

#[test]
fn a_file_that_shrinks_ends_the_pipeline() {
    within(|| {
        for engine in Engine::ALL {
            let failure = copy_with(engine, |from| {
                std::fs::OpenOptions::new().write(true).open(from).unwrap().set_len(300_001).unwrap();
            });
            let error = file_error(&failure, "read");
            assert!(matches!(error.cause, FileCause::Shrank { expected: 500_000, now: 300_001 }), "{error}");
            assert!(failure.to_string().contains("pipeline 'copy': stage 'read': cannot read"), "{failure}");
        }
    });
}

#[test]
fn a_file_that_grows_ends_the_pipeline_before_the_output_appears() {
    within(|| {
        for engine in Engine::ALL {
            let failure = copy_with(engine, |from| {
                std::fs::OpenOptions::new().write(true).open(from).unwrap().write_all_at(b"x", 500_000).unwrap();
            });
            let error = file_error(&failure, "read");
            assert!(matches!(error.cause, FileCause::Grew { expected: 500_000, now: 500_001 }), "{error}");
        }
    });
}

#[test]
fn a_pipeline_that_is_stopped_leaves_no_half_file() {
    within(|| {
        for engine in Engine::ALL {
            let dir = scratch();
            std::fs::write(dir.path().join("from"), pattern(500_000)).unwrap();
            let options = SourceOptions { block_bytes: 4096, io: io(engine), ..SourceOptions::default() };
            let source = Source::open([dir.path().join("from")], &options).unwrap();
            let sink = Sink::create(&dir.path().join("to"), &SinkOptions { io: io(engine), ..SinkOptions::default() });
            let (tell, told) = std::sync::mpsc::channel();
            let middle = Stage::compute("slow", move |_| {
                let _ = tell.send(());
                std::thread::sleep(std::time::Duration::from_millis(2));
                Ok(())
            });
            let line = Pipeline::new("stopped").buffers(6, 4096).stage(source.stage("read")).stage(middle);
            let running = line.stage(sink.unwrap().stage("write")).start(&Options::default()).unwrap();
            (0..10).for_each(|_| told.recv().unwrap());
            running.stop();
            assert!(matches!(running.wait().unwrap_err().cause, Cause::Stopped));
            assert_eq!(names(dir.path()), ["from"]);
        }
    });
}

#[test]
fn an_output_that_never_ran_leaves_nothing() {
    let dir = scratch();
    drop(Sink::create(&dir.path().join("to"), &SinkOptions::default()).unwrap().stage("write"));
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn a_block_that_does_not_fit_is_told() {
    within(|| {
        let dir = scratch();
        let path = dir.path().join("data");
        std::fs::write(&path, pattern(50_000)).unwrap();
        let source = Source::open([path], &SourceOptions { block_bytes: 8192, ..SourceOptions::default() }).unwrap();
        let line = Pipeline::new("small").buffers(2, 4096).stage(source.stage("read")).stage(pass());
        let failure = line.run(&Options::default()).unwrap_err();
        assert!(failure.to_string().contains("8192 bytes does not fit into a buffer of 4096"), "{failure}");
    });
}

/// Environment variable with the small disk's directory, in the process that the test starts for itself.
const DISK: &str = "CST_DISK";

/// Runs a test of this program once more, with a file system of one MiB mounted in a private mount namespace; it
/// disappears with the process, however that ends.
fn on_a_small_disk(test: &str) {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can mount");
        return;
    }
    let disk = scratch();
    let script = r#"mount -t tmpfs -o size=1m cst "$0" || { echo "SKIPPED: cannot mount"; exit 0; }; exec "$@""#;
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .args([disk.path(), &std::env::current_exe().unwrap()])
        .args(["--exact", test, "--nocapture"])
        .env(DISK, disk.path())
        .output();
    let Ok(output) = output else {
        println!("SKIPPED: there is no unshare");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed") || said.contains("SKIPPED"), "{said}");
    said.lines().filter(|line| line.contains("SKIPPED")).for_each(|line| println!("{line}"));
}

#[test]
fn a_disk_that_fills_ends_the_pipeline_and_is_empty_again() {
    let Some(disk) = std::env::var_os(DISK) else {
        return on_a_small_disk("failures::a_disk_that_fills_ends_the_pipeline_and_is_empty_again");
    };
    let disk = PathBuf::from(disk);
    within(move || {
        let dir = scratch();
        let from = dir.path().join("from");
        std::fs::write(&from, pattern(3 << 20)).unwrap();
        for engine in Engine::ALL {
            // If the length is known, before anything runs.
            let options = SinkOptions { expect_bytes: Some(3 << 20), io: io(engine), ..SinkOptions::default() };
            let error = Sink::create(&disk.join("to"), &options).unwrap_err();
            assert!(matches!(error.cause, FileCause::DiskFull { .. }), "{error}");
            // Otherwise, when it happens.
            let to = disk.join("to");
            let copy = Copy { from: from.clone(), to, expect: false, ..Copy::new(dir.path(), engine) };
            let failure = copy.through(pass()).unwrap_err();
            let error = file_error(&failure, "write");
            assert!(matches!(error.cause, FileCause::DiskFull { wanted, free: Some(_) } if wanted > 0), "{error}");
            assert!(error.offset.is_some_and(|offset| offset > 500_000), "{error}");
            assert_eq!(names(&disk), Vec::<String>::new());
            let room = rustix::fs::statvfs(&disk).unwrap();
            assert_eq!(room.f_bfree, room.f_blocks, "{engine} left something behind");
        }
        assert!(std::fs::read(&from).unwrap() == pattern(3 << 20));
    });
}
