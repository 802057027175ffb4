//! Boosting by the slot thread, with real processes.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use cosched_core::{Disposition, Fill};
use cosched_linux::{
    ArrivalBell, Arrivals, Boost, BoostJob, BoostTiming, Choice, Chooser, Entry, JobCgroup, JobSockets, PageLayout,
    Seen, SlotConfig, SlotThread, Table, WaitPage, mechanism, observe,
};

use crate::arrivals::Talker;
use crate::support::{Scene, alone, used_ms, within};

const NOBODY: usize = usize::MAX;
const CRASH: usize = usize::MAX - 1;
const SLEEP: [&str; 2] = ["sleep", "1000"];

/// Makes the test's choice, and keeps what it saw.
#[derive(Clone)]
struct Steered {
    choice: Arc<AtomicUsize>,
    hold_ns: u64,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Steered {
    fn new(choice: usize, hold_ns: u64) -> Steered {
        Steered { choice: Arc::new(AtomicUsize::new(choice)), hold_ns, seen: Arc::default() }
    }

    fn seen(&self, job: usize) -> Seen {
        self.seen.lock().unwrap().get(job).copied().unwrap_or_default()
    }
}

impl Chooser for Steered {
    fn choose(&mut self, _now_ns: u64, _current: Option<usize>, jobs: &[Seen]) -> Option<Choice> {
        // Real choosers neither lock nor allocate; in a test it does not matter.
        *self.seen.lock().unwrap() = jobs.to_vec();
        match self.choice.load(Relaxed) {
            NOBODY => None,
            CRASH => panic!("as the test wants it"),
            job => Some(Choice { job, hold_ns: self.hold_ns }),
        }
    }
}

fn slots(scene: &Scene) -> SlotThread {
    let mechanism = mechanism::choose(&scene.tree, true, None).expect("usable here");
    SlotThread::start(SlotConfig { priority: 10, beat: None }, mechanism).expect("start")
}

fn install(slots: &SlotThread, jobs: &[(&JobCgroup, Disposition)], turns: &[&[u16]]) {
    let entry = |(job, otherwise): &(&JobCgroup, Disposition)| Entry {
        switch: job.switch_handle(),
        weight: 100,
        otherwise: *otherwise,
    };
    slots.install(Table {
        epoch_ns: observe::realtime_ns() as u64,
        slot_length_ns: 20_000_000,
        jobs: jobs.iter().map(entry).collect(),
        turns: turns.iter().map(|turn| turn.to_vec()).collect(),
        fill: Fill::All,
        ..Table::empty()
    });
    assert!(slots.wait_installed(Duration::from_secs(20)));
}

fn plain(jobs: &[&JobCgroup]) -> Vec<BoostJob> {
    jobs.iter().map(|job| BoostJob::new(job, None, None, true).unwrap()).collect()
}

fn boost(slots: &SlotThread, jobs: Vec<BoostJob>, steered: &Steered) {
    slots.set_boost(Boost::new(jobs, Box::new(steered.clone()), None, BoostTiming::default()));
}

#[test]
fn the_boosted_job_has_the_cpus_and_the_others_get_them_back() {
    let Some(mut scene) = Scene::new() else { return };
    let _alone = alone();
    let jobs = [scene.spinners(1), scene.spinners(2), scene.spinners(3)];
    let all = jobs.each_ref();
    let slots = slots(&scene);
    install(&slots, &all.map(|job| (job, Disposition::Run)), &[]);
    let steered = Steered::new(0, Choice::UNTIL_NEXT_LOOK);
    boost(&slots, plain(&all), &steered);
    for chosen in [0, 2, 1] {
        steered.choice.store(chosen, Relaxed);
        let others_stand = || (0..3).all(|job| jobs[job].frozen() == (job != chosen));
        assert!(within(others_stand), "{chosen}");
        let mut used = Vec::new();
        let clean = (0..8).any(|_| {
            used = used_ms(&all, Duration::from_millis(200));
            (0..3).all(|job| job == chosen || used[job] < used[chosen] / 5.0)
        });
        assert!(clean, "{chosen}: {used:?} ms");
        assert!(within(|| jobs[chosen].switch_handle().boosted_ns() > 100_000_000));
        assert!(within(|| steered.seen(chosen).cpu_ns > 0), "its CPU time is seen");
    }
    assert_eq!(jobs[0].switch_handle().boosts(), 1);
    let stats = slots.stats();
    assert!(stats.boosts == 3 && stats.errors == 0, "{stats:?}");
    assert!(stats.looks > 100 && stats.look_ns > 0, "{stats:?}");
    steered.choice.store(NOBODY, Relaxed);
    assert!(within(|| jobs.iter().all(|job| !job.frozen())));
    let states = all.map(|job| job.switch_handle().state());
    assert_eq!(states, [Some(Disposition::Run); 3], "a boost is no state");
}

#[test]
fn a_short_hold_ends_before_the_next_look() {
    let Some(mut scene) = Scene::new() else { return };
    let jobs = [scene.job(1, &SLEEP, 1), scene.job(2, &SLEEP, 1)];
    let slots = slots(&scene);
    install(&slots, &jobs.each_ref().map(|job| (job, Disposition::Run)), &[]);
    let steered = Steered::new(0, 1_000_000);
    let timing = BoostTiming { period_ns: 300_000_000, ..BoostTiming::default() };
    slots.set_boost(Boost::new(plain(&jobs.each_ref()), Box::new(steered), None, timing));
    assert!(within(|| slots.stats().looks >= 5));
    // Held back for 1 ms of every 300: a few samples from outside find it running nearly always.
    let found = (0..30).filter(|_| {
        std::thread::sleep(Duration::from_millis(7));
        jobs[1].frozen()
    });
    assert!(found.count() < 15);
    let (stats, boosted_ns) = (slots.stats(), jobs[0].switch_handle().boosted_ns());
    assert!(boosted_ns > 0 && boosted_ns < stats.looks * 150_000_000, "{boosted_ns} ns, {stats:?}");
}

#[test]
fn nothing_stays_frozen_when_the_thread_ends() {
    let Some(mut scene) = Scene::new() else { return };
    let jobs = [scene.job(1, &SLEEP, 1), scene.job(2, &SLEEP, 1)];
    for crash in [false, true] {
        let slots = slots(&scene);
        install(&slots, &jobs.each_ref().map(|job| (job, Disposition::Run)), &[]);
        let steered = Steered::new(0, Choice::UNTIL_NEXT_LOOK);
        boost(&slots, plain(&jobs.each_ref()), &steered);
        assert!(within(|| jobs[1].frozen()));
        if crash {
            steered.choice.store(CRASH, Relaxed);
            assert!(within(|| !jobs[1].frozen()), "a panic lets all run");
        }
        drop(slots);
        assert!(jobs.iter().all(|job| !job.frozen()), "crash: {crash}");
    }
}

#[test]
fn another_boost_or_table_lets_all_run() {
    let Some(mut scene) = Scene::new() else { return };
    let jobs = [scene.job(1, &SLEEP, 1), scene.job(2, &SLEEP, 1), scene.job(3, &SLEEP, 1)];
    let slots = slots(&scene);
    let all = jobs.each_ref();
    install(&slots, &all.map(|job| (job, Disposition::Run)), &[]);
    let steered = Steered::new(0, Choice::UNTIL_NEXT_LOOK);
    let held = || within(|| jobs[1].frozen() && jobs[2].frozen());
    boost(&slots, plain(&all), &steered);
    assert!(held());
    slots.set_boost(Boost::none());
    assert!(within(|| all.iter().all(|job| !job.frozen())));
    boost(&slots, plain(&all), &steered);
    assert!(held());
    install(&slots, &[(all[0], Disposition::Run), (all[1], Disposition::Run)], &[]);
    assert!(within(|| !jobs[2].frozen()), "what left the table runs");
    std::thread::sleep(Duration::from_millis(20));
    assert!(within(|| jobs[1].frozen()) && !jobs[2].frozen(), "and is held back no more");
    install(&slots, &[(all[0], Disposition::Run), (all[1], Disposition::Stop)], &[]);
    steered.choice.store(1, Relaxed);
    assert!(within(|| !steered.seen(1).eligible));
    std::thread::sleep(Duration::from_millis(20));
    assert!(jobs[1].frozen() && !jobs[0].frozen(), "a job that is suspended cannot be boosted");
}

#[test]
fn gangs_in_the_same_table_are_not_touched() {
    let Some(mut scene) = Scene::new() else { return };
    let local = [scene.job(1, &SLEEP, 1), scene.job(2, &SLEEP, 1)];
    let gangs = [scene.job(3, &SLEEP, 1), scene.job(4, &SLEEP, 1)];
    let slots = slots(&scene);
    let states = [
        (&local[0], Disposition::Run),
        (&local[1], Disposition::Run),
        (&gangs[0], Disposition::Stop),
        (&gangs[1], Disposition::Stop),
    ];
    install(&slots, &states, &[&[2], &[3]]);
    let steered = Steered::new(0, Choice::UNTIL_NEXT_LOOK);
    // The daemon's list may be older than the table: gangs in it are not touched, even in their turn.
    boost(&slots, plain(&[&local[0], &local[1], &gangs[0], &gangs[1]]), &steered);
    assert!(within(|| local[1].frozen()));
    let (looks, switches) = (slots.stats().looks, slots.stats().count);
    let mut wrong = 0;
    assert!(within(|| {
        let running =
            [gangs[0].switch_handle().state(), gangs[1].switch_handle().state()].map(|s| s == Some(Disposition::Run));
        let frozen = [gangs[0].switch_handle().is_frozen(), gangs[1].switch_handle().is_frozen()];
        // Read at different moments: there may have been a switch in between.
        wrong += usize::from(running[0] == frozen[0] || running[1] == frozen[1]);
        slots.stats().count > switches + 30
    }));
    let stats = slots.stats();
    assert!(stats.looks > looks + 100 && stats.errors == 0, "{stats:?}");
    assert!(wrong < 20, "{wrong}");
    assert!(local[1].frozen() && !local[0].frozen());
    assert!(!steered.seen(2).eligible && !steered.seen(3).eligible && steered.seen(1).eligible);
}

#[test]
fn a_job_that_ends_while_it_is_boosted_or_held_is_no_error() {
    let Some(mut scene) = Scene::new() else { return };
    let stays = scene.job(1, &SLEEP, 1);
    let slots = slots(&scene);
    for (id, chosen) in [(2, 1), (3, 0)] {
        let gone = scene.job(id, &SLEEP, 1);
        let jobs = [&stays, &gone];
        install(&slots, &jobs.map(|job| (job, Disposition::Run)), &[]);
        let steered = Steered::new(chosen, Choice::UNTIL_NEXT_LOOK);
        boost(&slots, plain(&jobs), &steered);
        assert!(within(|| jobs[1 - chosen].frozen()));
        gone.kill().unwrap();
        assert!(within(|| !gone.populated().unwrap()), "a held job can be killed");
        gone.remove().unwrap();
        let before = slots.stats().looks;
        assert!(within(|| slots.stats().looks > before + 10));
        assert_eq!(slots.stats().errors, 0, "{:?}", slots.stats());
        install(&slots, &[(&stays, Disposition::Run)], &[]);
        slots.set_boost(Boost::none());
        assert!(within(|| !stays.frozen()));
    }
}

/// One process: its number, and its state: 1 while it spins, 2 while it sleeps.
const LAYOUT: PageLayout =
    PageLayout { slots_at: 0, slot_size: 8, slots: 1, pid_at: 0, state_at: 4, spinning: 1, sleeping: 2 };

struct Watched {
    arrivals: Arrivals,
    sockets: Vec<Arc<JobSockets>>,
    talkers: Vec<Talker>,
    jobs: Vec<JobCgroup>,
}

impl Watched {
    fn new(scene: &mut Scene, ring: bool) -> Option<Watched> {
        let mut watched =
            Watched { arrivals: Arrivals::new().ok()?, sockets: Vec::new(), talkers: Vec::new(), jobs: Vec::new() };
        for id in [1, 2] {
            let mut talker = Talker::start(false)?;
            talker.tell("pair tcp");
            let job = scene.tree.create_job(id).unwrap();
            job.attach(talker.pid()).unwrap();
            watched.sockets.push(watched.arrivals.watch(id, ring).unwrap());
            assert_eq!(watched.arrivals.rescan(id, &job.procs().unwrap()).unwrap().added, 2);
            watched.talkers.push(talker);
            watched.jobs.push(job);
        }
        Some(watched)
    }

