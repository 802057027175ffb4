//! When jobs start that wait for a time or for other jobs, and when jobs with a time limit end: arrivals and ends in, stages out.

use cosched_core::cluster::{
    Action, After, Capacity, Input, JobSpec, Planner, Queue, Refusal, Stage, State, Terms, Want,
};
use cosched_core::{Class, JobId, NodeId, Reason, Time};

const S: u64 = 1_000_000_000;

/// One node; the second of two queues permits 100 s.
fn planner() -> Planner {
    let mut planner = Planner::new(State::default()).unwrap();
    let capacity = Capacity { cpus: 4, memory_bytes: 1 << 30, disk_bytes: 1 << 30 };
    tell(&mut planner, 0, Input::Join(NodeId(0), capacity)).unwrap();
    let queue = |name: &str, time_ns_max| Queue { name: name.to_owned(), time_ns_max, ..Queue::default() };
    tell(&mut planner, 0, Input::Queues(vec![queue("", None), queue("short", Some(100 * S))])).unwrap();
    planner
}

fn tell(planner: &mut Planner, at_s: u64, input: Input) -> Result<(), Refusal> {
    planner.handle(Time(at_s * S), Time(at_s * S), input)
}

fn wake(planner: &mut Planner, at_s: u64) {
    planner.handle_timeout(Time(at_s * S), Time(at_s * S));
}

fn spec(id: u64, queue: u32, terms: Terms) -> JobSpec {
    JobSpec {
        queue,
        terms,
        ..JobSpec::new(JobId(id), Class::Batch, Want::Total { cpus: 1, memory_per_cpu_bytes: 0, disk_bytes: 0 })
    }
}

fn submit(planner: &mut Planner, at_s: u64, id: u64, terms: Terms) {
    tell(planner, at_s, Input::Submit(spec(id, 0, terms))).unwrap();
}

fn after(jobs: &[(u64, bool)]) -> Terms {
    let after = jobs.iter().map(|(job, ok)| After { job: JobId(*job), ok: *ok }).collect();
    Terms { after, ..Terms::default() }
}

fn limit(s: u64) -> Terms {
    Terms { time_ns_max: Some(s * S), ..Terms::default() }
}

/// A word for each job in order: what it waits for, `runs`, or why it ends.
fn stages(planner: &Planner) -> String {
    let word = |stage| match stage {
        Stage::Waiting(Reason::WaitsForTime) => "time",
        Stage::Waiting(Reason::WaitsForJob) => "job",
        Stage::Ready => "runs",
        Stage::Ending(Reason::JobFailed) => "failed",
        Stage::Ending(Reason::RunTime) => "limit",
        Stage::Ending(Reason::TimeLimit) => "queue",
        Stage::Ending(Reason::UserRequest) => "asked",
        _ => "other",
    };
    let jobs = planner.state().jobs.iter();
    jobs.map(|(id, job)| format!("{id}:{}", word(job.stage))).collect::<Vec<_>>().join(" ")
}

fn due_s(planner: &Planner) -> Option<u64> {
    planner.poll_timeout().map(|(at, _)| at.0 / S)
}

#[test]
fn a_job_begins_at_its_time_and_not_before() {
    let mut planner = planner();
    submit(&mut planner, 10, 1, Terms { begin: Some(Time(60 * S)), ..Terms::default() });
    submit(&mut planner, 10, 2, Terms { begin: Some(Time(5 * S)), ..Terms::default() });
    assert_eq!((stages(&planner).as_str(), due_s(&planner)), ("1:time 2:runs", Some(60)));
    wake(&mut planner, 59);
    assert_eq!(stages(&planner), "1:time 2:runs");
    // Another planner continues from the stored state.
    let mut planner = Planner::new(planner.state().clone()).unwrap();
    assert_eq!(due_s(&planner), Some(60));
    wake(&mut planner, 60);
    assert_eq!(
        (stages(&planner).as_str(), due_s(&planner)),
        ("1:runs 2:runs", None),
        "and nothing is due over and over"
    );
}

#[test]
fn a_job_comes_after_others_however_they_end_or_only_if_well() {
    let mut planner = planner();
    submit(&mut planner, 0, 1, Terms::default());
    submit(&mut planner, 0, 2, Terms::default());
    submit(&mut planner, 0, 3, after(&[(1, false), (2, true)]));
    submit(&mut planner, 0, 4, after(&[(1, true)]));
    submit(&mut planner, 0, 5, Terms { begin: Some(Time(20 * S)), ..after(&[(1, false)]) });
    assert_eq!(stages(&planner), "1:runs 2:runs 3:job 4:job 5:job");
    tell(&mut planner, 1, Input::Failed(JobId(1))).unwrap();
    assert_eq!(
        stages(&planner),
        "1:runs 2:runs 3:job 4:failed 5:job",
        "the one that was to follow its success never starts"
    );
    tell(&mut planner, 1, Input::End(JobId(1))).unwrap();
    assert_eq!((stages(&planner).as_str(), due_s(&planner)), ("2:runs 3:job 4:failed 5:time", Some(20)));
    tell(&mut planner, 2, Input::End(JobId(2))).unwrap();
    assert_eq!(stages(&planner), "3:runs 4:failed 5:time");
    let unknown = tell(&mut planner, 3, Input::Submit(spec(6, 0, after(&[(99, false)]))));
    assert_eq!(unknown, Err(Refusal::UnknownJob(JobId(99))));
}

