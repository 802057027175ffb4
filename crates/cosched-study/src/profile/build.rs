//! Builds a profile from the files of the ranks.

use super::rank_file::{self, RankFile};
use super::{By, FORMAT, Function, Profile, Task, network, steps};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is known of the run besides the files.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Run {
    pub command: Vec<String>,
    pub recorded: String,
    pub host: String,
    pub exit: u8,
}

impl Run {
    /// A profile of this run without tasks.
    pub(super) fn profile(&self, by: By) -> Profile {
        Profile {
            format: FORMAT.into(),
            by,
            cosched: env!("CARGO_PKG_VERSION").into(),
            command: self.command.clone(),
            recorded: self.recorded.clone(),
            host: self.host.clone(),
            library: None,
            tasks: 0,
            elapsed_s: 0.0,
            complete: self.exit == 0,
            exit: self.exit,
            warnings: Vec::new(),
            network: None,
            groups: Vec::new(),
            each: Vec::new(),
        }
    }
}

/// Files that were parsed, and messages about those that could not be.
type Read = (Vec<RankFile>, Vec<String>);

/// The profile of an MPI program, from the names and contents of the ranks' files, or the error where one cannot be read; None if no
/// rank was recorded.
pub fn from_rank_files(
    contents: impl IntoIterator<Item = (String, Result<Vec<u8>, String>)>,
    run: &Run,
) -> Option<Profile> {
    let (mut files, mut warnings) = (Vec::new(), Vec::new());
    for (name, content) in contents {
        match content.and_then(|bytes| rank_file::parse(&bytes)) {
            Ok(file) => files.push(file),
            Err(why) => warnings.push(format!("the recording {name} cannot be read: {why}")),
        }
    }
    of_files((files, warnings), run)
}

pub(super) fn of_files((files, mut warnings): Read, run: &Run) -> Option<Profile> {
    let (files, others) = one_program(files);
    let ranks = files.first()?.ranks;
    if others > 0 {
        warnings.push(format!("the command ran {} MPI programs; this is the one with the most calls", others + 1));
    }
    let mut profile = run.profile(By::Mpi);
    profile.tasks = ranks;
    profile.library = match files.first()?.library {
        1 => Some("Open MPI".into()),
        2 => Some("MPICH".into()),
        _ => None,
    };
    profile.elapsed_s = files.iter().map(|file| seconds(file.elapsed_ns)).fold(0.0, f64::max);
    let network = network::fit(&files);
    profile.network = network.map(|(network, _)| network);
    if network.is_some_and(|(_, is_clean)| !is_clean) {
        warnings.push("the ranks had to wait for CPUs all the time: messages seem more expensive than they are".into());
    }
    let mut groups = Groups::of_all(ranks);
    profile.each = (0..ranks).map(|rank| task(rank, &files, &mut groups)).collect();
    profile.groups = groups.all;
    profile.complete &= warn(&files, ranks, &mut warnings);
    profile.warnings = warnings;
    if let Some(what) = profile.unmatched(1).pop().filter(|_| profile.complete) {
        profile.warnings.push(format!("it cannot be simulated: {what}"));
    }
    Some(profile)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The files of one of the programs that the command ran, and the number of the other programs. Programs that ran one after the other
/// have the same rank numbers.
fn one_program(mut files: Vec<RankFile>) -> (Vec<RankFile>, usize) {
    files.sort_by_key(|file| file.begin_ns);
    let mut programs: BTreeMap<(u32, usize), Vec<RankFile>> = BTreeMap::new();
    let mut seen: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for file in files {
        let times = seen.entry((file.ranks, file.rank)).or_default();
        programs.entry((file.ranks, *times)).or_default().push(file);
        *times += 1;
    }
    let others = programs.len().saturating_sub(1);
    let calls = |files: &Vec<RankFile>| files.iter().map(|file| file.calls.len()).sum::<usize>();
    let mut most = programs.into_values().max_by_key(calls).unwrap_or_default();
    most.sort_by_key(|file| file.rank);
    (most, others)
}

/// Assigns numbers to groups of tasks; the first group is all tasks.
struct Groups {
    all: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, u32>,
}

impl Groups {
    fn of_all(tasks: u32) -> Groups {
        let all: Vec<u32> = (0..tasks).collect();
        Groups { numbers: HashMap::from([(all.clone(), 0)]), all: vec![all] }
    }

    fn number(&mut self, members: &[u32]) -> u32 {
        if let Some(number) = self.numbers.get(members) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(members.to_vec());
        self.numbers.insert(members.to_vec(), number);
        number
    }
}

fn task(rank: u32, files: &[RankFile], groups: &mut Groups) -> Task {
    let Some(file) = files.iter().find(|file| file.rank == rank) else {
        return Task { task: rank, ..Task::default() };
    };
    let operations = steps::of_rank(file, &mut |members| groups.number(members));
    let totals = file.totals;
    let mut task = Task {
        task: rank,
        messages: totals.sends,
        bytes: totals.send_bytes,
        received: totals.receives,
        received_bytes: totals.receive_bytes,
        functions: file.functions.iter().map(|(name, calls)| Function { name: name.clone(), calls: *calls }).collect(),
        ..Task::default()
    };
    task.functions.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.name.cmp(&b.name)));
    if totals.dropped > 0 || file.damage.is_some() {
        // The totals in the head include what is missing in the records.
        task.compute_s = seconds(totals.compute_ns);
        task.io_s = seconds(totals.io_ns);
        task.wait_s = seconds(totals.wait_ns);
        task.message_s = seconds(totals.call_ns);
        task.message_cpu_s = seconds(totals.call_cpu_ns);
    } else {
        let mut sums = [0_u64; 5];
        steps::visit(&operations, 1, &mut |call, _| {
            let times = [call.compute_ns, call.io_ns, call.wait_ns, call.message_ns, call.message_cpu_ns];
            sums.iter_mut().zip(times).for_each(|(sum, time)| *sum = sum.saturating_add(time));
        });
        [task.compute_s, task.io_s, task.wait_s, task.message_s, task.message_cpu_s] = sums.map(seconds);
    }
    task.operations = operations;
    task
}

