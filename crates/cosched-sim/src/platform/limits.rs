//! How large a platform may be: files come from strangers.

/// The simulator's most.
pub(super) const HOSTS_MAX: u64 = 60_000;
pub(super) const LINKS_MAX: u64 = 1_000_000;
/// The fastest host over the slowest.
pub(super) const SPEEDS_MAX: f64 = 1e6;
pub(super) const CORES_MAX: u32 = 1024;
/// Members of a zone with a table of ways, and zones within each other.
pub(super) const MEMBERS_MAX: u32 = 1_000;
pub(super) const DEPTH_MAX: u32 = 16;
/// The longest way, in links; and the links on all ways of a file together.
pub(super) const WAY_MAX: usize = 256;
pub(super) const WAYS_LINKS_MAX: usize = 10_000_000;
/// Hosts outside of clusters, and clusters: all ways between two of them are tried.
pub(super) const TRIED_MAX: u64 = 1_000;
