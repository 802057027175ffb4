//! Places: which CPUs the cells of a gang stand for.
//!
//! Problem: programs bind themselves, and each believes that it is alone. Two `mpirun -n 1` side by side bind themselves to the same first
//! core while another one is idle; and threads of one gang that share a core with another gang's, or whose data is in the memory of
//! another socket, run slower.
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
//! Alone in its row, a gang may have cores of more sockets, NUMA nodes or caches than it has CPUs for, by 1. When another gang arrives that would
//! have to share cores, the two are gathered (`gather`): each gets as few of these as hold its CPUs, with siblings, and no gang has a CPU of another's
//! core. So two gangs of half a machine of two sockets have a socket each. Where that does not succeed, no gang moves.
//!
//! A gang that is to have its cores to itself has all CPUs of as many cores as it has CPUs as its cells, chosen by 3 and 4, and runs on the
//! first CPU of each. So the siblings stay empty in its row, whoever else is packed there or lent what is free.
//!
//! Source: the order of hwloc-distrib and of Slurm's `--cpu-bind=cores`, cores before threads; best fit against fragmentation: Knuth,
//! TAOCP 2.5. Units: CPUs. Time: O(n log n) in the CPUs of the node.

use crate::topology::{Cpu, Topology};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// A free CPU: its socket, NUMA node and cache, and its column.
type Free = ([u32; 3], u32);

/// The columns for a gang of `wanted` CPUs, ascending, out of the free ones; `None` when these are too few.
pub(crate) fn place(topology: &Topology, is_free: impl Fn(usize) -> bool, wanted: usize) -> Option<Vec<u32>> {
    let cores = cores(topology, is_free);
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

/// The columns of as many whole cores as are wanted, ascending, of those of which all CPUs are free; `None` when these are too few.
pub(crate) fn whole_cores(topology: &Topology, is_free: impl Fn(usize) -> bool, wanted: usize) -> Option<Vec<u32>> {
    let whole = cores(topology, is_free).into_values().filter(|core| !core.is_shared);
    let mut first: Vec<Free> = whole.filter_map(|core| core.free.first().copied()).collect();
    first.sort_unstable();
    let mut taken = Vec::with_capacity(wanted);
    take(&first, wanted.min(first.len()), 0, &mut taken);
    (taken.len() == wanted).then(|| with_siblings(topology, &taken))
}

/// All columns of the cores of these columns, ascending.
pub(crate) fn with_siblings(topology: &Topology, columns: &[u32]) -> Vec<u32> {
    let core = |column: &u32| Some(topology.cpus().get(*column as usize)?.core);
    let cores: BTreeSet<u32> = columns.iter().filter_map(core).collect();
    (0..).zip(topology.cpus()).filter(|(_, cpu)| cores.contains(&cpu.core)).map(|(column, _)| column).collect()
}

/// The first column of each core of these columns, ascending.
pub(crate) fn first_of_cores(topology: &Topology, columns: &[u32]) -> Vec<u32> {
    let mut seen = BTreeSet::new();
    columns.iter().copied().filter(|column| seen.insert(topology.cpus()[*column as usize].core)).collect()
}

/// Whether gangs with these columns, and another one, are to be gathered: the other one has a CPU of a core of theirs.
pub(crate) fn shares_a_core(topology: &Topology, is_taken: impl Fn(usize) -> bool, columns: &[u32]) -> bool {
    let own: BTreeSet<u32> = columns.iter().map(|column| topology.cpus()[*column as usize].core).collect();
    topology.cpus().iter().enumerate().any(|(at, cpu)| own.contains(&cpu.core) && is_taken(at))
}

/// The gangs with these columns that have CPUs of more sockets, NUMA nodes or caches than as many CPUs need.
pub(crate) fn spread<'a, K>(
    topology: &'a Topology,
    gangs: impl IntoIterator<Item = (K, Vec<u32>)> + 'a,
) -> impl Iterator<Item = (K, Vec<u32>)> + 'a
where
    K: 'a,
{
    let sizes = LEVELS.map(|level| {
        let mut sizes: BTreeMap<&[u32], usize> = BTreeMap::new();
        let parts: Vec<[u32; 3]> = topology.cpus().iter().map(|cpu| parts(*cpu)).collect();
        parts.iter().for_each(|parts| *sizes.entry(&parts[..level]).or_default() += 1);
        let mut sizes: Vec<usize> = sizes.into_values().collect();
        sizes.sort_unstable_by_key(|size| Reverse(*size));
        sizes
    });
    let is_spread = move |columns: &[u32]| {
        let has: BTreeSet<[u32; 3]> = columns.iter().map(|at| parts(topology.cpus()[*at as usize])).collect();
        LEVELS.into_iter().zip(&sizes).any(|(level, sizes)| {
            let had = has.iter().map(|parts| &parts[..level]).collect::<BTreeSet<_>>().len();
            sizes.iter().take(had - 1).sum::<usize>() >= columns.len()
        })
    };
    gangs.into_iter().filter(move |(_, columns)| is_spread(columns))
}

