//! Functions for the fuzzer that are not public otherwise.

pub use crate::slurm::fuzz::{host_list, slurm_environment, squeue};

use crate::profile::summary;
use crate::sim::decide::zmtp;
use cosched_study::profile::{Profile, fuzz};
use std::io::{self, Read, Write};

/// What a scheduler sends on its ZeroMQ socket.
pub fn zmtp(data: &[u8]) {
    let mut peer = Peer(data);
    let _ = zmtp::greet(&mut peer).and_then(|()| zmtp::request(&mut peer, b"{}"));
}

/// It says what it has to say, whatever it is told.
struct Peer<'a>(&'a [u8]);

impl Read for Peer<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Peer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Parses a profile.
pub fn profile(data: &[u8]) {
    fuzz::profile(data, show);
}

/// Parses a rank's recording.
pub fn recording(data: &[u8]) {
    fuzz::recording(data, show);
}

fn show(profile: &Profile) {
    summary(profile, Some(80));
}
