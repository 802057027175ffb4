//! Copies a file with a pipeline of two stages, with each I/O engine in turn, and compares the speed with that of the disk
//! itself.
//!
//! `copyfile DIRECTORY [MIB [ROUNDS [BLOCK_KIB [BUFFERS [DEPTH]]]]]` creates a file of MIB MiB (default 512) in DIRECTORY. In
//! each of ROUNDS rounds (default 5) it reads the file and writes one of the same length with plain pread and pwrite, 1 MiB at a
//! time, as dd does, and copies it with each engine. All are measured in every round, so that other load on the machine affects
//! all of them alike. The output is medians: MB/s, and the time relative to two bounds that the disk sets in the same round:
//! reading and then writing, each alone, and both concurrently on two independent threads. CPU time is that of the whole
//! process, including time in the kernel, relative to that of reading and writing alone.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use cosched_pipeline::file::{
    BlockFile, Caching, Engine, IoOptions, Output, OutputOptions, Sink, SinkOptions, Source, SourceOptions,
};
use cosched_pipeline::{BoxError, Options, Pipeline};

const MIB: usize = 1 << 20;

struct Setup {
    from: PathBuf,
    to: PathBuf,
    bytes: usize,
    rounds: usize,
    block: usize,
    buffers: usize,
    depth: usize,
}

fn main() -> Result<(), BoxError> {
    let mut words = std::env::args().skip(1);
    let dir = words.next().ok_or("usage: copyfile DIRECTORY [MIB [ROUNDS [BLOCK_KIB [BUFFERS [DEPTH]]]]]")?;
    let numbers: Result<Vec<usize>, _> = words.map(|word| word.parse()).collect();
    let numbers = numbers?;
    let number = |place: usize, otherwise: usize| numbers.get(place).copied().unwrap_or(otherwise);
    let scratch = tempfile::Builder::new().prefix("cst-copyfile-").tempdir_in(dir)?;
    let (bytes, to) = (number(0, 512) * MIB, scratch.path().join("to"));
    let input = make(&to, bytes)?;
    let setup = Setup {
        from: format!("/proc/self/fd/{}", input.file().as_fd().as_raw_fd()).into(),
        to,
        bytes,
        rounds: number(1, 5),
        block: number(2, 1024) << 10,
        buffers: number(3, 16),
        depth: number(4, IoOptions::default().depth),
    };
    measure(&setup)
}

/// A file of incompressible bytes without holes. It never gets a name, so that nothing is left of it, however the program ends.
fn make(beside: &Path, bytes: usize) -> Result<Output, BoxError> {
    let mut output = Output::create(beside, &OutputOptions::default())?;
    output.reserve(bytes as u64)?;
    let mut memory = pages(MIB);
    let mut state = 1u64;
    for offset in (0..bytes).step_by(MIB) {
        for word in memory.as_mut().chunks_mut(8) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.copy_from_slice(&state.to_le_bytes());
        }
        output.file().write_at(memory.as_ref(), offset as u64)?;
    }
    output.file().sync()?;
    Ok(output)
}

/// Page-aligned memory.
fn pages(len: usize) -> memmap2::MmapMut {
    memmap2::MmapMut::map_anon(len).expect("memory for one block")
}

/// One way to move the bytes: its rates in MB/s, and its times relative to the two bounds.
#[derive(Default)]
struct Row {
    name: String,
    rates: Vec<f64>,
    wall_beside_both: Vec<f64>,
    wall_beside_sum: Vec<f64>,
    cpu_beside_sum: Vec<f64>,
}

