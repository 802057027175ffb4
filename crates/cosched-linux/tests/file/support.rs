//! Page-aligned memory, files with known bytes, and file systems that only one thread sees.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use cosched_linux::file::{BlockFile, Engine, Extent, FileError, IoOptions, Memory, Transfers};

/// Page-aligned memory, like a pipeline's buffers.
pub(crate) struct Pages {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Pages {
    pub(crate) fn new(len: usize) -> Pages {
        let bytes = vec![0; len + 4096];
        let start = bytes.as_ptr().align_offset(4096);
        Pages { bytes, start, len }
    }

    pub(crate) fn of(content: &[u8]) -> Pages {
        let mut pages = Pages::new(content.len());
        pages.storage().copy_from_slice(content);
        pages
    }
}

impl Memory for Pages {
    fn storage(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

/// Bytes that show their position.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// An engine with small requests, so that there are many.
pub(crate) fn options(engine: Engine) -> IoOptions {
    IoOptions { engine: Some(engine), chunk_bytes: 8192, depth: 5, threads: 3 }
}

pub(crate) fn transfers(engine: Engine) -> Transfers<Pages> {
    let transfers = Transfers::start(&options(engine));
    let chosen = transfers.chosen();
    if chosen.engine != engine {
        println!("SKIPPED: {engine} is not here, {} serves: {:?}", chosen.engine, chosen.why_not_uring);
    }
    transfers
}

/// Reads the file's first `len` bytes with one engine.
pub(crate) fn read(engine: Engine, path: &Path, len: usize) -> Result<Vec<u8>, FileError> {
    let file = Arc::new(BlockFile::open(path, engine.caching())?);
    let mut transfers = transfers(engine);
    transfers.read(&file, &[Extent::start(0, len)], Pages::new(len));
    let mut done = transfers.wait().unwrap();
    done.result.map(|moved| {
        assert_eq!(moved, len as u64);
        done.memory.storage().to_vec()
    })
}

/// Mounts something at a directory that only this thread (and its children) sees, and changes to it. The mount ends with the thread, however it ends.
pub(crate) fn with_mount(mount: &[&str], test: impl FnOnce(&Path) + Send + 'static) {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can mount");
        return;
    }
    let at = tempfile::Builder::new().prefix("cst-mount-").tempdir().unwrap();
    let dir = at.path().to_owned();
    let mount: Vec<String> = mount.iter().map(|&word| word.to_owned()).collect();
    let thread = std::thread::spawn(move || {
        // SAFETY: it takes a number, and changes the set of mounts that this thread sees.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            println!("SKIPPED: no mount namespace: {}", std::io::Error::last_os_error());
            return;
        }
        if !run("mount", &["--make-rprivate", "/"])
            || !run("mount", &[&mount[..], &[dir.display().to_string()]].concat())
        {
            println!("SKIPPED: cannot mount {mount:?}");
            return;
        }
        test(&dir);
    });
    thread.join().unwrap();
}

pub(crate) fn run(program: &str, arguments: &[impl AsRef<std::ffi::OsStr>]) -> bool {
    Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
}

pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("cst-file-").tempdir().unwrap()
}
