//! Finds what is wrong before anything runs.

use super::policy::{Choice, How};
use crate::out::{EXIT_REFUSED, Failure};
use crate::run::find_program;
use crate::run::waiting::Plan;
use cosched_study::slowdown::record::Head;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// MPI launchers; a missing one gets a hint of its own.
const MPI: [&str; 4] = ["mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.mpich"];

/// Checks the commands, and the ways to wait of the policies.
///
/// # Errors
/// When a command cannot be executed, or the wait library is missing.
pub(crate) fn commands(head: &Head, choices: &[Choice]) -> Result<(), Failure> {
    let of_mix = head.commands.iter().map(|job| &job.command);
    let commands: Vec<&Vec<String>> = if head.commands.is_empty() { vec![&head.command] } else { of_mix.collect() };
    for command in commands {
        let program = command.first().map_or_else(|| Err(no_command()), |name| find(name))?;
        waits(&program, choices)?;
    }
    Ok(())
}

/// Checks that a bench is resumed on the machine where it began, with the same number of CPUs: times of two machines
/// cannot be compared.
///
/// # Errors
/// When the host or the number of CPUs differs.
pub(crate) fn machine(head: &Head, host: &str, cpus: usize) -> Result<(), Failure> {
    if (head.host.as_str(), head.cpus) == (host, cpus) {
        return Ok(());
    }
    let why = format!("it was started on {} with {} CPUs, and this is {host} with {cpus}", head.host, head.cpus);
    let hint = "resume it there (taskset changes the number of CPUs), or start again with --out DIR";
    Err(Failure::explained(EXIT_REFUSED, "it cannot be resumed on this machine", &why, hint))
}

/// Checks the ways to wait of the policies.
///
/// # Errors
/// When the wait library is missing.
pub(crate) fn waits(program: &Path, choices: &[Choice]) -> Result<(), Failure> {
    for choice in choices {
        if let How::Cosched { wait: Some(wait), .. } = &choice.how {
            Plan::new(Some(*wait), program).map_err(|failure| Failure { code: EXIT_REFUSED, ..failure })?;
        }
    }
    Ok(())
}

fn no_command() -> Failure {
    Failure::explained(2, "no command is given", "the list is empty", "put it after --")
}

/// Finds a command as a shell does.
pub(crate) fn find(name: &str) -> Result<PathBuf, Failure> {
    find_program(OsStr::new(name), std::env::var_os("PATH")).map_err(|failure| {
        let is_mpi = Path::new(name).file_name().is_some_and(|file| MPI.iter().any(|launcher| file == *launcher));
        if !is_mpi {
            return failure;
        }
        let hint = "install Open MPI or MPICH (Debian: openmpi-bin, mpich), or name its launcher by its path";
        Failure::explained(
            failure.code,
            &format!("{name}: no MPI is installed here"),
            "its launcher was not found",
            hint,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_study::slowdown::samples::head;

    #[test]
    fn another_machine_does_not_go_on() {
        let head = head(&["linux"], &[1], 1);
        assert!(machine(&head, &head.host, head.cpus).is_ok());
        for (host, cpus) in [("elsewhere", head.cpus), (&head.host, head.cpus + 1)] {
            assert_eq!(machine(&head, host, cpus).unwrap_err().code, EXIT_REFUSED);
        }
    }
}
