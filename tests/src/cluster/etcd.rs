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

/// Who may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// Everybody, in plain text.
    Plain,
    /// Who has a certificate of our signer and a user's password.
    TlsAndUsers,
}

/// A server.
#[derive(Debug)]
pub struct Etcd {
    host: Host,
    security: Security,
    child: Option<Child>,
}

impl Etcd {
    /// Starts one, and waits until it answers.
    ///
    /// # Panics
    /// When it does not.
    pub fn start(host: &Host, security: Security) -> Etcd {
        let mut etcd = Etcd { host: host.clone(), security, child: None };
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

    /// Starts it (again) on its data.
    fn launch(&mut self) {
        let file = |name: &str| self.file(name).display().to_string();
        let log = File::options().create(true).append(true).open(self.file("etcd.log")).expect("log");
        let peer = "http://127.0.0.1:2380";
        let mut command = self.host.command("etcd");
        command.arg("--data-dir").arg(file("data")).args(["--name", "t", "--logger", "zap", "--log-level", "warn"]);
        command.args(["--listen-client-urls", &self.endpoint(), "--advertise-client-urls", &self.endpoint()]);
        command.args(["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]);
        command.arg(format!("--initial-cluster=t={peer}"));
        // Alone, it elects itself: the shorter its patience, the sooner a test goes on.
        command.args(["--heartbeat-interval=50", "--election-timeout=500", "--bcrypt-cost=4"]);
        if self.security == Security::TlsAndUsers {
            command.args(["--cert-file", &file("server.pem"), "--key-file", &file("server.key")]);
            command.args(["--trusted-ca-file", &file("ca.pem"), "--client-cert-auth"]);
        }
        let child = command.stdout(log.try_clone().expect("log")).stderr(log).spawn().expect("etcd starts");
        self.child = Some(child);
        let answers = crate::wait_until(|| {
            let asked = self.ctl(&["endpoint", "health", "--command-timeout=2s"]);
            // Once users are there, `health` needs one: a refusal is an answer too.
            asked.status.success() || crate::stderr(&asked).contains("invalid user") || self.needs_user()
        });
        let log = fs::read_to_string(self.file("etcd.log")).unwrap_or_default();
        assert!(answers, "etcd does not answer; its log:\n{log}");
    }

    fn needs_user(&self) -> bool {
        let asked = self.ctl(&["get", "/cosched/", "--command-timeout=2s"]);
        crate::stderr(&asked).contains("user name is empty") || self.ctl_as_user(&["get", "/cosched/"]).status.success()
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        let scheme = if self.security == Security::Plain { "http" } else { "https" };
        format!("{scheme}://{}:2379", self.host.address)
    }

    /// The configuration of a daemon that uses it: a table `[etcd]`.
    pub fn config(&self) -> String {
        let mut text = format!("[etcd]\nendpoints = [\"{}\"]\n", self.endpoint());
        if self.security == Security::TlsAndUsers {
            let keys = [("ca_file", "ca.pem"), ("cert_file", "client.pem"), ("key_file", "client.key")];
            for (key, name) in keys.into_iter().chain([("password_file", "password")]) {
                text.push_str(&format!("{key} = \"{}\"\n", self.file(name).display()));
            }
            text.push_str(&format!("user = \"{USER}\"\n"));
        }
        text
    }

    /// One of its files: `ca.pem`, `client.pem`, `client.key`; `stranger.pem` and `stranger.key` are of a signer whom it
    /// does not know; `password`, the user's.
    pub fn file(&self, name: &str) -> PathBuf {
        self.host.dir.join(name)
    }

    /// kill -9.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("kill");
            child.wait().expect("wait");
        }
    }

    /// Starts it again, on its data.
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
    }

    /// Stops it for a while, as a machine that hangs.
    pub fn freeze(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        crate::procs::signal(self.child.as_ref().expect("it runs").id() as i32, signal);
    }

    /// etcdctl, on the server's own node, with the right certificate and no user.
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
        let mut command = self.host.command("timeout");
        command.args(["10", "etcdctl", "--endpoints", &self.endpoint(), "--dial-timeout=3s"]).env("ETCDCTL_API", "3");
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
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- etcd's log\n{}", fs::read_to_string(self.file("etcd.log")).unwrap_or_default());
        }
    }
}

/// A signer, the server's and a client's certificate; and another signer's, whom the server does not know.
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
