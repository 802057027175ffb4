//! The slot thread with processes that use all CPUs. CPU times are compared with wide margins: the machine may be busy.

use std::path::Path;
use std::time::Duration;

use cosched_core::{Disposition, Fill};
use cosched_linux::{Entry, IdleProbe, JobCgroup, SlotConfig, SlotThread, Table, mechanism, observe};

use crate::support::{Scene, alone, helper, used_ms, within};

const SECOND: Duration = Duration::from_secs(1);

fn table(jobs: &[(&JobCgroup, Disposition)], turns: &[&[u16]]) -> Table {
    let entry = |(job, otherwise): &(&JobCgroup, Disposition)| Entry {
        switch: job.switch_handle(),
        weight: 100,
        otherwise: *otherwise,
    };
    Table {
        epoch_ns: observe::realtime_ns() as u64,
        slot_length_ns: 20_000_000,
        jobs: jobs.iter().map(entry).collect(),
        turns: turns.iter().map(|turn| turn.to_vec()).collect(),
        fill: Fill::All,
        ..Table::empty()
    }
}

fn slots(scene: &Scene, name: &str) -> SlotThread {
    let mechanism = mechanism::choose(&scene.tree, false, Some(name)).expect("usable here");
    SlotThread::start(SlotConfig { priority: 10, beat: None }, mechanism).expect("start")
}

fn installed(slots: &SlotThread, table: Table) {
    let before = slots.stats().installs;
    slots.install(table);
    assert!(within(|| slots.stats().installs > before));
}

fn usable(scene: &Scene) -> Vec<&'static str> {
    mechanism::probe(&scene.tree).into_iter().filter(|p| p.usable).map(|p| p.name).collect()
}

#[test]
fn every_mechanism_stops_and_starts() {
    let Some(mut scene) = Scene::new() else { return };
    let _alone = alone();
    let (one, two) = (scene.spinners(1), scene.spinners(2));
    for name in usable(&scene) {
        let slots = slots(&scene, name);
        for (turn, otherwise) in
            [(0, Disposition::Stop), (1, Disposition::Stop), (0, Disposition::Background), (1, Disposition::Background)]
        {
            installed(&slots, table(&[(&one, otherwise), (&two, otherwise)], &[&[turn]]));
            // Weights take a while to act, and other work disturbs: one clean sample of several is enough.
            let mut used = Vec::new();
            let clean = (0..8).any(|_| {
                used = used_ms(&[&one, &two], SECOND / 4);
                used[1 - usize::from(turn)] < used[usize::from(turn)] / 5.0
            });
            assert!(clean, "{name}, {otherwise:?}: turn {turn}, used {used:?} ms");
        }
        let stats = slots.stats();
        assert_eq!((stats.errors, stats.count), (0, 0), "{name}: one turn needs no switch, {stats:?}");
        slots.stop();
        assert!(!one.frozen() && !two.frozen(), "{name}");
        let used = used_ms(&[&one, &two], SECOND / 2);
        assert!(used.iter().all(|&ms| ms > 0.0), "{name}: both run after the end, {used:?}");
    }
}

#[test]
fn turns_share_the_time_out() {
    let Some(mut scene) = Scene::new() else { return };
    let _alone = alone();
    let jobs = [scene.spinners(1), scene.spinners(2), scene.spinners(3)];
    for name in usable(&scene) {
        let slots = slots(&scene, name);
        let states = jobs.each_ref().map(|job| (job, Disposition::Background));
        // Job 1 has two turns of four.
        installed(&slots, table(&states, &[&[0], &[1], &[0], &[2]]));
        // Other processes take CPU time from the job that has its turn: one clean sample of several is enough.
        let mut used = Vec::new();
        let clean = (0..4).any(|_| {
            used = used_ms(&jobs.each_ref(), SECOND);
            let total: f64 = used.iter().sum();
            used.iter().zip([0.5, 0.25, 0.25]).all(|(job, share)| (job / total - share).abs() < 0.12)
        });
        assert!(clean, "{name}: {used:?}");
        let stats = slots.stats();
        assert!(stats.count >= 20 && stats.errors == 0, "{name}: {stats:?}");
        assert!(stats.wake.p50_us <= stats.done.p50_us, "{name}: {stats:?}");
    }
}

#[test]
fn an_idle_gang_leaves_its_cpus_to_the_background_when_soft() {
    let Some(mut scene) = Scene::new() else { return };
    let _alone = alone();
    let idle = scene.job(1, &["sleep", "1000"], 2);
    let busy = scene.spinners(2);
    let soft = mechanism::choose(&scene.tree, true, None).unwrap();
    let slots = SlotThread::start(SlotConfig { priority: 10, beat: None }, soft).unwrap();
    installed(&slots, table(&[(&idle, Disposition::Background), (&busy, Disposition::Background)], &[&[0]]));
    let background = used_ms(&[&busy], SECOND / 2)[0];
    installed(&slots, table(&[(&idle, Disposition::Background), (&busy, Disposition::Background)], &[&[1]]));
    let foreground = used_ms(&[&busy], SECOND / 2)[0];
    assert!(background > foreground / 10.0, "background {background} ms, foreground {foreground} ms");
}

