//! Tests with a real etcd: each test has its own server, with its own directory and ports on the loopback.

mod conformance;
mod faults;
mod members;
mod secure;

use super::{Etcd, EtcdConfig, FromStore};
use cosched_cluster::OpId;
use cosched_cluster::store::{Do, Done, Op, OpDone, Range, StoreError, Txn};
use rustix::process::{Pid, Signal, kill_process};
use std::future::Future;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, timeout};

/// The time limit of a test.
const WATCHDOG: Duration = Duration::from_secs(40);

/// Runs a test on a runtime like the daemon's, if etcd is installed.
fn with_etcd<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let there = Command::new("etcd").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        eprintln!("SKIPPED: etcd is not installed (tools/setup test)");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async { timeout(WATCHDOG, test()).await.expect("the test hangs") });
}

/// Ports that are free now.
fn free_ports() -> (u16, u16) {
    let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (a, b) = (bind(), bind());
    (a.local_addr().unwrap().port(), b.local_addr().unwrap().port())
}

/// A server. It is ended by its pid, however the test ends.
struct Server {
    child: Child,
    dir: tempfile::TempDir,
    ports: (u16, u16),
    arguments: Vec<String>,
    scheme: &'static str,
}

impl Server {
    fn start() -> Server {
        Server::start_with("http", tempfile::Builder::new().prefix("cst-etcd-").tempdir().unwrap(), Vec::new())
    }

    fn start_with(scheme: &'static str, dir: tempfile::TempDir, arguments: Vec<String>) -> Server {
        let ports = free_ports();
        let child = Server::spawn(scheme, dir.path(), ports, &arguments);
        Server { child, dir, ports, arguments, scheme }
    }

    fn spawn(scheme: &str, dir: &Path, (client, peer): (u16, u16), arguments: &[String]) -> Child {
        let client = format!("{scheme}://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        let log = std::fs::File::create(dir.join("log")).unwrap();
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(dir.join("data")).args(["--name", "t", "--log-level", "warn", "--logger", "zap"]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.arg(format!("--initial-cluster=t={peer}")).args(arguments);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
    }

    fn endpoint(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.ports.0)
    }

    fn config(&self) -> EtcdConfig {
        EtcdConfig { endpoints: vec![self.endpoint()], tls: None, user: None, answer_max: Duration::from_millis(1500) }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
    }

    /// Like a power failure: it has no time to clean up.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn restart(&mut self) {
        self.child = Server::spawn(self.scheme, self.dir.path(), self.ports, &self.arguments);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client whose answers are awaited.
struct Client {
    etcd: Etcd,
    from: UnboundedReceiver<FromStore>,
    last: u64,
    kept: Vec<FromStore>,
}

impl Client {
    fn new(config: &EtcdConfig) -> Client {
        let (to, from) = unbounded_channel();
        Client { etcd: Etcd::new(config, to).unwrap(), from, last: 0, kept: Vec::new() }
    }

    /// A client of a server that has just been started, as soon as the server answers.
    async fn of(config: &EtcdConfig) -> Client {
        let mut client = Client::new(config);
        let begin = Instant::now();
        loop {
            match client.get("/nothing").await {
                Err(StoreError::Unavailable(why)) => assert!(begin.elapsed() < WATCHDOG / 2, "{why}"),
                _ => return client,
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    fn begin(&mut self, op: Op) -> OpId {
        self.last += 1;
        self.etcd.call(OpId(self.last), op);
        OpId(self.last)
    }

    async fn call(&mut self, op: Op) -> Result<OpDone, StoreError> {
        let id = self.begin(op);
        loop {
            match self.from.recv().await.unwrap() {
                FromStore::Done(of, done) if of == id => return done,
                // Watches send messages while answers are awaited.
                other => self.kept.push(other),
            }
        }
    }

    /// The first message that was not an answer.
    async fn told(&mut self) -> FromStore {
        if !self.kept.is_empty() {
            return self.kept.remove(0);
        }
        self.from.recv().await.unwrap()
    }

    async fn put(&mut self, key: &str, value: &str) -> Result<OpDone, StoreError> {
        let then = vec![Do::Put { key: key.to_owned(), value: value.as_bytes().to_vec(), lease: None }];
        self.call(Op::Txn(Txn { then, ..Txn::default() })).await
    }

    async fn get(&mut self, key: &str) -> Result<Option<String>, StoreError> {
        let then = vec![Do::Get(Range::one(key))];
        match self.call(Op::Txn(Txn { then, ..Txn::default() })).await? {
            OpDone::Txn { mut done, .. } => match done.pop() {
                Some(Done::Got(mut entries)) => Ok(entries.pop().map(|entry| String::from_utf8(entry.value).unwrap())),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
}
