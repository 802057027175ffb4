//! Standard output is for data, standard error for messages; and the exit codes.

use cosched_api::{ClientError, ErrorCode};
use cosched_sim::SimError;
use cosched_study::Reason;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// No daemon is reachable.
pub(crate) const EXIT_NO_DAEMON: u8 = 3;
/// There is no such job.
pub(crate) const EXIT_NO_JOB: u8 = 4;
/// Permission denied.
pub(crate) const EXIT_FORBIDDEN: u8 = 5;
/// Refused in the present state, or invalid.
pub(crate) const EXIT_REFUSED: u8 = 6;

/// Between the lines of a reason: they stand below each other.
const NEXT_LINE: &str = "\n       ";

/// Why a command ends without success: its exit code and a message, if any.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    /// A failure that has no exit code of its own.
    pub(crate) fn other(message: impl Into<String>) -> Failure {
        Failure { code: 1, message: message.into() }
    }

    /// The message has been printed already.
    pub(crate) fn silent(code: u8) -> Failure {
        Failure { code, message: String::new() }
    }

    /// Something that was left out when this program was compiled.
    #[cfg(not(all(feature = "parquet", feature = "top")))]
    pub(crate) fn not_built(what: &str) -> Failure {
        let why = "it was compiled with no more than `make demo` needs";
        Failure::explained(1, &format!("{what} is not in this cosched"), why, "compile all of it: make build")
    }

    /// What, why and a hint, in the common form of all messages.
    pub(crate) fn explained(code: u8, what: &str, why: &str, hint: &str) -> Failure {
        let [what, why, hint] = [what, why, hint].map(plain);
        Failure { code, message: format!("{what}\n  why: {why}\n  hint: {hint}") }
    }

    /// The same with a reason of several lines, such as a parser's.
    pub(crate) fn explained_in_lines(code: u8, what: &str, why: &str, hint: &str) -> Failure {
        let [what, hint] = [what, hint].map(plain);
        let why = why.trim_end().lines().map(plain).collect::<Vec<_>>().join(NEXT_LINE);
        Failure { code, message: format!("{what}\n  why: {why}\n  hint: {hint}") }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let code = match &error {
            ClientError::Unreachable { .. } | ClientError::NotStarted { .. } | ClientError::NoPlace { .. } => {
                EXIT_NO_DAEMON
            }
            ClientError::Refused(body) => match body.code {
                ErrorCode::NotFound => EXIT_NO_JOB,
                ErrorCode::Forbidden => EXIT_FORBIDDEN,
                ErrorCode::Invalid | ErrorCode::Conflict | ErrorCode::Limit | ErrorCode::Unsupported => EXIT_REFUSED,
                ErrorCode::Internal => 1,
            },
            ClientError::Protocol(_) | ClientError::Version { .. } => 1,
        };
        match &error {
            ClientError::Refused(body) => Failure::explained(code, &body.what, &body.why, &body.hint),
            _ => Failure { code, message: error.to_string() },
        }
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        let code = if matches!(error, SimError::Params(_)) { 2 } else { 1 };
        Failure { code, message: error.to_string() }
    }
}

impl From<cosched_study::Error> for Failure {
    fn from(error: cosched_study::Error) -> Failure {
        let (code, Reason { what, why, hint }) = match error {
            cosched_study::Error::Subject(reason) => (1, reason),
            cosched_study::Error::Document(reason) => (EXIT_REFUSED, reason),
            cosched_study::Error::Simulation(error) => return error.into(),
        };
        Failure::explained(code, &what, &why, &hint)
    }
}

/// Text chosen by another user (a name, a command, a path), made safe for display: it cannot move the cursor of a terminal, change
/// colours, start a new line, or change the direction of the text.
pub(crate) fn plain(text: &str) -> String {
    escaped(text, is_control)
}

