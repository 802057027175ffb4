//! The protocol between cosched's daemon and its clients: JSON over HTTP/1.1 on a Unix socket.

mod activate;
mod adopt;
mod client;
mod cluster;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod http;
mod job_state;
mod limits;
mod machine;
pub mod parse;
mod policy;
mod queue_table;
mod resources;
#[cfg(feature = "schema")]
pub mod schema;
mod socket;
mod stream;
mod terms;
mod types;
mod version;
mod waiting;
mod wire;

pub use activate::{Activation, NO_PLACE, STATE_BESIDE, activate, lock_of};
pub use adopt::{Adopt, Adopted, CgroupRequest};
pub use client::{Client, PendingWait};
pub use cluster::*;
pub use error::ClientError;
pub use job_state::{DecidedMatter, Decision, Event, EventList, JobState};
pub use limits::{Limit, LimitList};
pub use machine::*;
pub use policy::*;
pub use queue_table::{FairShareTable, QueueTable, QueueTableError};
pub use resources::*;
pub use socket::{
    SYSTEM_SOCKET, SocketChoice, cannot_write, default_socket, prepare_directory, state_home, user_directory,
};
pub use stream::*;
pub use terms::*;
pub use types::*;
pub use version::{API_VERSION, ApiVersion, VERSION_HEADER};
pub use waiting::*;
