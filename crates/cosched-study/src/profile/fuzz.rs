//! For the fuzzer: profiles and files of ranks, and properties that must hold of them.

use super::Profile;
use super::build::{Run, of_files};
use super::rank_file::{self, COUNT_BYTES, COUNTS_AT, HEAD_BYTES, HOST_AT, MARK};
use cosched_sim::program::Program;

/// Functions to which a recording refers by their index here, from 1.
const FUNCTIONS: [&str; 8] = [
    "MPI_Send",
    "MPI_Recv",
    "MPI_Barrier",
    "MPI_Alltoall",
    "MPI_Ireduce",
    "MPI_Scatter",
    "MPI_Comm_dup",
    "MPI_Reduce_scatter",
];

/// The text of a profile: a valid one is unchanged by writing and reading it again, and so is its program for the
/// simulator.
pub fn profile(data: &[u8], show: fn(&Profile)) {
    if let Some(profile) = std::str::from_utf8(data).ok().and_then(|text| Profile::parse(text).ok()) {
        use_all_of(&profile, show);
    }
}

/// The recording of a rank, and the same for its neighbour: the head from its second word on, and the records. A valid
/// recording gives a usable profile.
pub fn recording(data: &[u8], show: fn(&Profile)) {
    let words = HOST_AT - MARK.len();
    let (head, records) = data.split_at(data.len().min(words));
    let mut bytes = vec![0; HEAD_BYTES];
    bytes[..MARK.len()].copy_from_slice(MARK);
    bytes[MARK.len()..][..head.len()].copy_from_slice(head);
    // Up to 255 ranks: more would only take longer.
    bytes[3 * 8 + 1..4 * 8].fill(0);
    for (index, name) in FUNCTIONS.iter().enumerate() {
        let at = COUNTS_AT + index * COUNT_BYTES;
        bytes[at] = 1;
        bytes[at + 8..][..name.len()].copy_from_slice(name.as_bytes());
    }
    bytes[6 * 8..7 * 8].copy_from_slice(&(records.len() as u64).to_le_bytes());
    bytes.extend(records);
    let mut neighbour = bytes.clone();
    neighbour[2 * 8] ^= 1;
    let files: Vec<_> = [bytes, neighbour].iter().filter_map(|bytes| rank_file::parse(bytes).ok()).collect();
    let run = Run { command: vec!["x".into()], recorded: String::new(), host: String::new(), exit: 0 };
    if let Some(profile) = of_files((files, Vec::new()), &run) {
        use_all_of(&profile, show);
    }
}

fn use_all_of(profile: &Profile, show: fn(&Profile)) {
    let text = serde_json::to_string(profile).unwrap();
    let again = Profile::parse(&text).unwrap();
    assert_eq!(without_times(again), without_times(profile.clone()));
    profile.totals();
    show(profile);
    if let Ok(program) = profile.program() {
        assert_eq!(program.to_string().parse::<Program>().unwrap(), program);
    }
}

/// Times may differ in the last digit after reading.
fn without_times(mut profile: Profile) -> Profile {
    (profile.elapsed_s, profile.network) = (0.0, None);
    for task in &mut profile.each {
        (task.compute_s, task.message_s, task.message_cpu_s, task.io_s, task.wait_s) = (0.0, 0.0, 0.0, 0.0, 0.0);
    }
    profile
}
