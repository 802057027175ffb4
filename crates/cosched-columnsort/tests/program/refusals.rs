//! Requests that are refused before any work: with the reason, a hint, and exit code 2.

use crate::harness::{Place, refused};

fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "'{part}' is not in: {message}");
    }
}

fn with_input() -> Place {
    let place = Place::new();
    place.json(&["generate", "in", "--records", "10000"]);
    place
}

#[test]
fn matrices_that_do_not_sort() {
    let place = with_input();
    let flat = refused(place.run(&["sort", "in", "-o", "out", "--rows", "200", "--columns", "50"]), 2);
    assert_says(&flat, &["rows >= 2 (columns - 1)^2", "hint:", "--rows 4850 --columns 50", "--rows"]);
    let uneven = refused(place.run(&["sort", "in", "-o", "out", "--rows", "1001", "--columns", "10"]), 2);
    assert_says(&uneven, &["have to divide the rows", "--rows 1010 --columns 10"]);
    let small = refused(place.run(&["sort", "in", "-o", "out", "--rows", "900", "--columns", "10"]), 2);
    assert_says(&small, &["fewer places than there are records", "--rows 1000 --columns 10"]);
    let shape =
        refused(place.run(&["shape", "--records", "10", "--rows", "9", "--columns", "3", "--processes", "2"]), 2);
    assert_says(&shape, &["process j mod P", "--columns 4"]);
    assert_eq!(place.names(), ["in"]);
}

#[test]
fn too_little_memory() {
    let place = with_input();
    let message = refused(place.run(&["sort", "in", "-o", "out", "--memory", "100k"]), 2);
    assert_says(&message, &["no matrix sorts this number of records", "give --memory"]);
    let hint = message.rsplit("--memory ").next().unwrap().split(' ').next().unwrap().to_owned();
    place.json(&["sort", "in", "-o", "out", "--memory", &hint]);
    let asked = refused(place.run(&["sort", "in", "-o", "other", "--columns", "2", "--memory", "1M"]), 2);
    assert_says(&asked, &["more than the 1048576 allowed"]);
}

#[test]
fn inputs_that_are_none() {
    let place = with_input();
    let bytes = std::fs::read(place.path("in")).unwrap();
    std::fs::write(place.path("cut"), &bytes[..999_950]).unwrap();
    let cut = refused(place.run(&["sort", "cut", "-o", "out"]), 2);
    assert_says(&cut, &["999950 bytes are 9999 records of 100 bytes and 50 bytes more", "cut off"]);
    let check = refused(place.run(&["check", "cut"]), 1);
    assert_says(&check, &["100"]);
    let missing = refused(place.run(&["sort", "nowhere", "-o", "out"]), 1);
    assert_says(&missing, &["cannot sort nowhere", "No such file"]);
    let directory = refused(place.run(&["sort", ".", "-o", "out"]), 2);
    assert_says(&directory, &["not a regular file"]);
    assert_eq!(place.names(), ["cut", "in"]);
}

#[test]
fn outputs_that_are_there() {
    let place = with_input();
    std::fs::write(place.path("out"), "precious").unwrap();
    assert_says(&refused(place.run(&["sort", "in", "-o", "out"]), 2), &["out exists already", "--force"]);
    assert_says(&refused(place.run(&["generate", "out", "--records", "1"]), 2), &["--force"]);
    assert_eq!(std::fs::read(place.path("out")).unwrap(), b"precious");
    // The input itself is never replaced, not even with --force, by whatever name.
    std::os::unix::fs::symlink(place.path("in"), place.path("link")).unwrap();
    let before = std::fs::read(place.path("in")).unwrap();
    assert_says(
        &refused(place.run(&["sort", "in", "-o", "link", "--force", "--quiet"]), 1),
        &["same file as the input"],
    );
    assert_eq!(std::fs::read(place.path("in")).unwrap(), before);
    place.json(&["sort", "in", "-o", "out", "--force"]);
    assert_eq!(std::fs::metadata(place.path("out")).unwrap().len(), 1_000_000);
}

#[test]
fn options_that_make_no_sense() {
    let place = with_input();
    let cases: &[(&[&str], &str)] = &[
        (&["--key-offset", "95"], "the key ends at byte 105"),
        (&["--record-size", "0"], "at least one byte"),
        (&["--buffers", "1"], "2 or more"),
        (&["--block", "5000B"], "--block 8192B"),
        (&["--memory", "4096"], "write 4096B, 4096K or 4096M"),
        (&["--incarnations", "0"], "1 or more"),
        (&["--passes", "5"], "3..=4"),
        (&["--priorities", "nicest"], "not a rule for priorities"),
        (&["--memory", "much"], "is no size"),
        (&["--io", "fast"], "uring, direct and buffered"),
    ];
    for (options, says) in cases {
        let args: Vec<&str> = ["sort", "in", "-o", "out"].iter().chain(*options).copied().collect();
        assert_says(&refused(place.run(&args), 2), &[says]);
    }
    assert_eq!(place.names(), ["in"]);
}

#[test]
fn check_says_what_is_wrong() {
    let place = with_input();
    let unordered = place.run(&["check", "in"]);
    assert_eq!(unordered.status.code(), Some(1));
    assert_says(&String::from_utf8(unordered.stdout).unwrap(), &["OUT OF ORDER", "first record"]);
    place.json(&["sort", "in", "-o", "out"]);
    let mut bytes = std::fs::read(place.path("out")).unwrap();
    bytes[99] ^= 1;
    std::fs::write(place.path("changed"), &bytes).unwrap();
    let changed = place.run(&["check", "changed", "--against", "in"]);
    assert_eq!(changed.status.code(), Some(1));
    assert_says(&String::from_utf8(changed.stdout).unwrap(), &["in order; OTHER RECORDS"]);
    let checksum = place.json(&["check", "out"])["checksum"].as_str().unwrap().to_owned();
    assert!(place.run(&["check", "out", "--checksum", &checksum]).status.success());
    assert_eq!(place.run(&["check", "changed", "--checksum", &checksum]).status.code(), Some(1));
}
