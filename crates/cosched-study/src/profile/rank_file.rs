//! Parses the recording layer's file of one rank (`crates/cosched-record/src/file.rs` describes the format) as
//! untrusted input: a process may have been killed, a disk full, a file may come from somewhere else.

use super::{Collective, Event, What};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

pub(super) const MARK: &[u8; 8] = b"CSREC\0\0\x01";
pub(super) const HEAD_BYTES: usize = 16 << 10;
/// Offsets of the host's name, and of the functions' counts and names, which follow it.
pub(super) const HOST_AT: usize = 23 * 8;
pub(super) const COUNTS_AT: usize = HOST_AT + 64;
const FUNCTIONS_MAX: usize = 240;
pub(super) const COUNT_BYTES: usize = 48;
/// As many as a profile can have; limits the allocations that a damaged file can cause.
pub(super) const RANKS_MAX: u64 = super::TASKS_MAX as u64;

/// The recording of a rank.
#[derive(Clone, Debug, Default)]
pub(super) struct RankFile {
    pub(super) rank: u32,
    pub(super) ranks: u32,
    pub(super) library: u64,
    pub(super) host: String,
    /// Whether `MPI_Finalize` was reached.
    pub(super) finished: bool,
    /// If the rest of the file is missing or invalid, what is wrong with it.
    pub(super) damage: Option<String>,
    pub(super) begin_ns: u64,
    pub(super) elapsed_ns: u64,
    pub(super) totals: Totals,
    /// Each function that was called, with the number of calls.
    pub(super) functions: Vec<(String, u64)>,
    /// The distinct operations of the calls; a call refers to its kind by the index in this list.
    pub(super) kinds: Vec<Kind>,
    pub(super) calls: Vec<Call>,
}

/// The totals in the head: they include what is missing in the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) compute_ns: u64,
    pub(super) io_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) call_ns: u64,
    pub(super) call_cpu_ns: u64,
    pub(super) sends: u64,
    pub(super) send_bytes: u64,
    pub(super) receives: u64,
    pub(super) receive_bytes: u64,
    pub(super) dropped: u64,
    pub(super) other_threads: u64,
    pub(super) outside_cpu_ns: u64,
    pub(super) process_cpu_ns: u64,
}

/// The ranks of a communicator, shared by many kinds of calls.
pub(super) type Members = Rc<[u32]>;

/// The operation of a call, without its times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) events: Vec<Event<Members>>,
}

/// A call: its kind and its times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) kind: u32,
    pub(super) compute_ns: u64,
    pub(super) io_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) call_ns: u64,
    pub(super) call_cpu_ns: u64,
    pub(super) call_wait_ns: u64,
}

/// Parses a rank's file.
///
/// # Errors
/// What is wrong, if it is not such a file at all. Damage in later parts is reported in [`RankFile::damage`].
pub(super) fn parse(bytes: &[u8]) -> Result<RankFile, String> {
    if bytes.len() < HEAD_BYTES {
        return Err(format!("it has {} bytes, and its head alone {HEAD_BYTES}", bytes.len()));
    }
    let (head, rest) = bytes.split_at(HEAD_BYTES);
    if &head[..8] != MARK {
        return Err("it does not begin like a file of this version of the recording library".into());
    }
    let word = |index: usize| -> u64 {
        let place: [u8; 8] = std::array::from_fn(|byte| head[index * 8 + byte]);
        u64::from_le_bytes(place)
    };
    let (rank, ranks) = (word(2), word(3));
    if ranks == 0 || ranks > RANKS_MAX || rank >= ranks {
        return Err(format!("it says that it is rank {rank} of {ranks}"));
    }
    let mut file = RankFile {
        rank: rank as u32,
        ranks: ranks as u32,
        finished: word(1) == 2,
        library: word(5),
        begin_ns: word(7),
        elapsed_ns: word(8),
        host: text(&head[HOST_AT..COUNTS_AT]),
        totals: Totals {
            compute_ns: word(9),
            io_ns: word(10),
            wait_ns: word(11),
            call_ns: word(12),
            call_cpu_ns: word(13),
            sends: word(14),
            send_bytes: word(15),
            receives: word(16),
            receive_bytes: word(17),
            dropped: word(19),
            other_threads: word(20),
            outside_cpu_ns: word(21),
            process_cpu_ns: word(22),
        },
        ..RankFile::default()
    };
    let names: Vec<String> =
        (0..FUNCTIONS_MAX).map(|index| text(&head[COUNTS_AT + index * COUNT_BYTES + 8..][..40])).collect();
    let counted = |index: usize| word((COUNTS_AT + index * COUNT_BYTES) / 8);
    file.functions = names.iter().enumerate().map(|(index, name)| (name.clone(), counted(index))).collect();
    file.functions.retain(|(name, calls)| !name.is_empty() && *calls > 0);
    let length = word(6);
    if length > rest.len() as u64 {
        file.damage = Some(format!("its records should have {length} bytes and have {}", rest.len()));
    }
    let records = &rest[..length.min(rest.len() as u64) as usize];
    if let Err(what) = Records::new(records, &names, (file.rank, ranks)).read(&mut file) {
        file.damage.get_or_insert(what);
    }
    Ok(file)
}

