//! Every `cosched` command line in the code blocks of the documentation and in the help texts is one that the command takes.

use super::Cli;
use clap::Parser;
use std::path::Path;

/// Words that stand for something else in a sketch of a command.
const PLACEHOLDERS: [&str; 12] =
    ["JOB", "DIR", "FILE", "NODE", "ID", "NAME", "UNIT", "PATH", "COMMAND", "PART", "TIME", "STRATEGY"];

/// The commands of ours in a line of a shell. Explanations are two blanks away.
fn commands(line: &str) -> Vec<Vec<String>> {
    let line = line.trim().trim_start_matches("$ ");
    let words = shlex::split(line.split("  ").next().unwrap_or_default()).unwrap_or_default();
    let mut found: Vec<Vec<String>> = Vec::new();
    let (mut begins, mut is_ours) = (true, false);
    let mut words = words.into_iter();
    while let Some(mut word) = words.next() {
        let bare = word.trim_end_matches([';', ')']);
        if matches!(bare, "" | "|" | "&&" | "||" | "then" | "do" | "!") {
            (begins, is_ours) = (true, false);
        } else if begins && bare.ends_with("cosched") {
            found.push(vec!["cosched".to_owned()]);
            (begins, is_ours) = (false, true);
        } else if bare.trim_start_matches('2').starts_with(['>', '<']) {
            // The file may be the next word.
            if bare.ends_with(['>', '<']) {
                word = words.next().unwrap_or_default();
            }
        } else {
            begins &= bare.contains('=');
            // A variable of a shell is a job's number.
            let word = bare.split_once('$').map_or(bare.to_owned(), |(before, name)| {
                format!("{before}7{}", name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'))
            });
            found.last_mut().filter(|_| is_ours).into_iter().for_each(|words| words.push(word.clone()));
        }
        if word.ends_with(';') {
            (begins, is_ours) = (true, false);
        }
    }
    let is_sketch = |word: &String| word.contains(['…', '[', '<']) || PLACEHOLDERS.contains(&word.as_str());
    found.retain(|words| !words.iter().any(is_sketch));
    found
}

/// The lines of a shell's code: fenced as such, or indented.
fn code(page: &str) -> Vec<&str> {
    let mut fence = None;
    let mut is_code = |line: &&str| match line.strip_prefix("```") {
        Some(language) => {
            fence = if fence.is_some() { None } else { Some(language.to_owned()) };
            false
        }
        None => fence.as_ref().map_or(line.starts_with("    "), |language| language == "sh"),
    };
    page.lines().filter(|line| is_code(line)).collect()
}

#[test]
fn commands_are_found_in_lines_of_a_shell() {
    let found = |line: &str| commands(line).iter().map(|words| words.join(" ")).collect::<Vec<_>>();
    assert_eq!(found("first=$(cosched run -d -- 'a b')  # c"), ["cosched run -d -- a b"]);
    assert_eq!(found("A=1 cosched ps > out; cosched top   shows"), ["cosched ps", "cosched top"]);
    assert_eq!(found("echo cosched ps | cosched run -- true 2>&1"), ["cosched run -- true"]);
    assert!(found("cosched show JOB").is_empty() && found("make cosched").is_empty());
    assert_eq!(found("cosched run --after $first:ok -- a"), ["cosched run --after 7:ok -- a"]);
    assert_eq!(code("a\n    b\n```sh\nc\n```\n```python\n    d\n```\n"), ["    b", "c"]);
}

#[test]
fn examples_are_valid_command_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.chain([root.join("README.md")]).filter(|path| path.extension().is_some_and(|end| end == "md"));
    let mut examples = Vec::new();
    for path in pages {
        let page = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().display().to_string();
        examples.extend(code(&page).iter().flat_map(|line| commands(line)).map(|words| (name.clone(), words)));
    }
    for command in super::command().get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.lines().filter(|line| line.starts_with("  cosched ")).flat_map(commands).collect::<Vec<_>>();
        examples.extend(lines.into_iter().map(|words| (format!("help of {}", command.get_name()), words)));
    }
    assert!(examples.len() > 150, "{} examples were found", examples.len());
    let mistakes: Vec<String> = examples
        .iter()
        .filter_map(|(place, words)| {
            let error = Cli::try_parse_from(words).err().filter(clap::Error::use_stderr)?;
            Some(format!("{place}: {}: {error}", words.join(" ")))
        })
        .collect();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}
