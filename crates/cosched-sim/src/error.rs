//! Why a simulation gives no outcome.

use crate::params::ParamsError;

/// A simulation that could not be run, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The parameters are impossible.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// A job can never start.
    #[error(
        "job {job} has {tasks} tasks\n  why: the machine has places for {places}\n  hint: take it out, or simulate more nodes"
    )]
    TooLarge {
        /// Its place in the job list, from 0.
        job: usize,
        /// Its tasks.
        tasks: u32,
        /// The most tasks that a job may have.
        places: u32,
    },
    /// Who watches has stopped it.
    #[error("the simulation was stopped")]
    Stopped,
    /// A sum at the end does not come out: a fault of the simulator.
    #[error(
        "the simulation is wrong: {0}\n  why: this is a fault of cosched\n  hint: please report it with the command and the job list"
    )]
    Broken(String),
}
