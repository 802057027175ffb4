//! The other processes of a sort, as the stages see them.

use cosched_pipeline::BoxError;

/// Where each other process's part lies in a buffer: for each process its place and its length in bytes.
pub type Parts = Vec<(usize, usize)>;

/// Messages between the processes of a sort. All of them call the same functions in the same order, each from one thread at a
/// time.
pub trait Peers: Send + Sync {
    /// This process's number.
    fn rank(&self) -> u64;

    /// How many processes there are.
    fn size(&self) -> u64;

    /// Sends a part of `send` to each process, and receives a part from each into `receive`.
    ///
    /// # Errors
    /// What the message library says.
    fn all_to_all(&self, send: &[u8], sent: &Parts, receive: &mut [u8], received: &Parts) -> Result<(), BoxError>;

    /// Sends to one process while receiving from another.
    ///
    /// # Errors
    /// What the message library says.
    fn send_receive(&self, send: &[u8], to: u64, receive: &mut [u8], from: u64) -> Result<(), BoxError>;

    /// Waits for all processes.
    ///
    /// # Errors
    /// What the message library says.
    fn barrier(&self) -> Result<(), BoxError>;

    /// The first process's bytes, for all. They have the same length everywhere.
    ///
    /// # Errors
    /// What the message library says.
    fn broadcast(&self, bytes: &mut [u8]) -> Result<(), BoxError>;

    /// The sum of a number over all processes.
    ///
    /// # Errors
    /// What the message library says.
    fn sum(&self, value: u64) -> Result<u64, BoxError>;

    /// Ends all processes at once: one of them cannot go on, and the others wait for it.
    fn abort(&self, code: i32);
}
