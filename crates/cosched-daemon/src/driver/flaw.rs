//! Contradictions that core found in its own results: a defect of cosched, reported only in the log. The fallback is safe.

/// Logs it.
pub(super) fn tell(why: impl std::fmt::Display) {
    tracing::error!(
        "a plan contradicts itself and is not used: {why}. Jobs go on without slots or by the plan before; please report this"
    );
}
