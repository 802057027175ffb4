//! `cosched limits`: a user's limits and present usage.

use crate::context::Context;
use crate::out::{Failure, print, print_json, terminal_width};
use crate::table::{Cell, Column, numbers, render, words};
use crate::{format, jobs};
use cosched_api::{Limit, LimitList};

const COLUMNS: [Column; 3] = [words("LIMIT", 0), numbers("USED", 0), numbers("MOST", 0)];

/// `cosched limits`.
pub(crate) fn limits(context: &Context) -> Result<u8, Failure> {
    let list = jobs::connect(context)?.limits()?;
    if context.json {
        print_json(&list)?
    } else {
        print(&text(&list, terminal_width()))?
    }
    Ok(0)
}

fn text(list: &LimitList, width: Option<usize>) -> String {
    let rows: Vec<Vec<Cell>> = list.limits.iter().map(row).collect();
    let of = format!("{} (uid {})", list.user, list.uid);
    let whose = match list.exempt {
        true => format!("{of} is an administrator: these limits apply to other users\n"),
        false => format!("limits of {of}\n"),
    };
    whose + &render(&COLUMNS, &rows, width)
}

fn row(limit: &Limit) -> Vec<Cell> {
    let (name, show): (&str, fn(u64) -> String) = match limit.name.strip_suffix("_bytes") {
        Some(name) => (name, format::size),
        None => (&limit.name, format::grouped),
    };
    vec![name.into(), show(limit.used).into(), limit.max.map_or("none".to_owned(), show).into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sizes_are_shown_as_what_they_are() {
        let limit = |name: &str, used, max| Limit { name: name.to_owned(), used, max };
        let limits = vec![limit("jobs", 1200, Some(5000)), limit("memory_bytes", 3 << 30, None)];
        let list = LimitList { uid: 1000, user: "ann".to_owned(), exempt: false, limits };
        assert_eq!(
            text(&list, None),
            "limits of ann (uid 1000)\nLIMIT    USED   MOST\njobs    1,200  5,000\nmemory   3.0G   none\n"
        );
        assert!(text(&LimitList { exempt: true, ..list }, None).starts_with("ann (uid 1000) is an administrator"));
    }
}