#[test]
fn the_probe_lets_a_waiting_gang_fill_idle_slots() {
    let Some(mut scene) = Scene::new() else { return };
    let _alone = alone();
    let idle = scene.job(1, &["sleep", "1000"], 2);
    let busy = scene.spinners(2);
    let soft = mechanism::choose(&scene.tree, true, None).unwrap();
    let slots = SlotThread::start(SlotConfig { priority: 10, beat: None }, soft).unwrap();
    let turns = || table(&[(&idle, Disposition::Background), (&busy, Disposition::Background)], &[&[0], &[1]]);
    installed(&slots, turns());
    assert!(within(|| slots.stats().count > 20));
    assert_eq!(slots.stats().fills, 0, "strict without a probe");
    slots.set_probe(IdleProbe::spawn(Path::new(helper()), &scene.tree).unwrap());
    assert!(within(|| slots.stats().fills > 10));
    let stats = slots.stats();
    assert_eq!(stats.errors, 0, "{stats:?}");
    slots.stop();
    assert!(!idle.frozen() && !busy.frozen());
}

#[test]
fn a_job_that_leaves_the_table_runs() {
    let Some(mut scene) = Scene::new() else { return };
    let (one, two) = (scene.job(1, &["sleep", "1000"], 1), scene.job(2, &["sleep", "1000"], 1));
    let slots = slots(&scene, "freezer");
    installed(&slots, table(&[(&one, Disposition::Stop), (&two, Disposition::Stop)], &[]));
    assert!(one.frozen() && two.frozen());
    assert_eq!(one.switch_handle().state(), Some(Disposition::Stop));
    installed(&slots, table(&[(&two, Disposition::Stop)], &[]));
    assert!(!one.frozen() && two.frozen());
    slots.set_mechanism(mechanism::choose(&scene.tree, false, Some("signals")).unwrap());
    assert!(within(|| !two.frozen()), "the new mechanism stops it by signals");
    drop(slots);
}

#[test]
fn a_job_that_ends_while_it_is_switched_is_no_error() {
    let Some(mut scene) = Scene::new() else { return };
    let (one, two) = (scene.job(1, &["sleep", "1000"], 1), scene.job(2, &["sleep", "1000"], 1));
    for name in usable(&scene) {
        let slots = slots(&scene, name);
        let gone = scene.job(9, &["sleep", "1000"], 1);
        installed(
            &slots,
            table(
                &[(&one, Disposition::Stop), (&two, Disposition::Stop), (&gone, Disposition::Stop)],
                &[&[0], &[1], &[2]],
            ),
        );
        gone.kill().unwrap();
        assert!(within(|| !gone.populated().unwrap()));
        gone.remove().unwrap();
        let before = slots.stats().count;
        assert!(within(|| slots.stats().count > before + 6));
        assert_eq!(slots.stats().errors, 0, "{name}: {:?}", slots.stats());
    }
}

#[test]
fn cpu_time_outside_of_slots_is_told_from_that_inside() {
    let Some(mut scene) = Scene::new() else { return };
    let _alone = alone();
    let jobs = [scene.spinners(1), scene.spinners(2)];
    let strict = slots(&scene, "freezer");
    let stopped = jobs.each_ref().map(|job| (job, Disposition::Stop));
    installed(&strict, table(&stopped, &[&[0], &[1]]));
    let used_ns = used_ms(&jobs.each_ref(), SECOND).iter().sum::<f64>() * 1e6;
    let stats = strict.stats();
    assert!(stats.outside_ns * 10 < stats.inside_ns, "frozen gangs cannot stray: {stats:?}");
    assert!(stats.inside_ns as f64 > used_ns * 0.6, "{used_ns} ns used, {stats:?}");
    let of_jobs = jobs.iter().map(|job| job.switch_handle().slot_cpu_ns());
    let sum = of_jobs.fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    assert!(sum.0 >= stats.inside_ns && sum.1 >= stats.outside_ns, "{sum:?}, {stats:?}");
    assert_eq!(strict.histograms().work.count(), strict.histograms().done.count());
    strict.stop();
    let soft = SlotThread::start(
        SlotConfig { priority: 10, beat: None },
        mechanism::choose(&scene.tree, true, None).expect("usable here"),
    )
    .expect("start");
    // No job runs in the only turn: all CPU time of the jobs is outside their slots.
    let nobodys = |turns| table(&jobs.each_ref().map(|job| (job, Disposition::Background)), turns);
    installed(&soft, nobodys(&[&[]]));
    std::thread::sleep(SECOND / 2);
    installed(&soft, nobodys(&[&[], &[]]));
    assert!(within(|| soft.stats().outside_ns > 0), "{:?}", soft.stats());
    assert_eq!(soft.stats().inside_ns, 0);
}

#[test]
fn a_table_that_says_what_the_last_one_says_wakes_nobody() {
    let Some(mut scene) = Scene::new() else { return };
    let _alone = alone();
    let (one, two) = (scene.job(1, &["sleep", "1000"], 1), scene.job(2, &["sleep", "1000"], 1));
    let slots = slots(&scene, usable(&scene)[0]);
    let of = |job: &JobCgroup, turns: &[&[u16]]| table(&[(job, Disposition::Run)], turns);
    installed(&slots, of(&one, &[&[0]]));
    let before = slots.stats().installs;
    for _ in 0..3 {
        // Made at a different time; but the time of slots does not matter where all turns are the same.
        slots.install(of(&one, &[&[0]]));
    }
    assert_eq!(slots.tables_waiting(), 0);
    installed(&slots, of(&two, &[&[0]]));
    assert_eq!(slots.stats().installs, before + 1, "another job of the same kind is another table");
    installed(&slots, of(&two, &[&[0], &[]]));
    installed(&slots, of(&two, &[&[0], &[]]));
}
