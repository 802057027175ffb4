//! What administrators have decided about a job, as everybody may see it.

use crate::users::user_name;
use cosched_api::{DecidedMatter, Decision};
use cosched_cluster::wire::Decided;
use cosched_core::{Bound, Decisions, Matter};

/// In the words of the API.
pub(crate) fn view(decided: Decided) -> Vec<Decision> {
    let of = |Bound { by, matter }| Decision {
        matter: match matter {
            Matter::Suspension => DecidedMatter::Suspension,
            Matter::Class => DecidedMatter::Class,
            Matter::Policy => DecidedMatter::Policy,
        },
        uid: by,
        user: user_name(by),
    };
    Decisions::from(decided).all().map(of).collect()
}