/// The columns of gangs of these widths, each of as few sockets, NUMA nodes and caches as hold its CPUs; none of a core of which another gang has a
/// CPU. `None` if they do not fit so.
pub(crate) fn gather(topology: &Topology, is_free: impl Fn(usize) -> bool, widths: &[usize]) -> Option<Vec<Vec<u32>>> {
    let mut order: Vec<usize> = (0..widths.len()).collect();
    order.sort_by_key(|at| Reverse(widths[*at]));
    let fit = |is_tight: bool| {
        let mut free: Vec<bool> = (0..topology.cpus().len()).map(&is_free).collect();
        let mut found = vec![Vec::new(); widths.len()];
        for at in &order {
            let columns = gathered(topology, |at| free[at], widths[*at], is_tight)?;
            columns.iter().for_each(|column| free[*column as usize] = false);
            found[*at] = columns;
        }
        Some(found)
    };
    // If one core for each CPU, as far as there are enough, leaves too little for all, siblings first.
    [false, true].into_iter().find_map(fit)
}

fn gathered(topology: &Topology, is_free: impl Fn(usize) -> bool, wanted: usize, is_tight: bool) -> Option<Vec<u32>> {
    let own = cores(topology, is_free).into_values().filter(|core| !core.is_shared);
    // Core by core.
    let mut free: Vec<Free> = own.flat_map(|core| core.free).collect();
    free.sort_by_key(|(parts, _)| *parts);
    let mut taken = Vec::with_capacity(wanted);
    take(&free, wanted.min(free.len()), 0, &mut taken);
    if !is_tight {
        let of: BTreeSet<[u32; 3]> = taken.iter().map(|at| parts(topology.cpus()[*at as usize])).collect();
        let here: BTreeSet<u32> = free.iter().filter(|(parts, _)| of.contains(parts)).map(|(_, at)| *at).collect();
        return place(topology, |at| here.contains(&(at as u32)), wanted);
    }
    taken.sort_unstable();
    (taken.len() == wanted).then_some(taken)
}

fn cores(topology: &Topology, is_free: impl Fn(usize) -> bool) -> BTreeMap<u32, Core> {
    let mut cores: BTreeMap<u32, Core> = BTreeMap::new();
    for (column, cpu) in topology.cpus().iter().enumerate() {
        let core = cores.entry(cpu.core).or_default();
        match is_free(column) {
            true => core.free.push(free_cpu(*cpu, column)),
            false => core.is_shared = true,
        }
    }
    cores
}

#[derive(Default)]
struct Core {
    free: Vec<Free>,
    /// Another gang has one of its CPUs.
    is_shared: bool,
}

fn free_cpu(cpu: Cpu, column: usize) -> Free {
    (parts(cpu), column as u32)
}

/// What a CPU is part of, by level: as many of these as the level says tell one part from another.
fn parts(cpu: Cpu) -> [u32; 3] {
    [cpu.socket, cpu.numa_node, cpu.cache]
}

/// Sockets, NUMA nodes, caches.
const LEVELS: [usize; 3] = [1, 2, 3];

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
    fn a_gang_with_cores_to_itself_has_all_their_siblings_and_none_that_others_have_begun() {
        let machine = machine(2, 2, 2);
        let of = |is_free: &dyn Fn(usize) -> bool, wanted| whole_cores(&machine, is_free, wanted);
        assert_eq!(of(&|_| true, 2), Some(vec![0, 1, 4, 5]), "of one socket");
        assert_eq!(of(&|at| at != 5, 2), Some(vec![2, 3, 6, 7]), "another job has the sibling of CPU 1");
        assert_eq!((of(&|at| at != 5, 4), of(&|_| false, 0)), (None, Some(vec![])));
        assert_eq!(first_of_cores(&machine, &[0, 1, 4, 5]), [0, 1]);
        assert_eq!(with_siblings(&machine, &[3, 9]), [3, 7], "there is no column 9");
    }

    #[test]
    fn small_gangs_fill_what_is_begun() {
        let machine = machine(2, 4, 1);
        assert_eq!(places(&machine, &[3, 2, 1]), [vec![0, 1, 2], vec![4, 5], vec![3]]);
        assert_eq!(places(&machine, &[3, 3, 2]), [vec![0, 1, 2], vec![4, 5, 6], vec![3, 7]], "no socket has two left");
    }

    #[test]
    fn gangs_that_are_spread_are_gathered_where_each_then_has_cores_of_its_own() {
        let machine = machine(2, 2, 2);
        let is_spread = |columns: &[u32]| spread(&machine, [((), columns.to_vec())]).next().is_some();
        assert_eq!([&[0, 1, 2, 3][..], &[0, 1, 2]].map(is_spread), [true; 2], "a socket holds as many");
        assert_eq!([&[0, 1][..], &[0, 1, 4, 5], &[0, 1, 2, 3, 4], &[7]].map(is_spread), [false; 4]);
        let all = |widths: &[usize]| gather(&machine, |_| true, widths);
        assert_eq!(all(&[4, 4]), Some(vec![vec![0, 1, 4, 5], vec![2, 3, 6, 7]]));
        assert_eq!(all(&[3, 4]), Some(vec![vec![2, 3, 6], vec![0, 1, 4, 5]]), "the widest first");
        assert_eq!(all(&[2, 4]), Some(vec![vec![2, 3], vec![0, 1, 4, 5]]));
        assert_eq!(all(&[3, 5]), None, "a core would be shared");
        // Three sockets for two gangs: a core for each CPU of one would leave too little for the other.
        let three = super::tests::machine(3, 2, 2);
        let [first, second] = &gather(&three, |_| true, &[6, 6]).unwrap()[..] else { panic!() };
        assert!(!shares_a_core(&three, |at| first.contains(&(at as u32)), second), "{first:?} {second:?}");
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
