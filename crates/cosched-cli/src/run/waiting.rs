//! `--wait` and `--strategy`: how the processes of a job wait for messages, and the environment that makes them do so.

use super::EXIT_FAILED;
use super::files::of_user;
use crate::out::{Failure, say};
use cosched_api::{Policy, WaitMode, Waiting, parse};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The library's file.
const LIBRARY: &str = "libcosched_wait.so";
/// Preloaded in its place: it is beside the library, and loads it only into the programs that need it.
const FRONT: &str = "libcosched_preload.so";
/// The variable with the libraries that the dynamic linker loads first.
const PRELOAD: &str = "LD_PRELOAD";
/// The variable that names another path to the library.
const LIBRARY_VARIABLE: &str = "COSCHED_WAIT_LIBRARY";
/// Tells the library of a command without a page the number of CPUs available to it, and the number of CPUs online.
const CPUS: &str = "COSCHED_WAIT_CPUS";
/// AddressSanitizer's options.
const SANITIZER: &str = "ASAN_OPTIONS";
/// Each of these variables marks a rank; the library has the same list (crates/cosched-wait/src/crowd.rs), in a crate that this one may not use.
const LOCAL_RANK_VARIABLES: [&str; 5] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "PMI_LOCAL_SIZE",
    "SLURM_NTASKS_PER_NODE",
    "MV2_COMM_WORLD_LOCAL_SIZE",
];
/// How long OpenBLAS's threads spin for their next piece of work, as a power of two of CPU cycles (its default: 26, some 25 ms).
const OPENBLAS_TIMEOUT: &str = "OPENBLAS_THREAD_TIMEOUT";
/// The value for every job: 0.4 ms, which costs a program that is alone nothing (docs/waiting.md, chapter 5).
const OPENBLAS_BY_DEFAULT: &str = "20";
/// The value for a job that is asked to block: 25 µs.
const OPENBLAS_SHORT: &str = "16";
/// Tells the library that the value is ours, and that of workers (docs/waiting.md, chapter 2).
const OPENBLAS_WORKERS: &str = "COSCHED_WAIT_OPENBLAS";
/// The longest spin time, in µs.
const SPIN_US_MAX: u32 = 60_000_000;

/// `--wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitOption {
    /// The library is not loaded.
    Off,
    /// The library is loaded, and waits in this way.
    On(Waiting),
}

/// `auto`, `busy`, `spin-block[:TIME]`, `spin-yield[:TIME]`, `micro` or `off`.
pub(crate) fn parse_wait(text: &str) -> Result<WaitOption, String> {
    let words = "give auto, busy, spin-block, spin-block:50us, spin-yield, spin-yield:50us, micro or off";
    let (name, time) = text.split_once(':').map_or((text, None), |(name, time)| (name, Some(time)));
    if name == "off" && time.is_none() {
        return Ok(WaitOption::Off);
    }
    let mode = WaitMode::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
        let near = parse::nearest(name, WaitMode::ALL.iter().map(|mode| mode.name()));
        near.map_or(words.to_owned(), |near| format!("did you mean {near}? ({words})"))
    })?;
    let spin_us = match time {
        None => None,
        Some(_) if !matches!(mode, WaitMode::SpinBlock | WaitMode::SpinYield) => {
            return Err(format!("{name} has no spin time: {words}"));
        }
        Some(time) => {
            let ns = parse::duration(time).map_err(|e| e.to_string())?.as_nanos();
            let us = u32::try_from(ns / 1000).ok().filter(|us| ns % 1000 == 0 && *us <= SPIN_US_MAX);
            Some(us.ok_or_else(|| format!("`{time}` is not a spin time: whole µs up to 60s"))?)
        }
    };
    Ok(WaitOption::On(Waiting { mode, spin_us }))
}

/// The way to wait that the daemon is told: with `micro` the daemon itself acts, whether the library is loaded or not.
pub(crate) fn told(asked: Option<WaitOption>, plan: Option<&Plan>) -> Option<Waiting> {
    match asked {
        Some(WaitOption::On(waiting)) if waiting.mode == WaitMode::Micro => Some(waiting),
        _ => plan.map(|plan| plan.waiting),
    }
}

