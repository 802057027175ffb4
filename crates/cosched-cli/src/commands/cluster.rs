//! `cosched cluster`: repair, backup and restore of what a cluster keeps in its store.

use crate::context::Context;
use crate::input::read_or_stdin;
use crate::jobs::connect;
use crate::out::{EXIT_REFUSED, Failure, print, print_json, say};
use clap::{Args, Subcommand};
use cosched_api::{ClusterBackup, ImportRequest, RepairReport, RepairRequest};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = super::help::CLUSTER, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    pub(crate) command: ClusterCommand,
}

/// What administrators do to a cluster's store.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show what is wrong with the keys in the store, or repair it
    #[command(after_help = super::help::CLUSTER_REPAIR)]
    Repair {
        /// Do it; without this option the command only shows what it would do
        #[arg(long)]
        yes: bool,
    },
    /// Back up the cluster's state to a file
    #[command(after_help = super::help::CLUSTER_EXPORT)]
    Export {
        /// A file that does not exist yet; `-` is standard output
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Restore a backup
    #[command(after_help = super::help::CLUSTER_IMPORT)]
    Import {
        /// A file that `cosched cluster export` wrote; `-` is standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Do it; without this option the command only shows what it would do
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) fn cluster(context: &Context, options: &Cluster) -> Result<u8, Failure> {
    let mut client = connect(context)?;
    match &options.command {
        ClusterCommand::Repair { yes } => {
            let report = client.repair_cluster(&RepairRequest { carry_out: *yes })?;
            context.give(&report, || text(&report, "nothing is wrong with the keys of the cluster"))
        }
        ClusterCommand::Export { file } => {
            let backup = client.export_cluster()?;
            write(file, &backup)?;
            for key in &backup.left_out {
                say(&format!("{key} cannot be read, and is not in the backup"));
            }
            match (context.json, file.as_os_str() == "-") {
                (_, true) => (),
                (true, false) => print_json(&serde_json::json!({"file": file, "keys": backup.keys.len()}))?,
                (false, false) => say(&format!(
                    "{} keys of cluster {} are in {}. It contains jobs' environments: protect it like a password file",
                    backup.keys.len(),
                    backup.cluster,
                    file.display()
                )),
            }
            Ok(u8::from(!backup.left_out.is_empty()))
        }
        ClusterCommand::Import { file, yes } => {
            let backup = read(file)?;
            let report = client.import_cluster(&ImportRequest { backup, carry_out: *yes })?;
            context.give(&report, || text(&report, "nothing to do"))
        }
    }
}

fn text(report: &RepairReport, nothing: &str) -> String {
    if report.says.is_empty() {
        return format!("{nothing}\n");
    }
    let lines: String = report.says.iter().map(|line| format!("{line}\n")).collect();
    match report.done {
        true => format!("{lines}done; all nodes use it within seconds\n"),
        false => format!("{lines}nothing was changed; --yes does it\n"),
    }
}

/// Writes atomically, readable by the owner only, and never overwrites an existing file.
fn write(file: &Path, backup: &ClusterBackup) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(backup).map_err(|e| cannot_write(file, &e.to_string()))? + "\n";
    if file.as_os_str() == "-" {
        return print(&text);
    }
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let written = made.and_then(|mut to| {
        to.write_all(text.as_bytes()).and_then(|()| to.sync_all()).inspect_err(|_| drop(std::fs::remove_file(file)))
    });
    written.map_err(|e| cannot_write(file, &e.to_string()))
}

fn cannot_write(file: &Path, why: &str) -> Failure {
    let what = format!("{} cannot be written", file.display());
    Failure::explained(1, &what, why, "name a file that does not exist yet, on a disk with free space")
}

fn read(file: &Path) -> Result<ClusterBackup, Failure> {
    let (name, text) = read_or_stdin(file)?;
    serde_json::from_str(&text).map_err(|e| {
        let hint = "give a file that `cosched cluster export` wrote";
        Failure::explained(EXIT_REFUSED, &format!("{name} is not a backup of a cluster"), &e.to_string(), hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_and_what_would_be_are_told_apart() {
        let report = |done, says: &[&str]| RepairReport { says: says.iter().map(|s| (*s).to_owned()).collect(), done };
        assert_eq!(text(&report(false, &[]), "all is well"), "all is well\n");
        assert_eq!(text(&report(false, &["a"]), ""), "a\nnothing was changed; --yes does it\n");
        assert_eq!(text(&report(true, &["a", "b"]), ""), "a\nb\ndone; all nodes use it within seconds\n");
    }

    #[test]
    fn a_backup_is_its_owners_alone_and_is_written_over_nothing() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("backup");
        let backup = ClusterBackup {
            format: cosched_api::BACKUP_FORMAT.to_owned(),
            version: cosched_api::BACKUP_VERSION,
            cluster: "c".to_owned(),
            node: "a".to_owned(),
            made_by: "1".to_owned(),
            made_unix_ms: 5,
            keys: [("ids/0".to_owned(), "a".to_owned())].into(),
            left_out: vec![],
        };
        write(&file, &backup).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&file).unwrap(), backup);
        assert!(write(&file, &backup).unwrap_err().message.contains("cannot be written"));
        std::fs::write(&file, "{}").unwrap();
        assert!(read(&file).unwrap_err().message.contains("is not a backup"));
    }
}
