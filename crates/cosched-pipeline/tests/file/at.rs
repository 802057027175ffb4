//! Buffers whose bytes are in many places of a file.

use std::sync::{Arc, Mutex};

use cosched_pipeline::file::{BlockFile, Caching, Engine, ReadAt, WriteAt};
use cosched_pipeline::{Buffer, Cause, Flow, Graph, Options, Path, Pipeline, Port, Resource, Stage};

use crate::support::{io, pattern, scratch, within};

/// A matrix of `SIDE` × `SIDE` tiles: buffer j is filled with the tiles of column j of one file, and written as row j of
/// another one, and back to columns. Tiles of whole pages bypass the page cache, others do not.
#[test]
fn a_matrix_is_transposed_and_back() {
    const SIDE: usize = 9;
    within(|| {
        for engine in Engine::ALL {
            for tile in [4096, 300] {
                let dir = scratch();
                let (from, to) = (dir.path().join("from"), dir.path().join("to"));
                let content = pattern(SIDE * SIDE * tile);
                std::fs::write(&from, &content).unwrap();
                std::fs::write(&to, "").unwrap();
                let from = Arc::new(BlockFile::open(&from, engine.caching()).unwrap());
                let out = Arc::new(BlockFile::open_update(&to, engine.caching()).unwrap());
                out.reserve(0, content.len() as u64).unwrap();
                let place = move |row: usize, column: usize| ((row * SIDE + column) * tile) as u64;
                let read = ReadAt::new(&from, move |buffer, plan| {
                    let column = plan.round() as usize;
                    buffer.set_tag(column as u64);
                    for row in 0..SIDE {
                        plan.extent(place(row, column), row * tile..(row + 1) * tile);
                    }
                    Ok(if column + 1 == SIDE { Flow::Last } else { Flow::Continue })
                });
                let write = WriteAt::new(&out, move |buffer, plan| {
                    assert_eq!(buffer.tag(), plan.round());
                    for tiles in 0..SIDE {
                        plan.extent(place(buffer.tag() as usize, tiles), tiles * tile..(tiles + 1) * tile);
                    }
                    Ok(())
                });
                let (seen, wrote) = (read.report(), write.report());
                let line = Pipeline::new("transpose").buffers(4, SIDE * tile);
                let report = line
                    .stage(read.io(&io(engine)).stage("read"))
                    .stage(write.io(&io(engine)).stage("write"))
                    .run(&Options::default())
                    .unwrap();
                assert_eq!(report.stages[1].bytes, content.len() as u64);
                let bytes = std::fs::read(&to).unwrap();
                for row in 0..SIDE {
                    for column in 0..SIDE {
                        let (a, b) = (place(row, column) as usize, place(column, row) as usize);
                        assert!(bytes[a..a + tile] == content[b..b + tile], "{engine}: tile {row} {column} of {tile}");
                    }
                }
                if tile == 4096 && engine != Engine::Buffered && from.caching() == Caching::Direct {
                    assert_eq!((seen.get().buffered_bytes, wrote.get().buffered_bytes), (0, 0));
                }
            }
        }
    });
}

/// One reader for many sorted runs (FG 2's virtual stage), with a path for each, followed by a merge.
#[test]
fn one_reader_serves_many_runs() {
    const RUNS: usize = 5;
    within(|| {
        for engine in Engine::ALL {
            let dir = scratch();
            // Run k contains the numbers k, k + RUNS, …; the runs have different lengths, and one is empty.
            let runs: Vec<Arc<BlockFile>> = (0..RUNS)
                .map(|k| {
                    let path = dir.path().join(k.to_string());
                    let numbers = (0..k * 700).flat_map(|i| ((k + i * RUNS) as u64).to_le_bytes());
                    std::fs::write(&path, numbers.collect::<Vec<u8>>()).unwrap();
                    Arc::new(BlockFile::open(&path, engine.caching()).unwrap())
                })
                .collect();
            let files = runs.clone();
            let read = ReadAt::new(&runs[0], move |buffer, plan| {
                let file = &files[buffer.path().index()];
                let (offset, size) = (plan.round() * 4096, file.len());
                if size == 0 {
                    return Ok(Flow::End);
                }
                let len = (size - offset).min(4096);
                plan.file(file).extent(offset, 0..len as usize);
                Ok(if offset + len == size { Flow::Last } else { Flow::Continue })
            });
            let got = Arc::new(Mutex::new(Vec::new()));
            let all = got.clone();
            let merge = Stage::body("merge", Resource::Compute, move |port: &mut Port| {
                let mut all = all.lock().unwrap();
                for path in port.paths().to_vec() {
                    while let Some(buffer) = port.accept_from(path) {
                        let numbers = buffer.bytes().chunks(8).map(|n| u64::from_le_bytes(n.try_into().unwrap()));
                        all.extend(numbers);
                        port.convey(buffer);
                    }
                }
                Ok(())
            });
            let mut graph = Graph::new("runs");
            let (read, merge) = (graph.stage(read.io(&io(engine)).stage("read")), graph.stage(merge));
            for k in 0..RUNS {
                graph.path(Path::new(format!("run {k}")).buffers(2 + k, 4096).through([read, merge]));
            }
            graph.run(&Options::default()).unwrap();
            let expected: Vec<u64> = (0..RUNS).flat_map(|k| (0..k * 700).map(move |i| (k + i * RUNS) as u64)).collect();
            assert!(*got.lock().unwrap() == expected, "{engine}");
        }
    });
}

