//! What a page may ask for: a line of JSON, and after it the bytes of a trace.

use serde::Deserialize;
use std::num::NonZero;
use std::time::Duration;

const FOR_S_MAX: u32 = 900;
const LOOK_S_MAX: u32 = 120;
/// Beyond its look and its time, which it sleeps.
const WHATIF_MORE: Duration = Duration::from_secs(120);
const CHECK_MAX: Duration = Duration::from_secs(60);
const COMPARE_MAX: Duration = Duration::from_secs(900);
const THREADS_MAX: usize = 64;
const NAMES_MAX: usize = 24;
const NAME_BYTES_MAX: usize = 64;
const SPEC_BYTES_MAX: usize = 16 << 10;

/// The page's words.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Wanted {
    /// Predictions of the running jobs, and how right they were.
    Whatif { for_s: u32, look_s: u32, policies: Vec<String> },
    /// Earlier predictions whose time has passed.
    Check {},
    /// Strategies on the workload of this name, or else on the trace.
    Compare {
        strategies: Vec<String>,
        workload: Option<String>,
        file: Option<String>,
        nodes: u32,
        count: u32,
        seeds: u32,
        load: Option<f64>,
    },
}

/// A run: the words of `cosched sim`, in the directory of its upload.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) kind: &'static str,
    pub(super) title: String,
    pub(super) words: Vec<String>,
    pub(super) limit: Duration,
    /// A file name and its bytes.
    pub(super) upload: Option<(String, Vec<u8>)>,
}

impl Task {
    /// Reads a request; an error says what is wrong with it.
    pub(super) fn read(body: &[u8]) -> Result<Task, String> {
        let end = body.iter().take(SPEC_BYTES_MAX).position(|byte| *byte == b'\n').unwrap_or(body.len());
        let (spec, rest) = body.split_at(end);
        if spec.len() > SPEC_BYTES_MAX {
            return Err("the description is too long".to_owned());
        }
        let rest = rest.get(1..).unwrap_or_default();
        match serde_json::from_slice(spec).map_err(|e| e.to_string())? {
            Wanted::Whatif { for_s, look_s, policies } => whatif(for_s, look_s, &policies),
            Wanted::Check {} => Ok(Task {
                kind: "check",
                title: "Earlier predictions".to_owned(),
                words: words("--json sim whatif --check --html ../report.html"),
                limit: CHECK_MAX,
                upload: None,
            }),
            Wanted::Compare { strategies, workload, file, nodes, count, seeds, load } => {
                let numbers = [("nodes", nodes, 100_000), ("jobs", count, 100_000), ("seeds", seeds, 100)];
                let [nodes, count, seeds] = numbers.map(|(what, number, max)| within(what, number, 1..=max));
                let (jobs, upload) = source(workload, file, rest)?;
                let mut words = words("sim compare --quiet --html ../report.html");
                // The other half is for the jobs of this machine.
                let threads = std::thread::available_parallelism().map_or(1, NonZero::get).div_ceil(2);
                words.push(format!("--threads={}", threads.min(THREADS_MAX)));
                words.push(format!("--strategies={}", names("strategies", &strategies)?));
                words.push(format!("--jobs={jobs}"));
                words.extend([
                    format!("--nodes={}", nodes?),
                    format!("--count={}", count?),
                    format!("--seeds={}", seeds?),
                ]);
                if let Some(load) = load {
                    words.push(format!("--load={load}"));
                }
                let title = format!("{} on {jobs}", strategies.join(", "));
                Ok(Task { kind: "compare", title, words, limit: COMPARE_MAX, upload })
            }
        }
    }
}