/// The strategies of Zhang et al. (2000), Table 1, as policy and wait; the simulator uses the same names.
const STRATEGIES: [(&str, Policy, WaitMode); 10] = [
    ("GS", Policy::Gang, WaitMode::Busy),
    ("Local", Policy::Local, WaitMode::Busy),
    ("SB", Policy::Local, WaitMode::SpinBlock),
    ("SY", Policy::Local, WaitMode::SpinYield),
    ("DCS", Policy::Dcs, WaitMode::Busy),
    ("DCS-SB", Policy::Dcs, WaitMode::SpinBlock),
    ("DCS-SY", Policy::Dcs, WaitMode::SpinYield),
    ("PB", Policy::Pb, WaitMode::Busy),
    ("PB-SB", Policy::Pb, WaitMode::SpinBlock),
    ("PB-SY", Policy::Pb, WaitMode::SpinYield),
];

/// The short names.
pub(crate) fn strategies() -> impl Iterator<Item = &'static str> {
    STRATEGIES.iter().map(|(name, ..)| *name)
}

/// A strategy by its short name, in any case.
pub(crate) fn parse_strategy(text: &str) -> Result<(Policy, Waiting), String> {
    let found = STRATEGIES.iter().find(|(name, ..)| name.eq_ignore_ascii_case(text));
    found.map(|(_, policy, mode)| (*policy, Waiting { mode: *mode, spin_us: None })).ok_or_else(|| {
        let names: Vec<&str> = STRATEGIES.iter().map(|(name, ..)| *name).collect();
        format!("unknown strategy; known are {}", names.join(", "))
    })
}

/// How a job is to wait, and the library that makes it so.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) waiting: Waiting,
    library: PathBuf,
}

impl Plan {
    /// What `asked` means for `program`; `None` when the library is not to be loaded or cannot be.
    ///
    /// # Errors
    /// When it was requested by name and is not installed.
    pub(crate) fn new(asked: Option<WaitOption>, program: &Path) -> Result<Option<Plan>, Failure> {
        let waiting = match asked {
            Some(WaitOption::Off) => return Ok(None),
            Some(WaitOption::On(waiting)) => waiting,
            None => Waiting::default(),
        };
        let Some(library) = find_library(LIBRARY, LIBRARY_VARIABLE) else {
            let needed = asked.is_some() && waiting.mode != WaitMode::Micro;
            return if needed { Err(not_installed()) } else { Ok(None) };
        };
        match obstacle(program) {
            None => Ok(Some(Plan { waiting, library: with_front(library) })),
            Some(why) => {
                if asked.is_some() && !matches!(waiting.mode, WaitMode::Busy | WaitMode::Micro) {
                    say(&format!("--wait has no effect on {}: {why}", program.display()));
                }
                Ok(None)
            }
        }
    }

    /// The environment on other nodes: without libraries that the user preloads on this node, and without the page.
    pub(crate) fn carried(&self) -> Vec<(String, OsString)> {
        vec![(PRELOAD.into(), self.library.clone().into()), ("COSCHED_WAIT".into(), self.word().into())]
    }

    /// The value of `COSCHED_WAIT`.
    pub(crate) fn word(&self) -> String {
        let mode = match self.waiting.mode {
            WaitMode::Auto => WaitMode::SpinBlock,
            WaitMode::Micro => WaitMode::Busy,
            mode => mode,
        };
        match self.waiting.spin_us {
            Some(us) => format!("{}:{us}us", mode.name()),
            None => mode.name().to_owned(),
        }
    }

    /// Settings of runtimes that spin on memory, where the library sees nothing. OpenMP's only if the user requested it: a job that runs alone pays
    /// for it. Nothing for the MPI libraries: docs/waiting.md, chapter 5, says why.
    fn runtimes(&self) -> &'static [(&'static str, &'static str)] {
        match self.waiting.mode {
            WaitMode::SpinBlock | WaitMode::SpinYield => {
                &[("OMP_WAIT_POLICY", "passive"), (OPENBLAS_TIMEOUT, OPENBLAS_SHORT)]
            }
            WaitMode::Auto => &[(OPENBLAS_TIMEOUT, OPENBLAS_BY_DEFAULT), (OPENBLAS_WORKERS, "20/16")],
            WaitMode::Busy | WaitMode::Micro => &[],
        }
    }

    /// The additions to the command's environment; what the user has set stays.
    pub(crate) fn environment(&self, page: Option<&str>, own: &[(String, String)]) -> Vec<(String, OsString)> {
        let mut all: Vec<(String, OsString)> =
            vec![(PRELOAD.into(), preload(&self.library)), ("COSCHED_WAIT".into(), self.word().into())];
        all.extend(sanitizer(of_user(own, SANITIZER).unwrap_or_default()));
        all.extend(page.map(|page| ("COSCHED_WAIT_PAGE".into(), page.into())));
        all.extend(page.and_then(seen).map(|seen| ("COSCHED_WAIT_PAGE_SEEN".into(), seen.into())));
        let is_set =
            |name: &str| of_user(own, if name == OPENBLAS_WORKERS { OPENBLAS_TIMEOUT } else { name }).is_some();
        let ours = self.runtimes().iter().filter(|(name, _)| !is_set(name));
        all.extend(ours.map(|(name, value)| ((*name).into(), value.into())));
        all
    }
}

