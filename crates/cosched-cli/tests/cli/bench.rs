//! `cosched bench` and `cosched advise`: their help, and what they refuse. `tests/tests/bench.rs` runs them.

use crate::commands::help;
use crate::fake::{Place, text};

#[test]
fn help_texts() {
    insta::assert_snapshot!("help", help(&Place::new(), &["bench", "bench slowdown", "bench compare", "advise"]));
}

#[test]
fn a_resumption_takes_no_other_options() {
    let place = Place::new();
    let directory = place.path("out").display().to_string();
    for more in [&["--jobs", "2"][..], &["--", "true"]] {
        let output = place.output(&[&["bench", "slowdown", "--resume", &directory], more].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
    let output = place.output(&["bench", "slowdown", "--resume", &directory]);
    assert_eq!(output.status.code(), Some(6));
    assert!(text(&output.stderr).contains("cannot be resumed"), "{}", text(&output.stderr));
    // --json is a global option, so it may be given as well.
    let output = place.output(&["--json", "bench", "slowdown", "--resume", &directory]);
    assert_eq!(output.status.code(), Some(6), "{}", text(&output.stderr));
}

#[test]
fn times_out_of_range_are_named() {
    let place = Place::new();
    for (words, word) in [
        (["advise", "--seconds", "0.5"], "from 1"),
        (["advise", "--seconds", "x"], "from 1"),
        (["advise", "--policies", "gan"], "did you mean gang?"),
    ] {
        let output = place.output(&[&words[..], &["--", "true"]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(word), "{}", text(&output.stderr));
    }
}
