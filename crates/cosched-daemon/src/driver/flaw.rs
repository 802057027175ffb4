//! What core found wrong with something that it made: a defect of cosched, of which only the log tells. What is run instead is safe.

/// Tells it.
pub(super) fn tell(why: impl std::fmt::Display) {
    tracing::error!(
        "a plan contradicts itself and is not used: {why}. Jobs go on without slots or by the plan before; please report this"
    );
}
