//! The library in programs that it must not change: what they print is the same with and without it.

mod front;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The ways to wait with which every program is tested.
const WAYS: [&str; 6] =
    ["busy", "spin-block", "spin-block:0us", "spin-block:60000000us", "spin-yield:0us", "spin-yield"];

/// The preloaded library; cargo puts it beside the directory of the tests.
fn library() -> PathBuf {
    built("libcosched_preload.so")
}

fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let beside = own.ancestors().map(|directory| directory.join(name));
    beside.into_iter().find(|path| path.is_file()).unwrap_or_else(|| panic!("{name}: run by cargo, which builds it"))
}

/// The directory for compiled programs, in cargo's output: a static value is never dropped.
fn dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wait");
        // Removes what an earlier run left, if anything.
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    })
}

/// Compiles a C program of tests/programs; `None` where this machine cannot (no compiler, no static C library).
fn compile(name: &str, as_name: &str, options: &[&str]) -> Option<PathBuf> {
    compile_with("cc", name, as_name, options)
}

fn compile_with(compiler: &str, name: &str, as_name: &str, options: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
    let program = dir().join(as_name);
    let done =
        Command::new(compiler).arg("-O2").args(options).arg("-o").arg(&program).arg(source).arg("-lpthread").output();
    match done {
        Ok(done) if done.status.success() => Some(program),
        Ok(done) if options.is_empty() && compiler == "cc" => panic!("{}", String::from_utf8_lossy(&done.stderr)),
        _ => None,
    }
}

fn stress() -> &'static Path {
    static STRESS: OnceLock<PathBuf> = OnceLock::new();
    STRESS.get_or_init(|| compile("stress", "stress", &[]).expect("a C compiler"))
}

/// A command that ends within half a minute. Its environment reports more ranks than CPUs, so that the library is active.
fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "30"]).arg(program).args(arguments).env("PMI_LOCAL_SIZE", "4096");
    command.env_remove("LD_PRELOAD").env_remove("COSCHED_WAIT").env_remove("COSCHED_WAIT_PAGE");
    command
}

fn preloaded(program: &Path, arguments: &[&str], wait: &str) -> Command {
    let mut command = command(program, arguments);
    // Not for `timeout`: its environment is the program's.
    command.env("LD_PRELOAD", library()).env("COSCHED_WAIT", wait);
    command
}

fn same(program: &Path, arguments: &[&str]) {
    let plain = command(program, arguments).output().unwrap();
    for wait in WAYS {
        let with = preloaded(program, arguments, wait).output().unwrap();
        assert_eq!(text(&with), text(&plain), "{} {arguments:?} with {wait}", program.display());
    }
    // Where the front cannot be built, the library itself is preloaded.
    let alone = preloaded(program, arguments, "spin-block:0us").env("LD_PRELOAD", built("libcosched_wait.so")).output();
    assert_eq!(text(&alone.unwrap()), text(&plain), "{} {arguments:?}, the library alone", program.display());
}

fn text(output: &Output) -> (Option<i32>, String, String) {
    let words = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), words(&output.stdout), words(&output.stderr))
}

macro_rules! parts {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let plain = command(stress(), &[stringify!($name)]).output().unwrap();
            assert_eq!(plain.status.code(), Some(0), "without the library: {:?}", text(&plain));
            same(stress(), &[stringify!($name)]);
        }
    )*};
}

mod stressed {
    use super::*;
    parts! { ways threads closed signals masks fork yields cancel errors }
}

/// Every configure script and shell loop pays for what is loaded into programs that never poll.
#[test]
fn it_brings_no_other_library() {
    let libraries = |preload: &str| {
        // `timeout` does not run then: only the libraries that it would load are printed.
        let mut command = preloaded(Path::new("/bin/true"), &[], "busy");
        let said = command.env("LD_TRACE_LOADED_OBJECTS", "1").env("LD_PRELOAD", preload).output().unwrap();
        let name = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
        text(&said).1.lines().map(name).collect::<BTreeSet<_>>()
    };
    let own = library().display().to_string();
    let (with, without) = (libraries(&own), libraries(""));
    assert!(!without.is_empty());
    assert_eq!(with.difference(&without).collect::<Vec<_>>(), [&own], "{with:?}");
}

