//! Processes that are threads of the test: the same messages, without MPI.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};

use cosched_columnsort::peers::{Parts, Peers};
use cosched_pipeline::BoxError;

/// One of these processes.
pub(super) struct Threads {
    rank: usize,
    /// Simulates several machines: no process can open the others' descriptors.
    apart: bool,
    to: Vec<Mutex<Sender<Vec<u8>>>>,
    from: Vec<Mutex<Receiver<Vec<u8>>>>,
    barrier: Arc<Barrier>,
}

impl Threads {
    /// Creates `size` of them.
    pub(super) fn all(size: usize, apart: bool) -> Vec<Arc<Threads>> {
        let barrier = Arc::new(Barrier::new(size));
        let mut to: Vec<Vec<_>> = (0..size).map(|_| Vec::new()).collect();
        let mut from: Vec<Vec<_>> = (0..size).map(|_| Vec::new()).collect();
        for sender in &mut to {
            for receiver in &mut from {
                let (send, receive) = channel();
                sender.push(Mutex::new(send));
                receiver.push(Mutex::new(receive));
            }
        }
        let both = to.into_iter().zip(from).enumerate();
        both.map(|(rank, (to, from))| Arc::new(Threads { rank, apart, to, from, barrier: barrier.clone() })).collect()
    }

    fn send(&self, to: usize, bytes: &[u8]) -> Result<(), BoxError> {
        self.to[to].lock().unwrap().send(bytes.to_vec()).map_err(|_| "the other is gone".into())
    }

    fn receive(&self, from: usize, bytes: &mut [u8]) -> Result<(), BoxError> {
        let message = self.from[from].lock().unwrap().recv()?;
        if message.len() != bytes.len() {
            return Err(format!("{} bytes came where {} were awaited", message.len(), bytes.len()).into());
        }
        bytes.copy_from_slice(&message);
        Ok(())
    }
}

impl Peers for Threads {
    fn rank(&self) -> u64 {
        self.rank as u64
    }

    fn size(&self) -> u64 {
        self.to.len() as u64
    }

    fn all_to_all(&self, send: &[u8], sent: &Parts, receive: &mut [u8], received: &Parts) -> Result<(), BoxError> {
        for (to, (at, len)) in sent.iter().enumerate() {
            let part = if *len == 0 { &[][..] } else { &send[*at..at + len] };
            self.send(to, part)?;
        }
        for (from, (at, len)) in received.iter().enumerate() {
            self.receive(from, &mut receive[*at..at + len])?;
        }
        Ok(())
    }

    fn send_receive(&self, send: &[u8], to: u64, receive: &mut [u8], from: u64) -> Result<(), BoxError> {
        self.send(to as usize, send)?;
        self.receive(from as usize, receive)
    }

    fn barrier(&self) -> Result<(), BoxError> {
        self.barrier.wait();
        Ok(())
    }

    fn broadcast(&self, bytes: &mut [u8]) -> Result<(), BoxError> {
        if self.rank == 0 { (1..self.to.len()).try_for_each(|to| self.send(to, bytes)) } else { self.receive(0, bytes) }
    }

    fn sum(&self, value: u64) -> Result<u64, BoxError> {
        // The sum counts the processes that could not open a file by a descriptor.
        let value = value.max(u64::from(self.apart && self.rank > 0));
        (0..self.to.len()).try_for_each(|to| self.send(to, &value.to_le_bytes()))?;
        let mut sum = 0;
        for from in 0..self.to.len() {
            let mut bytes = [0; 8];
            self.receive(from, &mut bytes)?;
            sum += u64::from_le_bytes(bytes);
        }
        Ok(sum)
    }

    fn abort(&self, code: i32) {
        panic!("aborted with {code}");
    }
}
