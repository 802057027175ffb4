//! What administrators have decided about a job, for the daemon: asked before a change, told to its owner, shown.

use crate::record::Record;
use crate::refuse::{Answer, refuse};
use crate::rights::{Peer, Rights};
use crate::users::user_name;
use cosched_api::{DecidedMatter, Decision, ErrorBody, ErrorCode};
use cosched_cluster::wire::Decided;
use cosched_core::{Asker, Bound, Decisions, Matter};

/// What is decided about a job after a change of it by `peer`; refused where an administrator has decided otherwise.
pub(crate) fn after(
    rights: &Rights,
    peer: Peer,
    job: &Record,
    change: impl FnOnce(&mut Decisions, Asker) -> Result<(), Bound>,
) -> Answer<Decided> {
    let mut decisions = job.decided.into();
    let asker = Asker { uid: peer.uid, admin: rights.is_admin(peer) };
    match change(&mut decisions, asker) {
        Ok(()) => Ok(decisions.into()),
        Err(bound) => Err(refused(job.id, bound)),
    }
}

/// As everybody may see it.
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

fn refused(id: u64, Bound { by, matter }: Bound) -> ErrorBody {
    let who = user_name(by);
    let (why, back) = match matter {
        Matter::Suspension => (format!("{who}, an administrator, has suspended it"), format!("`cosched resume {id}`")),
        Matter::Class => (
            format!("{who}, an administrator, has decided its class"),
            format!("by `cosched class {id}` with the class of before"),
        ),
        Matter::Policy => (
            format!("{who}, an administrator, has decided its policy"),
            format!("by `cosched policy --job {id}` with the policy of before"),
        ),
    };
    let hint = format!("Ask {who} or another administrator to take that back ({back}). You can end the job.");
    refuse(ErrorCode::Forbidden, format!("the {matter} of job {id} is not yours to change"), why, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    #[test]
    fn the_owner_hears_who_has_decided_and_what_to_do() {
        let rights = Rights::new(990, []);
        let (owner, root) = (Peer { uid: 1000, pid: None }, Peer { uid: 0, pid: None });
        let mut job = example(7);
        job.decided = after(&rights, root, &job, |decided, asker| {
            decided.suspend(1000, asker);
            Ok(())
        })
        .unwrap();
        let refused = after(&rights, owner, &job, |decided, asker| decided.resume(asker)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Forbidden);
        assert!(refused.why.contains("root, an administrator, has suspended it"), "{refused:?}");
        assert!(refused.hint.contains("cosched resume 7"), "{refused:?}");
        let shown = view(job.decided);
        assert_eq!((shown.len(), shown[0].matter, shown[0].uid), (1, DecidedMatter::Suspension, 0));
    }

    #[test]
    fn each_matter_has_its_way_back() {
        let rights = Rights::new(990, []);
        let (owner, root) = (Peer { uid: 1000, pid: None }, Peer { uid: 0, pid: None });
        let mut job = example(7);
        let lower = |decided: &mut Decisions, asker| {
            decided.reclass(1000, asker, cosched_core::Class::Interactive, cosched_core::Class::Standby)
        };
        job.decided = after(&rights, root, &job, lower).unwrap();
        let local =
            |decided: &mut Decisions, asker| decided.repolicy(1000, asker, None, Some(cosched_core::Policy::Local));
        job.decided = after(&rights, root, &job, local).unwrap();
        let class = |decided: &mut Decisions, asker| {
            decided.reclass(1000, asker, cosched_core::Class::Standby, cosched_core::Class::Batch)
        };
        let refused = after(&rights, owner, &job, class).unwrap_err();
        assert!(
            refused.why.contains("has decided its class") && refused.hint.contains("cosched class 7"),
            "{refused:?}"
        );
        let gang = |decided: &mut Decisions, asker| {
            decided.repolicy(1000, asker, Some(cosched_core::Policy::Local), Some(cosched_core::Policy::Gang))
        };
        let refused = after(&rights, owner, &job, gang).unwrap_err();
        assert!(refused.why.contains("its policy") && refused.hint.contains("cosched policy --job 7"), "{refused:?}");
        let mut shown: Vec<DecidedMatter> = view(job.decided).into_iter().map(|one| one.matter).collect();
        shown.sort_by_key(|matter| format!("{matter:?}"));
        assert_eq!(shown, [DecidedMatter::Class, DecidedMatter::Policy]);
        assert!(view(example(1).decided).is_empty());
    }
}
