//! `cosched advise`: short test runs of a program, alone and with others, and the policy that suits it.
//!
//! [`mod@observe`] runs it, [`decide`] draws conclusions from the numbers (a pure function), [`mod@text`] words them.

mod observe;
mod text;

use crate::context::Context;
use crate::out::Failure;
use clap::Args;
use cosched_study::advise::decide;

const ADVISE: &str = "\
The program runs alone under plain Linux and under cosched, where its waits are counted, then as two concurrent jobs under each \
policy, repeatedly until the time budget is used. A run that exceeds a sixth of it is cut short, and then only the CPU time \
that the jobs got can be compared; the report says so. Processes that spin while they wait use CPU time \
without progress, so no slowdown is reported for a program that spins and was cut short.

Examples:
  cosched advise -- mpirun -n 2 ./a.out
  cosched advise --seconds 120 --policies local,gang,gang+spin-block,PB-SB -- mpirun -n 2 ./a.out
  cosched advise --json -- ./a.out | jq .advice.choice

Exit codes:
  0 success (even if no policy can be recommended)   1 the command fails alone   2 wrong usage   3 no daemon
  6 refused   126 not executable   127 not found   130 interrupted";

/// Options of `cosched advise`.
#[derive(Args, Debug)]
#[command(after_help = ADVISE)]
pub(crate) struct Advise {
    /// Approximate time budget; a run that exceeds a sixth of it is cut short
    #[arg(long, value_name = "S", default_value = "30", value_parser = parse_seconds)]
    pub(crate) seconds: f64,

    /// Policies to try with two jobs (plain Linux is always tried)
    #[arg(long, value_name = "POLICY,…", value_delimiter = ',', default_value = "local,gang,auto")]
    pub(crate) policies: Vec<String>,

    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (1.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds from 1 to 86400, as 30".into()),
    }
}

/// `cosched advise`.
pub(crate) fn advise(context: &Context, options: &Advise) -> Result<u8, Failure> {
    let facts = observe::observe(context, options)?;
    let advice = decide(&facts);
    let report = serde_json::json!({
        "format": "cosched-advice-1", "command": options.command, "facts": facts, "advice": advice,
    });
    context.give(&report, || text::text(&facts, &advice))
}
