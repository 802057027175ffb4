//! Read, then write: the copy equals the original, for any length and each engine, without a copy in memory.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use cosched_pipeline::file::{Engine, Input, InputError, Source, SourceOptions};
use cosched_pipeline::{Options, Pipeline, Stage};
use proptest::prelude::*;

use crate::support::{Copy, io, names, pass, pattern, scratch, within};

#[test]
fn files_of_all_lengths_are_copied() {
    within(|| {
        for engine in Engine::ALL {
            for len in [0, 1, 512, 16_383, 16_384, 16_385, 65_536, 500_001] {
                let dir = scratch();
                let copy = Copy::new(dir.path(), engine);
                std::fs::write(&copy.from, pattern(len)).unwrap();
                let before = std::fs::metadata(&copy.from).unwrap().modified().unwrap();
                let to = copy.to.clone();
                let from = copy.from.clone();
                let (report, read, written) = copy.through(pass()).unwrap();
                assert!(std::fs::read(&to).unwrap() == pattern(len), "{engine}: the copy of {len} bytes is another");
                assert!(std::fs::read(&from).unwrap() == pattern(len));
                assert_eq!(std::fs::metadata(&from).unwrap().modified().unwrap(), before, "the input was touched");
                assert_eq!(names(dir.path()), ["from", "to"]);
                assert_eq!(report.stages[2].bytes, len as u64);
                assert_eq!(read.direct_bytes + read.buffered_bytes, len as u64);
                assert_eq!(written.direct_bytes + written.buffered_bytes, len as u64);
            }
        }
    });
}

/// The disk writes into the buffers of the pool and reads from them: their addresses do not change, and no others are
/// used.
#[test]
fn no_byte_is_copied_in_memory() {
    within(|| {
        for engine in [Engine::Uring, Engine::Direct] {
            let dir = scratch();
            let len = 1 << 20;
            let copy = Copy::new(dir.path(), engine);
            std::fs::write(&copy.from, pattern(len)).unwrap();
            let direct = rustix::fs::open(
                &copy.from,
                rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECT,
                rustix::fs::Mode::empty(),
            );
            let places = Arc::new(Mutex::new(HashSet::new()));
            let seen = places.clone();
            let look = Stage::compute("look", move |buffer| {
                seen.lock().unwrap().insert(buffer.bytes().as_ptr() as usize);
                Ok(())
            });
            let (report, read, written) = copy.through(look).unwrap();
            let places = places.lock().unwrap();
            assert!(places.len() <= 4 && places.iter().all(|place| place.is_multiple_of(4096)), "{places:?}");
            assert_eq!(report.memory_bytes, 4 * (16 << 10));
            match direct {
                // O_DIRECT to and from these addresses: the bytes cannot come through the page cache.
                Ok(_) => assert_eq!((read.direct_bytes, written.direct_bytes), (len as u64, len as u64), "{engine}"),
                Err(why) => println!("SKIPPED: no O_DIRECT in {}: {why}", dir.path().display()),
            }
        }
    });
}

#[test]
fn one_buffer_is_enough() {
    within(|| {
        for engine in Engine::ALL {
            for (buffers, held_max) in [(1, 16), (1, 1), (3, 1), (3, 0)] {
                let dir = scratch();
                let copy = Copy { buffers, held_max, expect: false, ..Copy::new(dir.path(), engine) };
                std::fs::write(&copy.from, pattern(200_000)).unwrap();
                let to = copy.to.clone();
                copy.through(pass()).unwrap();
                assert!(std::fs::read(&to).unwrap() == pattern(200_000), "{engine}, {buffers} buffers");
            }
        }
    });
}

#[test]
fn parts_of_several_files_come_in_order_with_their_place_as_tag() {
    within(|| {
        let dir = scratch();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&a, pattern(100_000)).unwrap();
        std::fs::write(&b, pattern(30_000)).unwrap();
        let inputs = [
            Input { path: a, range: Some(40_000..90_000) },
            Input::from(dir.path().join("b")),
            Input::from(b.as_path()),
        ];
        let options = SourceOptions { block_bytes: 9999, record_bytes: 10, io: io(Engine::Uring), held_max: 3 };
        let source = Source::open(inputs, &options).unwrap();
        assert_eq!((source.bytes(), source.block_bytes(), source.rounds()), (110_000, 9990, 6 + 4 + 4));
        let got = Arc::new(Mutex::new(Vec::new()));
        let all = got.clone();
        let keep = Stage::compute("keep", move |buffer| {
            let mut all = all.lock().unwrap();
            assert_eq!(buffer.tag(), all.len() as u64);
            all.extend_from_slice(buffer.bytes());
            Ok(())
        });
        let size = source.block_bytes();
        let line = Pipeline::new("parts").buffers(5, size).stage(source.stage("read"));
        line.stage(keep).run(&Options::default()).unwrap();
        let expected = [&pattern(100_000)[40_000..90_000], &pattern(30_000), &pattern(30_000)].concat();
        assert!(*got.lock().unwrap() == expected);
    });
}

#[test]
fn what_cannot_be_read_is_told_before_anything_runs() {
    let dir = scratch();
    let path = dir.path().join("data");
    std::fs::write(&path, pattern(1050)).unwrap();
    let open = |input: Input, block_bytes, record_bytes| {
        Source::open([input], &SourceOptions { block_bytes, record_bytes, ..SourceOptions::default() }).unwrap_err()
    };
    let error = open(path.as_path().into(), 4096, 100);
    assert!(matches!(error, InputError::PartRecord { bytes: 1050, record: 100, .. }), "{error}");
    assert!(error.to_string().contains("50 are left over"), "{error}");
    let error = open(Input { path: path.clone(), range: Some(100..1051) }, 4096, 1);
    assert!(matches!(error, InputError::Range { len: 1050, .. }), "{error}");
    for (block, record) in [(0, 1), (10, 0), (99, 100)] {
        let error = open(path.as_path().into(), block, record);
        assert!(matches!(error, InputError::Block { .. }), "{error}");
    }
    let error = open("/no/such/file".into(), 4096, 1);
    assert!(matches!(error, InputError::File(_)) && error.to_string().contains("no such file"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 25, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_file_is_copied(
        records in 0usize..3000,
        record in prop_oneof![Just(1usize), Just(100), 1usize..300],
        block_pages in 1usize..8,
        buffers in 1usize..6,
        held_max in 1usize..6,
        engine in (0usize..3).prop_map(|i| Engine::ALL[i]),
        expect: bool,
    ) {
        let content = pattern(records * record);
        let expected = content.clone();
        let copied = within(move || {
            let dir = scratch();
            let block = (block_pages * 4096).max(record);
            let copy = Copy { buffers, block, record, held_max, expect, ..Copy::new(dir.path(), engine) };
            std::fs::write(&copy.from, content).unwrap();
            let to = copy.to.clone();
            copy.through(pass()).unwrap();
            std::fs::read(&to).unwrap()
        });
        prop_assert!(copied == expected);
    }
}
