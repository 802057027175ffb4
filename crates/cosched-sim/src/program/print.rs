//! Prints programs, in the form that [`parse`](super::parse) reads.

use super::{Pattern, Peer, Program, Statement, Who};
use std::fmt;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_body(f, &self.body, 0)
    }
}

fn write_body(f: &mut fmt::Formatter<'_>, body: &[Statement], depth: usize) -> fmt::Result {
    body.iter().try_for_each(|statement| write_statement(f, statement, depth))
}

fn write_statement(f: &mut fmt::Formatter<'_>, statement: &Statement, depth: usize) -> fmt::Result {
    write!(f, "{:1$}", "", depth * 4)?;
    let suffix = |skew: &bool| if *skew { " skew" } else { "" };
    match statement {
        Statement::Hold { ns } => writeln!(f, "hold {}", Duration(*ns)),
        Statement::Compute { ns, skew } => writeln!(f, "compute {}{}", Duration(*ns), suffix(skew)),
        Statement::Io { ns, skew } => writeln!(f, "io {}{}", Duration(*ns), suffix(skew)),
        Statement::Send { to, bytes } => writeln!(f, "send {to} {}", Size(*bytes)),
        Statement::Receive { from } => writeln!(f, "recv {from}"),
        Statement::Pattern(pattern) => writeln!(f, "{pattern}"),
        Statement::Repeat { times, body } => write_block(f, &format!("repeat {times}"), body, depth),
        Statement::On { who, body } => write_block(f, &format!("on {who}"), body, depth),
    }
}

fn write_block(f: &mut fmt::Formatter<'_>, head: &str, body: &[Statement], depth: usize) -> fmt::Result {
    writeln!(f, "{head} {{")?;
    write_body(f, body, depth + 1)?;
    writeln!(f, "{:1$}}}", "", depth * 4)
}

/// A duration in the largest unit that needs no fraction.
struct Duration(u64);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in(f, self.0, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")])
    }
}

struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in(f, self.0, &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")])
    }
}

fn write_in(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let whole = units.iter().find(|(scale, _)| value > 0 && value.is_multiple_of(*scale));
    let (scale, unit) = whole.or(units.last()).copied().unwrap_or((1, ""));
    write!(f, "{}{unit}", value / scale)
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Offset(1) => f.write_str("right"),
            Peer::Offset(-1) => f.write_str("left"),
            Peer::Offset(by) => write!(f, "{by:+}"),
            Peer::Task(task) => write!(f, "{task}"),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Range(first, last) if first == last => write!(f, "{first}"),
            Who::Range(first, last) => write!(f, "{first}..{last}"),
            Who::Even => f.write_str("even"),
            Who::Odd => f.write_str("odd"),
            Who::Last => f.write_str("last"),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Barrier => f.write_str("barrier"),
            Pattern::AllToAll(bytes) => write!(f, "alltoall {}", Size(*bytes)),
            Pattern::Broadcast { root, bytes } => write!(f, "bcast root={root} {}", Size(*bytes)),
            Pattern::Reduce { root, bytes } => write!(f, "reduce root={root} {}", Size(*bytes)),
            Pattern::Exchange { dimensions, bytes } => write!(f, "exchange {dimensions}d {}", Size(*bytes)),
            Pattern::Ring(bytes) => write!(f, "ring {}", Size(*bytes)),
            Pattern::RandomPairs(bytes) => write!(f, "random-pairs {}", Size(*bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn peer() -> impl Strategy<Value = Peer> {
        prop_oneof![(-99_i64..99).prop_map(Peer::Offset), (0..99_u32).prop_map(Peer::Task)]
    }

    fn pattern() -> impl Strategy<Value = Pattern> {
        let bytes = || prop_oneof![0..100_000_u64, (0..99_u64).prop_map(|n| n << 20)];
        prop_oneof![
            Just(Pattern::Barrier),
            bytes().prop_map(Pattern::AllToAll),
            (0..9_u32, bytes()).prop_map(|(root, bytes)| Pattern::Broadcast { root, bytes }),
            (0..9_u32, bytes()).prop_map(|(root, bytes)| Pattern::Reduce { root, bytes }),
            (1..4_u32, bytes()).prop_map(|(dimensions, bytes)| Pattern::Exchange { dimensions, bytes }),
            bytes().prop_map(Pattern::Ring),
            bytes().prop_map(Pattern::RandomPairs),
        ]
    }

    fn who() -> impl Strategy<Value = Who> {
        let range = (0..9_u32, 0..9_u32).prop_map(|(a, b)| Who::Range(a.min(b), a.max(b)));
        prop_oneof![range, Just(Who::Even), Just(Who::Odd), Just(Who::Last)]
    }

    fn statement() -> impl Strategy<Value = Statement> {
        let ns = || prop_oneof![0..5_000_000_000_u64, (0..5000_u64).prop_map(|ms| ms * 1_000_000)];
        let leaf = prop_oneof![
            (ns(), any::<bool>()).prop_map(|(ns, skew)| Statement::Compute { ns, skew }),
            ns().prop_map(|ns| Statement::Hold { ns }),
            (ns(), any::<bool>()).prop_map(|(ns, skew)| Statement::Io { ns, skew }),
            (peer(), 0..9999_u64).prop_map(|(to, bytes)| Statement::Send { to, bytes }),
            peer().prop_map(|from| Statement::Receive { from }),
            pattern().prop_map(Statement::Pattern),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            let body = || prop::collection::vec(inner.clone(), 1..4);
            prop_oneof![
                (1..1000_u64, body()).prop_map(|(times, body)| Statement::Repeat { times, body }),
                (who(), body()).prop_map(|(who, body)| Statement::On { who, body }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(body in prop::collection::vec(statement(), 1..5)) {
            let program = Program { body };
            prop_assert_eq!(program.to_string().parse::<Program>(), Ok(program));
        }

        #[test]
        fn no_text_breaks_the_reader(text in "(repeat|on|send|io|[0-9]|us| |\\{|\\}|\n|;|[a-zä#.=+-]){0,40}") {
            let _ = text.parse::<Program>();
        }
    }
}
