//! Predictions from observed jobs as they were read from a daemon.

use super::samples::{gang, machine, waiting};
use super::*;
use cosched_sim::general::Own;
use cosched_sim::program::Program;
use cosched_sim::{OnArrival, Policy, SlotShare, Strategy, Wait};

const LOCAL: Setting = Setting::As(Strategy::Dynamic(Wait::Busy, OnArrival::None));
const BLOCK: Setting = Setting::As(Strategy::Dynamic(Wait::SpinBlock, OnArrival::None));

fn predict(jobs: &[Observed], settings: &[Setting], seconds: f64) -> Vec<Vec<Predicted>> {
    super::predict(&machine(), jobs, settings, seconds, &mut |_| true).unwrap()
}

fn about(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() <= 0.02 * wanted
}

#[test]
fn gangs_that_compute_go_on_as_they_did() {
    // Four gangs of which neighbours took a tenth each.
    let jobs = [4.5, 4.5, 4.5, 4.5].map(|cpu_s| gang(cpu_s, 0.25));
    let all = predict(&jobs, &[Setting::Present, LOCAL], 30.0);
    for job in all.iter().flatten() {
        assert!(about(job.cpu_s, 13.5) && about(job.work_s, 13.5), "{job:?}");
        assert!(about(job.slowdown.unwrap(), 4.0 / 0.9), "{job:?}");
        assert!(!job.is_bound && job.ends_s.is_none() && job.done.is_none());
    }
}

#[test]
fn a_share_and_a_class_count() {
    let mut jobs = [gang(5.0, 0.25), gang(15.0, 0.75)];
    jobs[0].own = Own { slot_share: SlotShare::new(250), ..Own::default() };
    let present = predict(&jobs, &[Setting::Present], 20.0).remove(0);
    assert!(about(present[0].cpu_s, 10.0) && about(present[1].cpu_s, 30.0), "{present:?}");
    let mut jobs = [gang(13.33, 0.667), gang(6.67, 0.333)];
    jobs[0].class = cosched_sim::Class::Interactive;
    let present = predict(&jobs, &[Setting::Present], 24.0).remove(0);
    assert!(about(present[0].cpu_s, 32.0) && about(present[1].cpu_s, 16.0), "{present:?}");
}

#[test]
fn who_meets_often_is_slow_where_partners_lack_a_cpu() {
    // A meeting each millisecond; beside it one that only computes.
    let meets = Waits { polls: 1_000_000, waits: 10_000, spin_s: 0.5, block_s: 0.1 };
    let mut jobs = [waiting(10.0, 0.5, meets), gang(10.0, 0.5)];
    jobs[0].own.wait = Some(Wait::SpinBlock);
    let all = predict(&jobs, &[Setting::Present, LOCAL, BLOCK], 10.0);
    let slowdown = |setting: usize| all[setting][0].slowdown.unwrap();
    assert!(slowdown(0) < 2.3, "{all:?}");
    assert!(slowdown(1) > 1.15 * slowdown(0), "spinning alone: {all:?}");
    assert!(all[1][0].work_s < all[1][0].cpu_s * 0.9, "it spins: {all:?}");
    assert!(all[2][0].work_s > all[2][0].cpu_s * 0.9, "it blocks: {all:?}");
}

#[test]
fn polls_without_waits_are_a_bound_once_gangs_are_parted() {
    let polls = Waits { polls: 60_000_000, ..Waits::default() };
    let all = predict(&[waiting(10.0, 0.5, polls), gang(10.0, 0.5)], &[Setting::Present, LOCAL], 10.0);
    assert_eq!([0, 1].map(|setting: usize| all[setting][0].is_bound), [false, true]);
    assert!(!all[1][1].is_bound);
}

#[test]
fn what_sleeps_in_its_slots_leaves_them_to_soft_gangs() {
    let jobs = [gang(5.0, 0.5), gang(10.0, 0.5)];
    let soft = Setting::As(Strategy::SoftGang);
    let all = predict(&jobs, &[Setting::Present, soft], 20.0);
    assert!(about(all[0][0].cpu_s, 10.0), "{all:?}");
    assert!(about(all[0][1].cpu_s, 20.0), "{all:?}");
    assert!(all[1][1].cpu_s > 23.0, "half of the other's slots: {all:?}");
}

#[test]
fn one_thread_of_a_gang_of_two_cpus_leaves_the_other_cpu() {
    let mut job = gang(2.5, 0.25);
    job.tasks = 1;
    let all = predict(&[job, gang(15.0, 0.75)], &[Setting::Present], 10.0);
    assert!(about(all[0][0].cpu_s, 2.5), "{all:?}");
}

#[test]
fn a_recording_tells_the_end() {
    let program: Program = "repeat 10 { compute 1s; barrier }".parse().unwrap();
    let rest = rest_of(&program, 2, 0.6).expect("four passes are left");
    assert_eq!(rest.to_string().matches("repeat 4").count(), 1, "{rest}");
    let mut job = gang(10.0, 0.5);
    (job.rest, job.done) = (Some((std::sync::Arc::new(rest), 2)), Some(0.6));
    let all = predict(&[job, gang(10.0, 0.5)], &[Setting::Present], 20.0);
    let [first, second] = [all[0][0], all[0][1]];
    assert!(about(first.ends_s.unwrap(), 8.0) && first.done == Some(1.0), "{first:?}");
    assert!(about(second.cpu_s, 32.0), "afterwards it has the machine: {second:?}");
    assert!(about(first.slowdown.unwrap(), 2.0), "{first:?}");
}

