//! An output appears only when it is complete, and leaves nothing behind otherwise.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cosched_linux::file::{Caching, Cause, Extent, FileError, Output, OutputOptions, Transfers};

use crate::support::{Pages, options, pattern, scratch};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn both() -> [OutputOptions; 2] {
    [OutputOptions::default(), OutputOptions { named: true, sync: true, ..OutputOptions::default() }]
}

fn write(output: &Output, content: &[u8]) {
    let mut transfers = Transfers::start(&options(cosched_linux::file::Engine::Uring));
    transfers.write(output.file(), &[Extent::start(0, content.len())], Pages::of(content));
    transfers.wait().unwrap().result.unwrap();
}

#[test]
fn it_gets_its_name_at_the_end_and_replaces_what_had_it() {
    for options in both() {
        let dir = scratch();
        let target = dir.path().join("output");
        std::fs::write(&target, "old").unwrap();
        std::fs::set_permissions(&target, PermissionsExt::from_mode(0o640)).unwrap();
        let mut output = Output::create(&target, &options).unwrap();
        output.reserve(100_000).unwrap();
        write(&output, &pattern(70_001));
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        assert_eq!(output.temporary().is_some(), options.named);
        output.publish(70_001).unwrap();
        assert!(std::fs::read(&target).unwrap() == pattern(70_001));
        assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(dir.path()), ["output"]);
    }
}

#[test]
fn without_its_end_nothing_is_left_and_the_old_one_stays() {
    for options in both() {
        let dir = scratch();
        let target = dir.path().join("output");
        std::fs::write(&target, "old").unwrap();
        let output = Output::create(&target, &options).unwrap();
        write(&output, &pattern(10_000));
        drop(output);
        assert_eq!(names(dir.path()), ["output"]);
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
    }
}

#[test]
fn an_empty_output_is_an_empty_file() {
    for options in both() {
        let dir = scratch();
        let target = dir.path().join("output");
        Output::create(&target, &options).unwrap().publish(0).unwrap();
        assert_eq!(std::fs::metadata(&target).unwrap().len(), 0);
        assert_eq!(names(dir.path()), ["output"]);
    }
}

#[test]
fn behind_a_link_its_target_is_replaced() {
    let dir = scratch();
    let (target, link) = (dir.path().join("target"), dir.path().join("link"));
    std::fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink("target", &link).unwrap();
    let output = Output::create(&link, &OutputOptions::default()).unwrap();
    write(&output, b"new");
    output.publish(3).unwrap();
    assert!(link.is_symlink());
    assert_eq!(std::fs::read(&target).unwrap(), b"new");
}

#[test]
fn an_output_is_none_of_the_inputs() {
    let dir = scratch();
    let (input, other) = (dir.path().join("input"), dir.path().join("other"));
    std::fs::write(&input, "precious").unwrap();
    std::fs::hard_link(&input, &other).unwrap();
    for target in [&input, &other] {
        let options =
            OutputOptions { inputs: vec![dir.path().join("nowhere"), input.clone()], ..OutputOptions::default() };
        let error = Output::create(target, &options).unwrap_err();
        assert!(matches!(&error.cause, Cause::SameFile(path) if *path == input), "{error}");
        assert!(error.to_string().contains("the same file as the input"), "{error}");
    }
    assert_eq!(std::fs::read(&input).unwrap(), b"precious");
}

#[test]
fn where_nothing_can_be_written_it_says_so_at_once() {
    let dir = scratch();
    let create = |path: &Path| -> FileError { Output::create(path, &OutputOptions::default()).unwrap_err() };
    assert!(matches!(create(dir.path()).cause, Cause::NotAFile("directory")));
    assert!(matches!(create(&dir.path().join("no/such/dir")).cause, Cause::Missing));
    assert!(matches!(create(Path::new("/dev/null")).cause, Cause::NotAFile("character device")));
    let below_a_file = create(Path::new("/proc/self/status/output"));
    assert!(below_a_file.to_string().contains("/proc/self/status/output"), "{below_a_file}");
}

#[test]
fn a_long_name_can_be_a_target() {
    let dir = scratch();
    let target = dir.path().join("n".repeat(255));
    for options in both() {
        Output::create(&target, &options).unwrap().publish(0).unwrap();
    }
    assert_eq!(names(dir.path()).len(), 1);
}

#[test]
fn a_working_file_has_no_name() {
    let dir = scratch();
    let file = cosched_linux::file::BlockFile::scratch(dir.path(), Caching::Direct).unwrap();
    file.reserve(0, 1 << 20).unwrap();
    file.write_at(&pattern(9000), 4096).unwrap();
    let mut back = vec![0; 9000];
    file.read_at(&mut back, 4096).unwrap();
    assert!(back == pattern(9000));
    assert_eq!(names(dir.path()), Vec::<String>::new());
}
