//! The parser of programs.

use super::code::MESSAGE_BYTES;
use super::expand::PASSES_MAX;
use super::{Pattern, Peer, Program, ProgramError, Statement, Who};
use std::str::FromStr;

/// The maximum nesting depth of statements: no program written by hand needs more, and more would exhaust the stack.
const DEPTH_MAX: usize = 64;

/// A word of the text and its position. Words end at blanks; braces, line ends and `;` are words, too.
#[derive(Clone, Copy, Debug)]
struct Word<'a> {
    text: &'a str,
    line: usize,
    column: usize,
}

const LINE_END: &str = "\n";

fn words(text: &str) -> Vec<Word<'_>> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or("");
        let (mut rest, mut column) = (code, 1);
        while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
            column += rest[..start].chars().count();
            rest = &rest[start..];
            let single = rest.starts_with(['{', '}', ';']);
            let ends = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | ';');
            let len = if single { 1 } else { rest.find(ends).unwrap_or(rest.len()) };
            let text = if rest.starts_with(';') { LINE_END } else { &rest[..len] };
            found.push(Word { text, line: index + 1, column });
            column += rest[..len].chars().count();
            rest = &rest[len..];
        }
        column += rest.chars().count();
        found.push(Word { text: LINE_END, line: index + 1, column });
    }
    found
}

struct Parser<'a> {
    words: Vec<Word<'a>>,
    next: usize,
    depth: usize,
}

impl FromStr for Program {
    type Err = ProgramError;

    /// Reads a program. Errors name line, column, and what was expected there.
    fn from_str(text: &str) -> Result<Program, ProgramError> {
        let mut parser = Parser { words: words(text), next: 0, depth: 0 };
        let body = parser.body(false)?;
        if body.is_empty() {
            let error = parser.error("the program is empty", "it must do something");
            return Err(ProgramError { hint: "for example: compute 1ms".into(), ..error });
        }
        Ok(Program { body })
    }
}

