//! Checks that the C header is the one generated from the crate. `COSCHED_UPDATE=1 cargo test -p cosched-ffi` regenerates
//! it.

use std::path::Path;

/// The first comment of the header, about the whole library.
const OPENING: &str = "\
/* cosched for programs in C: libcosched. Made by cbindgen from crates/cosched-ffi; not to be changed by hand.
 *
 * Jobs (cosched_open, cosched_register, ...): a program registers itself for gang scheduling with the daemon of its machine.
 * Functions return 0 or a negative cosched_err; cosched_strerror says what it means, cosched_last_error what happened in
 * this thread. docs/api.md has examples.
 *
 * Pipelines (cosched_pipeline_...): stages on threads in this process, without a daemon. Functions that can fail return -1
 * or NULL; where they have an `error` argument, it may be NULL, or the address of a pointer that gets the error (NULL where
 * there is none), which the caller frees with cosched_error_free. docs/pipeline-bindings.md has examples.
 *
 * Handles are opaque. Texts are UTF-8 and end with NUL. No function throws or unwinds, and callbacks must not: an exception
 * or a longjmp that leaves a callback ends the process. Threads: every function may be called from any thread. Buffers and
 * ports are for the callback that got them.
 */
";

/// Generates the header from the crate's source.
fn header() -> String {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config::from_file(crate_folder.join("cbindgen.toml")).expect("cbindgen.toml");
    config.header = Some(OPENING.trim_end().to_owned());
    config.after_includes = Some(versions());
    // From the root file: given the crate's directory, cbindgen would run cargo, which waits for concurrent builds.
    let bindings = cbindgen::Builder::new().with_src(crate_folder.join("src/lib.rs")).with_config(config).generate();
    let mut text = Vec::new();
    bindings.expect("cbindgen reads the crate").write(&mut text);
    without_safety(&String::from_utf8(text).expect("the header is UTF-8"))
}

/// The macros for the version with which a program is compiled.
fn versions() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut parts = version.split('.').map(|part| part.parse::<u32>().expect("a version of three numbers"));
    let mut next = || parts.next().expect("a version of three numbers");
    let number = next() * 1_000_000 + next() * 1000 + next();
    format!(
        "\n#define COSCHED_VERSION \"{version}\"\n#define COSCHED_VERSION_NUMBER {number}\n\
         /* 0 if the library that the program found at run time is what it was compiled for. */\n\
         #define COSCHED_CHECK_VERSION() cosched_check_version(COSCHED_VERSION_NUMBER)\n\
         /* A number that is not known. */\n\
         #define COSCHED_UNKNOWN UINT64_MAX"
    )
}

/// Removes Rust's safety sections, which state what is obvious in C.
fn without_safety(header: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in header.lines() {
        inside = (inside || line.trim() == "* # Safety") && line.trim() != "*/";
        if inside {
            continue;
        }
        if line.trim() == "*/" && kept.last().is_some_and(|last| last.trim() == "*") {
            kept.pop();
        }
        kept.push(line.trim_end());
    }
    kept.join("\n") + "\n"
}

#[test]
fn the_header_is_that_of_the_crate() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/c/include/cosched.h");
    let made = header();
    if std::env::var_os("COSCHED_UPDATE").is_some() {
        std::fs::write(&path, &made).expect("the header can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == made, "{} is not that of the crate; COSCHED_UPDATE=1 cargo test -p cosched-ffi", path.display());
}
