//! `cosched-cluster NODES CPUS CONFIG COMMAND…` makes a cluster of NODES nodes with CPUS CPUs each (tests/src/cluster), runs a
//! command on the first one, n1, and removes the cluster. CONFIG is a file that is added to every node's configuration. Open MPI
//! is told of the network by its environment.
//! Exit code: the command's; 0, with a line `SKIPPED: reason`, where no such cluster can be made; 2 for wrong use.

use cosched_tests::cluster::jobs::QUICK;
use cosched_tests::cluster::net::Net;
use cosched_tests::cluster::{Cluster, needs};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [nodes, cpus, config, command, arguments @ ..] = &words[..] else { return wrong_use() };
    let (Ok(nodes @ 1..=16), Ok(cpus @ 1..=16)) = (nodes.parse(), cpus.parse()) else { return wrong_use() };
    if !needs(&["etcd", "openssl", "mpirun"]) || !has_cpus(cpus) {
        return ExitCode::SUCCESS;
    }
    let config = std::fs::read_to_string(config).unwrap_or_else(|e| panic!("{config}: {e}"));
    let cluster = Cluster::on_net(Net::with_cpus(nodes + 1, cpus), 1, &format!("{QUICK}{config}"));
    cluster.until_met();
    let parameters = cluster.net().openmpi_parameters().into_iter();
    // Entering a mount namespace changes the working directory to its root.
    let folder = std::env::current_dir().expect("a folder");
    let mut here = cluster.node(0).command("env");
    here.arg("-C")
        .arg(folder)
        .arg(command)
        .args(arguments)
        .envs(parameters.map(|(name, value)| (format!("OMPI_MCA_{name}"), value)));
    let ended = here.status().expect("nsenter runs");
    ended.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn has_cpus(wanted: usize) -> bool {
    let there = std::thread::available_parallelism().map_or(1, usize::from);
    if there < wanted {
        println!("SKIPPED: nodes with {wanted} CPUs need as many on the machine, which has {there}");
    }
    there >= wanted
}

fn wrong_use() -> ExitCode {
    eprintln!("cosched-cluster NODES CPUS CONFIG COMMAND…");
    ExitCode::from(2)
}