const STATEMENTS: &str = "statements: compute, hold, io, send, recv, barrier, alltoall, bcast, reduce, exchange, ring, \
                          random-pairs, repeat, on";

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }

    /// The next word, unless it ends the statement.
    fn argument(&mut self) -> Option<Word<'a>> {
        let word = self.peek().filter(|word| !matches!(word.text, LINE_END | "{" | "}"))?;
        self.next += 1;
        Some(word)
    }

    /// An error at the next word.
    fn error(&self, what: impl Into<String>, why: impl Into<String>) -> ProgramError {
        let last = self.words.last().map(|word| (word.line, word.column));
        let at = self.peek().map(|word| (word.line, word.column)).or(last);
        ProgramError { at, what: what.into(), why: why.into(), hint: STATEMENTS.into() }
    }

    fn found(&self) -> String {
        match self.peek().map(|word| word.text) {
            None => "the text ends".into(),
            Some(LINE_END) => "the line ends".into(),
            Some(text) => format!("found '{text}'"),
        }
    }

    fn expected(&self, what: &str, hint: &str) -> ProgramError {
        ProgramError { hint: hint.into(), ..self.error(self.found(), format!("expected {what}")) }
    }

    /// Like [`Parser::expected`], at the word that was just taken.
    fn instead(&mut self, what: &str, hint: &str) -> ProgramError {
        self.next -= 1;
        self.expected(what, hint)
    }

    fn body(&mut self, inside: bool) -> Result<Vec<Statement>, ProgramError> {
        let mut body = Vec::new();
        loop {
            match self.peek().map(|word| word.text) {
                Some(LINE_END) => self.next += 1,
                Some("}") if inside => {
                    self.next += 1;
                    return Ok(body);
                }
                None if inside => return Err(self.expected("'}'", "every { needs its }")),
                None => return Ok(body),
                Some(_) => {
                    body.push(self.statement()?);
                    self.statement_end()?;
                }
            }
        }
    }

    fn statement_end(&mut self) -> Result<(), ProgramError> {
        let ended = self.next > 0 && self.words[self.next - 1].text == "}";
        match self.peek().map(|word| word.text) {
            Some(LINE_END | "}") | None => Ok(()),
            _ if ended => Ok(()),
            _ => Err(self.expected("the end of the line", "one statement a line, or ';' between them")),
        }
    }

    fn statement(&mut self) -> Result<Statement, ProgramError> {
        let Some(word) = self.argument() else { return Err(self.expected("a statement", STATEMENTS)) };
        Ok(match word.text {
            "compute" | "io" => {
                let ns = self.duration()?;
                let skew = self.word_if("skew");
                if word.text == "io" { Statement::Io { ns, skew } } else { Statement::Compute { ns, skew } }
            }
            "hold" => Statement::Hold { ns: self.duration()? },
            "send" => Statement::Send { to: self.peer()?, bytes: self.size()? },
            "recv" => Statement::Receive { from: self.peer()? },
            "barrier" => Statement::Pattern(Pattern::Barrier),
            "alltoall" => Statement::Pattern(Pattern::AllToAll(self.size()?)),
            "bcast" => Statement::Pattern(Pattern::Broadcast { root: self.root()?, bytes: self.size()? }),
            "reduce" => Statement::Pattern(Pattern::Reduce { root: self.root()?, bytes: self.size()? }),
            "exchange" => Statement::Pattern(Pattern::Exchange { dimensions: self.dimensions()?, bytes: self.size()? }),
            "ring" => Statement::Pattern(Pattern::Ring(self.size()?)),
            "random-pairs" => Statement::Pattern(Pattern::RandomPairs(self.size()?)),
            "repeat" => Statement::Repeat { times: self.times()?, body: self.block()? },
            "on" => Statement::On { who: self.who()?, body: self.block()? },
            _ => return Err(self.instead("a statement", STATEMENTS)),
        })
    }

    fn word_if(&mut self, text: &str) -> bool {
        let is = self.peek().is_some_and(|word| word.text == text);
        self.next += usize::from(is);
        is
    }

    fn block(&mut self) -> Result<Vec<Statement>, ProgramError> {
        if !self.word_if("{") {
            return Err(self.expected("'{'", "for example: repeat 10 { compute 1ms }"));
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let error = self.error("too many blocks in blocks", format!("at most {DEPTH_MAX} are read"));
            return Err(ProgramError { hint: "repeat the product of the numbers".into(), ..error });
        }
        let body = self.body(true)?;
        self.depth -= 1;
        if body.is_empty() {
            self.next -= 1;
            return Err(self.expected("a statement in the block", STATEMENTS));
        }
        Ok(body)
    }

    fn duration(&mut self) -> Result<u64, ProgramError> {
        const HINT: &str = "a number and ns, us, ms or s";
        let Some(word) = self.argument() else { return Err(self.expected("a duration such as 310us", HINT)) };
        let ns = cosched_units::duration(word.text).ok().and_then(|time| u64::try_from(time.as_nanos()).ok());
        ns.filter(|ns| *ns <= MEASURE_MAX).ok_or_else(|| self.instead("a duration such as 310us", HINT))
    }

    /// A size, or that of the paper's messages if none is given.
    fn size(&mut self) -> Result<u64, ProgramError> {
        const HINT: &str = "a number and B, kB, MB, GB, KiB, MiB or GiB";
        let Some(word) = self.argument() else { return Ok(MESSAGE_BYTES) };
        let bytes = cosched_units::size_bytes(word.text).ok().filter(|bytes| *bytes <= MEASURE_MAX);
        bytes.ok_or_else(|| self.instead("a size such as 4096B or 64KiB", HINT))
    }

    fn peer(&mut self) -> Result<Peer, ProgramError> {
        const HINT: &str = "right and left are neighbours, +2 is two further round the ring, 0 is task 0";
        let Some(word) = self.argument() else { return Err(self.expected("a task", HINT)) };
        let offset = |sign: i64, digits: &str| Some(Peer::Offset(sign * i64::from(number::<u32>(digits)?)));
        let peer = match (word.text, word.text.strip_prefix('+'), word.text.strip_prefix('-')) {
            ("right", ..) => Some(Peer::Offset(1)),
            ("left", ..) => Some(Peer::Offset(-1)),
            (_, Some(digits), _) => offset(1, digits),
            (_, _, Some(digits)) => offset(-1, digits),
            (text, ..) => number(text).map(Peer::Task),
        };
        peer.ok_or_else(|| self.instead("a task: right, left, +2, -2 or 0", HINT))
    }

    fn root(&mut self) -> Result<u32, ProgramError> {
        const HINT: &str = "for example: bcast root=0 64KiB";
        let Some(word) = self.argument() else { return Err(self.expected("root=TASK", HINT)) };
        word.text.strip_prefix("root=").and_then(number).ok_or_else(|| self.instead("root=TASK", HINT))
    }

    fn dimensions(&mut self) -> Result<u32, ProgramError> {
        const HINT: &str = "for example: exchange 2d 4096B";
        match self.argument().map(|word| word.text) {
            Some("1d") => Ok(1),
            Some("2d") => Ok(2),
            Some("3d") => Ok(3),
            Some(_) => Err(self.instead("1d, 2d or 3d", HINT)),
            None => Err(self.expected("1d, 2d or 3d", HINT)),
        }
    }

    fn times(&mut self) -> Result<u64, ProgramError> {
        const HINT: &str = "for example: repeat 10 { compute 1ms }";
        let Some(word) = self.argument() else { return Err(self.expected("how often", HINT)) };
        let times = number(word.text).filter(|times| (1..=PASSES_MAX).contains(times));
        times.ok_or_else(|| self.instead("how often: 1 to 10^12", HINT))
    }

    fn who(&mut self) -> Result<Who, ProgramError> {
        const HINT: &str = "for example: on 0 { send 1 }";
        let Some(word) = self.argument() else { return Err(self.expected("tasks", HINT)) };
        let range = |text: &str| match text.split_once("..") {
            Some((first, last)) => Some((number(first)?, number(last)?)).filter(|(first, last)| first <= last),
            None => number(text).map(|task| (task, task)),
        };
        match word.text {
            "even" => Ok(Who::Even),
            "odd" => Ok(Who::Odd),
            "last" => Ok(Who::Last),
            text => match range(text) {
                Some((first, last)) => Ok(Who::Range(first, last)),
                None => Err(self.instead("tasks: 0, 1..3, even, odd or last", HINT)),
            },
        }
    }
}

