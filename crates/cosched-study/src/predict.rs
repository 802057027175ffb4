//! The job whose time the model predicts: a program on a machine.

use crate::error::{Error, Reason};
use crate::profile::Profile;
use cosched_model::profile::{Totals, from_profile};
use cosched_model::{Cost, Job, Machine, Problem, lu, matmul};

/// A job, and what is known of how it comes about.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Predicted {
    pub job: Job,
    pub detail: Option<Detail>,
}

/// Of a program on a machine.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Detail {
    pub machine: Machine,
    pub subject: Subject,
    pub cost: Cost,
    /// α_c.
    pub context_switch_us: f64,
    /// What cold caches add to it.
    pub pollution_us: f64,
}

/// Which program.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub enum Subject {
    /// One of the paper's.
    Known { program: &'static str, problem: Problem },
    /// A recorded one.
    Recorded { name: String, tasks: u32 },
}

/// A program of which the model has the closed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Matrix multiply; equation 8 leaves its startups out.
    Matmul {
        /// With them.
        startups: bool,
    },
    /// LU factorisation.
    Lu,
}

/// One of the paper's programs on a machine, with what cold caches add to a context switch.
pub fn of_program(machine: Machine, program: Program, problem: Problem, pollution_us: f64) -> Predicted {
    let (program, cost) = match program {
        Program::Lu => ("lu", lu::cost(&machine, &problem)),
        Program::Matmul { startups } => ("matmul", matmul::cost(&machine, &problem, startups)),
    };
    Predicted::new(machine, Subject::Known { program, problem }, cost, pollution_us)
}

/// A recorded program: its mean task, with the messages of this machine. `name` stands for the profile in messages.
///
/// # Errors
/// When nothing was recorded, or its times are of no program.
pub fn of_profile(machine: Machine, profile: &Profile, name: &str, pollution_us: f64) -> Result<Predicted, Error> {
    let totals = profile.totals();
    let unusable = |why: &str| {
        let what = format!("{} cannot be used for a prediction", name);
        Error::Document(Reason::new(what, why, "record the program again: cosched record"))
    };
    if totals.compute_s_mean + totals.io_s_mean + totals.messages_mean == 0.0 {
        return Err(unusable("the profile is empty: no task computed, did I/O or sent a message"));
    }
    let (link, _) = machine.links_of(u64::from(totals.tasks), None);
    let totals = Totals {
        compute_s: totals.compute_s_mean,
        io_s: totals.io_s_mean,
        messages: totals.messages_mean,
        bytes: totals.bytes_mean,
        elapsed_s: Some(totals.elapsed_s),
    };
    let cost = from_profile(&link, &totals).map_err(|error| unusable(&error.to_string()))?;
    let subject = Subject::Recorded { name: name.to_owned(), tasks: profile.tasks };
    Ok(Predicted::new(machine, subject, cost, pollution_us))
}

impl Predicted {
    fn new(machine: Machine, subject: Subject, cost: Cost, pollution_us: f64) -> Predicted {
        let context_switch_us = machine.context_switch_us;
        let job = Job { alone_s: cost.time_s(), cpu_s: cost.shared_cpu_s(context_switch_us + pollution_us) };
        Predicted { job, detail: Some(Detail { machine, subject, cost, context_switch_us, pollution_us }) }
    }
}
