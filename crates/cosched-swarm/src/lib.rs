//! The whole control plane of a cluster in one deterministic simulation.
//!
//! Problem: a control plane fails where answers are late, leases run out and daemons die at the wrong moment, and no test with real
//! processes reaches these moments often enough, or twice.
//! Rule. The decisions are made by the production code: the planner, and each node's `Node` (`Member`, `Follower`, the local scheduler,
//! the parts of jobs). Its environment is simulated: clocks, network, store, processes, launchers, users. One seed determines everything
//! that happens, so a failure can be reproduced by its number. What must always hold is in `invariants/`, one file for each.
//! Source: the approach of TigerBeetle's simulator and of FoundationDB's (Zhou et al. 2021, section 4).

pub mod clock;
pub mod dice;
pub mod host;
pub mod invariants;
pub mod run;
pub mod swarm;
pub mod world;