fn measure(setup: &Setup) -> Result<(), BoxError> {
    let mut rows: Vec<Row> = Vec::new();
    for _ in 0..setup.rounds {
        let (read_took, write_took) = (timed(|| read(setup))?, timed(|| write(setup))?);
        let both_took = timed(|| both(setup))?;
        let mut times = vec![("read alone", read_took), ("write alone", write_took), ("both at once", both_took)];
        for engine in Engine::ALL {
            times.push((engine.name(), timed(|| copy(setup, engine))?));
        }
        rows.resize_with(times.len(), Row::default);
        for (row, (name, time)) in rows.iter_mut().zip(times) {
            row.name = name.into();
            row.rates.push(setup.bytes as f64 / time.wall_s / 1e6);
            row.wall_beside_both.push(time.wall_s / both_took.wall_s);
            row.wall_beside_sum.push(time.wall_s / (read_took.wall_s + write_took.wall_s));
            row.cpu_beside_sum.push(time.cpu_s / (read_took.cpu_s + write_took.cpu_s));
        }
    }
    let Setup { bytes, rounds, block, buffers, depth, .. } = setup;
    println!(
        "{} MiB; blocks of {} KiB, {buffers} buffers, depth {depth}; medians of {rounds}",
        bytes / MIB,
        block >> 10
    );
    println!(
        "{:14} {:>6} {:>20} {:>18} {:>19}",
        "", "MB/s", "time/(read + write)", "time/both at once", "CPU/(read + write)"
    );
    for Row { name, rates, wall_beside_both, wall_beside_sum, cpu_beside_sum } in &mut rows {
        let (rate, sum, both, cpu) =
            (median(rates), median(wall_beside_sum), median(wall_beside_both), median(cpu_beside_sum));
        println!("{name:14} {rate:6.0} {sum:20.2} {both:18.2} {cpu:19.2}");
    }
    Ok(())
}

/// The time that a measurement took.
#[derive(Clone, Copy)]
struct Took {
    wall_s: f64,
    cpu_s: f64,
}

fn timed(work: impl FnOnce() -> Result<(), BoxError>) -> Result<Took, BoxError> {
    let (begin, cpu_s) = (Instant::now(), cpu_s());
    work()?;
    Ok(Took { wall_s: begin.elapsed().as_secs_f64(), cpu_s: self::cpu_s() - cpu_s })
}

/// CPU time of this process so far, in seconds.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Like `dd iflag=direct bs=1M`.
fn read(setup: &Setup) -> Result<(), BoxError> {
    let file = BlockFile::open(&setup.from, Caching::Direct)?;
    file.drop_cache();
    let mut memory = pages(MIB);
    Ok((0..setup.bytes).step_by(MIB).try_for_each(|offset| file.read_at(memory.as_mut(), offset as u64))?)
}

/// Like `dd oflag=direct bs=1M conv=fdatasync`.
fn write(setup: &Setup) -> Result<(), BoxError> {
    let mut output = Output::create(&setup.to, &OutputOptions { sync: true, ..OutputOptions::default() })?;
    output.reserve(setup.bytes as u64)?;
    let memory = pages(MIB);
    (0..setup.bytes).step_by(MIB).try_for_each(|offset| output.file().write_at(memory.as_ref(), offset as u64))?;
    Ok(output.file().sync()?)
}

/// Reads and writes concurrently.
fn both(setup: &Setup) -> Result<(), BoxError> {
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(setup));
        write(setup)?;
        reader.join().expect("the reader panicked")
    })
}

fn copy(setup: &Setup, engine: Engine) -> Result<(), BoxError> {
    forget(&setup.from)?;
    let io = IoOptions { engine: Some(engine), depth: setup.depth, ..IoOptions::default() };
    let options = SourceOptions { block_bytes: setup.block, io: io.clone(), ..SourceOptions::default() };
    let source = Source::open([setup.from.as_path()], &options)?;
    let options = SinkOptions { expect_bytes: Some(source.bytes()), sync: true, io, ..SinkOptions::default() };
    let sink = Sink::create(&setup.to, &options)?;
    let (read, size) = (source.report(), source.block_bytes());
    let line = Pipeline::new("copy").buffers(setup.buffers, size).stage(source.stage("read"));
    line.stage(sink.stage("write")).run(&Options::default())?;
    if read.get().engine != engine.name() {
        println!("{engine} is not here: {:?}", read.get().why_not_uring);
    }
    Ok(std::fs::remove_file(&setup.to)?)
}

fn forget(path: &Path) -> Result<(), BoxError> {
    BlockFile::open(path, Caching::Buffered)?.drop_cache();
    Ok(())
}
