//! Members of a cluster over a real etcd.

use super::super::{Etcd, EtcdConfig, FromStore};
use super::{Server, with_etcd};
use cosched_cluster::wire::{Answer, Ask, By, Class, JobAsk, OnNodeLoss, PartEnd, WantAsk, Why};
use cosched_cluster::{Action, Keys, Member, Moment, Notice, Settings};
use cosched_core::cluster::Capacity;
use cosched_core::{JobId, Time};
use rustix::process::Signal;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const ROOT: By = By { uid: 0, gid: 0, admin: true };

/// A node with nothing but its member and its store.
struct Node {
    member: Member,
    etcd: Etcd,
    from: UnboundedReceiver<FromStore>,
    begin: Instant,
    running: Vec<(JobId, u32)>,
    answers: Vec<Answer>,
    notices: Vec<Notice>,
}

impl Node {
    fn new(name: &str, config: &EtcdConfig) -> Node {
        let keys = Keys::new("c").unwrap();
        let capacity = Capacity { cpus: 4, memory_bytes: 1 << 30, disk_bytes: 0 };
        let settings = Settings { ttl_s: 3, ..Settings::new(keys, name, 1, capacity) };
        let (to, from) = unbounded_channel();
        let config = EtcdConfig { answer_max: Duration::from_nanos(settings.answer_ns_max()), ..config.clone() };
        let etcd = Etcd::new(&config, to).unwrap();
        let begin = Instant::now();
        let member = Member::new(now(begin), settings, &[]);
        Node { member, etcd, from, begin, running: Vec::new(), answers: Vec::new(), notices: Vec::new() }
    }

    fn act(&mut self) {
        while let Some(action) = self.member.poll_action() {
            match action {
                Action::Store(id, op) => self.etcd.call(id, op),
                Action::Drop(id) => self.etcd.drop_watch(id),
                Action::StartPart { job, .. } => self.running.push((JobId(job.id), job.attempt)),
                Action::KillPart { job, .. } | Action::ClosePart { job, .. } => self.end(job),
                Action::Reply(_, answer) => self.answers.push(answer),
                Action::Say(notice) => self.notices.push(notice),
                _ => (),
            }
        }
    }

    fn end(&mut self, job: JobId) {
        if let Some(at) = self.running.iter().position(|(id, _)| *id == job) {
            let (_, attempt) = self.running.remove(at);
            self.member.part_ended(now(self.begin), job, attempt, PartEnd::default());
        }
    }

    /// Runs until a condition holds.
    async fn until(&mut self, what: &str, so: impl Fn(&Node) -> bool) {
        let begin = Instant::now();
        loop {
            self.act();
            if so(self) {
                return;
            }
            assert!(begin.elapsed() < Duration::from_secs(25), "{what}: {:?}", self.notices);
            let wake = self.member.poll_timeout().map_or(1_000_000_000, |at| at.0 - now(self.begin).steady.0.min(at.0));
            tokio::select! {
                from = self.from.recv() => {
                    let now = now(self.begin);
                    match from.unwrap() {
                        FromStore::Done(id, done) => self.member.handle_done(now, id, done),
                        FromStore::News(id, news) => self.member.handle_news(now, id, news),
                        FromStore::WatchLost(id, why) => self.member.handle_watch_lost(now, id, why),
                    }
                }
                () = tokio::time::sleep(Duration::from_nanos(wake.min(50_000_000))) => {
                    self.member.handle_timeout(now(self.begin));
                }
            }
        }
    }
}

fn now(begin: Instant) -> Moment {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Moment { steady: Time(begin.elapsed().as_nanos() as u64), wall: Time(wall.as_nanos() as u64) }
}

fn job(cpus: u32) -> Ask {
    Ask::Submit(Box::new(JobAsk {
        name: "a".to_owned(),
        command: vec!["a".to_owned()],
        cwd: None,
        environment: Vec::new(),
        log_path: None,
        class: Class::Batch,
        policy: None,
        share_permille: None,
        want: WantAsk::Total { cpus, memory_per_cpu_bytes: 0, disk_bytes: 0 },
        queue: None,
        on_node_loss: OnNodeLoss::Kill,
        waiting: None,
        lead: None,
        main: None,
        groups: Vec::new(),
        once: false,
        terms: Default::default(),
    }))
}

/// Two nodes, a job on both, etcd stopped for longer than a lease and then killed: the job continues undisturbed.
#[test]
fn a_job_over_two_nodes_outlives_the_store() {
    with_etcd(|| async {
        let mut server = Server::start();
        let (mut a, mut b) = (Node::new("a", &server.config()), Node::new("b", &server.config()));
        let planned = |many| move |node: &Node| node.member.state().is_some_and(|state| state.nodes.len() == many);
        tokio::join!(a.until("two nodes", planned(2)), b.until("two nodes", planned(2)));
        let asked = now(b.begin);
        b.member.ask(asked, ROOT, job(8)).unwrap();
        let runs = |node: &Node| !node.running.is_empty();
        tokio::join!(a.until("it runs", runs), b.until("it runs", runs));
        let in_use = |node: &Node| node.member.in_use() == node.member.state().map(|state| state.generation);
        tokio::join!(a.until("the plan holds", in_use), b.until("the plan holds", in_use));

        server.signal(Signal::STOP);
        let lost = |node: &Node| node.member.in_use().is_none() && !node.member.is_joined();
        tokio::join!(a.until("no lease", lost), b.until("no lease", lost));
        server.signal(Signal::CONT);
        let back = |node: &Node| node.member.is_joined() && node.member.in_use().is_some();
        tokio::join!(a.until("back", back), b.until("back", back));
        server.kill();
        let away = |node: &Node| !node.member.is_joined();
        tokio::join!(a.until("away", away), b.until("away", away));
        server.restart();
        tokio::join!(a.until("back again", back), b.until("back again", back));
        assert_eq!((a.running.len(), b.running.len()), (1, 1), "{:?} {:?}", a.notices, b.notices);
        assert_eq!(b.answers, [Answer::Submitted { job: 1 }]);

        a.end(JobId(1));
        b.end(JobId(1));
        let over = |node: &Node| node.member.job(JobId(1)).is_some_and(|job| job.end.is_some());
        tokio::join!(a.until("over", over), b.until("over", over));
        assert_eq!(a.member.job(JobId(1)).unwrap().end.unwrap().why, Why::Finished);
        assert_eq!(a.member.state(), b.member.state());
    });
}
