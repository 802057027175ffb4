//! How long a program takes that has no estimate of its own: its computation, I/O and messages in sequence, on the slowest nodes and ways.

use super::config::Config;
use crate::platform::Platform;
use crate::program::{Code, Op};

/// What the machine's slowest nodes and ways cost.
pub(super) struct Estimator<'a> {
    config: &'a Config,
    /// Computation takes this many times as long; the latency of a message, and its time for each byte, in ns.
    platform: Option<(f64, (f64, f64))>,
}

impl Estimator<'_> {
    pub(super) fn new<'a>(config: &'a Config, platform: Option<&Platform>) -> Estimator<'a> {
        let nodes = config.params.nodes;
        let slowest =
            |platform: &Platform| (platform.slowness(nodes), platform.slowest(nodes, config.cpus_per_node > 1));
        Estimator { config, platform: platform.map(slowest) }
    }

    /// A message from its send to the end of its receive.
    fn message_ns(&self, bytes: u64) -> u128 {
        let params = &self.config.params;
        let cpu = self.config.messages.map_or(0, |of| of.network.send_cpu_ns(bytes) + of.network.receive_cpu_ns(bytes));
        match (self.platform, self.config.messages) {
            (Some((_, (latency_ns, byte_ns))), _) => u128::from(cpu) + (latency_ns + bytes as f64 * byte_ns) as u128,
            (None, Some(of)) => u128::from(cpu) + u128::from(of.network.flight_ns() + of.network.link_ns(bytes)),
            (None, None) => u128::from(params.send_ns) + u128::from(self.config.wire_ns(bytes) + params.receive_ns),
        }
    }

    /// The longest task of a job.
    pub(super) fn of(&self, codes: &[Code]) -> u64 {
        let mut received_ns = vec![0_u128; codes.len()];
        for code in codes {
            code.each(|op, loops| {
                if let Op::Send { to, bytes } = op {
                    let times: u128 = loops.iter().map(|times| u128::from(*times)).product();
                    received_ns[*to as usize] += times * self.message_ns(*bytes);
                }
            });
        }
        let slowness = self.platform.map_or(1.0, |(slowness, _)| slowness);
        let task = |(code, received_ns): (&Code, u128)| {
            let own = code.totals();
            (own.compute_ns as f64 * slowness) as u128 + own.fixed_ns + received_ns
        };
        let longest = codes.iter().zip(received_ns).map(task).max().unwrap_or(0);
        u64::try_from(longest).unwrap_or(u64::MAX)
    }
}