/// The text up to the first NUL.
fn text(bytes: &[u8]) -> String {
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    names: &'a [String],
    ranks: u64,
    /// The rank that wrote the file.
    own: u32,
    comms: Vec<Option<Members>>,
    /// Kinds by the bytes of function and events, and by their meaning: a communicator may have two numbers.
    by_bytes: HashMap<[&'a [u8]; 2], u32>,
    by_meaning: HashMap<Kind, u32>,
}

impl<'a> Records<'a> {
    fn new(bytes: &'a [u8], names: &'a [String], (own, ranks): (u32, u64)) -> Records<'a> {
        let (by_bytes, by_meaning) = (HashMap::new(), HashMap::new());
        Records { bytes, at: 0, names, ranks, own, comms: Vec::new(), by_bytes, by_meaning }
    }

    fn read(&mut self, file: &mut RankFile) -> Result<(), String> {
        while self.at < self.bytes.len() {
            let begin = self.at;
            let result = match self.number()? {
                1 => self.comm(),
                2 => self.call(file),
                tag => Err(format!("there is no record of kind {tag}")),
            };
            result.map_err(|what| format!("at byte {begin} of the records: {what}"))?;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<u64, String> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or("they end within a record")?;
            self.at += 1;
            number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number has too many digits".into())
    }

    /// A number that is a valid rank.
    fn rank(&mut self) -> Result<u32, String> {
        let rank = self.number()?;
        if rank < self.ranks { Ok(rank as u32) } else { Err(format!("there is no rank {rank}")) }
    }

    fn comm(&mut self) -> Result<(), String> {
        let (number, is_inter, size) = (self.number()?, self.number()?, self.number()?);
        if number != self.comms.len() as u64 || is_inter > 1 || size > self.ranks {
            return Err(format!("communicator {number} with {size} members is impossible"));
        }
        let mut members = Vec::new();
        let mut strangers = is_inter == 1;
        for _ in 0..size {
            let rank = self.number()?;
            strangers |= rank >= self.ranks;
            members.push(rank as u32);
        }
        let known = members.iter().collect::<BTreeSet<_>>();
        if !strangers && (known.len() < members.len() || !known.contains(&self.own)) {
            return Err(format!("communicator {number} names a rank twice, or not this one"));
        }
        // A group with ranks outside of the world cannot be simulated.
        self.comms.push((!strangers).then(|| members.into()));
        Ok(())
    }

    fn call(&mut self, file: &mut RankFile) -> Result<(), String> {
        let begin = self.at;
        self.number()?;
        let function_end = self.at;
        let mut times = [0; 6];
        for time in &mut times {
            *time = self.number()?;
        }
        let events_begin = self.at;
        let count = self.number()?;
        for _ in 0..count {
            self.skip_event()?;
        }
        let (bytes, events_end) = (self.bytes, self.at);
        let kind = self.kind([&bytes[begin..function_end], &bytes[events_begin..events_end]], file)?;
        let [compute_ns, io_ns, wait_ns, call_ns, call_cpu_ns, call_wait_ns] = times;
        file.calls.push(Call { kind, compute_ns, io_ns, wait_ns, call_ns, call_cpu_ns, call_wait_ns });
        Ok(())
    }

    /// The index of the kind with this function and these events.
    fn kind(&mut self, key: [&'a [u8]; 2], file: &mut RankFile) -> Result<u32, String> {
        if let Some(kind) = self.by_bytes.get(&key) {
            return Ok(*kind);
        }
        let number = Records::new(key[0], self.names, (self.own, self.ranks)).number()?;
        let kind = Kind { name: self.function(number)?.to_owned(), events: self.events(key[1])? };
        let place = *self.by_meaning.entry(kind.clone()).or_insert(file.kinds.len() as u32);
        if place as usize == file.kinds.len() {
            file.kinds.push(kind);
        }
        self.by_bytes.insert(key, place);
        Ok(place)
    }

    fn function(&self, number: u64) -> Result<&'a str, String> {
        let name =
            number.checked_sub(1).and_then(|index| self.names.get(index as usize)).filter(|name| !name.is_empty());
        name.map(String::as_str).ok_or_else(|| format!("function {number} has no name"))
    }

    fn skip_event(&mut self) -> Result<(), String> {
        let fields = match self.number()? {
            1 | 2 => 2,
            3..=5 => 4,
            6 => 1,
            7 => 0,
            tag => return Err(format!("there is no event of kind {tag}")),
        };
        (0..fields).try_for_each(|_| self.number().map(drop))
    }

    fn events(&self, bytes: &'a [u8]) -> Result<Vec<Event<Members>>, String> {
        let mut reader = Records::new(bytes, self.names, (self.own, self.ranks));
        let count = reader.number()?;
        (0..count).map(|_| reader.event(&self.comms)).collect()
    }

    fn event(&mut self, comms: &[Option<Members>]) -> Result<Event<Members>, String> {
        Ok(match self.number()? {
            1 => Event::Send { to: self.rank()?, bytes: self.number()? },
            2 => Event::Receive { from: self.rank()?, bytes: self.number()? },
            tag @ 3..=5 => {
                let together = self.together(comms)?;
                match (tag, together) {
                    (_, None) => Event::Unknown,
                    (3, Some(together)) => Event::Together(together),
                    (4, Some(together)) => Event::Begin(together),
                    (_, Some(together)) => Event::End(together),
                }
            }
            6 => Event::File { bytes: self.number()? },
            _ => Event::Unknown,
        })
    }

    /// None for a function without a pattern, and for a group with ranks outside of this world.
    fn together(&mut self, comms: &[Option<Members>]) -> Result<Option<Collective<Members>>, String> {
        let (function, comm, root, bytes) = (self.number()?, self.number()?, self.number()?, self.number()?);
        let among = comms.get(comm as usize).ok_or_else(|| format!("there is no communicator {comm}"))?.clone();
        let Some(among) = among else { return Ok(None) };
        let root = match root {
            0 => None,
            root => Some(*among.get(root as usize - 1).ok_or_else(|| format!("root {root} is not in its group"))?),
        };
        Ok(What::of(self.function(function)?).map(|what| Collective { what, among, root, bytes }))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put(bytes: &mut Vec<u8>, numbers: &[u64]) {
        for number in numbers {
            let mut number = *number;
            while number >= 0x80 {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            bytes.push(number as u8);
        }
    }

    /// A file with functions 1 `MPI_Send`, 2 `MPI_Recv`, 3 `MPI_Barrier` and these records.
    pub(crate) fn file(rank: u64, ranks: u64, records: &[&[u64]]) -> Vec<u8> {
        let mut body = Vec::new();
        let world: Vec<u64> = [1, 0, 0, ranks].into_iter().chain(0..ranks).collect();
        put(&mut body, &world);
        records.iter().for_each(|record| put(&mut body, record));
        let mut bytes = vec![0; HEAD_BYTES];
        bytes[..8].copy_from_slice(MARK);
        let mut word = |index: usize, value: u64| bytes[index * 8..][..8].copy_from_slice(&value.to_le_bytes());
        for (index, value) in [(1, 2), (2, rank), (3, ranks), (5, 1), (6, body.len() as u64), (8, 1000)] {
            word(index, value);
        }
        for (index, name) in ["MPI_Send", "MPI_Recv", "MPI_Barrier"].iter().enumerate() {
            let at = COUNTS_AT + index * COUNT_BYTES;
            bytes[at] = 1;
            bytes[at + 8..][..name.len()].copy_from_slice(name.as_bytes());
        }
        bytes.extend(body);
        bytes
    }

    #[test]
    fn records_are_read() {
        let send = [2, 1, 100, 0, 0, 10, 9, 0, 1, 1, 1, 800];
        let barrier = [2, 3, 200, 50, 5, 20, 20, 0, 1, 3, 3, 0, 0, 0];
        let read = parse(&file(0, 2, &[&send, &barrier, &send])).unwrap();
        assert_eq!((read.rank, read.ranks, read.damage, read.finished), (0, 2, None, true));
        assert_eq!(read.calls.iter().map(|call| call.kind).collect::<Vec<_>>(), [0, 1, 0]);
        assert_eq!(read.kinds[0].events, [Event::Send { to: 1, bytes: 800 }]);
        let together = Collective { what: What::Barrier, among: [0, 1].into(), root: None, bytes: 0 };
        assert_eq!(read.kinds[1].events, [Event::Together(together)]);
        assert_eq!((read.calls[1].compute_ns, read.calls[1].io_ns, read.calls[1].call_ns), (200, 50, 20));
    }

    #[test]
    fn damage_is_said_and_what_stands_before_it_is_kept() {
        let send = [2, 1, 100, 0, 0, 10, 9, 0, 1, 1, 1, 800];
        let whole = file(0, 2, &[&send, &send]);
        let cut = parse(&whole[..whole.len() - 3]).unwrap();
        assert_eq!(cut.calls.len(), 1);
        assert!(cut.damage.unwrap().contains("should have"));
        let stranger = parse(&file(0, 2, &[&send, &[2, 1, 0, 0, 0, 0, 0, 0, 1, 1, 9, 8]])).unwrap();
        assert!(stranger.damage.unwrap().contains("there is no rank 9"));
        assert!(parse(&file(0, 2, &[&[9]])).unwrap().damage.unwrap().contains("no record of kind 9"));
        assert!(parse(b"short").unwrap_err().contains("5 bytes"));
        assert!(parse(&vec![0; HEAD_BYTES]).unwrap_err().contains("does not begin"));
        assert!(parse(&file(3, 2, &[])).unwrap_err().contains("rank 3 of 2"));
    }

    #[test]
    fn groups_that_are_not_of_this_world_are_not_known_and_impossible_ones_are_damage() {
        let barrier = [2, 3, 1, 1, 1, 1, 1, 1, 1, 3, 3, 1, 0, 0];
        let of = |comm: &[u64]| parse(&file(0, 2, &[comm, &barrier])).unwrap();
        // An intercommunicator; and a group with a rank of another world.
        for strange in [&[1, 1, 1, 1, 1][..], &[1, 1, 0, 2, 0, 7]] {
            let read = of(strange);
            assert_eq!((read.damage, &read.kinds[0].events[..]), (None, &[Event::Unknown][..]));
        }
        for impossible in [&[1, 1, 0, 2, 0, 0][..], &[1, 1, 0, 1, 1], &[1, 1, 0, 0]] {
            assert!(of(impossible).damage.is_some_and(|why| why.contains("not this one")));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(
            rubbish in prop::collection::vec(any::<u8>(), 0..200),
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let mut bytes = file(1, 3, &[&[2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 300], &[2, 3, 0, 0, 0, 1, 1, 1, 1, 3, 3, 0, 0, 0]]);
            bytes.extend(rubbish);
            let length = (bytes.len() - HEAD_BYTES) as u64;
            bytes[48..56].copy_from_slice(&length.to_le_bytes());
            for (place, value) in flips {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            let _ = parse(&bytes);
        }
    }
}