fn number<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl Program {
    /// Whether its text can be parsed again: values computed from a recording may exceed the limits of the text form.
    pub fn can_be_read(&self) -> bool {
        fn all(body: &[Statement], depth: usize) -> bool {
            body.iter().all(|statement| match statement {
                Statement::Compute { ns: measure, .. }
                | Statement::Hold { ns: measure }
                | Statement::Io { ns: measure, .. }
                | Statement::Send { bytes: measure, .. } => is_measure(*measure),
                Statement::Receive { .. } => true,
                Statement::Pattern(pattern) => is_measure(pattern.bytes()),
                Statement::Repeat { times, body } => (1..=PASSES_MAX).contains(times) && block(body, depth),
                Statement::On { body, .. } => block(body, depth),
            })
        }
        fn block(body: &[Statement], depth: usize) -> bool {
            depth < DEPTH_MAX && all(body, depth + 1)
        }
        all(&self.body, 0)
    }
}

fn is_measure(value: u64) -> bool {
    value <= MEASURE_MAX
}

/// The largest duration (ns) or size (bytes): 10^15, eleven days or a petabyte.
const MEASURE_MAX: u64 = 1_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> Vec<Statement> {
        text.parse::<Program>().unwrap().body
    }

    #[test]
    fn statements_are_read() {
        let read = body("compute 310us skew # comment\nio 1.5ms; send right\n\nrecv -2\nbcast root=3 64KiB");
        let expected = [
            Statement::Compute { ns: 310_000, skew: true },
            Statement::Io { ns: 1_500_000, skew: false },
            Statement::Send { to: Peer::Offset(1), bytes: 4096 },
            Statement::Receive { from: Peer::Offset(-2) },
            Statement::Pattern(Pattern::Broadcast { root: 3, bytes: 65_536 }),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn blocks_may_stand_on_one_line() {
        let inner = Statement::On { who: Who::Range(0, 2), body: vec![Statement::Pattern(Pattern::Ring(10))] };
        let io = Statement::Io { ns: 1, skew: false };
        assert_eq!(
            body("repeat 3 { on 0..2 { ring 10B }; io 1ns }"),
            [Statement::Repeat { times: 3, body: vec![inner, io] }]
        );
    }

    #[test]
    fn errors_name_the_place_and_what_was_expected() {
        let cases = [
            ("compute", (1, 8), "expected a duration"),
            ("compute 3", (1, 9), "expected a duration"),
            ("io 1ms\n  compute skew", (2, 11), "expected a duration"),
            ("send up", (1, 6), "expected a task"),
            ("send 1 2B 3", (1, 11), "expected the end of the line"),
            ("alltoall big", (1, 10), "expected a size"),
            ("ring 4096", (1, 6), "expected a size"),
            ("repeat 0 { io 1s }", (1, 8), "expected how often"),
            ("repeat 2\n", (1, 9), "expected '{'"),
            ("repeat 2 {\n io 1s", (2, 7), "expected '}'"),
            ("repeat 2 { }", (1, 12), "expected a statement"),
            ("}", (1, 1), "expected a statement"),
            ("exchange 4d", (1, 10), "expected 1d, 2d or 3d"),
            ("bcast 0", (1, 7), "expected root=TASK"),
            ("on 3..1 { io 1s }", (1, 4), "expected tasks"),
            ("äöü 1", (1, 1), "expected a statement"),
            ("compute 1ms äöü", (1, 13), "expected the end of the line"),
            ("compute 99999999999999999999s", (1, 9), "expected a duration"),
            ("# nothing", (1, 1), "it must do something"),
            ("", (0, 0), "it must do something"),
        ];
        for (text, at, why) in cases {
            let error = text.parse::<Program>().unwrap_err();
            assert!(error.why.contains(why), "{text}: {error}");
            assert_eq!(error.at.unwrap_or((0, 0)), at, "{text}: {error}");
        }
        assert!("repeat 1 {".repeat(100_000).parse::<Program>().unwrap_err().what.contains("blocks in blocks"));
    }
}