/// Lets programs with AddressSanitizer start, which ends a program whose first library is not its own. `None` where the user has decided about that.
fn sanitizer(own: OsString) -> Option<(String, OsString)> {
    let check = "verify_asan_link_order";
    let text = own.to_string_lossy();
    let before = if text.is_empty() { String::new() } else { format!("{text}:") };
    (!text.contains(check)).then(|| (SANITIZER.to_owned(), format!("{before}{check}=0").into()))
}

/// The environment of a command without a job: how to wait; without a plan, the user's preloaded libraries without ours.
pub(crate) fn alone(plan: Option<&Plan>, own: &[(String, String)]) -> Vec<(String, OsString)> {
    let Some(plan) = plan else {
        let others = std::env::var_os(PRELOAD).map(|all| without(&all, &[LIBRARY, FRONT].map(OsStr::new)));
        return others.map(|others| (PRELOAD.into(), others)).into_iter().collect();
    };
    let mut all = plan.environment(None, own);
    // Takes the quota and the cpuset of a container into account. Not for a rank, which may be bound to one CPU while the launcher's other ranks have
    // theirs.
    if let Some(cpus) = std::thread::available_parallelism().ok().filter(|_| !is_rank()) {
        // A node with a different number of CPUs can then tell that the value is not its own.
        let online = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN).ok().flatten().unwrap_or(0);
        all.push((CPUS.into(), format!("{cpus}/{online}").into()));
    }
    all
}

/// Whether an MPI launcher has started this command as one of its ranks on this node.
pub(crate) fn is_rank() -> bool {
    LOCAL_RANK_VARIABLES.iter().any(|name| std::env::var_os(name).is_some())
}

/// The page's inode and creation time: by these, the job's processes know that they are on its node, and in the job from birth.
fn seen(page: &str) -> Option<String> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let facts = statx(CWD, page, AtFlags::empty(), wanted).ok()?;
    let born = facts.stx_btime;
    let known = facts.stx_mask & wanted.bits() == wanted.bits();
    known.then(|| format!("{}-{}-{}", facts.stx_ino, born.tv_sec, born.tv_nsec))
}

/// `LD_PRELOAD` with this library before those already named; only once, even if this command runs inside another one that has it.
pub(crate) fn preload(library: &Path) -> OsString {
    let mut preload = OsString::from(library);
    let others = without(&std::env::var_os(PRELOAD).unwrap_or_default(), &[library.file_name().unwrap_or_default()]);
    if !others.is_empty() {
        preload.push(":");
        preload.push(others);
    }
    preload
}

/// A value of `LD_PRELOAD` without the libraries of these file names.
fn without(preloaded: &OsStr, names: &[&OsStr]) -> OsString {
    let is_named =
        |word: &[u8]| Path::new(OsStr::from_bytes(word)).file_name().is_some_and(|name| names.contains(&name));
    let words =
        preloaded.as_bytes().split(|byte| b": ".contains(byte)).filter(|word| !word.is_empty() && !is_named(word));
    OsString::from_vec(words.collect::<Vec<_>>().join(&b':'))
}

/// What to preload for the wait library: its front, if it was built.
fn with_front(library: PathBuf) -> PathBuf {
    let front = library.with_file_name(FRONT);
    // The front knows the library by its name.
    if library.file_name().is_some_and(|name| name == LIBRARY) && front.is_file() { front } else { library }
}

/// The wait library, if it is installed.
pub(crate) fn wait_library() -> Option<PathBuf> {
    find_library(LIBRARY, LIBRARY_VARIABLE)
}

/// A library of ours: the path in the variable, else beside `cosched`, else where it is installed.
pub(crate) fn find_library(name: &str, variable: &str) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(variable) {
        return Some(PathBuf::from(named)).filter(|path| path.is_file());
    }
    let own = std::env::current_exe().ok()?;
    let directory = own.parent()?;
    let places = [directory.join(name), directory.join("../lib/cosched").join(name)];
    places.into_iter().find(|path| path.is_file()).and_then(|path| path.canonicalize().ok())
}