#[test]
fn who_waits_for_others_holds_nobody_back() {
    let mut planner = planner();
    let all = |id, terms| JobSpec {
        want: Want::Total { cpus: 1, memory_per_cpu_bytes: 1 << 30, disk_bytes: 0 },
        ..spec(id, 0, terms)
    };
    submit(&mut planner, 0, 1, Terms::default());
    tell(&mut planner, 0, Input::Submit(all(2, after(&[(1, false)])))).unwrap();
    tell(&mut planner, 0, Input::Submit(all(3, Terms { begin: Some(Time(9 * S)), ..Terms::default() }))).unwrap();
    tell(&mut planner, 0, Input::Submit(all(4, Terms::default()))).unwrap();
    assert_eq!(stages(&planner), "1:runs 2:job 3:time 4:runs");
}

#[test]
fn a_job_runs_for_its_time_without_that_in_which_it_is_suspended() {
    let mut planner = planner();
    submit(&mut planner, 10, 1, limit(60));
    assert_eq!(due_s(&planner), Some(70));
    tell(&mut planner, 20, Input::Suspend(JobId(1))).unwrap();
    tell(&mut planner, 25, Input::Suspend(JobId(1))).unwrap();
    assert_eq!(due_s(&planner), None);
    let job = &planner.state().jobs[&JobId(1)];
    assert_eq!([20, 25].map(|at| job.suspended.ns_until(Time(at * S), job.ready_since)), [0, 5 * S]);
    wake(&mut planner, 500);
    tell(&mut planner, 1020, Input::Resume(JobId(1))).unwrap();
    let mut planner = Planner::new(planner.state().clone()).unwrap();
    assert_eq!(due_s(&planner), Some(1070));
    wake(&mut planner, 1069);
    assert_eq!(stages(&planner), "1:runs");
    wake(&mut planner, 1070);
    assert_eq!((stages(&planner).as_str(), due_s(&planner)), ("1:limit", None));
}

#[test]
fn the_time_of_a_queue_counts_everything_and_cannot_be_exceeded() {
    let mut planner = planner();
    tell(&mut planner, 0, Input::Submit(spec(1, 1, limit(50)))).unwrap();
    let refused = tell(&mut planner, 0, Input::Submit(spec(2, 1, limit(101))));
    assert_eq!(refused, Err(Refusal::RunTime { wanted: 101 * S, most: 100 * S }));
    assert_eq!(due_s(&planner), Some(50), "the nearer one");
    tell(&mut planner, 10, Input::Suspend(JobId(1))).unwrap();
    assert_eq!(due_s(&planner), Some(100), "nobody keeps the queue's memory by being suspended");
    wake(&mut planner, 100);
    assert_eq!(stages(&planner), "1:queue");
}

#[test]
fn time_before_the_start_does_not_count() {
    let mut planner = planner();
    submit(&mut planner, 0, 1, Terms { begin: Some(Time(100 * S)), ..limit(10) });
    tell(&mut planner, 1, Input::Suspend(JobId(1))).unwrap();
    wake(&mut planner, 100);
    tell(&mut planner, 103, Input::Resume(JobId(1))).unwrap();
    assert_eq!(due_s(&planner), Some(113), "suspended for 3 s since it started");
}

/// The reasons of all kills since the last call.
fn ends(planner: &mut Planner) -> Vec<Reason> {
    let all = std::iter::from_fn(|| planner.poll_action());
    all.filter_map(|action| if let Action::Kill(_, reason) = action { Some(reason) } else { None }).collect()
}

#[test]
fn a_job_that_was_asked_to_end_still_has_its_limits() {
    for (own_s, due, why, word) in
        [(Some(50), 50, Reason::RunTime, "1:limit"), (None, 100, Reason::TimeLimit, "1:queue")]
    {
        let mut planner = planner();
        let terms = Terms { time_ns_max: own_s.map(|s: u64| s * S), ..Terms::default() };
        tell(&mut planner, 0, Input::Submit(spec(1, 1, terms))).unwrap();
        tell(&mut planner, 10, Input::Kill(JobId(1))).unwrap();
        assert_eq!((stages(&planner).as_str(), due_s(&planner)), ("1:asked", Some(due)));
        assert_eq!(ends(&mut planner), [Reason::UserRequest]);
        // Another planner continues from the stored state, and too late.
        let mut planner = Planner::new(planner.state().clone()).unwrap();
        wake(&mut planner, due - 1);
        assert_eq!(ends(&mut planner), []);
        wake(&mut planner, due + 30);
        assert_eq!((stages(&planner).as_str(), due_s(&planner)), (word, None));
        assert_eq!(ends(&mut planner), [why]);
        tell(&mut planner, due + 31, Input::Kill(JobId(1))).unwrap();
        wake(&mut planner, 1000);
        assert_eq!((stages(&planner).as_str(), ends(&mut planner)), (word, vec![]), "once");
    }
    let mut planner = planner();
    submit(&mut planner, 0, 1, Terms { begin: Some(Time(100 * S)), ..limit(10) });
    tell(&mut planner, 1, Input::Kill(JobId(1))).unwrap();
    assert_eq!((stages(&planner).as_str(), due_s(&planner)), ("1:asked", None), "it has never started");
}

#[test]
fn whoever_is_to_end_is_not_suspended() {
    let mut planner = planner();
    submit(&mut planner, 10, 1, limit(60));
    tell(&mut planner, 20, Input::Suspend(JobId(1))).unwrap();
    tell(&mut planner, 30, Input::Kill(JobId(1))).unwrap();
    assert_eq!(due_s(&planner), Some(80), "it was suspended for 10 s, and runs now");
    tell(&mut planner, 40, Input::Suspend(JobId(1))).unwrap();
    tell(&mut planner, 50, Input::Resume(JobId(1))).unwrap();
    assert_eq!(due_s(&planner), Some(80));
    wake(&mut planner, 80);
    assert_eq!(stages(&planner), "1:limit");
}
