//! Compares the engine with a naive implementation of the rules, and checks what must hold for any schedule.

use super::*;
use proptest::prelude::*;

fn any_jobs(procs: u32) -> impl Strategy<Value = Vec<BatchJob>> {
    let job = (0..40_u64, 1..=procs, 1..20_u64, 0..15_u64).prop_map(|(submit_us, size, run_us, slack)| BatchJob {
        number: 0,
        user: 0,
        submit_us,
        size,
        run_us,
        estimate_us: run_us + slack,
    });
    prop::collection::vec(job, 1..40).prop_map(|mut jobs| {
        jobs.sort_by_key(|job| job.submit_us);
        jobs
    })
}

/// One pass, on plain lists: `running` has (start, job), `waiting` is in the order of submission.
fn naive_pass(
    jobs: &[BatchJob],
    procs: u32,
    policy: Policy,
    now: u64,
    running: &mut Vec<(u64, usize)>,
    waiting: &mut Vec<usize>,
) {
    let free = |running: &[(u64, usize)]| procs - running.iter().map(|(_, job)| jobs[*job].size).sum::<u32>();
    while waiting.first().is_some_and(|head| jobs[*head].size <= free(running)) {
        running.push((now, waiting.remove(0)));
    }
    let Some(head) = waiting.first().copied() else { return };
    if policy == Policy::Fcfs {
        return;
    }
    let free_by = |time: u64, running: &[(u64, usize)]| {
        let ended = running.iter().filter(|(start, job)| start + jobs[*job].estimate_us <= time);
        free(running) + ended.map(|(_, job)| jobs[*job].size).sum::<u32>()
    };
    let shadow = (now..).find(|time| free_by(*time, running) >= jobs[head].size).unwrap();
    let mut extra = free_by(shadow, running) - jobs[head].size;
    let mut candidates = waiting[1..].to_vec();
    if policy == Policy::EasySjbf {
        candidates.sort_by_key(|job| jobs[*job].estimate_us);
    }
    for job in candidates {
        let in_time = now + jobs[job].estimate_us <= shadow;
        if jobs[job].size <= free(running) && (in_time || jobs[job].size <= extra) {
            extra -= if in_time { 0 } else { jobs[job].size };
            running.push((now, job));
            waiting.retain(|other| *other != job);
        }
    }
}

fn naive(jobs: &[BatchJob], procs: u32, policy: Policy) -> Vec<u64> {
    let (mut running, mut waiting, mut starts) = (Vec::new(), Vec::new(), vec![0; jobs.len()]);
    let mut now = 0;
    let mut left = jobs.len();
    while left > 0 {
        let before = running.len();
        running.retain(|(start, job): &(u64, usize)| start + jobs[*job].run_us != now);
        left -= before - running.len();
        waiting.extend((0..jobs.len()).filter(|job| jobs[*job].submit_us == now));
        naive_pass(jobs, procs, policy, now, &mut running, &mut waiting);
        running.iter().for_each(|(start, job)| starts[*job] = *start);
        now += 1;
    }
    starts
}

proptest! {
    #[test]
    fn the_engine_follows_the_rules(jobs in any_jobs(8), policy in 0..3_usize) {
        let policy = [Policy::Fcfs, Policy::Easy, Policy::EasySjbf][policy];
        prop_assert_eq!(simulate(&jobs, 8, policy, EventOrder::All).start_us, naive(&jobs, 8, policy));
    }

    #[test]
    fn no_schedule_uses_more_than_there_is(jobs in any_jobs(6), policy in 0..4_usize, one in any::<bool>()) {
        let policy = Policy::ALL[policy];
        let order = if one { EventOrder::One } else { EventOrder::All };
        let schedule = simulate(&jobs, 6, policy, order);
        for (job, start) in jobs.iter().zip(&schedule.start_us) {
            prop_assert!(*start >= job.submit_us);
        }
        for time in 0..1000 {
            let runs = |(job, start): &(&BatchJob, &u64)| **start <= time && time < **start + job.run_us;
            let used: u32 = jobs.iter().zip(&schedule.start_us).filter(runs).map(|(job, _)| job.size).sum();
            prop_assert!(used <= 6, "{} processors at {}", used, time);
        }
        for (places, job) in allocate(&jobs, 6, &schedule).iter().zip(&jobs) {
            prop_assert_eq!(places.iter().map(|(low, high)| high - low + 1).sum::<u32>(), job.size);
        }
    }

    #[test]
    fn without_backfilling_jobs_start_in_their_order(jobs in any_jobs(8)) {
        let starts = simulate(&jobs, 8, Policy::Fcfs, EventOrder::All).start_us;
        prop_assert!(starts.is_sorted());
    }
}

