//! A real etcd on a node of its own: plain, or with TLS client certificates, users and passwords.

use super::net::Host;
use super::tool;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

/// The user that may read and write below `/cosched/`, and nothing else.
pub const USER: &str = "cosched";
const PASSWORD: &str = "word";
const ROOT: &str = "root:secret";

/// Access control of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// No restrictions, in plain text.
    Plain,
    /// A certificate from our CA and a user's password are required.
    TlsAndUsers,
}

/// A server, or several that form one store. They are counted from 0.
#[derive(Debug)]
pub struct Etcd {
    host: Host,
    security: Security,
    children: Vec<Option<Child>>,
    /// Its quota in bytes, if not the usual 2 GB.
    quota: Option<u64>,
}

impl Etcd {
    /// Starts one server, and waits until it answers.
    ///
    /// # Panics
    /// When it does not.
    pub fn start(host: &Host, security: Security) -> Etcd {
        Etcd::start_members(host, security, 1)
    }

    /// The same with several members, on one node.
    ///
    /// # Panics
    /// When they do not answer.
    pub fn start_members(host: &Host, security: Security, members: usize) -> Etcd {
        let mut etcd =
            Etcd { host: host.clone(), security, children: (0..members).map(|_| None).collect(), quota: None };
        if security == Security::TlsAndUsers {
            make_certificates(&host.dir, &host.address);
            fs::write(etcd.file("password"), PASSWORD).expect("password");
        }
        etcd.launch();
        if security == Security::TlsAndUsers {
            etcd.make_users();
        }
        etcd
    }

    /// Starts the members that are not running, on their data, and waits until they answer.
    ///
    /// # Panics
    /// When they do not.
    pub fn launch(&mut self) {
        for member in 0..self.children.len() {
            if self.children[member].is_none() {
                self.children[member] = Some(self.spawn(member));
            }
        }
        let answers = crate::wait_until(|| {
            let asked = self.ctl(&["endpoint", "health", "--command-timeout=2s"]);
            // Once users exist, `health` needs one: a refusal is an answer, too.
            asked.status.success() || crate::stderr(&asked).contains("invalid user") || self.needs_user()
        });
        let log = fs::read_to_string(self.file("etcd.log")).unwrap_or_default();
        assert!(answers, "etcd does not answer; its log:\n{log}");
    }

    fn spawn(&self, member: usize) -> Child {
        let file = |name: &str| self.file(name).display().to_string();
        let log = File::options().create(true).append(true).open(self.file("etcd.log")).expect("log");
        let mut command = self.host.command("etcd");
        command.args(["--data-dir", &file(&data_of(member)), "--name", &name_of(member)]);
        command.args(["--logger", "zap", "--log-level", "warn"]);
        if let Some(quota) = self.quota {
            command.args(["--quota-backend-bytes", &quota.to_string()]);
        }
        let endpoint = self.endpoint_of(member);
        command.args(["--listen-client-urls", &endpoint, "--advertise-client-urls", &endpoint]);
        command.args(["--listen-peer-urls", &peer_of(member), "--initial-advertise-peer-urls", &peer_of(member)]);
        let all: Vec<String> = (0..self.children.len()).map(|n| format!("{}={}", name_of(n), peer_of(n))).collect();
        command.args(["--initial-cluster", &all.join(",")]);
        // A single member elects itself: with a shorter timeout, a test continues sooner.
        command.args(["--heartbeat-interval=50", "--election-timeout=500", "--bcrypt-cost=4"]);
        if self.security == Security::TlsAndUsers {
            command.args(["--cert-file", &file("server.pem"), "--key-file", &file("server.key")]);
            command.args(["--trusted-ca-file", &file("ca.pem"), "--client-cert-auth"]);
        }
        command.stdout(log.try_clone().expect("log")).stderr(log).spawn().expect("etcd starts")
    }

    fn needs_user(&self) -> bool {
        let asked = self.ctl(&["get", "/cosched/", "--command-timeout=2s"]);
        crate::stderr(&asked).contains("user name is empty") || self.ctl_as_user(&["get", "/cosched/"]).status.success()
    }

    /// The address of the first member.
    pub fn endpoint(&self) -> String {
        self.endpoint_of(0)
    }

    fn endpoint_of(&self, member: usize) -> String {
        let scheme = if self.security == Security::Plain { "http" } else { "https" };
        format!("{scheme}://{}:{}", self.host.address, 2379 + 10 * member)
    }

    fn endpoints(&self) -> Vec<String> {
        (0..self.children.len()).map(|member| self.endpoint_of(member)).collect()
    }

