//! libcosched_preload.so: which programs get the library, and that loading it changes no program.

use super::{built, command, compile, dir, library, preloaded, stress, text};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether the library is loaded into a program, from the dynamic linker's messages.
fn gets_it(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).env("LD_PRELOAD", library()).env("LD_DEBUG", "files").env_remove("COSCHED_JOB");
    let output = command.output().unwrap();
    let said = text(&output).2;
    assert!(said.contains("libcosched_preload.so"), "{program}: {said}");
    said.contains("libcosched_wait.so")
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success();
    if !found {
        println!("SKIPPED: no {program}");
    }
    found
}

#[test]
fn programs_that_only_run_do_not_get_it() {
    for program in ["true", "sh", "cat", "ls", "sed", "grep", "bash", "make", "git", "expr"] {
        if is_installed(program) {
            assert!(!gets_it(program, &["--version"]), "{program}");
        }
    }
    let linker = "/lib64/ld-linux-x86-64.so.2";
    if Path::new(linker).exists() {
        assert!(!gets_it(linker, &["/bin/true"]));
    }
}

#[test]
fn programs_that_may_wait_get_it() {
    assert!(gets_it(stress().to_str().unwrap(), &["errors"]));
    for (program, arguments) in [("python3", ["-c", ""]), ("perl", ["-e", ""])] {
        if is_installed(program) {
            assert!(gets_it(program, &arguments), "{program}");
        }
    }
    for (compiler, name, options) in
        [("cc", "state", &["-fopenmp"][..]), ("mpicc.openmpi", "mpi_words", &[]), ("mpicc.mpich", "mpi_words", &[])]
    {
        let program = dir().join(format!("front-{name}-{compiler}"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
        if is_installed(compiler) {
            let done = Command::new(compiler).args(["-w", "-o"]).arg(&program).arg(source).args(options).status();
            assert!(done.unwrap().success(), "{compiler}");
            // The program is ended at once: the linker has reported everything by then.
            assert!(gets_it("timeout", &["-k", "1", "5", program.to_str().unwrap(), "x"]), "{compiler}");
        }
    }
}

#[test]
fn who_names_a_job_that_it_is_not_in_gets_it() {
    let with = |job: &str| {
        let mut command = Command::new("true");
        command.env("LD_PRELOAD", library()).env("COSCHED_JOB", job).env("COSCHED_WAIT_DEBUG", "1");
        text(&command.env("COSCHED_SOCKET", "/nonexistent/s").output().unwrap()).2
    };
    assert!(with("999999999").contains("is not in job 999999999"), "{}", with("999999999"));
    assert!(with("seven").contains("not a job's id") && with("99999999999999999999999999").contains("not a job's id"));
    assert_eq!(with(""), "");
}

/// The job's command was given the page's identity, so its descendants need not read their cgroup; on another node it is a different file.
#[test]
fn who_has_the_page_of_its_job_is_in_it() {
    let page = tempfile::NamedTempFile::new_in(dir()).unwrap();
    let facts = page.as_file().metadata().unwrap();
    let Ok(born) = facts.created() else { return println!("SKIPPED: the file system tells no time of birth") };
    let born = born.duration_since(std::time::UNIX_EPOCH).unwrap();
    let (inode, seconds, ns) = (facts.ino(), born.as_secs(), born.subsec_nanos());
    let with = |preload: PathBuf, seen: &str| {
        let mut command = Command::new("true");
        command.env("LD_PRELOAD", preload).env("COSCHED_JOB", "999999999").env("COSCHED_WAIT_DEBUG", "1");
        command.env("COSCHED_WAIT_PAGE", page.path()).env("COSCHED_WAIT_PAGE_SEEN", seen);
        !text(&command.env("COSCHED_SOCKET", "/nonexistent/s").output().unwrap()).2.is_empty()
    };
    // The front and the library agree.
    let enters = |seen: &str| {
        let [front, whole] = [library(), built("libcosched_wait.so")].map(|preload| with(preload, seen));
        assert_eq!(front, whole, "{seen}");
        front
    };
    assert!(!enters(&format!("{inode}-{seconds}-{ns}")));
    for other in [
        "".into(),
        format!("{inode}-{seconds}-{ns}0"),
        format!("{inode}-{seconds}"),
        format!("{}-{seconds}-{ns}", inode + 1),
        "--".into(),
    ] {
        assert!(enters(&other), "{other}");
    }
}

#[test]
fn the_program_finds_what_it_would_have_found() {
    let state = compile("state", "state", &[]).unwrap();
    let run = |preload: Option<&Path>, arguments: &[&str]| {
        let mut command = Command::new("env");
        command.args(["--ignore-signal=USR1", "--block-signal=USR2", "-i", "EMPTY=", "A=b=c", "A=d"]);
        preload.map(|preload| command.arg(format!("LD_PRELOAD={}", preload.display())));
        command.args(["sh", "-c", "exec \"$@\"", "-"]).arg(&state).args(arguments).output().unwrap()
    };
    for arguments in [&[][..], &["", "a b", "", "\n"], &["die"]] {
        let plain = run(None, arguments);
        assert!(text(&plain).1.contains("no error"), "{plain:?}");
        assert_eq!(run(Some(&library()), arguments), plain);
    }
    let renamed = |preload: &Path| {
        let mut command = Command::new(&state);
        text(&command.arg0("").arg("x").env("LD_PRELOAD", preload).output().unwrap())
    };
    assert_eq!(renamed(&library()), renamed(Path::new("")));
    assert!(renamed(&library()).1.starts_with("[]\n[x]\n"));
}

/// Cases in which our functions are interposed but we do not load the library: they jump to the next function.
#[test]
fn it_stands_aside() {
    let alone = dir().join("front-alone");
    std::fs::create_dir_all(&alone).unwrap();
    let copy = alone.join("libcosched_preload.so");
    std::fs::copy(library(), &copy).unwrap();
    let (front, wait, copy) = (library(), built("libcosched_wait.so"), copy.display().to_string());
    let (front, wait) = (front.display(), wait.display());
    let orders = [
        copy.clone(),
        format!("{copy}:{front}"),
        format!("{front}:{copy}"),
        format!("{front}:{front}"),
        format!("{front}:{wait}"),
        format!("{wait}:{front}"),
    ];
    for part in ["ways", "signals", "cancel", "fork"] {
        let plain = text(&command(stress(), &[part]).output().unwrap());
        for order in &orders {
            let with = preloaded(stress(), &[part], "spin-block:0us").env("LD_PRELOAD", order).output().unwrap();
            assert_eq!(text(&with), plain, "{part} with {order}");
        }
    }
}

/// The dynamic linker reserves little thread-local memory for libraries that are loaded late, such as libgomp below NumPy.
#[test]
fn later_libraries_get_their_thread_local_memory() {
    let program = compile("thread_memory", "thread-memory", &[]).unwrap();
    for bytes in [64, 512, 1024, 1280] {
        let size = format!("-DSTATIC_BYTES={bytes}");
        let late = compile("thread_memory", &format!("late-{bytes}.so"), &["-DLIBRARY", &size, "-shared", "-fPIC"]);
        let Some(late) = late else { return };
        let run =
            |preload: PathBuf| text(&Command::new(&program).arg(&late).env("LD_PRELOAD", preload).output().unwrap());
        assert_eq!(run(library()), run(PathBuf::new()), "{bytes}");
    }
}

#[test]
fn a_setuid_program_runs_without() {
    let own = tempfile::Builder::new().prefix("cst-front").tempdir().unwrap();
    std::fs::set_permissions(own.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = own.path().join("state");
    std::fs::copy(compile("state", "state-setuid", &[]).unwrap(), &program).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "12345", "--regid", "12345", "--clear-groups"]).arg(&program).env("LD_PRELOAD", library());
    let output = command.output().unwrap();
    if output.status.code() == Some(127) || text(&output).2.contains("setpriv:") {
        return println!("SKIPPED: not root");
    }
    assert_eq!(output.status.code(), Some(7), "{:?}", text(&output));
}

/// The names of a library's dynamic symbols.
fn symbols(library: &Path, options: &[&str]) -> BTreeSet<String> {
    let output = Command::new("nm").args(["-D", "--format=posix"]).args(options).arg(library).output().unwrap();
    let name = |line: &str| line.split(['@', ' ']).next().unwrap_or_default().to_owned();
    text(&output).1.lines().map(name).collect()
}

/// mpi4py's wheel: MPI is loaded late, and not into the global scope. It used to hang, as the library took its own functions for MPI's.
#[test]
fn mpi_that_a_program_loads_for_itself_is_found() {
    let program = compile("late_mpi", "late-mpi", &[]).unwrap();
    let late = compile("late_mpi", "late-mpi.so", &["-DLIBRARY", "-shared", "-fPIC"]).unwrap();
    let late = late.to_str().unwrap();
    for wait in ["busy", "spin-block"] {
        assert_eq!(text(&preloaded(&program, &[late], wait).output().unwrap()).1, "42 64\n", "{wait}");
        let whole = preloaded(&program, &[late], wait).env("LD_PRELOAD", built("libcosched_wait.so")).output().unwrap();
        assert_eq!(text(&whole).1, "42 64\n", "{wait}, without the front");
    }
}

/// The dynamic linker locks its list for a look-up, and a thread that loads a library needs it: they must not wait for each other.
#[test]
fn functions_are_looked_up_while_another_thread_loads_a_library() {
    let program = compile("late_mpi", "late-mpi-other", &["-DOTHER", "-rdynamic"]).unwrap();
    let [late, other] = ["late-mpi-1.so", "late-mpi-2.so"]
        .map(|name| compile("late_mpi", name, &["-DLIBRARY", "-shared", "-fPIC"]).unwrap().display().to_string());
    for preload in [library(), built("libcosched_wait.so")] {
        let mut command = preloaded(&program, &[&late, &other], "spin-block");
        let done = text(&command.env("LD_PRELOAD", preload).output().unwrap());
        assert_eq!(done, (Some(0), "42 64\nloaded, 0 more\n".into(), String::new()));
    }
}

/// The handler of a signal may poll, and comes between any two instructions of ours.
#[test]
fn a_signal_handler_may_poll_after_each_instruction() {
    if !cfg!(target_arch = "x86_64") {
        return println!("SKIPPED: single steps are made on x86-64 only");
    }
    let program = compile("steps", "steps", &[]).unwrap();
    let late = compile("late_mpi", "late-mpi-steps.so", &["-DLIBRARY", "-shared", "-fPIC"]).unwrap();
    // It spins for a minute: the handler never sleeps.
    let done = preloaded(&program, &[late.to_str().unwrap()], "spin-block:60000000us").output().unwrap();
    assert_eq!(text(&done), (Some(0), "many steps\n".into(), String::new()));
}

#[test]
fn it_has_the_librarys_functions_and_asks_for_none() {
    let mut own = symbols(&library(), &["--defined-only"]);
    assert!(own.remove("cosched_wait_front"));
    assert_eq!(own, symbols(&built("libcosched_wait.so"), &["--defined-only"]));
    let asked = symbols(&library(), &["--undefined-only"]);
    assert_eq!(asked.into_iter().collect::<Vec<_>>(), ["_dl_debug_addr", "_r_debug"]);
}

/// CPU time of short programs, in turns: what the front adds is a small part of what the library adds. Other work on the machine disturbs one
/// look, a front that costs as much as the library all of them.
#[test]
fn a_short_program_pays_little() {
    let looks: Vec<[i64; 3]> = (0..3).map(|_| short_programs_us()).collect();
    let is_clean = |[bare, front, whole]: &[i64; 3]| front - bare < (whole - bare) / 2;
    assert!(looks.iter().any(is_clean), "µs of 100 programs: bare, with the front, with the library: {looks:?}");
}

/// The least of several rounds, with nothing preloaded, the front, and the library.
fn short_programs_us() -> [i64; 3] {
    let arms = [PathBuf::new(), library(), built("libcosched_wait.so")];
    let mut least = [i64::MAX; 3];
    for turn in 0..30 {
        let arm = (turn + turn / 3) % 3;
        least[arm] = least[arm].min(cpu_us(&arms[arm]));
    }
    least
}

/// The CPU time of 100 short programs with this preloaded, and of their shell, in µs.
#[allow(clippy::zombie_processes, reason = "wait4 reaps it, and says what it used")]
fn cpu_us(preload: &Path) -> i64 {
    let script = "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done";
    let shell = Command::new("sh").args(["-c", script]).env("LD_PRELOAD", preload).spawn().unwrap();
    // SAFETY: all zeroes is a valid value of this plain structure.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child is ours and no other code waits for it; `used` is a place for one structure.
    let ended = unsafe { libc::wait4(shell.id() as i32, std::ptr::null_mut(), 0, &raw mut used) };
    assert_eq!(ended, shell.id() as i32);
    [used.ru_utime, used.ru_stime].iter().map(|time| time.tv_sec * 1_000_000 + time.tv_usec).sum()
}