#[test]
fn policies_have_names() {
    for policy in Policy::ALL {
        assert_eq!(policy.to_string().to_uppercase().parse(), Ok(policy));
    }
    assert!("sjf".parse::<Policy>().unwrap_err().contains("easy-sjbf"));
}

fn job(submit_s: u64, size: u32, run_s: u64, estimate_s: u64) -> BatchJob {
    let second = 1_000_000;
    BatchJob {
        number: 1,
        user: 0,
        submit_us: submit_s * second,
        size,
        run_us: run_s * second,
        estimate_us: estimate_s * second,
    }
}

#[test]
fn a_hole_is_filled_without_delaying_the_head() {
    // 3 of 4 processors until 100; the head needs 2; one job ends in time, one does not but leaves enough free.
    let jobs = [job(0, 3, 100, 100), job(1, 3, 10, 10), job(2, 1, 99, 200), job(3, 1, 10, 20)];
    let starts = |policy| {
        let schedule = simulate(&jobs, 4, policy, EventOrder::All);
        schedule.start_us.iter().map(|us| us / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(starts(Policy::Fcfs), [0, 100, 100, 110]);
    assert_eq!(starts(Policy::Easy), [0, 100, 2, 101]);
    assert_eq!(starts(Policy::EasySjbf), [0, 100, 2, 101]);
}

#[test]
fn metrics_of_two_jobs() {
    let jobs = [job(10, 4, 5, 10), job(12, 2, 20, 20)];
    let schedule = simulate(&jobs, 4, Policy::Easy, EventOrder::All);
    let found = summarise(&jobs, 4, &schedule).unwrap();
    assert_eq!((found.jobs_used, found.mean_wait_s, found.mean_flow_s, found.max_flow_s), (2, 1.5, 14.0, 23.0));
    assert_eq!((found.avebsld, found.max_bsld, found.mean_slowdown), (1.075, 1.15, 1.075));
    assert_eq!((found.makespan_s, found.utilization), (25.0, 0.6));
    assert_eq!(found.loss_of_capacity, 0.0);
    assert!(summarise(&[], 4, &Schedule::default()).is_none());
    let mut text = Vec::new();
    write_jobs_csv(&mut text, "a,b", &jobs, 4, &schedule).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[1],
        "1,a_b,1,10.000000,4,10,1,COMPLETED_SUCCESSFULLY,10.000000,5.000000,15.000000,0.000000,5.000000,1,0-3,-1,"
    );
    assert_eq!(
        lines[2],
        "1,a_b,1,12.000000,2,20,0,COMPLETED_WALLTIME_REACHED,15.000000,20.000000,35.000000,3.000000,23.000000,1.15,0-1,-1,"
    );
    assert!(lines.iter().all(|line| line.split(',').count() == 17));
}

#[test]
fn the_longest_times_do_not_overflow() {
    let record = |number: u32| format!("{number} 1000000000 -1 1000000000 4 -1 -1 4 1000000000\n");
    let text: String = (0..1500).map(record).collect();
    let mut filter = Filter::new(4);
    let (records, ..) = crate::workload::swf::read_records(text.as_bytes()).unwrap();
    records.iter().for_each(|record| filter.add(record));
    let (jobs, dropped, _) = filter.finish();
    assert_eq!((jobs.len(), dropped.out_of_range), (1000, 500));
    let found = summarise(&jobs, 4, &simulate(&jobs, 4, Policy::Easy, EventOrder::All)).unwrap();
    assert_eq!(found.makespan_s, 1e12);
}

proptest! {
    #[test]
    fn fair_share_without_a_weight_is_easy(jobs in any_jobs(8)) {
        let fair = FairShare { half_life_ns: 1, weight_ns: 0 };
        prop_assert_eq!(simulate_fair(&jobs, 8, fair), simulate(&jobs, 8, Policy::Easy, EventOrder::All));
    }
}

/// The first user has the machine for an hour, and requests more; the second comes last, and is next.
#[test]
fn who_has_used_little_comes_first_by_fair_share() {
    let hour = 3600;
    let of = |user, submit_s| BatchJob { user, ..job(submit_s, 4, hour, hour) };
    let jobs = [of(1, 0), of(1, 1), of(1, 2), of(2, 3)];
    let starts = |weight_s: u64| {
        let fair = FairShare { half_life_ns: 1_000_000_000 * 10 * hour, weight_ns: 1_000_000_000 * weight_s };
        simulate_fair(&jobs, 4, fair).start_us.iter().map(|us| us / 3_600_000_000).collect::<Vec<u64>>()
    };
    assert_eq!(starts(0), [0, 1, 2, 3]);
    assert_eq!(starts(hour), [0, 2, 3, 1]);
}

/// Each job in the order of submission takes the earliest time that is left, on a list of the processors in use at each µs.
fn naive_conservative(jobs: &[BatchJob], procs: u32) -> Vec<u64> {
    let mut used = [0_u32; 4000];
    let mut place = |job: &BatchJob| {
        let fits = |start: &u64| {
            let (start, end) = (*start as usize, (*start + job.estimate_us) as usize);
            used[start..end].iter().all(|used| used + job.size <= procs)
        };
        let start = (job.submit_us..).find(fits).unwrap();
        used[start as usize..(start + job.estimate_us) as usize].iter_mut().for_each(|used| *used += job.size);
        start
    };
    jobs.iter().map(&mut place).collect()
}

proptest! {
    #[test]
    fn conservative_places_are_the_earliest_while_estimates_hold(jobs in any_jobs(8)) {
        let jobs: Vec<BatchJob> = jobs.iter().map(|job| BatchJob { run_us: job.estimate_us, ..*job }).collect();
        let starts = simulate(&jobs, 8, Policy::Conservative, EventOrder::All).start_us;
        prop_assert_eq!(starts, naive_conservative(&jobs, 8));
    }

    /// `conservative.rs` asserts it at each start.
    #[test]
    fn no_job_starts_after_its_first_reservation(jobs in any_jobs(8), one in any::<bool>()) {
        let order = if one { EventOrder::One } else { EventOrder::All };
        let starts = simulate(&jobs, 8, Policy::Conservative, order).start_us;
        prop_assert!(starts.iter().zip(&jobs).all(|(start, job)| *start >= job.submit_us));
    }
}

#[test]
fn conservative_backfilling_delays_no_job_where_easy_delays_one() {
    // Of 4 processors 3 run until 100. The head needs 2 from then on, the third all 4 at 150. EASY lets the fourth start beside the head.
    let jobs = [job(0, 3, 100, 100), job(1, 2, 50, 50), job(2, 4, 10, 10), job(3, 1, 200, 200)];
    let starts = |policy| {
        let schedule = simulate(&jobs, 4, policy, EventOrder::All);
        schedule.start_us.iter().map(|us| us / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(starts(Policy::Easy), [0, 100, 203, 3]);
    assert_eq!(starts(Policy::Conservative), [0, 100, 150, 160]);
}