    /// The member that is the leader.
    ///
    /// # Panics
    /// When there is none.
    pub fn leader(&self) -> usize {
        let leads = |member: &usize| {
            let words = ["--command-timeout=2s", "endpoint", "status", "--write-out=json"];
            let said = crate::stdout(&self.ctl_at(*member, "client", &words));
            let said: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
            let status = &said[0]["Status"];
            !status["leader"].is_null() && status["leader"] == status["header"]["member_id"]
        };
        let mut leader = None;
        crate::wait_until(|| {
            leader = (0..self.children.len()).find(leads);
            leader.is_some()
        });
        leader.expect("a leader")
    }

    /// The table `[etcd]` of the configuration of a daemon that uses it.
    pub fn config(&self) -> String {
        let mut text = format!("[etcd]\nendpoints = {:?}\n", self.endpoints());
        if self.security == Security::TlsAndUsers {
            let keys = [("ca_file", "ca.pem"), ("cert_file", "client.pem"), ("key_file", "client.key")];
            for (key, name) in keys.into_iter().chain([("password_file", "password")]) {
                text.push_str(&format!("{key} = \"{}\"\n", self.file(name).display()));
            }
            text.push_str(&format!("user = \"{USER}\"\n"));
        }
        text
    }

    /// The path of one of its files: `ca.pem`, `client.pem`, `client.key`; `stranger.pem` and `stranger.key` come from a
    /// CA that it does not know; `password` is the user's.
    pub fn file(&self, name: &str) -> PathBuf {
        self.host.dir.join(name)
    }

    /// kill -9 of all members.
    pub fn kill(&mut self) {
        (0..self.children.len()).for_each(|member| self.kill_member(member));
    }

    /// kill -9 of one member.
    ///
    /// # Panics
    /// When that fails.
    pub fn kill_member(&mut self, member: usize) {
        if let Some(mut child) = self.children[member].take() {
            child.kill().expect("kill");
            child.wait().expect("wait");
        }
    }

