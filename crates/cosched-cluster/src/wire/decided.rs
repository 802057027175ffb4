//! Administrators' decisions about a job, as they are serialised in records of jobs: in the store, and in a daemon's journal.

use super::names::{Class, Policy};
use cosched_core::{Decision, Decisions, SlotShare};
use serde::{Deserialize, Serialize};

/// A decision, and the value before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct By<T> {
    /// The administrator's user ID.
    pub uid: u32,
    /// The value that the owner had chosen.
    pub before: T,
}

/// All decisions about a job; not serialised when there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// The administrator who suspended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended_by: Option<u32>,
    /// Its class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<By<Class>>,
    /// Its own policy, or that it follows the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<By<Option<Policy>>>,
    /// The largest part of the slots that it may have, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_permille: Option<By<Option<u32>>>,
}

impl Decided {
    /// Whether there is no decision.
    pub fn is_none(&self) -> bool {
        *self == Decided::default()
    }
}

impl From<Decisions> for Decided {
    fn from(core: Decisions) -> Decided {
        Decided {
            suspended_by: core.suspended_by,
            class: core.class.map(|Decision { by, before }| By { uid: by, before: before.into() }),
            policy: core.policy.map(|Decision { by, before }| By { uid: by, before: before.map(Into::into) }),
            share_permille: core
                .share
                .map(|Decision { by, before }| By { uid: by, before: before.map(SlotShare::permille) }),
        }
    }
}

impl From<Decided> for Decisions {
    fn from(wire: Decided) -> Decisions {
        Decisions {
            suspended_by: wire.suspended_by,
            class: wire.class.map(|By { uid, before }| Decision { by: uid, before: before.into() }),
            policy: wire.policy.map(|By { uid, before }| Decision { by: uid, before: before.map(Into::into) }),
            share: wire
                .share_permille
                .map(|By { uid, before }| Decision { by: uid, before: before.and_then(SlotShare::new) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_and_read_and_forms_without_it_are_none() {
        let decisions = Decisions {
            suspended_by: Some(0),
            class: Some(Decision { by: 42, before: cosched_core::Class::Batch }),
            policy: Some(Decision { by: 0, before: None }),
            share: Some(Decision { by: 0, before: SlotShare::new(500) }),
        };
        let text = serde_json::to_string(&Decided::from(decisions)).unwrap();
        assert_eq!(
            text,
            r#"{"suspended_by":0,"class":{"uid":42,"before":"batch"},"policy":{"uid":0,"before":null},"share_permille":{"uid":0,"before":500}}"#
        );
        assert_eq!(Decisions::from(serde_json::from_str::<Decided>(&text).unwrap()), decisions);
        assert!(serde_json::from_str::<Decided>("{}").unwrap().is_none());
    }
}
