//! The HTML report: one file with its figures, which opens from disk without a network.

use super::output::{memory, notes};
use crate::format::{command_line, percent};
use cosched_sim::metrics::{Estimate, t_975};
use cosched_sim::report::{Line, Page, Title, lines, short};
use cosched_study::slowdown::record::{Document, Row};
use cosched_study::slowdown::results::cpu_shares;

/// The whole page.
pub(crate) fn html(document: &Document) -> String {
    let head = &document.head;
    let title = if head.commands.is_empty() { command_line(&head.command) } else { "A mix of jobs".into() };
    let below = format!(
        "Slowdown by sharing, measured on {} ({} CPUs), {}; {} repetitions; cosched {}",
        head.host, head.cpus, head.started, head.repeat, head.cosched
    );
    let mut page = Page::new(&title, &below);
    if let Some(single) = &document.single {
        page.paragraph(&format!(
            "One job alone under {}: t_1 = {} s, {} of the CPUs, {}, {} voluntary and {} involuntary context switches.",
            single.policy,
            short(single.time_s),
            percent(single.cpu_share),
            memory(single.peak_memory_bytes),
            short(single.voluntary),
            short(single.involuntary)
        ));
    }
    for note in notes(document) {
        page.paragraph(&note);
    }
    if head.commands.is_empty() {
        figures(&mut page, document);
    }
    table(&mut page, document);
    mix(&mut page, document);
    page.finish()
}

fn figures(page: &mut Page, document: &Document) {
    let slowdown = |row: &Row| Some(ratio(row.slowdown?, row.slowdown_stderr, row.runs));
    let figure =
        |page: &mut Page, heading: &str, y: &str, caption: &str, of: &dyn Fn(&Row) -> Option<Estimate>, ideal: bool| {
            let mut all = policy_lines(document, of);
            if all.iter().all(|line| line.points.is_empty()) {
                return;
            }
            if ideal {
                let points =
                    document.head.jobs.iter().map(|jobs| (f64::from(*jobs), exactly(f64::from(*jobs)))).collect();
                all.push(Line { name: "s = j".into(), style: 8, points });
            }
            page.heading(heading);
            page.figure(&lines(&all, "concurrent jobs", y, heading), caption);
        };
    figure(
        page,
        "Slowdown",
        "slowdown t_j / t_1",
        "Medians; bars are 95 % intervals of the ratio. Jobs that use all CPUs alone cannot be below s = j.",
        &slowdown,
        true,
    );
    let in_percent = |row: &Row| cpu_shares(document, row).iter().map(|share| share * 100.0).collect::<Vec<f64>>();
    let cpu = |row: &Row| Estimate::of(&in_percent(row));
    figure(page, "CPU utilisation", "% of the CPUs", "CPU time of all jobs over elapsed time and CPUs.", &cpu, false);
    let fairness = |row: &Row| row.jain.map(exactly);
    figure(
        page,
        "Fairness",
        "Jain's index",
        "Of the jobs' turnarounds: 1 when all end at the same time.",
        &fairness,
        false,
    );
}

/// A slowdown with its 95 % interval, from its standard error.
fn ratio(mean: f64, stderr: Option<f64>, runs: usize) -> Estimate {
    let n = runs as u64;
    let ci95 = stderr.zip(t_975(n.saturating_sub(1))).map(|(error, t)| error * t);
    Estimate { mean, ci95, n }
}

fn exactly(mean: f64) -> Estimate {
    Estimate { mean, ci95: None, n: 1 }
}

fn policy_lines(document: &Document, of: &dyn Fn(&Row) -> Option<Estimate>) -> Vec<Line> {
    let line = |(style, policy): (usize, &String)| {
        let rows = document.results.iter().filter(|row| row.policy == *policy);
        let points = rows.filter_map(|row| Some((f64::from(row.jobs), of(row)?))).collect();
        Line { name: policy.clone(), style, points }
    };
    document.head.policies.iter().enumerate().map(line).collect()
}

const TITLES: [Title<'static>; 14] = [
    ("policy", true),
    ("jobs", false),
    ("runs", false),
    ("time s", false),
    ("± s", false),
    ("min..max s", false),
    ("slowdown", false),
    ("±", false),
    ("CPU", false),
    ("Jain", false),
    ("first..last end s", false),
    ("voluntary", false),
    ("involuntary", false),
    ("not done", true),
];

