//! Administrators' decisions about a job, in the form that all users may see.

use crate::users::user_name;
use cosched_api::{DecidedMatter, Decision};
use cosched_cluster::wire::Decided;
use cosched_core::{Bound, Decisions, Matter};

/// Converts the decisions to the API's type.
pub(crate) fn view(decided: Decided) -> Vec<Decision> {
    let of = |Bound { by, matter }| Decision {
        matter: match matter {
            Matter::Suspension => DecidedMatter::Suspension,
            Matter::Class => DecidedMatter::Class,
            Matter::Policy => DecidedMatter::Policy,
            Matter::Share => DecidedMatter::Share,
        },
        uid: by,
        user: user_name(by),
    };
    Decisions::from(decided).all().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{Asker, Class, Policy};

    #[test]
    fn each_matter_is_shown_with_who_has_decided_it() {
        let root = Asker { uid: 0, admin: true };
        let shown = |decided: Decisions| {
            let mut all: Vec<_> = view(decided.into()).into_iter().map(|one| (one.matter, one.uid)).collect();
            all.sort_by_key(|(matter, _)| format!("{matter:?}"));
            all
        };
        let mut decided = Decisions::default();
        assert!(view(decided.into()).is_empty());
        decided.suspend(1000, root);
        assert_eq!(shown(decided), [(DecidedMatter::Suspension, 0)]);
        let mut decided = Decisions::default();
        decided.reclass(1000, root, Class::Interactive, Class::Standby).unwrap();
        decided.repolicy(1000, root, None, Some(Policy::Local)).unwrap();
        assert_eq!(shown(decided), [(DecidedMatter::Class, 0), (DecidedMatter::Policy, 0)]);
    }
}