    /// Restarts it on its data.
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
    }

    /// Its quota is exhausted: the next write is refused, and so are all later ones.
    pub fn is_full(&mut self) {
        self.quota = Some(1);
        self.restart();
    }

    /// Makes room and clears the alarm, as an operator does.
    ///
    /// # Panics
    /// When it does not accept that.
    pub fn has_room(&mut self) {
        self.quota = None;
        self.restart();
        let disarmed = self.ctl(&[&format!("--user={ROOT}"), "alarm", "disarm"]);
        assert!(disarmed.status.success(), "{}", crate::stderr(&disarmed));
    }

    /// Changes the user's password; the file has the old one.
    ///
    /// # Panics
    /// When that fails.
    pub fn change_password(&self, password: &str) {
        let root = format!("--user={ROOT}");
        let user = format!("{USER}:{password}");
        for step in [&["user", "delete", USER][..], &["user", "add", &user], &["user", "grant-role", USER, USER]] {
            let done = self.ctl(&[&[root.as_str()], step].concat());
            assert!(done.status.success(), "etcdctl {step:?}: {}", crate::stderr(&done));
        }
    }

    /// A lost disk: it starts again, with nothing in it but the users.
    pub fn lose_data(&mut self) {
        self.kill();
        fs::remove_dir_all(self.file(&data_of(0))).expect("etcd's data");
        self.launch();
        if self.security == Security::TlsAndUsers {
            self.make_users();
        }
    }

    /// Saves a snapshot of all its data in a file.
    ///
    /// # Panics
    /// When that fails.
    pub fn save(&self) {
        let user = format!("--user={ROOT}");
        let file = self.file("snapshot").display().to_string();
        let saved = self.ctl(&[&user, "snapshot", "save", &file]);
        assert!(saved.status.success(), "{}", crate::stderr(&saved));
    }

    /// Restarts it with that snapshot.
    ///
    /// # Panics
    /// When it does not start.
    pub fn put_back(&mut self) {
        self.kill();
        fs::remove_dir_all(self.file(&data_of(0))).expect("etcd's data");
        let [file, data] = ["snapshot", &data_of(0)].map(|name| self.file(name).display().to_string());
        let (name, peer) = (name_of(0), peer_of(0));
        let all = format!("{name}={peer}");
        let words = ["--name", &name, "--initial-cluster", &all, "--initial-advertise-peer-urls", &peer];
        let put = self.ctl(&[&["snapshot", "restore", &file, "--data-dir", &data], &words[..]].concat());
        assert!(put.status.success(), "{}", crate::stderr(&put));
        self.launch();
    }

    /// Stops all members for a while, like a machine that hangs.
    pub fn freeze(&self) {
        (0..self.children.len()).for_each(|member| self.freeze_member(member));
    }

    /// The same with one member.
    pub fn freeze_member(&self, member: usize) {
        self.signal(member, rustix::process::Signal::STOP);
    }

    /// Continues all running members.
    pub fn thaw(&self) {
        let run = (0..self.children.len()).filter(|member| self.children[*member].is_some());
        run.for_each(|member| self.signal(member, rustix::process::Signal::CONT));
    }

    fn signal(&self, member: usize, signal: rustix::process::Signal) {
        crate::procs::signal(self.children[member].as_ref().expect("it runs").id() as i32, signal);
    }

    /// Creates a user `reader`, with the same password, who may read below `/cosched/` and not write.
    pub fn make_reader(&self) {
        let root = format!("--user={ROOT}");
        for step in [
            &["role", "add", "reader"][..],
            &["role", "grant-permission", "reader", "--prefix=true", "read", "/cosched/"],
            &["user", "add", &format!("reader:{PASSWORD}")],
            &["user", "grant-role", "reader", "reader"],
        ] {
            let done = self.ctl(&[&[root.as_str()], step].concat());
            assert!(done.status.success(), "etcdctl {step:?}: {}", crate::stderr(&done));
        }
    }

    /// Compacts the store up to the present revision.
    ///
    /// # Panics
    /// When it refuses.
    pub fn compact(&self) {
        let root = format!("--user={ROOT}");
        let fields = crate::stdout(&self.ctl(&[&root, "get", "any", "--write-out=fields"]));
        let revision = fields.lines().find_map(|line| line.strip_prefix("\"Revision\" : ")).expect("a revision");
        let out = self.ctl(&[&root, "compact", revision]);
        assert!(out.status.success(), "{}", crate::stderr(&out));
    }

    /// etcdctl, on the server's own node, with a valid certificate and no user.
    pub fn ctl(&self, words: &[&str]) -> Output {
        self.ctl_with("client", words)
    }

    /// The same as the daemons' user.
    pub fn ctl_as_user(&self, words: &[&str]) -> Output {
        let user = format!("--user={USER}:{PASSWORD}");
        self.ctl_with("client", &[&[user.as_str()], words].concat())
    }

    /// The same with the certificate of this name.
    pub fn ctl_with(&self, certificate: &str, words: &[&str]) -> Output {
        self.ctl_at(0, certificate, words)
    }

    fn ctl_at(&self, member: usize, certificate: &str, words: &[&str]) -> Output {
        let (mut command, endpoint) = (self.host.command("timeout"), self.endpoint_of(member));
        command.args(["10", "etcdctl", "--endpoints", &endpoint, "--dial-timeout=3s"]).env("ETCDCTL_API", "3");
        if self.security == Security::TlsAndUsers {
            command.arg("--cacert").arg(self.file("ca.pem"));
            command.arg("--cert").arg(self.file(&format!("{certificate}.pem")));
            command.arg("--key").arg(self.file(&format!("{certificate}.key")));
        }
        command.args(words).output().expect("etcdctl")
    }

    fn make_users(&self) {
        let steps: [&[&str]; 7] = [
            &["user", "add", ROOT],
            &["user", "grant-role", "root", "root"],
            &["role", "add", USER],
            &["role", "grant-permission", USER, "--prefix=true", "readwrite", "/cosched/"],
            &["user", "add", &format!("{USER}:{PASSWORD}")],
            &["user", "grant-role", USER, USER],
            &["auth", "enable"],
        ];
        for step in steps {
            let done = self.ctl(step);
            assert!(done.status.success(), "etcdctl {step:?}: {}", crate::stderr(&done));
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have ended already.
        for mut child in self.children.iter_mut().filter_map(Option::take) {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- etcd's log\n{}", fs::read_to_string(self.file("etcd.log")).unwrap_or_default());
        }
    }
}

fn name_of(member: usize) -> String {
    format!("t{member}")
}

fn data_of(member: usize) -> String {
    format!("data{member}")
}

fn peer_of(member: usize) -> String {
    format!("http://127.0.0.1:{}", 2380 + 10 * member)
}

/// A CA, the server's and a client's certificate; and a client certificate of another CA, which the server does not
/// know.
fn make_certificates(dir: &Path, address: &str) {
    let openssl = |text: &str| tool(Command::new("openssl").args(text.split_whitespace()).current_dir(dir));
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    for signer in ["ca", "other"] {
        openssl(&format!("req -x509 {key} -days 2 -subj /CN=cst-{signer} -keyout {signer}.key -out {signer}.pem"));
    }
    let names = format!("subjectAltName=IP:{address},IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n");
    fs::write(dir.join("server.ext"), names).expect("extension");
    fs::write(dir.join("client.ext"), "extendedKeyUsage=clientAuth\n").expect("extension");
    for (name, signer, ext) in [("server", "ca", "server"), ("client", "ca", "client"), ("stranger", "other", "client")]
    {
        openssl(&format!("req {key} -subj /CN=cst-{name} -keyout {name}.key -out {name}.csr"));
        openssl(&format!(
            "x509 -req -days 2 -in {name}.csr -CA {signer}.pem -CAkey {signer}.key -CAcreateserial \
             -extfile {ext}.ext -out {name}.pem"
        ));
    }
}