fn table(page: &mut Page, document: &Document) {
    let or_dash = |value: Option<f64>| value.map_or("–".to_owned(), short);
    let range = |low, high| format!("{}..{}", or_dash(low), or_dash(high));
    let row = |row: &Row| {
        vec![
            row.policy.clone(),
            row.jobs.to_string(),
            row.runs.to_string(),
            or_dash(row.time_s),
            or_dash(row.time_stderr_s),
            range(row.time_min_s, row.time_max_s),
            or_dash(row.slowdown),
            or_dash(row.slowdown_stderr),
            row.cpu_share.map_or("–".into(), percent),
            or_dash(row.jain),
            range(row.first_end_s, row.last_end_s),
            or_dash(row.voluntary),
            or_dash(row.involuntary),
            row.not_done_outcome.map_or(String::new(), |outcome| format!("{} ({})", row.not_done, outcome.name())),
        ]
    };
    page.heading("The numbers");
    page.table(&TITLES, &document.results.iter().map(row).collect::<Vec<_>>());
}

fn mix(page: &mut Page, document: &Document) {
    if document.mix.is_empty() {
        return;
    }
    let or_dash = |value: Option<f64>| value.map_or("–".to_owned(), short);
    let titles = [
        ("policy", true),
        ("job", true),
        ("turnaround s", false),
        ("alone s", false),
        ("slowdown", false),
        ("±", false),
    ];
    let rows: Vec<Vec<String>> = document
        .mix
        .iter()
        .map(|row| {
            let numbers = [row.turnaround_s, row.alone_s, row.slowdown, row.slowdown_stderr].map(or_dash);
            [vec![row.policy.clone(), row.name.clone()], numbers.to_vec()].concat()
        })
        .collect();
    page.heading("The jobs of the mix");
    let names: Vec<String> =
        document.head.commands.iter().enumerate().map(|(place, job)| format!("{} {}", place + 1, job.name)).collect();
    let caption = format!("Turnaround against that alone, of {}; bars are 95 % intervals.", names.join(", "));
    let all = mix_lines(document);
    if all.iter().any(|line| !line.points.is_empty()) {
        page.figure(&lines(&all, "job", "slowdown", "Slowdown of each job"), &caption);
    }
    page.table(&titles, &rows);
}

/// One line for each policy, with a mark for each job at its place in the list.
fn mix_lines(document: &Document) -> Vec<Line> {
    let line = |(style, policy): (usize, &String)| {
        let rows = document.mix.iter().filter(|row| row.policy == *policy);
        let points = rows
            .filter_map(|row| Some(((row.command + 1) as f64, ratio(row.slowdown?, row.slowdown_stderr, row.runs))))
            .collect();
        Line { name: policy.clone(), style, points }
    };
    document.head.policies.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_study::slowdown::results::document;
    use cosched_study::slowdown::samples::{head, run};

    #[test]
    fn the_page_is_alone_and_has_its_figures() {
        let head = head(&["linux", "gang"], &[1, 2], 2);
        let runs = [run("linux", 0, &[1.0]), run("linux", 0, &[2.0, 2.5]), run("gang", 0, &[2.0, 3.0])];
        let page = html(&document(&head, &runs));
        for word in ["http:", "https:", "<script", "src=", "href=", "@import", "url(", "NaN"] {
            assert!(!page.contains(word), "{word}");
        }
        assert_eq!(page.matches("<svg").count(), 3);
        for text in ["<h2>Slowdown</h2>", "<h2>CPU utilisation</h2>", "<h2>Fairness</h2>", "<td class=\"w\">gang</td>"]
        {
            assert!(page.contains(text), "{text}");
        }
        // A report without measurements is still a valid page.
        assert!(html(&document(&head, &[])).contains("The numbers"));
    }

    #[test]
    fn a_mix_has_a_figure_too() {
        use cosched_study::slowdown::mix::MixJob;
        use cosched_study::slowdown::record::{Head, Run};
        let job = |name: &str| MixJob { name: name.into(), class: None, start_s: 0.0, count: 1, command: vec![] };
        let head = Head { commands: vec![job("a<b"), job("c")], ..head(&["linux", "gang"], &[2], 1) };
        let alone = Run { alone: Some(0), ..run("linux", 0, &[1.0]) };
        let mut together = run("gang", 0, &[3.0, 4.0]);
        together.each[1].command = 1;
        let page = html(&document(&head, &[alone, together]));
        assert_eq!(page.matches("<svg").count(), 1);
        assert!(page.contains("Turnaround against that alone, of 1 a&lt;b, 2 c;"), "{page}");
        assert_eq!(html(&document(&head, &[])).matches("<svg").count(), 0, "nothing measured yet");
    }
}