/// A stage in the middle of a path: the buffer says where its bytes are, and a length of 0 is no transfer.
#[test]
fn a_stage_in_the_middle_reads_what_its_buffers_name() {
    within(|| {
        let dir = scratch();
        let path = dir.path().join("data");
        std::fs::write(&path, pattern(50_000)).unwrap();
        let file = Arc::new(BlockFile::open(&path, Caching::Direct).unwrap());
        let mut next = 0u64;
        let ask = Stage::source("ask", Resource::Compute, move |buffer: &mut Buffer| {
            next += 1;
            buffer.set_tag((next * 7919) % 45_000);
            Ok(if next > 60 { Flow::End } else { Flow::Continue })
        });
        let read = ReadAt::new(&file, |buffer, plan| {
            let len = buffer.tag() as usize % 4096;
            if len > 0 {
                plan.extent(buffer.tag(), 0..len);
            }
            Ok(Flow::Continue)
        });
        let check = Stage::compute("check", |buffer| {
            let (at, len) = (buffer.tag() as usize, buffer.tag() as usize % 4096);
            assert!(buffer.bytes() == &pattern(50_000)[at..at + len]);
            Ok(())
        });
        let line = Pipeline::new("ask").buffers(7, 4096).stage(ask).stage(read.held_max(3).stage("read"));
        let report = line.stage(check).run(&Options::default()).unwrap();
        assert!(report.stages.iter().all(|stage| stage.rounds == 60), "{report:?}");
    });
}

/// A first stage that finds the end only after the last block: the blocks in flight come first.
#[test]
fn an_end_comes_behind_all_blocks() {
    within(|| {
        for engine in Engine::ALL {
            let dir = scratch();
            let path = dir.path().join("data");
            let content = pattern(10 << 18);
            std::fs::write(&path, &content).unwrap();
            let file = Arc::new(BlockFile::open(&path, engine.caching()).unwrap());
            file.drop_cache();
            let read = ReadAt::new(&file, |buffer, plan| {
                if plan.round() == 10 {
                    return Ok(Flow::End);
                }
                plan.extent(plan.round() << 18, 0..buffer.capacity());
                Ok(Flow::Continue)
            });
            let (tell, told) = std::sync::mpsc::channel();
            let sum = Stage::body("sum", Resource::Compute, move |port: &mut Port| {
                while let Some(buffer) = port.accept() {
                    let begin = (buffer.round() as usize) << 18;
                    let same = buffer.bytes() == &content[begin..begin + buffer.len()];
                    tell.send((buffer.round(), buffer.is_last(), same))?;
                    port.convey(buffer);
                }
                Ok(())
            });
            let line = Pipeline::new("end").buffers(11, 1 << 18).stage(read.io(&io(engine)).stage("read"));
            line.stage(sum).run(&Options::default()).unwrap();
            let got: Vec<_> = told.try_iter().collect();
            let expected: Vec<_> = (0..11).map(|round| (round, round == 10, true)).collect();
            assert_eq!(got, expected, "{engine}");
        }
    });
}

#[test]
fn only_the_beginning_of_a_path_says_that_it_ends() {
    within(|| {
        let dir = scratch();
        let path = dir.path().join("data");
        std::fs::write(&path, pattern(50_000)).unwrap();
        let file = Arc::new(BlockFile::open(&path, Caching::Direct).unwrap());
        let source = Stage::source("begin", Resource::Compute, |_: &mut Buffer| Ok(Flow::Continue));
        let read = ReadAt::new(&file, |_, _| Ok(Flow::Last));
        let failure = Pipeline::new("wrong")
            .buffers(2, 4096)
            .stage(source)
            .stage(read.stage("read"))
            .run(&Options::default())
            .unwrap_err();
        assert_eq!(failure.stage.as_deref(), Some("read"));
        assert!(matches!(&failure.cause, Cause::Stage(e) if e.to_string().contains("only the beginning")), "{failure}");
    });
}
