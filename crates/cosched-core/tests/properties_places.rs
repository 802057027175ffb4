//! Places on random machines of up to 4 sockets, 64 cores each, 2 threads per core; and the cost of choosing them.

use cosched_core::{
    Class, Cpu, Job, JobId, Matrix, Node, NodeId, Packing, Placement, Planner, PlannerConfig, PlannerError,
    PlannerInput, Policy, Shares, Sharing, Time, Topology,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// What has its own memory.
#[derive(Clone, Copy, Debug)]
enum Numa {
    Machine,
    Socket,
    Cache,
}

/// Sockets of several caches each, numbered as Linux does: the first CPUs of all cores, then their siblings; or core by core.
fn machine(sockets: u32, caches: u32, cores: u32, threads: u32, by_core: bool, numa: Numa) -> Topology {
    let of_socket = cores.div_ceil(caches).max(1) * caches;
    let cpu = |core: u32| {
        let (socket, cache) = (core / of_socket, core / (of_socket / caches));
        let numa_node = match numa {
            Numa::Machine => 0,
            Numa::Socket => socket,
            Numa::Cache => cache,
        };
        Cpu { socket, numa_node, cache, core }
    };
    let all = sockets * of_socket;
    let cpus = match by_core {
        true => (0..all * threads).map(|at| cpu(at / threads)).collect(),
        false => (0..all * threads).map(|at| cpu(at % all)).collect(),
    };
    Topology::new(cpus)
}

fn machines() -> impl Strategy<Value = Topology> {
    let numa = prop_oneof![Just(Numa::Machine), Just(Numa::Socket), Just(Numa::Cache)];
    (1..=4_u32, 1..=4_u32, 1..=64_u32, 1..=2_u32, any::<bool>(), numa).prop_map(
        |(sockets, caches, cores, threads, by_core, numa)| {
            machine(sockets, caches.min(cores), cores, threads, by_core, numa)
        },
    )
}

/// The sockets, NUMA nodes, caches and cores of these columns.
fn parts(topology: &Topology, columns: &[u32]) -> [BTreeSet<u32>; 4] {
    let of = |cpu: Cpu| [cpu.socket, cpu.numa_node, cpu.cache, cpu.core];
    [0, 1, 2, 3].map(|at| columns.iter().map(|column| of(topology.cpus()[*column as usize])[at]).collect())
}

/// Cores without any taken CPU in a row, with their sockets.
fn whole_cores(topology: &Topology, taken: &BTreeSet<u32>) -> BTreeMap<u32, u32> {
    let busy: BTreeSet<u32> = taken.iter().map(|at| topology.cpus()[*at as usize].core).collect();
    topology.cpus().iter().filter(|cpu| !busy.contains(&cpu.core)).map(|cpu| (cpu.core, cpu.socket)).collect()
}

/// The smallest number of sockets that together have this number of these cores.
fn sockets_needed(cores: &BTreeMap<u32, u32>, wanted: usize) -> usize {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    cores.values().for_each(|socket| *counts.entry(*socket).or_default() += 1);
    let mut counts: Vec<usize> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let have = |sockets: &usize| counts[..*sockets].iter().sum::<usize>() >= wanted;
    (0..=counts.len()).find(have).unwrap_or(0)
}

fn columns_of_rows(matrix: &Matrix) -> Vec<BTreeSet<u32>> {
    let row =
        |row: &cosched_core::Row| (0..).zip(row.cells()).filter(|(_, cell)| cell.is_some()).map(|(at, _)| at).collect();
    matrix.rows().iter().map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_gang_with_cores_to_itself_has_whole_ones_and_nobody_else_any_of_their_cpus(
        topology in machines(), asks in prop::collection::vec((any::<u16>(), any::<bool>(), any::<bool>()), 1..40), best in any::<bool>(),
    ) {
        let (cpus, cores) = (topology.cpus().len(), topology.cores() as usize);
        let packing = if best { Packing::BestFit } else { Packing::FirstFit };
        let mut matrix = Matrix::of_places(NodeId(0), Arc::new(topology.clone()));
        let core = |at: &u32| topology.cpus()[*at as usize].core;
        let mut alone: BTreeMap<u64, usize> = BTreeMap::new();
        for (id, (width, is_alone, goes)) in (0..).zip(asks) {
            let most = if is_alone { cores } else { cpus };
            let width = (1 + most * usize::from(width).pow(2) / (1 << 32)).min(most);
            let before = columns_of_rows(&matrix);
            let place = match is_alone {
                true => matrix.insert_alone(JobId(id), width as u32, packing),
                false => matrix.insert(JobId(id), width as u32, None, packing),
            }.unwrap();
            if is_alone {
                alone.insert(id, width);
                let none = BTreeSet::new();
                let whole = whole_cores(&topology, before.get(place.row).unwrap_or(&none));
                // Those that are begun are not whole.
                let of_core = |core: &u32| topology.cpus().iter().filter(|cpu| cpu.core == *core).count();
                let begun: BTreeSet<u32> = before.get(place.row).unwrap_or(&none).iter().map(core).collect();
                let has: BTreeSet<u32> = place.columns.iter().map(core).collect();
                prop_assert_eq!(has.len(), width, "as many cores");
                prop_assert!(has.is_disjoint(&begun), "none that is begun");
                prop_assert_eq!(place.columns.len(), has.iter().map(of_core).sum::<usize>(), "whole");
                let sockets: BTreeSet<u32> = place.columns.iter().map(|at| topology.cpus()[*at as usize].socket).collect();
                prop_assert_eq!(sockets.len(), sockets_needed(&whole, width), "sockets");
            }
            if goes {
                matrix.remove(JobId(id / 2));
                matrix.unify();
                alone.remove(&(id / 2));
            }
            // Also after gangs were moved to other rows.
            for (id, width) in &alone {
                let home = matrix.home(JobId(*id)).unwrap();
                let has: BTreeSet<u32> = home.columns.iter().map(core).collect();
                let of_others = (0..).zip(matrix.rows()[home.row].cells()).filter(|(_, cell)| cell.is_some_and(|other| other != JobId(*id)));
                prop_assert!(of_others.map(|(at, _)| core(&at)).all(|core| !has.contains(&core)), "another job has a sibling");
                prop_assert_eq!(has.len(), *width);
            }
        }
    }

    #[test]
    fn whole_cores_of_few_sockets_and_nobodys_cpu_twice(
        topology in machines(), widths in prop::collection::vec((any::<u16>(), any::<bool>()), 1..40), best in any::<bool>(),
    ) {
        let cpus = topology.cpus().len();
        let packing = if best { Packing::BestFit } else { Packing::FirstFit };
        let mut matrix = Matrix::of_places(NodeId(0), Arc::new(topology.clone()));
        for (id, (width, goes)) in (0..).zip(widths) {
            // Small gangs are more frequent.
            let width = (1 + cpus * usize::from(width).pow(2) / (1 << 32)).min(cpus);
            let before = columns_of_rows(&matrix);
            let before_of: BTreeMap<u64, Placement> = (0..id).filter_map(|id| Some((id, matrix.home(JobId(id))?))).collect();
            let place = matrix.insert(JobId(id), width as u32, None, packing).unwrap();
            let none = BTreeSet::new();
            let others = before.get(place.row).unwrap_or(&none);
            prop_assert_eq!(place.columns.len(), width);
            prop_assert!(place.columns.iter().all(|at| (*at as usize) < cpus), "there is no such CPU");
            let now = columns_of_rows(&matrix);
            prop_assert_eq!(now[place.row].len(), others.len() + width, "twice");
            let moved: Vec<Placement> = (0..id).filter_map(|id| Some((id, matrix.home(JobId(id))?))).filter_map(|(id, home)| {
                (before_of.get(&id) != Some(&home)).then_some(home)
            }).collect();
            if !moved.is_empty() {
                // Gangs of this row were gathered, to have cores of their own.
                let own = |home: &Placement| parts(&topology, &home.columns)[3].clone();
                for home in moved.iter().chain([&place]) {
                    let beside: Vec<u32> = now[place.row].iter().copied().filter(|at| !home.columns.contains(at)).collect();
                    prop_assert_eq!(home.row, place.row, "of another row");
                    prop_assert!(own(home).is_disjoint(&parts(&topology, &beside)[3]), "a core is shared");
                }
                continue;
            }
            prop_assert!(place.columns.iter().all(|at| !others.contains(at)), "another gang's");
            let whole = whole_cores(&topology, others);
            let parts: Vec<Cpu> = place.columns.iter().map(|at| topology.cpus()[*at as usize]).collect();
            let cores: BTreeSet<u32> = parts.iter().map(|cpu| cpu.core).collect();
            prop_assert!(cores.iter().filter(|core| whole.contains_key(core)).count() >= width.min(whole.len()), "whole cores first");
            if width <= whole.len() {
                prop_assert_eq!(cores.len(), width, "one CPU of each");
                let sockets: BTreeSet<u32> = parts.iter().map(|cpu| cpu.socket).collect();
                prop_assert_eq!(sockets.len(), sockets_needed(&whole, width), "sockets");
            }
            let stay: Vec<_> = (0..id).filter_map(|id| Some((id, matrix.home(JobId(id))?))).collect();
            if goes {
                matrix.remove(JobId(id / 2));
                matrix.unify();
            }
            let rows = matrix.rows().len();
            let mut kept = stay.iter().filter(|(id, _)| matrix.home(JobId(*id)).is_some());
            // Otherwise gangs are only moved when a row is given up.
            let has_moved = kept.any(|(id, home)| matrix.home(JobId(*id)).as_ref().map(|now| &now.columns) != Some(&home.columns));
            prop_assert!(!has_moved || rows <= before.len(), "a gang has moved");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn two_gangs_of_half_the_machine_have_halves_of_it(topology in machines(), best in any::<bool>()) {
        let half = topology.cpus().len() / 2;
        prop_assume!(half > 0);
        let packing = if best { Packing::BestFit } else { Packing::FirstFit };
        let mut matrix = Matrix::of_places(NodeId(0), Arc::new(topology.clone()));
        let first = matrix.insert(JobId(0), half as u32, None, packing).unwrap();
        let all = topology.cores() as usize;
        prop_assert_eq!(parts(&topology, &first.columns)[3].len(), half.min(all), "alone: a core for each CPU");
        let second = matrix.insert(JobId(1), half as u32, None, packing).unwrap();
        let first = matrix.home(JobId(0)).unwrap();
        prop_assert_eq!((first.row, second.row), (0, 0));
        let (one, other) = (parts(&topology, &first.columns), parts(&topology, &second.columns));
        let [sockets, nodes, caches, _] = parts(&topology, &(0..topology.cpus().len() as u32).collect::<Vec<_>>());
        let names = ["socket", "NUMA node", "cache"];
        for (at, count) in [sockets.len(), nodes.len(), caches.len()].into_iter().enumerate() {
            // All of a level are of one size.
            prop_assert!(count % 2 == 1 || one[at].is_disjoint(&other[at]), "both have CPUs of a {}", names[at]);
        }
        let is_halved = [&sockets, &nodes, &caches].iter().any(|parts| parts.len() > 1);
        let fit = all.is_multiple_of(2) && is_halved;
        prop_assert!(!fit || one[3].is_disjoint(&other[3]), "both have CPUs of a core");
        // As long as both stay, so do their places; and a third gang, of another row, changes nothing.
        matrix.insert(JobId(2), half as u32, None, packing).unwrap();
        matrix.unify();
        prop_assert_eq!([0, 1].map(|id| matrix.home(JobId(id))), [Some(first), Some(second)]);
    }
}

fn planner(topology: Option<Topology>, cpus: u32) -> Planner {
    let planner = Planner::new(PlannerConfig {
        nodes: vec![Node { id: NodeId(0), cpus }],
        slot_length_ns: 100_000_000,
        policy: Policy::Gang,
        sharing: Sharing::Soft,
        packing: Packing::FirstFit,
        shares: Shares::default(),
    });
    match topology {
        Some(topology) => planner.with_places(Arc::new(topology)),
        None => planner,
    }
}

fn submit(planner: &mut Planner, id: u64, cpus: u32) {
    let job = Job { id: JobId(id), owner: 0, class: Class::Batch, policy: None, cpus, node: None };
    planner.handle(Time(0), PlannerInput::Submit(job)).unwrap();
}

fn place(planner: &Planner, id: u64) -> Option<Vec<u32>> {
    planner.plan().place(JobId(id)).map(<[u32]>::to_vec)
}

#[test]
fn a_gang_keeps_its_place_while_others_come_and_go_and_gets_it_again_when_it_wakes() {
    let mut planner = planner(Some(machine(2, 1, 2, 2, false, Numa::Socket)), 8);
    (1..=3).for_each(|id| submit(&mut planner, id, 2));
    assert_eq!([1, 2, 3].map(|id| place(&planner, id).unwrap()), [[0, 1], [2, 3], [4, 5]]);
    planner.handle(Time(0), PlannerInput::End(JobId(1))).unwrap();
    submit(&mut planner, 4, 1);
    assert_eq!([2, 3].map(|id| place(&planner, id).unwrap()), [[2, 3], [4, 5]]);
    planner.handle(Time(0), PlannerInput::Asleep(JobId(3))).unwrap();
    assert_eq!(place(&planner, 3), None, "its cells are free");
    submit(&mut planner, 5, 1);
    planner.handle(Time(0), PlannerInput::Awake(JobId(3))).unwrap();
    assert_eq!(place(&planner, 3), Some(vec![4, 5]));
    planner.handle(Time(0), PlannerInput::Cpus(JobId(3), 1)).unwrap();
    assert_eq!(place(&planner, 3).map(|at| at.len()), Some(1));
    planner.handle(Time(0), PlannerInput::Cpus(JobId(3), 8)).unwrap();
    assert_eq!(place(&planner, 3), None, "as wide as the machine: all CPUs");
}

#[test]
fn a_second_gang_of_half_the_machine_has_the_other_socket() {
    let mut planner = planner(Some(machine(2, 1, 2, 2, false, Numa::Socket)), 8);
    submit(&mut planner, 1, 4);
    assert_eq!(place(&planner, 1), Some(vec![0, 1, 2, 3]), "alone: whole cores");
    submit(&mut planner, 2, 4);
    let both = [Some(vec![0, 1, 4, 5]), Some(vec![2, 3, 6, 7])];
    assert_eq!([1, 2].map(|id| place(&planner, id)), both);
    assert_eq!((planner.plan().turns.len(), planner.plan().check()), (1, Ok(())));
    // Asleep and awake, and beside a gang of another row, they have the same places.
    planner.handle(Time(0), PlannerInput::Asleep(JobId(1))).unwrap();
    submit(&mut planner, 3, 8);
    planner.handle(Time(0), PlannerInput::Awake(JobId(1))).unwrap();
    assert_eq!([1, 2].map(|id| place(&planner, id)), both);
    // Gangs with cores to themselves stay where they are.
    let mut planner = self::planner(Some(machine(2, 1, 2, 2, false, Numa::Socket)), 8);
    submit(&mut planner, 1, 3);
    planner.handle(Time(0), PlannerInput::WholeCores(JobId(1))).unwrap();
    let before = place(&planner, 1);
    submit(&mut planner, 2, 2);
    assert_eq!((before.as_deref(), place(&planner, 1)), (Some(&[0, 1, 2][..]), before.clone()));
}

#[test]
fn a_gang_with_cores_to_itself_runs_on_one_cpu_of_each_and_lends_and_fills_nothing_beside() {
    let mut planner = planner(Some(machine(2, 1, 2, 2, false, Numa::Socket)), 8);
    let alone = |planner: &mut Planner, id, cpus| {
        submit(planner, id, cpus);
        planner.handle(Time(0), PlannerInput::WholeCores(JobId(id)))
    };
    assert_eq!(alone(&mut planner, 1, 2), Ok(()));
    submit(&mut planner, 2, 4);
    submit(&mut planner, 3, 6);
    assert_eq!(place(&planner, 1), Some(vec![0, 1]), "and the siblings 4 and 5 stay empty");
    assert_eq!(place(&planner, 2), Some(vec![2, 3, 6, 7]), "whole cores of the other socket");
    let plan = planner.plan();
    assert_eq!(plan.check(), Ok(()));
    let beside = |id| plan.turns.iter().any(|turn| turn.run.contains(&JobId(1)) && turn.run.contains(&JobId(id)));
    assert_eq!([2, 3].map(beside), [true, false]);
    // Nor may job 3 fill there, which has these CPUs in a row of its own.
    let here: BTreeMap<JobId, u64> = [1, 2, 3].map(|id| (JobId(id), id)).into();
    let (table, flaw) = cosched_core::Table::compile(plan, here, true, |_| cosched_core::Disposition::Run);
    assert_eq!(flaw, None);
    let prepared = cosched_core::Prepared::new(table, 1);
    for (slot, turn) in (0..).zip(&plan.turns) {
        let fills: Vec<u64> = prepared.fills(slot).map(|at| prepared.jobs[usize::from(at)].switch).collect();
        let overlaps = place(&planner, 3).unwrap().iter().any(|at| [4, 5].contains(at));
        assert!(overlaps && (!turn.run.contains(&JobId(1)) || !fills.contains(&3)), "slot {slot}: {fills:?}");
        assert!(turn.run.contains(&JobId(1)) || fills.contains(&1), "it fills itself: {fills:?}");
    }
    let refused = PlannerError::TooManyCores { wanted: 5, cores: 4 };
    assert_eq!(planner.handle(Time(0), PlannerInput::Cpus(JobId(1), 5)), Err(refused));
    // Asleep and awake it has the same cores again.
    planner.handle(Time(0), PlannerInput::Asleep(JobId(1))).unwrap();
    planner.handle(Time(0), PlannerInput::Awake(JobId(1))).unwrap();
    assert_eq!((place(&planner, 1), planner.plan().check()), (Some(vec![0, 1]), Ok(())));
    planner.handle(Time(0), PlannerInput::Cpus(JobId(1), 4)).unwrap();
    assert_eq!((place(&planner, 1), planner.plan().check()), (Some(vec![0, 1, 2, 3]), Ok(())));
    assert_eq!(alone(&mut planner, 4, 5), Err(refused), "it runs as any other");
    // Without siblings it changes nothing.
    let mut flat = self::planner(Some(Topology::flat(4)), 4);
    alone(&mut flat, 1, 2).unwrap();
    submit(&mut flat, 2, 2);
    assert_eq!([1, 2].map(|id| place(&flat, id).unwrap()), [[0, 1], [2, 3]]);
    assert_eq!((flat.plan().turns.len(), flat.plan().check()), (1, Ok(())));
}

#[test]
fn a_place_that_was_remembered_is_given_again() {
    let mut planner = planner(Some(Topology::flat(4)), 4);
    planner.remember_place(JobId(1), vec![2]);
    // A record may be of another machine.
    planner.remember_place(JobId(2), vec![9]);
    (1..=2).for_each(|id| submit(&mut planner, id, 1));
    assert_eq!([1, 2].map(|id| place(&planner, id).unwrap()), [[2], [0]]);
}

#[test]
fn single_cpu_jobs_run_in_their_places_and_plans_stay_sound() {
    let mut planner = planner(Some(Topology::flat(2)), 2);
    (1..=3).for_each(|id| submit(&mut planner, id, 1));
    let plan = planner.plan();
    assert_eq!(plan.check(), Ok(()));
    assert_eq!(
        [1, 2, 3].map(|id| plan.share(JobId(id)).unwrap()),
        [(1, 2), (2, 2), (1, 2)],
        "CPU 1 is free beside job 3"
    );
}

#[test]
fn a_place_costs_no_more_than_the_plan() {
    // `examples/place_speed.rs` measures more of them.
    const ARRIVALS: u32 = 200;
    let time = |topology: Option<Topology>| {
        let mut planner = planner(topology, 256);
        let start = Instant::now();
        (0..u64::from(ARRIVALS)).for_each(|id| submit(&mut planner, id, 1 + (id * 7 % 31) as u32));
        start.elapsed()
    };
    let (counted, placed) = (time(None), time(Some(machine(4, 4, 32, 2, false, Numa::Socket))));
    assert!(placed < counted * 4, "counted {counted:?}, placed {placed:?}");
}
