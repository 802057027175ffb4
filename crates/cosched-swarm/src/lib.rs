//! The whole control plane of a cluster in one deterministic simulation.
//!
//! Problem: a control plane fails where answers are late, leases run out and daemons die at the wrong moment, and no test
//! with real processes meets these moments often enough, or twice.
//! Rule. What decides is the real code: the planner, and each node's `Node` (`Member`, `Follower`, the local scheduler, the parts of
//! jobs). What is around it is simulated: clocks, network, store, processes, launchers, users. One seed sets everything that happens, so a
//! failure is repeated by its number. What must always hold is in `invariants/`, a file each.
//! Source: the manner of TigerBeetle's simulator and of FoundationDB's (Zhou et al. 2021, section 4).

pub mod clock;
pub mod dice;
pub mod host;
pub mod invariants;
pub mod run;
pub mod swarm;
pub mod world;
