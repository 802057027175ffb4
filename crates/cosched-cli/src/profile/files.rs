//! Profiles as files, and the files that the ranks of a recorded program wrote.

use crate::input;
use crate::out::Failure;
use cosched_study::profile::Profile;
use std::path::{Path, PathBuf};

/// Reads a profile and checks it.
pub(crate) fn read(path: &Path) -> Result<Profile, Failure> {
    let text = input::read(path, "give the path of a profile, as `cosched record -o FILE -- COMMAND` writes it")?;
    Profile::parse(&text).map_err(|why| {
        let hint = "record it again with this cosched: cosched record -o FILE -- COMMAND";
        Failure::explained(1, &format!("{} is not a profile that can be used", path.display()), &why, hint)
    })
}

/// The names and contents of the files that ranks wrote into a directory.
pub(crate) fn rank_files(directory: &Path) -> impl Iterator<Item = (String, Result<Vec<u8>, String>)> {
    let mut paths: Vec<PathBuf> =
        directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    paths.retain(|path| name(path).starts_with("rank-"));
    paths.sort();
    paths.into_iter().map(move |path| (name(&path), std::fs::read(&path).map_err(|e| e.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_study::profile::{Observed, Run, from_observation};

    #[test]
    fn a_profile_survives_its_file_and_ranks_come_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let run = Run { command: vec!["x".into()], recorded: String::new(), host: String::new(), exit: 0 };
        // The largest values that a damaged recording may contain.
        let thread = Observed { cpu_ns: u64::MAX, wait_ns: u64::MAX, ..Observed::default() };
        let profile = from_observation(&run, vec![thread], 1.0, u64::MAX as f64 / 1e9, 1);
        let path = dir.path().join("p.json");
        std::fs::write(&path, crate::out::json_line(&profile).unwrap()).unwrap();
        assert_eq!(read(&path).unwrap(), profile);
        crate::profile::summary(&profile, None);
        for name in ["rank-1-7", "other", "rank-0-9"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        let found: Vec<_> = rank_files(dir.path()).collect();
        assert_eq!(found, ["rank-0-9", "rank-1-7"].map(|name| (name.to_owned(), Ok(name.into()))));
    }
}
