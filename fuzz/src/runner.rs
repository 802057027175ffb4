//! Runs fuzz targets on mutated seeds: a little fuzzing in every test run, with any toolchain.
//! COSCHED_FUZZ_INPUTS is the number of inputs per target (`make fuzz`). The same number gives the same
//! inputs.

use rustix::process::{Resource, Rlimit, setrlimit};
use std::path::Path;
use std::time::{Duration, Instant};

/// The maximum number of edits per input.
const EDITS_MAX: u64 = 8;
/// The maximum length of an input.
const BYTES_MAX: usize = 40_000;
/// The address space of all targets together: a target that needs more for such inputs has unbounded
/// memory use.
const MEMORY_BYTES_MAX: u64 = 2 << 30;
const TOKENS: [&[u8]; 12] = [
    b"0",
    b"-1",
    b"18446744073709551616",
    b"1e999",
    b"null",
    b"[[[[",
    b"{\"\":",
    b"\"\\ud800\"",
    b"\r\n",
    b"\0",
    b"\xff\xff\xff\xff",
    b",",
];

/// Replacements for numbers.
const NUMBERS: [&[u8]; 10] = [
    b"0",
    b"1",
    b"2",
    b"3",
    b"255",
    b"65536",
    b"4294967295",
    b"1000000000000000",
    b"9223372036854775807",
    b"18446744073709551615",
];

/// xorshift64*.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(end.max(1))) >> 64) as usize
    }

    fn place(&mut self, bytes: &[u8]) -> usize {
        self.below(bytes.len() as u64)
    }

    fn part<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let from = self.place(bytes);
        &bytes[from..from + self.below((bytes.len() - from).min(64) as u64 + 1)]
    }

    fn edit(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.place(bytes);
        let new = match self.below(8) {
            0 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
                return;
            }
            1 => {
                let end = at + self.part(&bytes[at..]).len();
                bytes.drain(at..end);
                return;
            }
            2 => return bytes.truncate(at),
            3 => self.part(&bytes.clone()).to_vec(),
            4 => self.part(&seeds[self.0 as usize % seeds.len()]).to_vec(),
            5 => TOKENS[self.below(TOKENS.len() as u64)].to_vec(),
            _ => {
                // Replaces a whole number, so that a text remains well-formed.
                let digits = |from: usize, is: bool| bytes[from..].iter().position(|b| b.is_ascii_digit() == is);
                let Some(first) = digits(at, true).map(|first| at + first) else { return };
                let end = digits(first, false).map_or(bytes.len(), |length| first + length);
                bytes.splice(first..end, NUMBERS[self.below(NUMBERS.len() as u64)].iter().copied());
                return;
            }
        };
        if bytes.len() + new.len() <= BYTES_MAX {
            bytes.splice(at..at, new);
        }
    }
}

fn inputs() -> u64 {
    std::env::var("COSCHED_FUZZ_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000)
}

/// Runs `body` on the seeds of this name, and on mutations of them.
pub(crate) fn fuzz(name: &str, body: fn(&[u8])) {
    let limit = Some(MEMORY_BYTES_MAX);
    setrlimit(Resource::As, Rlimit { current: limit, maximum: limit }).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus-seeds").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    seeds.iter().for_each(|seed| body(seed));
    let (mut draw, begin, mut longest) = (Draw(0x9e37_79b9_7f4a_7c15), Instant::now(), Duration::ZERO);
    for _ in 0..inputs() {
        let mut bytes = seeds[draw.below(seeds.len() as u64)].clone();
        // Few edits are more likely than many.
        let edits = draw.below(EDITS_MAX) as u64;
        for _ in 0..=draw.below(edits + 1) {
            draw.edit(&mut bytes, &seeds);
        }
        let before = Instant::now();
        if let Err(panic) = std::panic::catch_unwind(|| body(&bytes)) {
            eprintln!("{name}: this input makes it panic: {}", bytes.escape_ascii());
            std::panic::resume_unwind(panic);
        }
        longest = longest.max(before.elapsed());
    }
    eprintln!(
        "{name}: {} inputs without a fault in {:.0} s, the longest {:.1} ms",
        inputs(),
        begin.elapsed().as_secs_f64(),
        longest.as_secs_f64() * 1e3
    );
}

/// Defines a test for each target.
macro_rules! targets {
    ($targets:ident: $($name:ident)*) => {$(
        #[test]
        fn $name() {
            runner::fuzz(stringify!($name), $targets::$name);
        }
    )*};
}
pub(crate) use targets;
