//! The facts and the advice, in plain words.

use crate::bench::memory;
use crate::format::{grouped, or_dash, percent};
use crate::table::Listing;
use cosched_study::advise::{Advice, Company, Facts, Grain, Kind};
use std::fmt::Write;

/// If memory suffices for more jobs than this, it is not mentioned as a limit.
const WORTH_NAMING: u64 = 64;

/// The whole answer.
pub(super) fn text(facts: &Facts, advice: &Advice) -> String {
    let mut text = format!("{}\n{}\n\n{}\n", program(facts), kind(facts, advice), table(facts, advice));
    if advice.is_uncertain {
        let others = percent(facts.others_cpu_share);
        let _ = writeln!(
            text,
            "The machine did not treat the runs alike (other processes used {others} of the CPUs): measure again when \
             it is idle. What follows is what these numbers suggest."
        );
    }
    let _ = writeln!(text, "{}", choice(facts, advice));
    text
}

fn program(facts: &Facts) -> String {
    let time = if facts.is_whole {
        format!("takes {:.2} s alone", facts.alone_s)
    } else {
        format!("was cut after {:.1} s", facts.alone_s)
    };
    let polls = facts.waits.map_or(String::new(), |waits| {
        format!(
            "; it polls for messages {} times for each second of CPU time",
            grouped(waits.polls_per_cpu_s.round() as u64)
        )
    });
    let waits = facts.waits.and_then(|waits| waits.per_s);
    let waits =
        waits.map_or(String::new(), |per_s| format!(", and under auto waits {per_s:.0} times a second for them"));
    format!(
        "The program {time}, uses {} of the {} CPUs and {}, and gives a CPU away {:.0} times a second{polls}{waits}.",
        percent(facts.cpu_share),
        facts.cpus,
        memory(facts.memory_bytes),
        facts.voluntary_per_s
    )
}

fn kind(facts: &Facts, advice: &Advice) -> String {
    let linux = facts.company.iter().find(|company| company.policy == "linux").and_then(|company| company.cpu_growth);
    let what = match advice.kind {
        Kind::Spins => {
            "It spins: a process that waits uses its CPU, and in company wastes it if its partner does not run"
                .to_owned()
        }
        Kind::Blocks => "It blocks: a process that waits gives its CPU away, and another job can have it".to_owned(),
        Kind::Computes => "It computes: its processes hardly wait for each other".to_owned(),
        Kind::Sleeps => "It hardly uses the CPUs, so it does not matter who else runs".to_owned(),
        Kind::Unknown => "It computes or it spins: it was cut, and its waits could not be seen".to_owned(),
    };
    let grown = linux.filter(|growth| facts.is_whole && *growth > 1.1);
    let grown = grown.map_or(String::new(), |growth| {
        format!("; with two under plain Linux each uses {growth:.1} times the CPU time")
    });
    let grain = match advice.grain {
        Some(Grain::Fine) => " Its grain is fine.",
        Some(Grain::Medium) => " Its grain is medium.",
        Some(Grain::Coarse) => " Its grain is coarse.",
        None => " How often it waits could not be seen.",
    };
    format!("{what}{grown}.{grain}")
}

fn table(facts: &Facts, advice: &Advice) -> String {
    let is_known = facts.is_whole || !matches!(advice.kind, Kind::Spins | Kind::Unknown);
    let slowdown = |company: &Company| {
        let bound = if company.is_bound { ">" } else { "" };
        or_dash(company.slowdown.filter(|_| is_known).map(|slowdown| format!("{bound}{slowdown:.2}")))
    };
    let mut text = Listing::of(&facts.company)
        .words("TWO AT ONCE", 0, |company| company.policy.as_str())
        .numbers("SLOWDOWN", 0, slowdown)
        .numbers("CPU", 0, |company| or_dash(company.cpu_share.map(percent)))
        .numbers("CPU TIME", 1, |company| or_dash(company.cpu_growth.map(|growth| format!("x{growth:.2}"))))
        .numbers("RUNS", 2, |company| company.runs.to_string())
        .words("", 0, |company| company.why.as_deref().and_then(|why| why.lines().next()).unwrap_or_default())
        .render(crate::out::terminal_width());
    let note = if facts.is_whole {
        "Slowdown is the time of two against that of one; CPU TIME is that of a job against alone."
    } else {
        "The progress of a run that was cut short is unknown: SLOWDOWN compares the CPU time that a job got, which is progress only \
         for programs that do not spin."
    };
    let expected: Vec<String> = advice.expected.iter().map(|(jobs, s)| format!("s_{jobs} {s:.2}")).collect();
    let _ = write!(text, "{note}\nIf overlap were perfect, max(1, jobs x CPU share): {}.", expected.join(", "));
    text
}

fn choice(facts: &Facts, advice: &Advice) -> String {
    let fits = advice.jobs_in_memory;
    if let Some(jobs) = fits.filter(|jobs| *jobs < 2) {
        return format!("Do not run two at once: {jobs} fits into the memory that is available.");
    }
    let memory = fits
        .filter(|jobs| *jobs < WORTH_NAMING)
        .map_or(String::new(), |jobs| format!(" {jobs} would fit into memory."));
    let of = |policy: &str| facts.company.iter().find(|company| company.policy == policy);
    match (&advice.choice, advice.is_measured) {
        (None, _) => {
            format!("No policy can be recommended: it did not end in the time; give more with --seconds.{memory}")
        }
        (Some(policy), false) => format!(
            "Choose {policy}: that is for programs that spin; it could not be measured, give more time with --seconds.{memory}"
        ),
        (Some(policy), true) if policy == "linux" => {
            format!("Choose plain Linux: no policy of cosched is more than 5 % faster for two of this program.{memory}")
        }
        (Some(policy), true) => {
            let linux =
                of("linux").and_then(|linux| Some((linux.slowdown?, if linux.is_bound { "more than " } else { "" })));
            let versus = linux
                .map_or(String::new(), |(slowdown, bound)| format!(" against {bound}{slowdown:.2} under plain Linux"));
            let slowdown = of(policy).and_then(|company| company.slowdown).unwrap_or(f64::NAN);
            format!("Choose {policy}: two take {slowdown:.2} times as long as one{versus}.{memory}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_study::advise::decide;
    use cosched_study::advise::samples::{company, facts};

    #[test]
    fn says_what_to_choose_and_why() {
        let mut facts = facts(0.98, 3.0, vec![company("linux", 3.8, 1.9), company("gang", 2.05, 1.0)]);
        facts.company[0].is_bound = true;
        let text = text(&facts, &decide(&facts));
        assert!(text.contains("takes 2.00 s alone, uses 98% of the 2 CPUs"), "{text}");
        assert!(text.contains("It spins") && text.contains("each uses 1.9 times the CPU time"), "{text}");
        assert!(
            text.contains(
                "Choose gang: two take 2.05 times as long as one against more than 3.80 under plain Linux. 8 would fit"
            ),
            "{text}"
        );
        assert!(text.contains("s_2 1.96, s_4 3.92"), "{text}");
    }

    #[test]
    fn says_what_it_does_not_know() {
        let mut facts = facts(0.98, 3.0, vec![company("linux", 2.0, 1.0)]);
        facts.is_whole = false;
        facts.others_cpu_share = 0.5;
        let text = text(&facts, &decide(&facts));
        assert!(text.contains("was cut after 2.0 s") && text.contains("is unknown: SLOWDOWN"), "{text}");
        assert!(text.contains("other processes used 50% of the CPUs"), "{text}");
        facts.company.clear();
        assert!(super::text(&facts, &decide(&facts)).contains("No policy can be recommended"));
    }
}
