//! Builds the job whose time the model predicts: a program on a machine.

use crate::error::{Error, Reason};
use crate::profile::Profile;
use cosched_model::profile::{Totals, from_profile};
use cosched_model::{Cost, Job, Machine, Problem, lu, matmul};

/// A job, and how it was derived.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Predicted {
    pub job: Job,
    pub detail: Option<Detail>,
}

/// The derivation for a program on a machine.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Detail {
    pub machine: Machine,
    pub subject: Subject,
    pub cost: Cost,
    /// α_c.
    pub context_switch_us: f64,
    /// The additional cost of cold caches.
    pub pollution_us: f64,
}

/// The program.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub enum Subject {
    /// One of the paper's.
    Known { program: &'static str, problem: Problem },
    /// A recorded one.
    Recorded { name: String, tasks: u32 },
}

/// A program for which the model has a closed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Matrix multiply; equation 8 omits its startups.
    Matmul {
        /// Whether they are included.
        startups: bool,
    },
    /// LU factorisation.
    Lu,
}

/// One of the paper's programs on a machine, with the cost of cold caches per context switch.
pub fn of_program(machine: Machine, program: Program, problem: Problem, pollution_us: f64) -> Predicted {
    let (program, cost) = match program {
        Program::Lu => ("lu", lu::cost(&machine, &problem)),
        Program::Matmul { startups } => ("matmul", matmul::cost(&machine, &problem, startups)),
    };
    Predicted::new(machine, Subject::Known { program, problem }, cost, pollution_us)
}

/// A recorded program: its mean task, with the message costs of this machine. `name` is the name of the profile in
/// messages.
///
/// # Errors
/// If nothing was recorded, or its times are invalid.
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