/// Adds warnings about what is missing or was not understood. True if nothing is missing.
fn warn(files: &[RankFile], ranks: u32, warnings: &mut Vec<String>) -> bool {
    let before = warnings.len();
    let ranks_where = |of: &dyn Fn(&RankFile) -> bool| -> Vec<u32> {
        files.iter().filter(|file| of(file)).map(|file| file.rank).collect()
    };
    let missing: Vec<u32> = (0..ranks).filter(|rank| files.iter().all(|file| file.rank != *rank)).collect();
    if !missing.is_empty() {
        warnings.push(format!(
            "{} of {ranks} ranks were not recorded: {}; ranks on other nodes need the variables and a directory that all see",
            missing.len(),
            list(&missing)
        ));
    }
    for file in files {
        if let Some(damage) = &file.damage {
            warnings.push(format!("the recording of rank {} is damaged: {damage}", file.rank));
        }
    }
    let cut = ranks_where(&|file| file.totals.dropped > 0);
    if !cut.is_empty() {
        let calls = files.iter().map(|file| file.totals.dropped).fold(0, u64::saturating_add);
        warnings.push(format!("rank {}: {calls} calls after --limit are in the totals only", list(&cut)));
    }
    let unfinished = ranks_where(&|file| !file.finished);
    if !unfinished.is_empty() {
        warnings.push(format!("rank {} ended without MPI_Finalize", list(&unfinished)));
    }
    let complete = warnings.len() == before;
    let unknown: BTreeSet<&str> = files
        .iter()
        .flat_map(|file| &file.kinds)
        .filter(|kind| kind.events.contains(&super::Event::Unknown))
        .map(|kind| kind.name.as_str())
        .collect();
    if !unknown.is_empty() {
        let names: Vec<&str> = unknown.into_iter().collect();
        warnings.push(format!("of these calls only the time is known, not the messages: {}", names.join(", ")));
    }
    let other_threads = files.iter().map(|file| file.totals.other_threads).fold(0, u64::saturating_add);
    if other_threads > 0 {
        warnings.push(format!("{other_threads} MPI calls of other threads than that of MPI_Init were not recorded"));
    }
    let threads: f64 = files.iter().map(other_threads_s).sum();
    let own: f64 = files.iter().map(|file| seconds(file.totals.compute_ns)).sum();
    if threads > 0.05 * own && threads > 0.05 {
        warnings.push(format!("other threads of the ranks used {threads:.2} s of CPU time, which is in no operation"));
    }
    let outside: f64 = files.iter().map(|file| seconds(file.totals.outside_cpu_ns)).sum();
    if outside > 0.5 * own && outside > 1.0 {
        warnings
            .push(format!("{outside:.2} s of CPU time before MPI_Init returned or after MPI_Finalize are left out"));
    }
    complete
}

fn other_threads_s(file: &RankFile) -> f64 {
    let own = file.totals.compute_ns.saturating_add(file.totals.call_cpu_ns);
    // For a rank that was killed the sum is unknown: the head has the clock of the start.
    if file.finished { seconds(file.totals.process_cpu_ns.saturating_sub(own)) } else { 0.0 }
}