    fn boost(&self, slots: &SlotThread, steered: &Steered, page: Option<WaitPage>, bell: Option<Arc<ArrivalBell>>) {
        let mut page = page;
        let make = |(job, sockets): (&JobCgroup, &Arc<JobSockets>)| {
            BoostJob::new(job, Some(Arc::clone(sockets)), page.take(), bell.is_none()).unwrap()
        };
        let jobs = self.jobs.iter().zip(&self.sockets).map(make).collect();
        slots.set_boost(Boost::new(jobs, Box::new(steered.clone()), bell.clone(), BoostTiming::default()));
    }
}

#[test]
fn a_look_sees_messages_and_waits() {
    let Some(mut scene) = Scene::new() else { return };
    let Some(mut watched) = Watched::new(&mut scene, false) else { return };
    let slots = slots(&scene);
    install(&slots, &[(&watched.jobs[0], Disposition::Run), (&watched.jobs[1], Disposition::Run)], &[]);
    let page = tempfile::tempfile().unwrap();
    let put = |pid: u32, state: u32| {
        let words: Vec<u8> = [pid, state].into_iter().flat_map(u32::to_ne_bytes).collect();
        std::os::unix::fs::FileExt::write_all_at(&page, &words, 0).unwrap();
    };
    put(0, 0);
    let steered = Steered::new(NOBODY, 0);
    watched.boost(&slots, &steered, Some(WaitPage::new(page.try_clone().unwrap(), LAYOUT)), None);
    assert!(within(|| steered.seen(0).eligible));
    assert!(!steered.seen(0).unread && !steered.seen(0).waiting && !steered.seen(0).blocked);
    put(7, 1);
    assert!(within(|| steered.seen(0).waiting && steered.seen(0).spinning == 1));
    put(7, 2);
    assert!(within(|| steered.seen(0).blocked && !steered.seen(0).waiting));
    watched.talkers[1].tell("send");
    assert!(within(|| steered.seen(1).unread) && !steered.seen(0).unread);
    watched.talkers[1].tell("recv");
    assert!(within(|| !steered.seen(1).unread));
    assert!(!steered.seen(1).rang, "nobody rings here");
}

#[test]
fn looks_are_rarer_while_nobody_waits_and_none_without_two_jobs() {
    let Some(mut scene) = Scene::new() else { return };
    let Some(mut watched) = Watched::new(&mut scene, false) else { return };
    let slots = slots(&scene);
    install(&slots, &[(&watched.jobs[0], Disposition::Run), (&watched.jobs[1], Disposition::Run)], &[]);
    watched.boost(&slots, &Steered::new(NOBODY, 0), None, None);
    let looks_in = |time| {
        let before = slots.stats().looks;
        std::thread::sleep(time);
        slots.stats().looks - before
    };
    let time = Duration::from_millis(500);
    let quiet = looks_in(time);
    watched.talkers[0].tell("send");
    assert!(within(|| looks_in(time) > 3 * quiet && quiet > 3), "{quiet} while nobody waits");
    let one = vec![BoostJob::new(&watched.jobs[0], Some(Arc::clone(&watched.sockets[0])), None, true).unwrap()];
    boost(&slots, one, &Steered::new(0, Choice::UNTIL_NEXT_LOOK));
    assert!(within(|| looks_in(Duration::from_millis(50)) == 0));
    assert!(watched.jobs.iter().all(|job| !job.frozen()));
}

#[test]
fn an_arriving_message_leads_to_a_look_at_once_and_to_few() {
    let Some(mut scene) = Scene::new() else { return };
    let Some(mut watched) = Watched::new(&mut scene, true) else { return };
    let slots = slots(&scene);
    install(&slots, &[(&watched.jobs[0], Disposition::Run), (&watched.jobs[1], Disposition::Run)], &[]);
    let steered = Steered::new(NOBODY, 0);
    let bell = watched.arrivals.bell();
    watched.boost(&slots, &steered, None, Some(bell));
    std::thread::sleep(Duration::from_millis(50));
    slots.reset_stats();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(slots.stats().looks, 0, "without a message there is no look");
    watched.talkers[1].tell("send");
    assert!(within(|| steered.seen(1).rang && steered.seen(1).unread));
    assert!(!steered.seen(0).rang);
    slots.reset_stats();
    let start_ns = observe::monotonic_ns();
    for _ in 0..2000 {
        watched.talkers[0].tell("send");
    }
    let time_ms = (observe::monotonic_ns() - start_ns) / 1_000_000;
    let stats = slots.stats();
    assert!(stats.rings > 0 && stats.rings <= time_ms + 2, "{time_ms} ms, {stats:?}");
    assert!(stats.looks <= stats.rings, "{stats:?}");
}