fn whatif(for_s: u32, look_s: u32, policies: &[String]) -> Result<Task, String> {
    let (time, look) =
        (within("seconds", for_s, 1..=FOR_S_MAX)?, within("seconds of the look", look_s, 1..=LOOK_S_MAX)?);
    let mut words = words("--json sim whatif --stay --quiet --html ../report.html");
    words.push(format!("--policies={}", names("policies", policies)?));
    words.extend([format!("--for={time}s"), format!("--look={look}s")]);
    Ok(Task {
        kind: "whatif",
        title: format!("What if: {}", policies.join(", ")),
        words,
        limit: Duration::from_secs((time + look).into()) + WHATIF_MORE,
        upload: None,
    })
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn within(what: &str, number: u32, range: std::ops::RangeInclusive<u32>) -> Result<u32, String> {
    let (min, max) = (range.start(), range.end());
    if range.contains(&number) { Ok(number) } else { Err(format!("{what}: {number} is not from {min} to {max}")) }
}

/// Names of policies or strategies: the command decides which there are.
fn names(what: &str, all: &[String]) -> Result<String, String> {
    let is_name = |name: &String| {
        !name.is_empty()
            && name.len() <= NAME_BYTES_MAX
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-._".contains(&b))
    };
    match all {
        [] => Err(format!("no {what} are named")),
        _ if all.len() > NAMES_MAX => Err(format!("more than {NAMES_MAX} {what}")),
        _ if !all.iter().all(is_name) => Err(format!("{what} have names of letters, digits, +, - and .")),
        _ => Ok(all.join(",")),
    }
}

type Upload = Option<(String, Vec<u8>)>;

/// The name of the jobs for the command, and the trace.
fn source(workload: Option<String>, file: Option<String>, bytes: &[u8]) -> Result<(String, Upload), String> {
    match (workload, file) {
        (Some(name), None) if matches!(name.as_bytes(), [b'W', b'L', b'1'..=b'8']) => Ok((name, None)),
        (None, Some(file)) if !bytes.is_empty() => {
            let file = file_name(&file);
            Ok((file.clone(), Some((file, bytes.to_vec()))))
        }
        (None, Some(file)) => Err(format!("{file:?} is empty")),
        _ => Err("give a workload from WL1 to WL8, or a trace".to_owned()),
    }
}

/// A name that can be nothing but a file in the present directory.
fn file_name(text: &str) -> String {
    let kept: String =
        text.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(NAME_BYTES_MAX).collect();
    let kept = kept.trim_start_matches(['.', '-']);
    if kept.contains('.') { kept.to_owned() } else { format!("{kept}.trace") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_becomes_words_of_the_command() {
        let task =
            Task::read(br#"{"kind":"whatif","for_s":60,"look_s":10,"policies":["gang-soft","local+spin-block"]}"#)
                .unwrap();
        assert_eq!(
            task.words.join(" "),
            "--json sim whatif --stay --quiet --html ../report.html --policies=gang-soft,local+spin-block --for=60s --look=10s"
        );
        let body = b"{\"kind\":\"compare\",\"strategies\":[\"GS\"],\"file\":\"../-a b.swf\",\"nodes\":4,\"count\":9,\"seeds\":2,\"load\":0.5}\n1 2\n3";
        let task = Task::read(body).unwrap();
        assert_eq!(task.upload, Some(("a_b.swf".replace('_', ""), b"1 2\n3".to_vec())));
        assert!(
            task.words.join(" ").ends_with("--strategies=GS --jobs=ab.swf --nodes=4 --count=9 --seeds=2 --load=0.5"),
            "{task:?}"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        let compare = |change: &str| {
            let base = r#""kind":"compare","strategies":["GS"],"nodes":4,"count":9,"seeds":2"#;
            Task::read(format!("{{{base},{change}}}\n").as_bytes()).unwrap_err()
        };
        assert!(compare(r#""workload":"WL9""#).contains("WL1"));
        assert!(compare(r#""workload":"/etc/passwd""#).contains("WL1"));
        assert!(compare(r#""file":"x""#).contains("empty"));
        assert!(compare(r#""file":"x","workload":"WL1""#).contains("or a trace"));
        assert!(compare(r#""workload":"WL1","html":"/etc/x""#).contains("unknown field"));
        for (body, why) in [
            (r#"{"kind":"whatif","for_s":0,"look_s":1,"policies":["auto"]}"#, "seconds: 0"),
            (r#"{"kind":"whatif","for_s":1,"look_s":9999,"policies":["auto"]}"#, "look"),
            (r#"{"kind":"whatif","for_s":1,"look_s":1,"policies":[]}"#, "no policies"),
            (r#"{"kind":"whatif","for_s":1,"look_s":1,"policies":["a,b"]}"#, "letters"),
            (r#"{"kind":"whatif","for_s":1,"look_s":1,"policies":["auto"],"x":1}"#, "unknown field"),
            (r#"{"kind":"rm"}"#, "unknown variant"),
            ("", "EOF"),
        ] {
            let found = Task::read(body.as_bytes()).unwrap_err();
            assert!(found.contains(why), "{body}: {found}");
        }
        for (name, file) in
            [("/etc/passwd", "etcpasswd.trace"), ("...", ".trace"), ("-x", "x.trace"), ("WL3", "WL3.trace")]
        {
            assert_eq!(file_name(name), file);
        }
    }
}
