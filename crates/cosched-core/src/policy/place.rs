//! Places: which CPUs the cells of a gang stand for.
//!
//! Problem: programs bind themselves, and each believes that it is alone. Two `mpirun -n 1` side by side bind themselves to the same first
//! core while another one is idle; and threads of one gang that share a core with another gang's, or whose data lies in the memory of
//! core while another one is idle; and threads of one gang that share a core with another gang's, or whose data is in the memory of
//!
//! Rule. Of the CPUs that are free in a row, a gang gets, in this order of importance:
//! 1. cores of which no other gang of the row has a CPU, one CPU of each, before two CPUs of a core (siblings);
//! 2. if these do not suffice, the siblings of its own cores, before siblings of another gang's;
//! 3. each of these from as few sockets, NUMA nodes and caches (in this order) as possible;
//! 4. of several sockets, NUMA nodes or caches with room for all, the smallest one: large ones stay for large gangs; of equals the first.
//!
//! A gang that had a place before (it was asleep or stopped, or the daemon was restarted) gets the same one again, if it is free in a row: its
//! data may still be in the caches. A gang keeps its place as long as it keeps its cells; it gets another one when another width is
//! requested, or when a whole row can be given up because its gangs fit into others.
//!
//! Source: the order of hwloc-distrib and of Slurm's `--cpu-bind=cores`, cores before threads; best fit against fragmentation: Knuth,
//! TAOCP 2.5. Units: CPUs. Time: O(n log n) in the CPUs of the node.

use crate::topology::{Cpu, Topology};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A free CPU: its socket, NUMA node and cache, and its column.
type Free = ([u32; 3], u32);

/// The columns for a gang of `wanted` CPUs, ascending, out of the free ones; `None` when these are too few.
pub(crate) fn place(topology: &Topology, is_free: impl Fn(usize) -> bool, wanted: usize) -> Option<Vec<u32>> {
    let mut cores: BTreeMap<u32, Core> = BTreeMap::new();
    for (column, cpu) in topology.cpus().iter().enumerate() {
        let core = cores.entry(cpu.core).or_default();
        match is_free(column) {
            true => core.free.push(free_cpu(*cpu, column)),
            false => core.is_shared = true,
        }
    }
    let (mut first, mut siblings, mut shared) = (Vec::new(), Vec::new(), Vec::new());
    for core in cores.into_values() {
        match core.is_shared {
            true => shared.extend(core.free),
            false => {
                first.extend(core.free.first());
                siblings.extend(core.free.into_iter().skip(1));
            }
        }
    }
    let mut taken = Vec::with_capacity(wanted);
    for mut cpus in [first, siblings, shared] {
        cpus.sort_unstable();
        let count = (wanted - taken.len()).min(cpus.len());
        take(&cpus, count, 0, &mut taken);
    }
    taken.sort_unstable();
    (taken.len() == wanted).then_some(taken)
}

#[derive(Default)]
struct Core {
    free: Vec<Free>,
    /// Another gang has one of its CPUs.
    is_shared: bool,
}

fn free_cpu(cpu: Cpu, column: usize) -> Free {
    ([cpu.socket, cpu.numa_node, cpu.cache], column as u32)
}

/// Takes `count` of these CPUs, which must be sorted, from as few parts of a level as possible: all CPUs of the largest parts, and the rest from the
/// smallest part that has enough.
fn take(cpus: &[Free], mut count: usize, level: usize, taken: &mut Vec<u32>) {
    if count == cpus.len() || level == 3 {
        taken.extend(cpus[..count].iter().map(|(_, column)| *column));
        return;
    }
    let mut parts: Vec<&[Free]> = cpus.chunk_by(|a, b| a.0[level] == b.0[level]).collect();
    // A stable sort: of equals the first.
    parts.sort_by_key(|part| part.len());
    while count > 0 {
        let at = parts.partition_point(|part| part.len() < count).min(parts.len() - 1);
        // If no part has enough, the first of the largest.
        let at = parts.partition_point(|part| part.len() < parts[at].len());
        let part = parts.remove(at);
        let some = count.min(part.len());
        take(part, some, level + 1, taken);
        count -= some;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Sockets of one NUMA node and cache each, numbered as Linux does: the first CPUs of all cores, then their siblings.
    fn machine(sockets: u32, cores: u32, threads: u32) -> Topology {
        let all = (0..threads).flat_map(|_| (0..sockets * cores).map(|core| (core / cores, core)));
        Topology::new(all.map(|(socket, core)| Cpu { socket, numa_node: socket, cache: socket, core }).collect())
    }

    fn places(topology: &Topology, widths: &[usize]) -> Vec<Vec<u32>> {
        let mut taken = vec![false; topology.cpus().len()];
        let mut one = |width| {
            let found = place(topology, |at| !taken[at], width).unwrap();
            found.iter().for_each(|at| taken[*at as usize] = true);
            found
        };
        widths.iter().map(|width| one(*width)).collect()
    }

    #[test]
    fn a_gang_of_two_has_two_whole_cores_of_one_socket() {
        // Cores 0 and 1 are socket 0: CPUs 0, 1 and their siblings 4, 5.
        let machine = machine(2, 2, 2);
        assert_eq!(places(&machine, &[2, 2, 2, 2]), [[0, 1], [2, 3], [4, 5], [6, 7]]);
    }

    #[test]
    fn whole_cores_come_before_siblings_and_own_siblings_before_others() {
        let machine = machine(2, 2, 2);
        assert_eq!(places(&machine, &[4, 4]), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert_eq!(
            places(&machine, &[2, 4]),
            [vec![0, 1], vec![2, 3, 6, 7]],
            "the siblings 4, 5 are beside the first gang"
        );
        assert_eq!(places(&machine, &[8]), [[0, 1, 2, 3, 4, 5, 6, 7]]);
        assert_eq!(place(&machine, |at| at != 3, 8), None);
        assert_eq!(place(&machine, |_| false, 0), Some(vec![]));
    }

    #[test]
    fn small_gangs_fill_what_is_begun() {
        let machine = machine(2, 4, 1);
        assert_eq!(places(&machine, &[3, 2, 1]), [vec![0, 1, 2], vec![4, 5], vec![3]]);
        assert_eq!(places(&machine, &[3, 3, 2]), [vec![0, 1, 2], vec![4, 5, 6], vec![3, 7]], "no socket has two left");
    }

    #[test]
    fn a_cache_is_filled_before_the_next_one() {
        // One socket with caches of 2 cores.
        let cpu = |core| Cpu { cache: core / 2, core, ..Cpu::default() };
        let machine = Topology::new((0..6).map(cpu).collect());
        assert_eq!(places(&machine, &[1, 2, 1]), [vec![0], vec![2, 3], vec![1]]);
        assert_eq!(places(&machine, &[1, 3]), [vec![0], vec![1, 2, 3]], "the rest is in the cache with the least");
    }
}
