//! Errors of a simulation.

use crate::params::ParamsError;
use crate::program::ProgramError;

/// Why a simulation gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// A job has more tasks than the machine can ever run at a time.
    #[error(
        "job {index} has {tasks} tasks\n  why: the machine has {places} CPUs, and each task needs one of its own\n  \
         hint: leave the job out, or simulate a larger machine"
    )]
    TooLarge {
        /// Its place in the job list, from 0.
        index: usize,
        /// Its tasks.
        tasks: u32,
        /// CPUs of the machine.
        places: u32,
    },
    /// A job has no tasks.
    #[error("job {index} has no tasks\n  why: then it has no end\n  hint: give it one task or more")]
    NoTasks {
        /// Its place in the job list, from 0.
        index: usize,
    },
    /// A job's program does not fit its number of tasks.
    #[error("job {index}: {error}")]
    Program {
        /// Its place in the job list, from 0.
        index: usize,
        /// What is wrong.
        error: ProgramError,
    },
    /// Tasks wait for messages that no task sends.
    #[error(
        "job {index} waits for ever: {what}\n  why: nobody sends that message\n  \
         hint: every recv needs a send of the other task; see the program"
    )]
    Deadlock {
        /// Its place in the job list, from 0.
        index: usize,
        /// The waiting tasks, and those that they wait for.
        what: String,
    },
    /// The parameters are invalid.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// The caller stopped the simulation.
    #[error("the simulation was stopped\n  why: its caller said so\n  hint: none is needed")]
    Stopped,
    /// A strategy of the caller's own decided what cannot be.
    #[error("the strategy {0}\n  why: no machine can do that\n  hint: see what the hook that decided it was told")]
    Strategy(String),
    /// A conservation law is violated: the simulator has a bug.
    #[error(
        "the simulator is wrong: {0}\n  why: a sum that must hold does not\n  hint: please report it with the input"
    )]
    Broken(String),
}
