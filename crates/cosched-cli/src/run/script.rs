//! `#COSCHED` lines: options in the leading comments of a script, like those of `#SBATCH`. The command line takes
//! precedence.

use super::{EXIT_FAILED, Run, find_program};
use crate::args::{self, Cli, Commands};
use crate::out::Failure;
use clap::FromArgMatches;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

const MARK: &str = "#COSCHED";

/// The number of bytes in which leading comments are looked for.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// An option line: its number in the file, from 1, and its words.
type Line = (usize, Result<Vec<String>, String>);

/// The command line with the options of the script that it runs; `None` if there are none.
///
/// # Errors
/// One of the lines is not a valid option; the message names file and line.
pub(crate) fn with_options(words: &[OsString], run: &Run) -> Result<Option<Cli>, Failure> {
    // A missing program is reported later.
    let Ok(path) = find_program(&run.command[0], std::env::var_os("PATH")) else { return Ok(None) };
    let lines = lines(&head(&path));
    let mut options: Vec<OsString> = Vec::new();
    for (number, line) in &lines {
        let of_line = line.clone().and_then(|words| check(&words).map(|()| words));
        let of_line = of_line.map_err(|why| mistaken(&path, *number, &why))?;
        options.extend(of_line.into_iter().map(OsString::from));
    }
    if options.is_empty() {
        return Ok(None);
    }
    let Some(at) = args::subcommand_at(words) else { return Ok(None) };
    let all: Vec<OsString> =
        words[..=at].iter().cloned().chain(options).chain(words[at + 1..].iter().cloned()).collect();
    let parsed = overriding().try_get_matches_from(all).and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    parsed.map(Some).map_err(|e| {
        let why = first_line(&e);
        Failure::explained(
            EXIT_FAILED,
            &format!("{}: its {MARK} lines conflict with the command line", path.display()),
            &why,
            "leave out one of the two",
        )
    })
}

/// Each option may occur twice, and the last one counts.
fn overriding() -> clap::Command {
    args::command().mut_subcommand("run", |run| run.args_override_self(true))
}

/// Checks that a line contains only options of `cosched run`.
fn check(words: &[String]) -> Result<(), String> {
    let all = ["cosched", "run"].into_iter().chain(words.iter().map(String::as_str)).chain(["--", "command"]);
    let parsed =
        args::command().try_get_matches_from(all).and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    match parsed {
        Ok(Cli { command: Commands::Run(run), .. }) if run.command.len() == 1 => Ok(()),
        Ok(_) => Err(format!("`{}` contains more than options", words.join(" "))),
        Err(e) if !e.use_stderr() => Err("help is for the command line".to_owned()),
        Err(e) => Err(first_line(&e)),
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn mistaken(path: &Path, number: usize, why: &str) -> Failure {
    let what = format!("{}:{number}: a {MARK} line cannot be used", path.display());
    Failure::explained(EXIT_FAILED, &what, why, "write options of `cosched run`, as in `#COSCHED --time 2h --cpus 2`")
}

/// The beginning of a script; empty for any other file.
fn head(path: &Path) -> String {
    let (mut start, mut bytes) = ([0; 2], Vec::new());
    let mut read = || -> std::io::Result<()> {
        if path.metadata()?.is_file() {
            let mut file = File::open(path)?;
            file.read_exact(&mut start)?;
            if start == *b"#!" {
                bytes.extend_from_slice(&start);
                file.take(HEAD_BYTES_MAX).read_to_end(&mut bytes)?;
            }
        }
        Ok(())
    };
    // A file that cannot be read has no options.
    let _ = read();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn lines(text: &str) -> Vec<Line> {
    let comments = text.lines().enumerate().take_while(|(_, line)| line.starts_with('#') || line.trim().is_empty());
    comments
        .filter_map(|(at, line)| {
            let rest = line.strip_prefix(MARK)?;
            (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| (at + 1, split(rest)))
        })
        .collect()
}

/// Words as a shell splits them: blanks, quotes, backslashes; a `#` after a blank begins a comment.
fn split(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote): (Vec<String>, Option<String>, Option<char>) = (Vec::new(), None, None);
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match (c, quote) {
            (_, Some(mark)) if c == mark => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(rest.next()),
            ('#', None) if word.is_none() => break,
            (_, None) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    match quote {
        Some(mark) => Err(format!("a quote ({mark}) is not closed")),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_in_the_leading_comments() {
        let text = "#!/bin/sh\n# a comment\n#COSCHED --time 2h  --name 'a b' # why\n\n#COSCHEDX no\n#COSCHED\necho\n#COSCHED -d\n";
        let words = |words: &[&str]| Ok(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(lines(text), [(3, words(&["--time", "2h", "--name", "a b"])), (6, words(&[]))]);
    }

    #[test]
    fn words_are_split_as_by_a_shell() {
        let of = |text: &str| split(text).map(|words| words.join("|"));
        assert_eq!(of(r#" a\ b "c 'd' \"e\"" '' f#g "#).as_deref(), Ok(r#"a b|c 'd' "e"||f#g"#));
        assert!(of("'a").unwrap_err().contains("not closed"));
    }

    #[test]
    fn what_is_no_option_is_told() {
        let of = |text: &str| check(&split(text).unwrap());
        assert_eq!(of("--time 2h -d"), Ok(()));
        assert!(of("--tiem 2h").unwrap_err().contains("--tiem"));
        assert!(of("--time 2").unwrap_err().contains("--time"));
        assert!(of("./a.out").unwrap_err().contains("more than options"));
        assert!(of("--help").unwrap_err().contains("command line"));
    }
}
