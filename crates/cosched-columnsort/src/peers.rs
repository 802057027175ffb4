//! The other processes of a sort, for the stages.

use cosched_pipeline::BoxError;

/// The parts of a buffer for or from each process: offset and length in bytes.
pub type Parts = Vec<(usize, usize)>;

/// Messages between the processes of a sort. All of them call the same functions in the same order, each from one thread at a
/// time.
pub trait Peers: Send + Sync {
    /// The rank of this process.
    fn rank(&self) -> u64;

    /// The number of processes.
    fn size(&self) -> u64;

    /// Sends a part of `send` to each process, and receives a part from each into `receive`.
    ///
    /// # Errors
    /// The error of the message library.
    fn all_to_all(&self, send: &[u8], sent: &Parts, receive: &mut [u8], received: &Parts) -> Result<(), BoxError>;

    /// Sends to one process while receiving from another.
    ///
    /// # Errors
    /// The error of the message library.
    fn send_receive(&self, send: &[u8], to: u64, receive: &mut [u8], from: u64) -> Result<(), BoxError>;

    /// Waits for all processes.
    ///
    /// # Errors
    /// The error of the message library.
    fn barrier(&self) -> Result<(), BoxError>;

    /// Sends the first process's bytes to all. The length must be the same in all processes.
    ///
    /// # Errors
    /// The error of the message library.
    fn broadcast(&self, bytes: &mut [u8]) -> Result<(), BoxError>;

    /// The sum of a number over all processes.
    ///
    /// # Errors
    /// The error of the message library.
    fn sum(&self, value: u64) -> Result<u64, BoxError>;

    /// Ends all processes at once, because one of them cannot continue and the others would wait for it.
    fn abort(&self, code: i32);
}
