//! The memory of the simulated machine and what jobs want of it, as options.

use crate::out::Failure;
use clap::Args;
use cosched_api::parse::size_bytes;
use cosched_sim::Footprint;
use cosched_sim::general::{Cache, Memory, Socket};

/// The machine's memory.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct MemoryArgs {
    /// Each CPU's cache, and how fast one CPU fills it, as 1MiB,8GB/s: a process that gets a CPU after another job's first loads what
    /// others have evicted of its job's working set
    #[arg(long, value_name = "SIZE,RATE", value_parser = cache, allow_negative_numbers = true)]
    cache: Option<Cache>,

    /// The CPUs of a socket, and their memory bandwidth, as 8,100GB/s: processes that compute there share it
    #[arg(long, value_name = "CPUS,RATE", value_parser = socket, allow_negative_numbers = true)]
    socket_bandwidth: Option<Socket>,
}

impl MemoryArgs {
    pub(crate) fn memory(&self) -> Memory {
        Memory { cache: self.cache, socket: self.socket_bandwidth }
    }
}

/// What each process of a simulated program wants of it.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct FootprintArgs {
    /// Data that each process goes over again and again, as 512KiB; needs --cache, or a machine file that has a cache
    #[arg(long, value_name = "SIZE", value_parser = working_set, allow_negative_numbers = true)]
    working_set: Option<u64>,

    /// Memory bandwidth that each process needs to compute at full speed, as 5GB/s; needs --socket-bandwidth
    #[arg(long, value_name = "RATE", value_parser = demand, allow_negative_numbers = true)]
    memory_rate: Option<u64>,
}

impl FootprintArgs {
    /// What the processes want of this memory.
    ///
    /// # Errors
    /// If that has no effect there.
    pub(crate) fn on(&self, memory: &Memory) -> Result<Footprint, Failure> {
        let ignored = |option: &str, why: &str, hint: &str| {
            Err(Failure::explained(2, &format!("{option} has no effect"), why, hint))
        };
        if self.working_set.is_some() && memory.cache.is_none() {
            let hint = "give --cache SIZE,RATE, or a --machine file with a [cache]";
            return ignored("--working-set", "without a cache nothing is lost by a switch", hint);
        }
        if self.memory_rate.is_some() && memory.socket.is_none() {
            let why = "without sockets the memory's bandwidth is unlimited";
            return ignored("--memory-rate", why, "give --socket-bandwidth CPUS,RATE");
        }
        Ok(Footprint { working_set_bytes: self.working_set.unwrap_or(0), bytes_per_s: self.memory_rate.unwrap_or(0) })
    }
}

/// The cache as `--cache` has it.
pub(crate) fn shown(cache: &Cache) -> String {
    format!("--cache {}B,{}MB/s", cache.bytes, cache.bytes_per_s.div_ceil(1_000_000))
}

fn rate(text: &str) -> Result<u64, String> {
    let bytes = text.trim().strip_suffix("/s").ok_or_else(|| format!("`{text}` is not a bandwidth, as 20GB/s"))?;
    size_bytes(bytes).map_err(|e| e.to_string())
}

fn pair(text: &str) -> Result<(&str, &str), String> {
    text.split_once(',').ok_or_else(|| format!("`{text}` has no comma"))
}

fn cache(text: &str) -> Result<Cache, String> {
    let (bytes, bytes_per_s) = pair(text)?;
    Ok(Cache { bytes: size_bytes(bytes.trim()).map_err(|e| e.to_string())?, bytes_per_s: rate(bytes_per_s)? })
}

fn socket(text: &str) -> Result<Socket, String> {
    let (cpus, bytes_per_s) = pair(text)?;
    let cpus = cpus.trim().parse().map_err(|_| format!("`{}` is not a number of CPUs", cpus.trim()))?;
    Ok(Socket { cpus, bytes_per_s: rate(bytes_per_s)? })
}

pub(crate) fn working_set(text: &str) -> Result<u64, String> {
    let bytes = size_bytes(text).map_err(|e| e.to_string())?;
    Some(bytes).filter(|bytes| *bytes <= Footprint::MOST.working_set_bytes).ok_or_else(|| "more than 1 PiB".to_owned())
}

fn demand(text: &str) -> Result<u64, String> {
    let rate = rate(text)?;
    Some(rate).filter(|rate| *rate <= Footprint::MOST.bytes_per_s).ok_or_else(|| "more than 1 PB/s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_model::machine;
    use cosched_study::live;

    #[test]
    fn memories_are_read() {
        assert_eq!(cache("1MiB,8GB/s"), Ok(Cache { bytes: 1 << 20, bytes_per_s: 8_000_000_000 }));
        assert_eq!(socket("8, 1.5GiB/s"), Ok(Socket { cpus: 8, bytes_per_s: 3 << 29 }));
        for wrong in ["", "1MiB", "1MiB,8GB", "1,8GB/s", "-1MiB,8GB/s", "1MiB,-8GB/s", "nanMiB,8GB/s", "1MiB,infGB/s"] {
            assert!(cache(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "8", "-8,1GB/s", "1.5,1GB/s", "nan,1GB/s", "8,1", "8,-1GB/s", "99999999999,1GB/s"] {
            assert!(socket(wrong).is_err(), "{wrong}");
        }
        assert!(working_set("2P").is_err() && working_set("1025T").is_err() && demand("1001TB/s").is_err());
    }

    #[test]
    fn a_machine_files_cache_is_the_option_that_it_shows() {
        let file = machine::Cache { size_bytes: 262_144, refill_us_per_kib: 0.128 };
        let of_file = live::cache(&file).unwrap();
        assert_eq!(of_file, Cache { bytes: 262_144, bytes_per_s: 8_000_000_000 });
        assert_eq!(cache(shown(&of_file).strip_prefix("--cache ").unwrap()), Ok(of_file));
        assert_eq!(live::cache(&machine::Cache { refill_us_per_kib: 0.0, ..file }), None);
    }

    #[test]
    fn what_has_no_effect_is_refused() {
        let with = |working_set, memory_rate| FootprintArgs { working_set, memory_rate };
        let memory = Memory { cache: cache("1MiB,8GB/s").ok(), socket: None };
        let wanted = Footprint { working_set_bytes: 4096, bytes_per_s: 0 };
        assert_eq!(with(Some(4096), None).on(&memory).unwrap(), wanted);
        assert!(with(None, Some(1)).on(&memory).is_err());
        assert!(with(Some(4096), None).on(&Memory::default()).is_err());
    }
}