/// The line of a process in the statistics.
fn statistics(wait: &str, page: Option<&Path>, part: &str) -> String {
    let path = tempfile::NamedTempFile::new_in(dir()).unwrap();
    let mut command = preloaded(stress(), &[part], wait);
    command.env("COSCHED_WAIT_STATS", path.path());
    page.map(|page| command.env("COSCHED_WAIT_PAGE", page));
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    let lines = std::fs::read_to_string(path.path()).unwrap();
    lines.lines().find(|line| line.starts_with("{\"program\":\"stress\"")).unwrap_or_default().to_owned()
}

fn field(line: &str, name: &str) -> u64 {
    let start = line.find(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{name} in {line}")) + name.len() + 3;
    line[start..].split([',', '}']).next().unwrap().parse().unwrap()
}

#[test]
fn who_waits_for_nothing_blocks_and_says_so() {
    let blocked = statistics("spin-block:50us", None, "idle");
    assert!(field(&blocked, "blocks") > 0 && field(&blocked, "block_ns") > 100_000_000, "{blocked}");
    assert_eq!(field(&blocked, "spin_us"), 50);
    let busy = statistics("busy", None, "idle");
    assert_eq!((field(&busy, "blocks"), field(&busy, "yields")), (0, 0), "{busy}");
    assert!(field(&busy, "polls") > field(&blocked, "polls"), "{busy} {blocked}");
    let yielded = statistics("spin-yield:50us", None, "idle");
    assert!(field(&yielded, "yields") > 0 && field(&yielded, "blocks") == 0, "{yielded}");
    let minute = statistics("spin-block:60000000us", None, "idle");
    assert_eq!(field(&minute, "blocks"), 0, "half a second is less than a minute: {minute}");
}

mod pages {
    use super::*;
    use cosched_core::wait::page;

    /// A page like the daemon's.
    fn page(name: &str, mode: u32, rivals: u32, cpus: u32) -> PathBuf {
        let mut bytes = vec![0; page::SIZE];
        for (at, word) in [page::MAGIC, mode, 7, rivals, cpus].into_iter().enumerate() {
            bytes[at * 4..at * 4 + 4].copy_from_slice(&word.to_ne_bytes());
        }
        let path = dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn the_page_says_how_to_wait_and_whether_to() {
        let line = statistics("busy", Some(&page("rivals", page::SPIN_BLOCK, 1, 2)), "idle");
        assert!(field(&line, "blocks") > 0 && field(&line, "spin_us") == 7, "{line}");
        let line = statistics("spin-block", Some(&page("alone", page::SPIN_BLOCK, 0, 2)), "idle");
        assert_eq!(field(&line, "blocks"), 0, "alone: {line}");
        let line = statistics("spin-block", Some(&page("busy", page::BUSY, 9, 2)), "idle");
        assert_eq!(field(&line, "blocks"), 0, "busy: {line}");
    }

    #[test]
    fn the_process_counts_in_its_slot() {
        let path = page("counted", page::SPIN_BLOCK, 1, 2);
        let line = statistics("spin-block", Some(&path), "idle");
        let bytes = std::fs::read(&path).unwrap();
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let slot = size_of::<page::Head>();
        assert_eq!(u64::from(word(slot)), field(&line, "pid"));
        assert_eq!(word(slot + std::mem::offset_of!(page::Slot, state)), page::COMPUTING);
        assert_eq!(long(slot + std::mem::offset_of!(page::Slot, polls)), field(&line, "polls"));
        assert_eq!(long(slot + std::mem::offset_of!(page::Slot, blocks)), field(&line, "blocks"));
        assert_eq!(word(2 * slot), 0, "one process, one slot");
    }

    #[test]
    fn a_page_that_is_none_does_no_harm() {
        let short = dir().join("short");
        std::fs::write(&short, b"CSW1").unwrap();
        let wrong = dir().join("wrong");
        std::fs::write(&wrong, vec![0; page::SIZE]).unwrap();
        for path in [short.as_path(), &wrong, Path::new("/nonexistent"), Path::new("/"), Path::new("/dev/zero")] {
            let line = statistics("spin-block:50us", Some(path), "idle");
            assert!(field(&line, "blocks") > 0, "{}: the environment's word counts: {line}", path.display());
        }
    }
}

#[test]
fn a_server_that_sleeps_by_itself_asks_without_waiting() {
    let program = compile("server", "server", &[]).unwrap();
    for wait in ["spin-block", "spin-block:0us"] {
        let said = preloaded(&program, &[], wait).output().unwrap();
        let late: u32 = text(&said).1.trim().parse().unwrap();
        assert!(late < 50, "{late} of 100 calls blocked with {wait}");
    }
}

#[test]
fn an_event_loop_with_ready_tasks_never_waits() {
    for (name, options) in [("loop", &[][..]), ("loop-slow", &["-DSLOW", "-rdynamic"])] {
        let program = compile("loop", name, options).expect(name);
        let said = preloaded(&program, &[], "spin-block").output().unwrap();
        let [work, spin] =
            text(&said).1.trim().split(' ').map(|count| count.parse().unwrap()).collect::<Vec<u32>>()[..]
        else {
            panic!("{said:?}")
        };
        assert!(work < 20, "{name}: it gave its CPU away {work} times in 2000 turns with work");
        assert!(spin > 100, "{name}: {spin}: this test sees it where a thread waits");
    }
}

#[test]
fn a_bad_value_is_said_once_and_switches_it_off() {
    let path = tempfile::NamedTempFile::new_in(dir()).unwrap();
    let mut command = Command::new(stress());
    command.arg("idle").env("LD_PRELOAD", library()).env("COSCHED_WAIT", "spin-blok").env("PMI_LOCAL_SIZE", "4096");
    let output = command.env("COSCHED_WAIT_STATS", path.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("COSCHED_WAIT=spin-blok is not understood; give busy, spin-block[:TIME]"), "{said}");
    assert_eq!((output.status.code(), output.stdout), (Some(0), b"idle\n".to_vec()));
    assert_eq!(field(&std::fs::read_to_string(path.path()).unwrap(), "blocks"), 0);
}

#[test]
fn programs_that_it_leaves_alone() {
    let script =
        "for i in 1 2 3; do echo $i | cat | (read x; echo got $x); done; sleep 0.01 & wait; ls / | head -2; exit 3";
    same(Path::new("/bin/bash"), &["-c", script]);
    let python = "import select, subprocess, socket\na, b = socket.socketpair()\nfor i in range(1000): select.select([a], [], [], 0)\nb.send(b'x')\n\
                  print(select.select([a], [], [], 0)[0] == [a], subprocess.run(['echo', 'hi'], capture_output=True).stdout)";
    for (program, arguments) in [("python3", vec!["-c", python]), ("git", vec!["version"]), ("id", vec!["-u"])] {
        let found = Command::new("which").arg(program).output().unwrap();
        let path = String::from_utf8(found.stdout).unwrap();
        if found.status.success() {
            same(Path::new(path.trim()), &arguments);
        }
    }
}

#[test]
fn programs_into_which_it_is_not_loaded_or_that_have_a_poll_of_their_own() {
    if let Some(program) = compile("stress", "stress-static", &["-static"]) {
        same(&program, &["errors"]);
    }
    let own = compile("own_poll", "own-poll", &[]).unwrap();
    same(&own, &[]);
    let own = tempfile::Builder::new().prefix("cst-wait").tempdir().unwrap();
    let setuid = own.path().join("setuid");
    std::fs::copy(stress(), &setuid).unwrap();
    std::fs::set_permissions(&setuid, std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
    same(&setuid, &["errors"]);
}

/// What `cosched run` loads needs no C library and brings the other one only into programs that have the same.
#[test]
fn programs_of_another_c_library_run_as_they_do_alone() {
    let Some(program) = compile_with("musl-gcc", "polls", "polls-musl", &[]) else {
        println!("SKIPPED: there is no musl-gcc: `tools/setup test` installs it");
        return;
    };
    let plain = command(&program, &[]).output().unwrap();
    assert_eq!(text(&plain), (Some(0), "0 ready\n".to_owned(), String::new()));
    for wait in WAYS {
        assert_eq!(text(&preloaded(&program, &[], wait).output().unwrap()), text(&plain), "with {wait}");
    }
}

/// `cosched run` sets the option.
#[test]
fn under_address_sanitizer() {
    let Some(program) = compile("stress", "stress-asan", &["-fsanitize=address", "-g"]) else { return };
    for part in ["ways", "threads", "fork"] {
        let with_option =
            |mut command: Command| command.env("ASAN_OPTIONS", "verify_asan_link_order=0").output().unwrap();
        let plain = with_option(command(&program, &[part]));
        for wait in ["busy", "spin-block:0us"] {
            assert_eq!(text(&with_option(preloaded(&program, &[part], wait))), text(&plain), "{part} with {wait}");
        }
    }
}

/// The library's code is not instrumented; ThreadSanitizer watches the program's memory and intercepts calls between it and the library. It must not
/// report a race in the program, which has none.
#[test]
fn under_thread_sanitizer() {
    let Some(program) = compile("stress", "stress-tsan", &["-fsanitize=thread", "-g"]) else { return };
    for part in ["ways", "threads", "yields"] {
        // ThreadSanitizer executes the program again if its memory layout is unsuitable.
        let plain = command(&program, &[part]).output().unwrap();
        if !plain.status.success() {
            return;
        }
        for wait in ["spin-block:0us", "spin-yield:0us"] {
            let with = preloaded(&program, &[part], wait).output().unwrap();
            assert_eq!(text(&with), text(&plain), "{part} with {wait}");
        }
    }
}

#[test]
fn the_threads_of_a_programs_own_workers_spin_briefly() {
    let worker = compile("worker", "worker", &[]).unwrap();
    let other = compile("worker", "other-worker", &[]).unwrap();
    let timeout = |program: &Path, arguments: &[&str], set: &str, both: Option<&str>| {
        let mut command = preloaded(program, arguments, "spin-block");
        command.env("OPENBLAS_THREAD_TIMEOUT", set);
        both.map(|both| command.env("COSCHED_WAIT_OPENBLAS", both));
        let out = command.output().unwrap();
        assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    let of = |arguments: &[&str]| timeout(&worker, arguments, "20", Some("20/16"));
    assert_eq!(of(&["start", "-c", "code"]), "16");
    assert_eq!(of(&["start", "-u", "-c", "code"]), "16");
    assert_eq!(of(&["start", "-u", "file", "-c"]), "20", "an option of the file");
    assert_eq!(of(&["start", "-m", "module"]), "20");
    assert_eq!(of(&["-c", "code"]), "20", "`timeout` has started it");
    let shell = [other.to_str().unwrap(), "-c", "code"].join(" ");
    assert_eq!(timeout(Path::new("sh"), &["-c", &shell], "20", Some("20/16")), "20", "another program has started it");
    assert_eq!(timeout(&worker, &["start", "-c", "code"], "18", Some("20/16")), "18", "the user's");
    assert_eq!(timeout(&worker, &["start", "-c", "code"], "20", None), "20", "the user's");
    for wrong in ["", "20", "/", "/16", "x/y"] {
        assert_eq!(timeout(&worker, &["start", "-c", "code"], "20", Some(wrong)), "20", "`{wrong}`");
    }
}
