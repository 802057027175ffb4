//! All engines move the same bytes, in order, directly to and from the memory.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use cosched_linux::file::{BlockFile, Caching, Engine, Extent, IoOptions, Memory, Transfers};
use proptest::prelude::*;

use crate::support::{Pages, options, pattern, read, scratch, transfers};

#[test]
fn lengths_around_sectors_and_pages_are_read_whole() {
    let dir = scratch();
    let path = dir.path().join("data");
    for len in [0, 1, 511, 512, 513, 4095, 4096, 4097, 8192, 70_001, 1 << 20] {
        let content = pattern(len);
        std::fs::write(&path, &content).unwrap();
        for engine in Engine::ALL {
            assert!(read(engine, &path, len).unwrap() == content, "{engine} read {len} bytes otherwise");
        }
    }
}

#[test]
fn holes_are_zeros() {
    let dir = scratch();
    let path = dir.path().join("sparse");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(100_000).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"here", 50_000).unwrap();
    let mut expected = vec![0; 100_000];
    expected[50_000..50_004].copy_from_slice(b"here");
    for engine in Engine::ALL {
        assert!(read(engine, &path, 100_000).unwrap() == expected, "{engine}");
    }
}

#[test]
fn blocks_come_back_in_order_and_are_the_memory_that_was_given() {
    let dir = scratch();
    let path = dir.path().join("data");
    let content = pattern(40 * 20_000);
    std::fs::write(&path, &content).unwrap();
    for options in [
        options(Engine::Uring),
        options(Engine::Direct),
        IoOptions { threads: 0, ..options(Engine::Buffered) },
        IoOptions { depth: 1, ..options(Engine::Uring) },
    ] {
        let file = Arc::new(BlockFile::open(&path, Caching::Direct).unwrap());
        let mut transfers = Transfers::start(&options);
        let mut places = Vec::new();
        for block in 0..40usize {
            let mut memory = Pages::new(20_000);
            places.push(memory.storage().as_ptr() as usize);
            transfers.read(&file, &[Extent::start(block as u64 * 20_000, 20_000)], memory);
        }
        for (block, place) in places.into_iter().enumerate() {
            let mut done = transfers.wait().unwrap();
            assert_eq!(done.result.unwrap(), 20_000);
            assert_eq!(done.memory.storage().as_ptr() as usize, place, "block {block} is in other memory");
            assert!(done.memory.storage() == &content[block * 20_000..][..20_000], "block {block} by {options:?}");
        }
        assert!(transfers.wait().is_none() && transfers.poll().is_none() && transfers.is_empty());
    }
}

/// Memory that reports its content when it is released, and can be inspected afterwards.
struct Watched(Option<Pages>, Sender<(Vec<u8>, Pages)>);

impl Memory for Watched {
    fn storage(&mut self) -> &mut [u8] {
        self.0.as_mut().unwrap().storage()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut pages = self.0.take().unwrap();
        let _ = self.1.send((pages.storage().to_vec(), pages));
    }
}

/// The queue is dropped while the kernel fills its blocks: it releases the memory only after the kernel has.
#[test]
fn the_queue_may_go_while_blocks_are_on_their_way() {
    let dir = scratch();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![1; 8 << 20]).unwrap();
    for engine in Engine::ALL {
        let file = Arc::new(BlockFile::open(&path, engine.caching()).unwrap());
        file.sync().unwrap();
        file.drop_cache();
        let (tell, told) = channel();
        let mut transfers = Transfers::start(&IoOptions { chunk_bytes: 1 << 20, ..options(engine) });
        for block in 0..8 {
            let memory = Watched(Some(Pages::new(1 << 20)), tell.clone());
            transfers.read(&file, &[Extent::start(block << 20, 1 << 20)], memory);
        }
        drop(transfers);
        assert_eq!(Arc::strong_count(&file), 1, "{engine} keeps the file");
        std::thread::sleep(std::time::Duration::from_millis(50));
        let mut all: Vec<(Vec<u8>, Pages)> = told.try_iter().collect();
        let same = all.iter_mut().all(|(before, pages)| pages.storage() == before);
        assert!(same, "{engine}: somebody wrote into memory that was let go");
        assert_eq!(all.len(), 8);
    }
}

/// The number of the file's pages in the page cache (cachestat, Linux 6.5).
fn cached_pages(file: &impl AsFd) -> Option<u64> {
    use std::os::fd::AsRawFd;
    let (range, mut answer) = ([0u64, 0], [0u64; 5]);
    // SAFETY: struct cachestat_range has two u64 and struct cachestat five; both live for the call.
    let rc = unsafe { libc::syscall(451, file.as_fd().as_raw_fd(), range.as_ptr(), answer.as_mut_ptr(), 0) };
    (rc == 0).then_some(answer[0])
}

