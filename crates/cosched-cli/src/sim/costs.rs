//! What messages cost in `cosched sim program`: from a machine file, or from options.

use super::machine::Machine;
use super::model::{Cost, Model, cost_us};
use crate::model::machines::find;
use crate::out::Failure;
use clap::Args;
use cosched_sim::general::{Cache, Config, Messages, Route};
use cosched_sim::{Params, Strategy};
use cosched_study::live;
use cosched_study::network::{ns, of_link, of_recording, route};

/// Options of messages that cost CPU time.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Messages that cost their processes CPU time (docs/simulator.md)")]
pub(crate) struct Costs {
    /// A machine file, or bunyip, bunyip-faster: its CPUs per node, context switch, cache and messages; interrupts and queue moves
    /// then cost nothing, as they are part of its messages. Explicit options take precedence
    #[arg(long = "machine", value_name = "FILE")]
    machine: Option<String>,

    /// Messages between nodes, in µs and µs per word of 8 bytes: `ALPHA,BETA[,ALPHA_CPU,BETA_CPU]`; a node has one link each way
    #[arg(long, value_name = "COSTS", value_parser = route)]
    network: Option<Route>,

    /// Messages within a node, likewise; without CPU costs all of it is CPU time [default: as between nodes]
    #[arg(long, value_name = "COSTS", value_parser = route)]
    shared_memory: Option<Route>,

    /// Spin time for a message from another node, before blocking or yielding; 0: poll once [default: --spin-us]
    #[arg(long, value_name = "US", value_parser = cost_us, allow_negative_numbers = true)]
    network_poll_us: Option<Cost>,

    /// Spin time for a message within a node
    #[arg(long, value_name = "US", value_parser = cost_us, allow_negative_numbers = true)]
    memory_poll_us: Option<Cost>,
}

/// The costs of messages, and other values from the machine file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    messages: Option<Messages>,
    /// CPUs per node, and the context switch in ns.
    machine: Option<(u32, u64)>,
    cache: Option<Cache>,
}

impl Costs {
    /// Reads the machine file.
    pub(crate) fn read(&self) -> Result<Given, Failure> {
        let file = self.machine.as_deref().map(find).transpose()?;
        let network = match (self.network, &file) {
            (Some(route), _) => Some(route),
            (None, Some(file)) => Some(of_link(&file.network)?),
            (None, None) => None,
        };
        let memory = match (self.shared_memory, &file) {
            (Some(route), _) => Some(route),
            (None, Some(file)) if self.network.is_none() || file.shared_memory.is_some() => {
                Some(of_link(file.within_node())?)
            }
            (None, _) => network,
        };
        let polls = |route: Route, poll: Option<Cost>| Route { poll_ns: poll.map(|cost| cost.0), ..route };
        let messages = network.zip(memory).map(|(network, memory)| Messages {
            network: polls(network, self.network_poll_us),
            memory: polls(memory, self.memory_poll_us),
        });
        if messages.is_none() && (self.shared_memory.is_some() || self.polls()) {
            let why = "without them the paper's messages are simulated, which have one cost for all";
            return Err(Failure::explained(
                2,
                "options of messages without the costs between nodes",
                why,
                "also give --machine or --network",
            ));
        }
        let switch_ns = file.as_ref().map(|file| ns(file.context_switch_us)).transpose()?;
        let cache = file.as_ref().and_then(|file| live::cache(file.cache.as_ref()?));
        let cpus = file.map(|file| file.cpus_per_node);
        Ok(Given { messages, machine: cpus.zip(switch_ns), cache })
    }

    fn polls(&self) -> bool {
        self.network_poll_us.or(self.memory_poll_us).is_some()
    }
}

impl Given {
    /// Returns these costs, or if none were given those of a recording: (alpha, beta) in µs and µs per word.
    pub(crate) fn or_recorded(self, recorded: Option<(f64, f64)>) -> Result<Given, Failure> {
        let Some((alpha_us, beta_us_per_word)) = recorded.filter(|_| self.messages.is_none()) else { return Ok(self) };
        Ok(Given { messages: Some(of_recording(alpha_us, beta_us_per_word)?), ..self })
    }

    /// The parameters of a simulation with this strategy.
    pub(crate) fn params(&self, model: &Model, strategy: Strategy) -> Params {
        let mut params = model.params(strategy);
        if let Some((_, switch_ns)) = self.machine {
            // A gang's switch includes the nodes' synchronisation, which no machine file knows.
            if model.cs_us.is_none() && !strategy.is_gang() {
                params.switch_ns = switch_ns;
            }
            params.interrupt_ns = model.intr_us.map_or(0, |cost| cost.0);
            params.queue_move_ns = model.rules.qmove_us.map_or(0, |cost| cost.0);
        }
        params
    }

    /// The machine with these parameters.
    pub(crate) fn config(&self, machine: &Machine, params: Params) -> Config {
        let mut config = machine.config(params);
        config.messages = self.messages;
        config.memory.cache = config.memory.cache.or(self.cache);
        if let Some((cpus_per_node, switch_ns)) = self.machine {
            config.cpus_per_node = machine.cpus_per_node.unwrap_or(cpus_per_node);
            config.local_switch_ns = machine.local_cs_us.map_or(switch_ns, |cost| cost.0);
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: Route =
        Route { latency_ns: 80_000, byte_ps: 106_250, cpu_ns: 28_000, cpu_byte_ps: 17_500, poll_ns: None };

    #[test]
    fn the_bunyip_has_its_costs_and_options_win() {
        let none =
            Costs { machine: None, network: None, shared_memory: None, network_poll_us: None, memory_poll_us: None };
        assert!(none.read().unwrap().messages.is_none());
        let bunyip = Costs { machine: Some("bunyip".into()), network_poll_us: Some(Cost(0)), ..none.clone() };
        let given = bunyip.read().unwrap();
        let messages = given.messages.unwrap();
        assert_eq!(messages.network, Route { poll_ns: Some(0), ..TCP });
        assert_eq!((messages.memory.latency_ns, messages.memory.cpu_byte_ps), (42_000, 12_500));
        assert_eq!(given.machine, Some((2, 2_500)));
        let own = Costs { network: route("70,0.82").ok(), ..bunyip.clone() };
        let messages = own.read().unwrap().messages.unwrap();
        assert_eq!((messages.network.latency_ns, messages.memory.latency_ns), (70_000, 42_000));
        let file = std::env::temp_dir().join(format!("cosched-costs-{}.toml", std::process::id()));
        let text = cosched_model::machine::SHIPPED[0].1;
        std::fs::write(&file, format!("{text}\n[cache]\nsize_bytes = 262144\nrefill_us_per_kib = 0.128\n")).unwrap();
        let cached = Costs { machine: file.to_str().map(Into::into), ..none.clone() }.read().unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(cached.cache, Some(Cache { bytes: 262_144, bytes_per_s: 8_000_000_000 }));
        assert!(Costs { memory_poll_us: Some(Cost(0)), ..none.clone() }.read().is_err());
        assert!(Costs { machine: Some("/nowhere.toml".into()), ..none }.read().is_err());
    }
}
