//! Contradictions that core found in its own results: a defect of cosched, reported only in the log. The fallback is safe.

/// Logs it.
pub(super) fn tell(why: impl std::fmt::Display) {
    tracing::error!(
        "a plan contradicts itself and is not used: {why}. Jobs keep running without slots or by the previous plan; \
         please report this"
    );
}
