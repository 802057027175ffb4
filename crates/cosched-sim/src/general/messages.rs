//! The costs of messages on a present-day machine: by their route, and with the CPU time that their processes pay.
//!
//! The paper's interfaces (D9) take as long for every message, and no process pays for one. Here a message of n bytes
//! takes `latency_ns` + n · `byte_ps`, of which the processes' own CPU time is `cpu_ns` + n · `cpu_byte_ps`: half of it
//! in the send, half in the receive. Source: Strazdins and Uhlmann 2004, sections 2.2 and 5.1 (equations 1, 2 and 7).

use crate::params::ParamsError;

/// The costs of one route for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// An empty message, from its send to the end of a receive that waits for it (α).
    pub latency_ns: u64,
    /// The time per additional byte, in picoseconds (β).
    pub byte_ps: u64,
    /// The part of the latency that is CPU time of sender and receiver together.
    pub cpu_ns: u64,
    /// The part of a byte's time that is CPU time of sender and receiver together, in picoseconds.
    pub cpu_byte_ps: u64,
    /// How long a process that does not wait busily polls for a message on this route before it blocks or yields; 0: it
    /// polls once. `None`: the spin time of the parameters.
    pub poll_ns: Option<u64>,
}

/// The two routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// Between nodes: one link per node in each direction, which a message occupies alone while its bytes are
    /// transferred.
    pub network: Route,
    /// Between processes of a node: memory is not a link, and messages do not delay each other.
    pub memory: Route,
}

fn bytes_ns(bytes: u64, byte_ps: u64) -> u64 {
    let ns = (u128::from(bytes) * u128::from(byte_ps) + 500) / 1000;
    ns.min(NS_MAX) as u64
}

/// The maximum duration of any part of a message: 36 years, far from overflow.
const NS_MAX: u128 = 1 << 60;

/// The maximum latency is an hour, and the maximum time per byte a millisecond: more means a wrong unit.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
const BYTE_PS_MAX: u64 = 1_000_000_000;

impl Route {
    fn cpu_of_ns(&self, bytes: u64) -> u64 {
        self.cpu_ns + bytes_ns(bytes, self.cpu_byte_ps)
    }

    /// What the sender pays, in ns.
    pub(super) fn send_cpu_ns(&self, bytes: u64) -> u64 {
        self.cpu_of_ns(bytes) / 2
    }

    /// What the receiver pays, in ns.
    pub(super) fn receive_cpu_ns(&self, bytes: u64) -> u64 {
        self.cpu_of_ns(bytes).div_ceil(2)
    }

    /// From the end of the send to the first byte at the receiver's side, in ns.
    pub(super) fn flight_ns(&self) -> u64 {
        self.latency_ns - self.cpu_ns
    }

    /// How long the bytes take on a link, in ns.
    pub(super) fn link_ns(&self, bytes: u64) -> u64 {
        bytes_ns(bytes, self.byte_ps - self.cpu_byte_ps)
    }

    fn check(&self, way: &str) -> Result<(), ParamsError> {
        if self.cpu_ns > self.latency_ns || self.cpu_byte_ps > self.byte_ps {
            let what = format!("messages {way} take more CPU time than time");
            let why = "the CPU time is a part of latency and time a byte";
            return Err(ParamsError::new(what, why, "give a CPU part that is not larger than the whole"));
        }
        if self.latency_ns == 0 {
            let what = format!("messages {way} take no time");
            return Err(ParamsError::new(what, "no machine is so fast", "give a latency above 0"));
        }
        if self.latency_ns.max(self.poll_ns.unwrap_or(0)) > LATENCY_NS_MAX || self.byte_ps > BYTE_PS_MAX {
            let what = format!("messages {way} take above an hour, or a byte above a millisecond");
            return Err(ParamsError::new(
                what,
                "that is surely a mistake",
                "costs are in µs, and µs a word of 8 bytes",
            ));
        }
        Ok(())
    }
}

impl Messages {
    /// Checks the values.
    pub(super) fn check(&self) -> Result<(), ParamsError> {
        self.network.check("between nodes")?;
        self.memory.check("within a node")
    }

    /// The route between two nodes.
    pub(super) fn route(&self, from: u32, to: u32) -> &Route {
        if from == to { &self.memory } else { &self.network }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Bunyip's TCP (equations 1 and 7): words of 8 bytes.
    const TCP: Route =
        Route { latency_ns: 80_000, byte_ps: 106_250, cpu_ns: 28_000, cpu_byte_ps: 17_500, poll_ns: None };

    #[test]
    fn the_parts_add_up_to_alpha_and_beta() {
        let of = |bytes| TCP.send_cpu_ns(bytes) + TCP.flight_ns() + TCP.link_ns(bytes) + TCP.receive_cpu_ns(bytes);
        assert_eq!([0, 8, 8000].map(of), [80_000, 80_850, 930_000]);
        assert_eq!((TCP.send_cpu_ns(8000), TCP.receive_cpu_ns(8000)), (84_000, 84_000));
        assert_eq!(TCP.link_ns(8000), 710_000);
    }

    #[test]
    fn impossible_costs_are_named() {
        let good = Messages { network: TCP, memory: TCP };
        assert_eq!(good.check(), Ok(()));
        let wrong = [
            Route { cpu_ns: 80_001, ..TCP },
            Route { cpu_byte_ps: 106_251, ..TCP },
            Route { latency_ns: 0, cpu_ns: 0, ..TCP },
            Route { latency_ns: u64::MAX, ..TCP },
            Route { byte_ps: u64::MAX, ..TCP },
            Route { poll_ns: Some(u64::MAX), ..TCP },
        ];
        for route in wrong {
            assert!(Messages { memory: route, ..good }.check().is_err(), "{route:?}");
            assert!(Messages { network: route, ..good }.check().is_err(), "{route:?}");
        }
    }
}