#[test]
fn a_recording_at_its_end_spoils_nobodys_fit() {
    // A millisecond of it is left; the other one had nine tenths of the rest.
    let program: Program = "compute 1ms; barrier".parse().unwrap();
    let mut job = gang(9.0, 0.5);
    (job.rest, job.done) = (Some((std::sync::Arc::new(program), 2)), Some(0.9999));
    let all = predict(&[gang(9.0, 0.5), job], &[Setting::Present], 20.0);
    assert!(about(all[0][0].cpu_s, 36.0), "{all:?}");
}

#[test]
fn a_job_that_ends_has_done_its_work_however_slowly() {
    let program: Program = "repeat 10 { compute 1s; barrier }".parse().unwrap();
    // Neighbours took half of what the simulator would have given it: its last four passes take 16 s instead of 8.
    let mut job = gang(5.0, 0.5);
    job.rest = rest_of(&program, 2, 0.6).map(|rest| (std::sync::Arc::new(rest), 2));
    job.done = Some(0.6);
    let jobs = [job, gang(10.0, 0.5)];
    let of = |seconds| predict(&jobs, &[Setting::Present], seconds)[0][0];
    let whole = of(20.0);
    assert!(about(whole.ends_s.unwrap(), 16.0) && about(whole.work_s, 8.0), "{whole:?}");
    assert!(about(whole.slowdown.unwrap(), 4.0) && whole.done == Some(1.0), "{whole:?}");
    let half = of(8.0);
    assert!(half.ends_s.is_none() && about(half.work_s, 4.0) && about(half.done.unwrap(), 0.8), "{half:?}");
    // One that is faster than its simulation.
    let (mut fast, mut limited) = (jobs[0].clone(), jobs[0].clone());
    fast.cpu_s = 14.0;
    let fast = predict(&[fast, gang(6.0, 0.5)], &[Setting::Present], 7.0)[0][0];
    assert!(about(fast.ends_s.unwrap(), 8.0 / 1.4) && about(fast.work_s, 8.0), "{fast:?}");
    limited.limit_s = Some(4.0);
    let limited = predict(&[limited, gang(10.0, 0.5)], &[Setting::Present], 20.0)[0][0];
    assert!(
        limited.ends_s == Some(4.0) && about(limited.work_s, 2.0) && about(limited.done.unwrap(), 0.7),
        "{limited:?}"
    );
}

#[test]
fn a_recording_goes_on_where_no_message_is_under_way() {
    let program: Program = "compute 1s\non 0 { send 1 }\ncompute 1s\non 1 { recv 0 }\ncompute 2s".parse().unwrap();
    let rest = rest_of(&program, 2, 0.3).unwrap().to_string();
    assert!(!rest.contains("recv") && rest.contains("2s"), "{rest}");
    assert_eq!(rest_of(&program, 2, 0.0), Some(program.clone()));
    assert_eq!(rest_of(&program, 2, 1.0), None);
}

#[test]
fn a_time_limit_is_an_end() {
    let mut job = gang(20.0, 1.0);
    job.limit_s = Some(7.0);
    let limited = predict(std::slice::from_ref(&job), &[Setting::Present], 10.0)[0][0];
    assert_eq!(limited.ends_s, Some(7.0));
    assert!(about(limited.cpu_s, 14.0), "no CPU time after its end: {limited:?}");
    assert_eq!(predict(&[job], &[Setting::Present], 5.0)[0][0].ends_s, None);
}

#[test]
fn policies_of_their_own_hold_now() {
    let mut jobs = [gang(10.0, 0.5), gang(10.0, 0.5)];
    jobs[0].own.policy = Some(Policy::Local);
    let present = predict(&jobs, &[Setting::Present], 10.0).remove(0);
    assert!(present.iter().all(|job| about(job.cpu_s, 10.0)), "fitted: {present:?}");
}

#[test]
fn checks_compare_progress() {
    let predicted = Predicted { cpu_s: 10.0, work_s: 8.0, ..Predicted::default() };
    let found = Found { cpu_s: 11.0, work_s: None, ended_s: None };
    let checked = check(&predicted, &found).unwrap();
    assert!((checked.difference - 0.1).abs() < 1e-9 && !checked.without_spinning);
    let checked = check(&predicted, &Found { work_s: Some(6.0), ..found }).unwrap();
    assert!((checked.difference + 0.25).abs() < 1e-9 && checked.without_spinning);
    assert_eq!(check(&Predicted::default(), &found), None);
    assert_eq!(summary([0.1, -0.3, 0.2]), Some((0.2, 0.3)));
    assert_eq!((summary([0.1, -0.3]), summary([])), (Some((0.2, 0.3)), None));
    let row = ("10:00".to_owned(), "gang <soft>".to_owned(), "lu".to_owned(), checked);
    let html = calibration(&[row]);
    assert!(
        html.contains("gang \\u003csoft>") && html.contains("-25.0") && html.contains("\"shape\":\"marks\""),
        "{html}"
    );
    assert!(calibration(&[]).contains("0 predictions"));
}

#[test]
fn a_machine_without_cpus_is_no_machine() {
    let machine = Machine { cpus: 0, ..machine() };
    let failed = super::predict(&machine, &[gang(1.0, 0.5)], &[Setting::Present], 1.0, &mut |_| true);
    assert!(failed.unwrap_err().to_string().contains("no CPUs"));
}