/// Makes a whole output safe for a terminal: only line ends and colours of our own remain.
pub(crate) fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (place, part) in text.split('\x1b').enumerate() {
        let colours = |body: &str| body.chars().all(|c| c.is_ascii_digit() || c == ';');
        let is_colour =
            part.strip_prefix('[').and_then(|rest| rest.split_once('m')).is_some_and(|(body, _)| colours(body));
        safe.push_str(match place {
            0 => "",
            _ if is_colour => "\x1b",
            _ => "\\u{1b}",
        });
        safe.push_str(&escaped(part, |c| is_control(c) && c != '\n' && c != '\t'));
    }
    safe
}

/// A program's output, made safe for a terminal of another user than the program's.
pub(crate) fn harmless_bytes(bytes: &[u8]) -> String {
    escaped(&String::from_utf8_lossy(bytes), |c| is_control(c) && c != '\n' && c != '\t')
}

/// Control characters, and invisible characters that change how the text is displayed.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    safe
}

/// Writes data. A closed pipe (`cosched ps | head -1`) ends the command quietly.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() { write(harmless(text).as_bytes()) } else { write(text.as_bytes()) }
}

/// Writes bytes as they are; otherwise as [`print()`].
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    write_to(&mut io::stdout().lock(), bytes)
}

fn write_to(output: &mut impl Write, bytes: &[u8]) -> Result<(), Failure> {
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::silent(0)),
        Err(e) => Err(Failure::other(format!("cannot write to standard output: {e}"))),
    }
}

/// One value as one line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map_err(|e| Failure::other(format!("cannot write JSON: {e}")))?;
    Ok(text + "\n")
}

/// Writes one value as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&json_line(value)?)
}

/// Prints a message on standard error; it is lost if that is closed.
pub(crate) fn say(message: &str) {
    let _ = writeln!(io::stderr(), "cosched: {}", harmless(&with_documents(message)));
}

/// Prints text on standard error; it is lost if that is closed.
pub(crate) fn print_aside(text: &str) {
    let _ = io::stderr().write_all(harmless(text).as_bytes());
}

/// Whether failures are reported as JSON, too (`--json`).
pub(crate) static JSON_ERRORS: AtomicBool = AtomicBool::new(false);

/// Prints the failure, unless that was done already.
pub(crate) fn tell(failure: &Failure) {
    if failure.message.is_empty() {
    } else if JSON_ERRORS.load(Ordering::Relaxed) {
        let _ = writeln!(io::stderr(), "{}", as_json(failure));
    } else {
        say(&failure.message);
    }
}

/// `{"error": {"code": …, "what": …, "why": …, "hint": …}}`, if the message has these parts; otherwise all of it is `what`.
fn as_json(failure: &Failure) -> serde_json::Value {
    let (what, rest) = failure.message.split_once("\n  why: ").unwrap_or((&failure.message, ""));
    let (why, hint) = rest.split_once("\n  hint: ").unwrap_or((rest, ""));
    let mut error = serde_json::json!({ "code": failure.code, "what": what });
    for (name, text) in [("why", why), ("hint", hint)].into_iter().filter(|(_, text)| !text.is_empty()) {
        error[name] = text.replace(NEXT_LINE, "\\n").into();
    }
    serde_json::json!({ "error": error })
}

/// Where an installation keeps the documents; `None` in a build tree, where the paths in messages are right as they are.
fn documents() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let documents = executable.parent()?.parent()?.join("share/doc/cosched");
    documents.join("docs").is_dir().then_some(documents)
}

/// The text with the paths at which the documents that it names are installed.
pub(crate) fn with_documents(text: &str) -> String {
    with_paths(text, documents().as_deref())
}

/// Replaces each installed document that a message names by its full path; a user's own file of that name is left alone.
fn with_paths(message: &str, documents: Option<&Path>) -> String {
    let mut parts = message.split("docs/");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || "/._-".contains(c));
        let name = part[..part.find(is_end).unwrap_or(part.len())].trim_end_matches('.');
        let installed = documents.map(|at| at.join("docs").join(name)).filter(|path| path.is_file());
        match installed.filter(|_| !text.ends_with('/') && !Path::new("docs").join(name).exists()) {
            Some(path) => text += &format!("{}{}", path.display(), &part[name.len()..]),
            None => text += &format!("docs/{part}"),
        }
    }
    text
}