fn not_installed() -> Failure {
    Failure::explained(
        EXIT_FAILED,
        "--wait needs the wait library",
        &format!("{LIBRARY} is neither beside `cosched` nor in ../lib/cosched"),
        &format!(
            "`make build` and `make install` put it there; or set {LIBRARY_VARIABLE} to its path; or use --wait off"
        ),
    )
}

/// Why a library cannot be loaded into a program; `None` also when that is unknown, as for a script.
fn obstacle(program: &Path) -> Option<&'static str> {
    let mode = program.metadata().ok()?.permissions().mode();
    if mode & 0o6000 != 0 && !rustix::process::geteuid().is_root() {
        return Some("it is a setuid program, into which no library can be loaded");
    }
    let mut start = [0; 4096];
    let length = File::open(program).ok()?.read_at(&mut start, 0).ok()?;
    elf_obstacle(&start[..length])
}

fn elf_obstacle(start: &[u8]) -> Option<&'static str> {
    if start.get(..4)? != b"\x7fELF" {
        return None;
    }
    let own_class = if cfg!(target_pointer_width = "64") { 2 } else { 1 };
    if *start.get(4)? != own_class {
        return Some("it is a 32-bit program and the library is not");
    }
    let half = |at: usize| Some(u16::from_ne_bytes(start.get(at..at + 2)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(start.get(at..at + 8)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_ne_bytes(start.get(at..at + 4)?.try_into().ok()?));
    let (table, size, count) = (long(32)? as usize, half(54)? as usize, half(56)? as usize);
    const INTERPRETER: u32 = 3;
    for number in 0..count {
        // A table beyond the part that was read: unknown.
        let entry = table + number * size;
        if word(entry)? == INTERPRETER {
            let (place, length) = (long(entry + 8)? as usize, long(entry + 32)? as usize);
            let path = start.get(place..place.checked_add(length)?)?;
            let is_musl = path.windows(8).any(|part| part == b"/ld-musl");
            return is_musl.then_some("its C library is musl and the library needs glibc");
        }
    }
    Some("it is statically linked")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(mode: WaitMode, spin_us: Option<u32>) -> Result<WaitOption, String> {
        Ok(WaitOption::On(Waiting { mode, spin_us }))
    }

    #[test]
    fn programs_with_a_sanitizer_start_and_keep_their_options() {
        let options = |own: &str| sanitizer(own.into()).map(|(_, options)| options);
        assert_eq!(options(""), Some("verify_asan_link_order=0".into()));
        assert_eq!(options("detect_leaks=0"), Some("detect_leaks=0:verify_asan_link_order=0".into()));
        assert_eq!(options("verify_asan_link_order=1"), None);
    }

    #[test]
    fn ways_to_wait_and_mistakes() {
        assert_eq!(parse_wait("off"), Ok(WaitOption::Off));
        assert_eq!(parse_wait("auto"), on(WaitMode::Auto, None));
        assert_eq!(parse_wait("spin-block"), on(WaitMode::SpinBlock, None));
        assert_eq!(parse_wait("spin-block:0us"), on(WaitMode::SpinBlock, Some(0)));
        assert_eq!(parse_wait("spin-yield:50us"), on(WaitMode::SpinYield, Some(50)));
        assert!(parse_wait("spin-blck").unwrap_err().contains("did you mean spin-block?"));
        assert_eq!(parse_wait("micro"), on(WaitMode::Micro, None));
        assert!(parse_wait("busy:5").unwrap_err().contains("has no spin time"));
        assert!(parse_wait("micro:50us").unwrap_err().contains("has no spin time"));
        assert_eq!(parse_wait("spin-block:1ms"), on(WaitMode::SpinBlock, Some(1000)));
        assert!(parse_wait("spin-block:50").unwrap_err().contains("write 50ms, 50s or 50m"));
        for bad in ["spin-block:1ns", "spin-block:61s"] {
            assert!(parse_wait(bad).unwrap_err().contains("is not a spin time"), "{bad}");
        }
        assert!(parse_wait("spin-block:-1us").is_err() && parse_wait("spin-block:").is_err());
    }

    #[test]
    fn strategies_by_their_short_names() {
        let (policy, waiting) = parse_strategy("pb-sb").unwrap();
        assert_eq!((policy, waiting.mode), (Policy::Pb, WaitMode::SpinBlock));
        assert!(parse_strategy("PB-BS").unwrap_err().contains("PB-SB, PB-SY"));
    }

    #[test]
    fn programs_into_which_no_library_goes() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(elf_obstacle(&own[..4096]), None);
        assert_eq!(elf_obstacle(b"#!/bin/sh\n"), None);
        let mut other = own[..4096].to_vec();
        other[4] = 3 - other[4];
        assert!(elf_obstacle(&other).unwrap().contains("32-bit"));
        let mut bare = own[..4096].to_vec();
        bare[56..58].copy_from_slice(&0_u16.to_ne_bytes());
        assert!(elf_obstacle(&bare).unwrap().contains("statically"));
        let loader = own.windows(9).position(|part| part == b"/ld-linux");
        let mut musl = own[..4096].to_vec();
        musl[loader.unwrap()..][..8].copy_from_slice(b"/ld-musl");
        assert!(elf_obstacle(&musl).unwrap().contains("musl"));
    }

    #[test]
    fn the_front_is_preloaded_where_there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join(LIBRARY);
        assert_eq!(with_front(library.clone()), library);
        std::fs::write(dir.path().join(FRONT), "").unwrap();
        assert_eq!(with_front(library), dir.path().join(FRONT));
        let named = dir.path().join("mine.so");
        assert_eq!(with_front(named.clone()), named);
    }

    #[test]
    fn other_libraries_stay_preloaded() {
        let before = OsStr::new("/x/libcosched_wait.so:/y/libcosched_record.so /z/mine.so");
        assert_eq!(without(before, &[OsStr::new(LIBRARY)]), "/y/libcosched_record.so:/z/mine.so");
        assert_eq!(without(before, &[OsStr::new("libcosched_record.so")]), "/x/libcosched_wait.so:/z/mine.so");
    }

    #[test]
    fn what_the_user_has_set_by_an_option_stays() {
        let plan = Plan { waiting: Waiting { mode: WaitMode::SpinBlock, spin_us: None }, library: "/x/lib.so".into() };
        let given = [("OMP_WAIT_POLICY", "active"), ("ASAN_OPTIONS", "verbosity=1")];
        let own = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let all = plan.environment(None, &own);
        let of = |name: &str| all.iter().find(|(given, _)| given == name).map(|(_, value)| value.to_str().unwrap());
        assert_eq!(of("OMP_WAIT_POLICY"), None);
        assert_eq!(of("ASAN_OPTIONS"), Some("verbosity=1:verify_asan_link_order=0"));
    }

    #[test]
    fn the_environment_says_how_to_wait() {
        let waiting = Waiting { mode: WaitMode::SpinBlock, spin_us: Some(50) };
        let plan = Plan { waiting, library: "/x/lib.so".into() };
        let all = plan.environment(Some("/run/page"), &[]);
        let get = |name: &str| all.iter().find(|(n, _)| n == name).map(|(_, v)| v.to_str().unwrap());
        assert_eq!(get("COSCHED_WAIT"), Some("spin-block:50us"));
        assert_eq!(get("COSCHED_WAIT_PAGE"), Some("/run/page"));
        assert!(get("LD_PRELOAD").unwrap().starts_with("/x/lib.so"));
        assert!(!plan.environment(None, &[]).iter().any(|(name, _)| name == "COSCHED_WAIT_PAGE"));
        assert_eq!((get("OMP_WAIT_POLICY"), get(OPENBLAS_TIMEOUT)), (Some("passive"), Some(OPENBLAS_SHORT)));
        let of = |mode| Plan { waiting: Waiting { mode, spin_us: None }, ..plan.clone() }.runtimes();
        assert_eq!(
            of(WaitMode::Auto),
            [(OPENBLAS_TIMEOUT, OPENBLAS_BY_DEFAULT), (OPENBLAS_WORKERS, "20/16")],
            "what a lone job would pay for is not set"
        );
        let auto = Plan { waiting: Waiting { mode: WaitMode::Auto, spin_us: None }, ..plan.clone() };
        let own = [(OPENBLAS_TIMEOUT.to_owned(), "20".to_owned())];
        assert!(
            !auto.environment(None, &own).iter().any(|(name, _)| name.contains("OPENBLAS")),
            "the user's is left alone"
        );
        assert_eq!(of(WaitMode::Busy), []);
        let micro = Waiting { mode: WaitMode::Micro, spin_us: None };
        assert_eq!(Plan { waiting: micro, ..plan }.word(), "busy", "the library has nothing to do with it");
        let asked = Some(WaitOption::On(micro));
        assert_eq!((told(asked, None), told(Some(WaitOption::Off), None)), (Some(micro), None));
    }
}
