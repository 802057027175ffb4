//! Expands Slurm's host lists: `n[1-3,7],login` (hostlist(3) of Slurm; `scontrol show hostnames` does the same).

/// The maximum number of nodes: a longer list is a mistake.
pub(super) const NODES_MAX: usize = 1 << 16;
/// The maximum length of a name (`HOST_NAME_MAX` and a domain): a few bytes of a list may stand for many long names.
const NAME_BYTES_MAX: usize = 255;

/// The nodes of a list, in its order, which is the order of all of Slurm's lists by node. `None`: not a host list.
pub(super) fn expand(list: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut depth = 0_u32;
    // A comma in brackets separates numbers, not nodes.
    let at_comma = |c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => (),
        }
        c == ',' && depth == 0
    };
    for part in list.split(at_comma) {
        let names = expand_part(part)?;
        if all.len() + names.len() > NODES_MAX {
            return None;
        }
        all.extend(names);
    }
    Some(all)
}

/// One prefix with any number of brackets: `r[1-2]n[01-16]`. The last one varies fastest.
fn expand_part(part: &str) -> Option<Vec<String>> {
    let mut rest = part;
    let mut names = vec![String::new()];
    while let Some((before, behind)) = rest.split_once('[') {
        let (numbers, after) = behind.split_once(']')?;
        let numbers = expand_numbers(numbers)?;
        let bytes = longest(&names) + before.len() + longest(&numbers);
        if before.contains(']') || names.len() * numbers.len() > NODES_MAX || bytes > NAME_BYTES_MAX {
            return None;
        }
        names = names.iter().flat_map(|name| numbers.iter().map(move |n| format!("{name}{before}{n}"))).collect();
        rest = after;
    }
    if rest.contains(']') || longest(&names) + rest.len() > NAME_BYTES_MAX {
        return None;
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    names.iter().all(|name| !name.is_empty() && !name.contains(char::is_whitespace)).then_some(names)
}

fn longest(names: &[String]) -> usize {
    names.iter().map(String::len).max().unwrap_or(0)
}

/// `1-3,7`, and `01-10`, whose numbers are as wide as the first.
fn expand_numbers(text: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if !first.bytes().chain(last.bytes()).all(|b| b.is_ascii_digit()) {
            return None;
        }
        let (from, to): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        let width = first.len();
        if to < from || to - from >= (NODES_MAX - all.len()) as u64 || width > NAME_BYTES_MAX {
            return None;
        }
        all.extend((from..=to).map(|n| format!("{n:0width$}")));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_unfolded_in_their_order() {
        let cases = [
            ("n1", "n1"),
            ("n[1-3,7]", "n1 n2 n3 n7"),
            ("n[1-2],login,b7", "n1 n2 login b7"),
            ("n[08-11]", "n08 n09 n10 n11"),
            ("n[9-10]-ib", "n9-ib n10-ib"),
            ("r[1-2]n[0-1]", "r1n0 r1n1 r2n0 r2n1"),
            ("a-b.c[3]", "a-b.c3"),
        ];
        for (list, nodes) in cases {
            assert_eq!(expand(list).unwrap().join(" "), nodes, "{list}");
        }
    }

    #[test]
    fn what_is_no_list_is_none() {
        for bad in ["", ",", "n[", "n]", "n[]", "n[3-1]", "n[a]", "n[1-]", "n[1-3", "n 1", "n[1],,b", "n[0-99999999]"] {
            assert_eq!(expand(bad), None, "{bad}");
        }
        assert_eq!(expand("n[1-300]m[1-300]"), None);
    }

    #[test]
    fn a_short_list_of_very_much_is_none() {
        let most = "n[1-65536]";
        assert_eq!(expand(most).map(|names| names.len()), Some(NODES_MAX));
        let ranges = vec!["1-65535"; 5000].join(",");
        let wide = format!("n[{}1-65535]", "0".repeat(30_000));
        let long = format!("{}[1-65535]", "n".repeat(30_000));
        let behind = format!("[1-65535]{}", "n".repeat(30_000));
        for bad in [format!("n[{ranges}]"), wide, long, behind, format!("{most},m")] {
            assert_eq!(expand(&bad), None, "{}", &bad[..20.min(bad.len())]);
        }
    }
}
