//! What Linux does for cosched: cgroups, the slot thread, observation, the guard.
