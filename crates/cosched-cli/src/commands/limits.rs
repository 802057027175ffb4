//! `cosched limits`: a user's limits and present usage.

use crate::context::Context;
use crate::out::{Failure, terminal_width};
use crate::table::Listing;
use crate::{format, jobs};
use cosched_api::{Limit, LimitList};

/// `cosched limits`.
pub(crate) fn limits(context: &Context) -> Result<u8, Failure> {
    let list = jobs::connect(context)?.limits()?;
    context.give(&list, || text(&list, terminal_width()))
}

fn text(list: &LimitList, width: Option<usize>) -> String {
    let of = format!("{} (uid {})", list.user, list.uid);
    let whose = match list.exempt {
        true => format!("{of} is an administrator: these limits apply to other users\n"),
        false => format!("limits of {of}\n"),
    };
    let table = Listing::of(&list.limits)
        .words("LIMIT", 0, |limit| shown(limit).0)
        .numbers("USED", 0, |limit| shown(limit).1(limit.used))
        .numbers("MOST", 0, |limit| limit.max.map_or("none".to_owned(), shown(limit).1));
    whose + &table.render(width)
}

/// The name without its unit, and how its values are written.
fn shown(limit: &Limit) -> (&str, fn(u64) -> String) {
    match limit.name.strip_suffix("_bytes") {
        Some(name) => (name, format::size),
        None => (&limit.name, format::grouped),
    }
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