/// The disk's bytes get to the memory without a stop in the page cache, and in the other direction, too: nothing copies them on the way, as there is
/// no other place where they could be.
#[test]
fn direct_blocks_leave_no_page_in_the_cache() {
    let dir = scratch();
    let path = dir.path().join("data");
    let len = 1 << 20;
    std::fs::File::create(&path).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::DIRECT;
    if let Err(why) = rustix::fs::open(&path, flags, rustix::fs::Mode::empty()) {
        println!("SKIPPED: no O_DIRECT in {}: {why}", path.display());
        return;
    }
    for engine in [Engine::Uring, Engine::Direct, Engine::Buffered] {
        let _ = std::fs::remove_file(&path);
        std::fs::File::create(&path).unwrap();
        let file = Arc::new(BlockFile::open_update(&path, engine.caching()).unwrap());
        if engine != Engine::Buffered {
            assert_eq!(file.caching(), Caching::Direct, "{:?}", file.why_buffered());
        }
        let mut transfers = transfers(engine);
        transfers.write(&file, &[Extent::start(0, len)], Pages::of(&pattern(len)));
        let done = transfers.wait().unwrap();
        assert_eq!(done.result.unwrap(), len as u64);
        transfers.read(&file, &[Extent::start(0, len)], Pages::new(len));
        let mut done = transfers.wait().unwrap();
        assert!(done.memory.storage() == pattern(len));
        let Some(pages) = cached_pages(&*file) else {
            println!("SKIPPED: this kernel has no cachestat");
            return;
        };
        let (direct, buffered) = if engine == Engine::Buffered { (0, 2 * len) } else { (2 * len, 0) };
        assert_eq!(
            (transfers.stats().direct_bytes, transfers.stats().buffered_bytes),
            (direct as u64, buffered as u64)
        );
        assert_eq!(pages > 0, engine == Engine::Buffered, "{engine}: {pages} pages are in the cache");
    }
}

/// The extents of a file of `len` bytes whose runs between the cuts are rotated in the buffer.
fn extents(len: usize, cuts: &[usize], shift: usize) -> Vec<Extent> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (len + 1)).chain([0, len]).collect();
    cuts.sort_unstable();
    let runs: Vec<(usize, usize)> = cuts.windows(2).map(|w| (w[0], w[1])).collect();
    let mut place = 0;
    // Run i of the buffer is run (i + shift) of the file.
    (0..runs.len())
        .map(|i| {
            let (from, to) = runs[(i + shift) % runs.len()];
            let range = place..place + (to - from);
            place = range.end;
            Extent { offset: from as u64, range }
        })
        .collect()
}

fn whole(extents: &[Extent], buffer: &[u8]) -> Vec<u8> {
    let mut file = vec![0; buffer.len()];
    for extent in extents {
        file[extent.offset as usize..][..extent.len()].copy_from_slice(&buffer[extent.range.clone()]);
    }
    file
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random extents of random lengths: written by each engine, read by each, and by the standard library.
    #[test]
    fn extents_that_are_written_are_read(
        len in 1usize..120_000,
        cuts in proptest::collection::vec(prop_oneof![any::<usize>(), (0usize..30).prop_map(|page| page * 4096)], 0..12),
        shift in 0usize..12,
        chunk in 512usize..40_000,
    ) {
        let dir = scratch();
        let content = pattern(len);
        let extents = extents(len, &cuts, shift);
        for writer in Engine::ALL {
            let path = dir.path().join(writer.name());
            write(writer, &path, &extents, &content, chunk);
            prop_assert!(std::fs::read(&path).unwrap() == whole(&extents, &content), "{} wrote otherwise", writer);
            for reader in Engine::ALL {
                let file = Arc::new(BlockFile::open(&path, reader.caching()).unwrap());
                let mut transfers = transfers(reader);
                transfers.read(&file, &extents, Pages::new(len));
                let mut done = transfers.wait().unwrap();
                prop_assert_eq!(done.result.unwrap(), len as u64);
                prop_assert!(done.memory.storage() == content, "{} read otherwise what {} wrote", reader, writer);
            }
        }
    }

    /// The same synchronously, on the caller's thread.
    #[test]
    fn bytes_that_are_written_at_once_are_read(offset in 0usize..20_000, len in 0usize..50_000) {
        let dir = scratch();
        let path = dir.path().join("data");
        std::fs::write(&path, pattern(80_000)).unwrap();
        for caching in [Caching::Direct, Caching::Buffered] {
            let file = BlockFile::open_update(&path, caching).unwrap();
            let content: Vec<u8> = pattern(len).iter().map(|byte| !byte).collect();
            file.write_at(Pages::of(&content).storage(), offset as u64).unwrap();
            let mut back = Pages::new(len);
            file.read_at(back.storage(), offset as u64).unwrap();
            prop_assert!(back.storage() == content);
            let mut expected = pattern(80_000);
            expected[offset..offset + len].copy_from_slice(&content);
            prop_assert!(std::fs::read(&path).unwrap() == expected);
            file.write_at(&pattern(80_000), 0).unwrap();
        }
    }
}

/// Writes the extents, three to a block, so that several blocks are in transfer.
fn write(engine: Engine, path: &Path, extents: &[Extent], content: &[u8], chunk: usize) {
    std::fs::File::create(path).unwrap();
    let file = Arc::new(BlockFile::open_update(path, engine.caching()).unwrap());
    let mut transfers = Transfers::start(&IoOptions { chunk_bytes: chunk, ..options(engine) });
    for extents in extents.chunks(3) {
        transfers.write(&file, extents, Pages::of(content));
    }
    while let Some(done) = transfers.wait() {
        done.result.unwrap();
    }
}