/// The first few numbers, as text.
fn list(numbers: &[u32]) -> String {
    let mut text: Vec<String> = numbers.iter().take(8).map(u32::to_string).collect();
    if numbers.len() > text.len() {
        text.push("…".into());
    }
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::rank_file::tests::file;

    fn run(exit: u8) -> Run {
        Run { command: vec!["prog".into()], recorded: "2026-01-01T00:00:00Z".into(), host: "h".into(), exit }
    }

    type Content = (String, Result<Vec<u8>, String>);

    fn of(rank: u64, ranks: u64, records: &[&[u64]]) -> Content {
        (format!("rank-{rank}-{}", 100 + rank), Ok(file(rank, ranks, records)))
    }

    #[test]
    fn ranks_become_tasks_and_survive_the_file() {
        let send = [2, 1, 100, 0, 0, 10, 9, 0, 1, 1, 1, 800];
        let receive = [2, 2, 50, 0, 0, 20, 9, 0, 1, 2, 0, 800];
        let files = [of(0, 2, &[&send, &send, &send]), of(1, 2, &[&receive, &receive, &receive])];
        let profile = from_rank_files(files, &run(0)).unwrap();
        assert!(profile.complete && profile.warnings.is_empty(), "{profile:?}");
        assert_eq!((profile.each[0].compute_s, profile.each[1].message_s), (300e-9, 60e-9));
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(Profile::parse(&text).unwrap(), profile);
        let totals = profile.totals();
        assert_eq!((totals.tasks, totals.messages_mean, totals.bytes_mean), (2, 1.5, 1200.0));
    }

    #[test]
    fn what_is_missing_is_said() {
        assert!(from_rank_files([], &run(0)).is_none());
        let send = [2, 1, 100, 0, 0, 10, 9, 0, 1, 1, 1, 800];
        let files = || [of(0, 3, &[&send, &send]), ("rank-1-9".into(), Ok(b"rubbish".to_vec()))];
        let profile = from_rank_files(files(), &run(0)).unwrap();
        assert!(!profile.complete);
        let said = profile.warnings.join("\n");
        assert!(
            said.contains("2 of 3 ranks were not recorded: 1, 2") && said.contains("rank-1-9 cannot be read"),
            "{said}"
        );
        let error = profile.program().unwrap_err().to_string();
        assert!(error.contains("task 0 sends 2 messages to task 1, which receives 0"), "{error}");
        assert!(!from_rank_files(files(), &run(9)).unwrap().complete);
    }

    #[test]
    fn of_several_programs_the_one_with_the_most_calls_counts() {
        let barrier = [2, 3, 200, 50, 5, 20, 20, 0, 1, 3, 3, 0, 0, 0];
        let files = [of(0, 1, &[&barrier]), ("rank-0-7".into(), Ok(file(0, 1, &[&barrier, &barrier])))];
        let profile = from_rank_files(files, &run(0)).unwrap();
        assert_eq!(profile.each[0].compute_s, 400e-9);
        assert!(profile.warnings[0].contains("2 MPI programs"), "{:?}", profile.warnings);
    }

    #[test]
    fn times_that_cannot_be_are_the_longest_and_no_program() {
        let barrier = [2, 3, u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX, 1, 3, 3, 0, 0, 0];
        let profile = from_rank_files([of(0, 1, &[&barrier, &barrier])], &run(0)).unwrap();
        assert_eq!(profile.each[0].compute_s, seconds(u64::MAX));
        let error = profile.program().unwrap_err().to_string();
        assert!(error.contains("10^15"), "{error}");
    }

    #[test]
    fn texts_that_are_no_profiles_get_their_reason() {
        let send = [2, 1, 100, 0, 0, 10, 9, 0, 1, 1, 1, 800];
        let receive = [2, 2, 50, 0, 0, 20, 9, 0, 1, 2, 0, 800];
        let files = [of(0, 2, &[&send]), of(1, 2, &[&receive])];
        let good = serde_json::to_string(&from_rank_files(files, &run(0)).unwrap()).unwrap();
        assert!(Profile::parse(&good).is_ok());
        let why = |from: &str, to: &str| {
            assert!(good.contains(from), "{good}");
            Profile::parse(&good.replacen(from, to, 1)).unwrap_err()
        };
        assert!(why("cosched-profile-1", "cosched-profile-9").contains("this cosched reads cosched-profile-1"));
        assert!(why("cosched-profile-1", "other").contains("does not say"));
        assert!(why("\"tasks\":2", "\"tasks\":3").contains("describes 2"));
        assert!(why("\"compute_s\":1e-7", "\"compute_s\":-1e-7").contains("must be 0 or more"));
        assert!(why("\"compute_ns\":100", "\"compute_ns\":-100").contains("-100"));
        assert!(why("{\"to\":1", "{\"to\":7").contains("no task 7"));
        assert!(Profile::parse("compute 1ms").unwrap_err().contains("not JSON"));
        assert!(Profile::parse(&good[..good.len() / 2]).unwrap_err().contains("not JSON"));
    }
}
