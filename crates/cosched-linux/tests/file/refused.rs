//! Where the machine has no io_uring or no O_DIRECT, the next best engine is used, with the reason.

use std::sync::Arc;

use cosched_linux::file::{BlockFile, Caching, Engine, Extent, IoOptions, Memory, Transfers};

use crate::support::{Pages, pattern, read, scratch, with_mount};

/// Forbids io_uring to this thread and its children, as container engines do.
fn forbid_io_uring(errno: i32) -> bool {
    let statement = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_io_uring_setup as u32, 0, 1),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32, 0, 0),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: both change this thread alone; the program lives for the call, and the kernel checks it.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &program) == 0
    }
}

#[test]
fn without_io_uring_threads_serve() {
    let dir = scratch();
    let path = dir.path().join("data");
    std::fs::write(&path, pattern(300_000)).unwrap();
    for (errno, word) in [(libc::EPERM, "forbids"), (libc::ENOSYS, "no io_uring")] {
        let path = path.clone();
        std::thread::spawn(move || {
            if !forbid_io_uring(errno) {
                println!("SKIPPED: no seccomp: {}", std::io::Error::last_os_error());
                return;
            }
            let mut transfers = Transfers::start(&IoOptions::default());
            assert_eq!(transfers.chosen().engine, Engine::Direct);
            let why = transfers.chosen().why_not_uring.clone().unwrap();
            assert!(why.contains(word), "{why}");
            let file = Arc::new(BlockFile::open(&path, Caching::Direct).unwrap());
            transfers.read(&file, &[Extent::start(0, 300_000)], Pages::new(300_000));
            let mut done = transfers.wait().unwrap();
            done.result.unwrap();
            assert!(done.memory.storage() == pattern(300_000));
        })
        .join()
        .unwrap();
    }
}

#[test]
fn engines_that_were_asked_for_are_not_replaced_without_need() {
    for engine in [Engine::Direct, Engine::Buffered] {
        let transfers = Transfers::<Pages>::start(&IoOptions { engine: Some(engine), ..IoOptions::default() });
        assert_eq!((transfers.chosen().engine, &transfers.chosen().why_not_uring), (engine, &None));
        assert_eq!(engine.name().parse(), Ok(engine));
    }
    assert!("uring2".parse::<Engine>().unwrap_err().contains("io_uring, direct and buffered"));
}

/// ramfs has no O_DIRECT at all; tmpfs accepts the flag, but its files are in the page cache.
#[test]
fn without_o_direct_the_page_cache_serves() {
    for (kind, word) in [("ramfs", "no O_DIRECT"), ("tmpfs", "tmpfs")] {
        with_mount(&["-t", kind, "cst"], move |dir| {
            let path = dir.join("data");
            std::fs::write(&path, pattern(100_000)).unwrap();
            let file = BlockFile::open(&path, Caching::Direct).unwrap();
            assert_eq!((file.caching(), file.alignment()), (Caching::Buffered, None));
            assert!(file.why_buffered().unwrap().contains(word), "{:?}", file.why_buffered());
            for engine in Engine::ALL {
                assert!(read(engine, &path, 100_000).unwrap() == pattern(100_000), "{engine} on {kind}");
            }
        });
    }
}