/// Colour only on terminals, and not when `NO_COLOR` is set to a non-empty value.
pub(crate) fn use_colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The terminal's width in columns; `None` when standard output is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// The terminal's height in lines, as [`terminal_width`].
pub(crate) fn terminal_height() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_row > 0).then_some(size.ws_row.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_as_json_has_the_parts_of_its_message() {
        let failure = Failure::explained(4, "no job `x`", "the daemon knows none", "`cosched ps --all` lists the jobs");
        let text = as_json(&failure).to_string();
        assert!(text.contains(r#""code":4"#) && text.contains(r#""what":"no job `x`""#), "{text}");
        assert!(text.contains(r#""why":"the daemon knows none""#) && text.contains(r#""hint":"`cosched ps"#), "{text}");
        assert_eq!(as_json(&Failure::other("oh")).to_string(), r#"{"error":{"code":1,"what":"oh"}}"#);
    }

    #[test]
    fn a_reason_of_several_lines_keeps_them() {
        let failure = Failure::explained_in_lines(1, "w", "error\n  |\n2 | a\x1b[2J\n", "h");
        assert_eq!(failure.message, "w\n  why: error\n         |\n       2 | a\\u{1b}[2J\n  hint: h");
        let json = as_json(&failure);
        assert_eq!(json["error"]["why"], plain("error\n  |\n2 | a\x1b[2J"));
        assert_eq!(json["error"]["hint"], "h");
    }

    #[test]
    fn only_a_closed_pipe_is_quiet() {
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        let closed = write_to(&mut writer, b"x").unwrap_err();
        assert_eq!((closed.code, closed.message.as_str()), (0, ""));
        let full = write_to(&mut std::fs::File::create("/dev/full").unwrap(), b"x").unwrap_err();
        assert!(full.code == 1 && full.message.starts_with("cannot write to standard output: "), "{full:?}");
    }

    #[test]
    fn documents_are_named_by_where_they_are() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("docs")).unwrap();
        std::fs::write(dir.path().join("docs/bench.md"), "").unwrap();
        let at = Some(dir.path());
        let whole = dir.path().join("docs/bench.md").display().to_string();
        assert_eq!(with_paths("see docs/bench.md, or docs/bench.md.", at), format!("see {whole}, or {whole}."));
        for same in ["in /x/docs/bench.md", "cannot read docs/mine.csv", "docs/", "nothing"] {
            assert_eq!(with_paths(same, at), same);
        }
        assert_eq!(with_paths("see docs/bench.md", None), "see docs/bench.md");
    }

    #[test]
    fn nothing_of_another_s_text_steers_a_terminal() {
        assert_eq!(plain("a\x1b[2Jb\nc\td\r\u{9b}31m\u{202e}é…"), "a\\u{1b}[2Jb\\nc\\td\\r\\u{9b}31m\\u{202e}é…");
        assert_eq!(plain(&plain("\x1b")), plain("\x1b"), "twice is as once");
        assert_eq!(harmless("\x1b[32mok\x1b[0m\n\t"), "\x1b[32mok\x1b[0m\n\t");
        assert_eq!(harmless("\x1b]0;title\x07\x1b[2J\x1b[1;"), "\\u{1b}]0;title\\u{7}\\u{1b}[2J\\u{1b}[1;");
        assert_eq!(harmless_bytes(b"\x1b[31mred\xff\n"), "\\u{1b}[31mred\u{fffd}\n");
        let refused = ClientError::Refused(cosched_api::ErrorBody {
            code: ErrorCode::Conflict,
            what: "no\x1b[2J job\n7 forged".into(),
            why: "w".into(),
            hint: "h".into(),
        });
        assert_eq!(Failure::from(refused).message, "no\\u{1b}[2J job\\n7 forged\n  why: w\n  hint: h");
    }
}
