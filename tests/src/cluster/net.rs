//! Several nodes on one machine: separate network, mount and host name namespaces, joined by a bridge in a namespace of
//! its own.
//!
//! Each node's `/run/cosched` is a separate directory, so that the usual socket belongs to the node. Everything is removed
//! when `Net` is dropped; what a killed test left is removed when the next `Net` is made.

use crate::cluster::{leftovers, tool};
use crate::procs;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::MutexGuard;

/// The nodes' network: node n (from 0) is at the address .(n + 1).
const SUBNET: &str = "10.77.0";
/// The device of each node.
pub const DEVICE: &str = "eth0";

/// A place on the network: namespaces, held by a process that only sleeps.
#[derive(Clone, Debug)]
pub struct Host {
    /// Unique in its net: n1, n2, …
    pub name: String,
    /// Its address.
    pub address: String,
    /// The CPUs that its processes are bound to.
    pub cpus: Vec<usize>,
    /// The directory of its files.
    pub dir: PathBuf,
    pid: i32,
}

/// The nodes' network.
#[derive(Debug)]
pub struct Net {
    /// The nodes, in order.
    pub hosts: Vec<Host>,
    /// The directory of all files of this net.
    pub dir: PathBuf,
    switch: i32,
    _alone: MutexGuard<'static, ()>,
}

impl Net {
    /// A net of `count` nodes with one CPU each.
    pub fn new(count: usize) -> Net {
        Net::with_cpus(count, 1)
    }

    /// A net of `count` nodes with `each` CPUs, assigned to the machine's CPUs in turn.
    ///
    /// # Panics
    /// When the kernel or a tool refuses.
    pub fn with_cpus(count: usize, each: usize) -> Net {
        let alone = crate::alone();
        leftovers::sweep();
        let dir = tempfile::Builder::new().prefix(leftovers::PREFIX).tempdir().expect("temporary directory").keep();
        // Ranks of any user search for their files below it.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("permissions");
        leftovers::own(&dir);
        let mut net = Net { hosts: Vec::new(), switch: 0, dir, _alone: alone };
        net.switch = anchor(&net.dir, "switch", "ip link set lo up");
        net.on_switch(&["link", "add", "br0", "type", "bridge"]);
        net.on_switch(&["link", "set", "br0", "up"]);
        let names: Vec<String> = (1..=count).map(|n| format!("n{n}")).collect();
        let table = names.iter().enumerate().map(|(n, name)| format!("{SUBNET}.{} {name}\n", n + 1));
        let table: String = std::iter::once("127.0.0.1 localhost\n".to_owned()).chain(table).collect();
        fs::write(net.dir.join("hosts"), table).expect("hosts");
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        for (n, name) in names.into_iter().enumerate() {
            net.add(n, name, (0..each).map(|k| (n * each + k) % cpus).collect());
        }
        net.until_up();
        net.write_scripts();
        net
    }

    fn add(&mut self, n: usize, name: String, cpus: Vec<usize>) {
        let dir = self.dir.join(&name);
        fs::create_dir_all(dir.join("run")).expect("the node's directory");
        let port = format!("p{n}");
        // The node's own devices in /sys, where UCX looks for them; the rest stays, so that cgroups are still visible.
        let script = format!(
            "hostname {name} && mount -t tmpfs tmpfs /run && mkdir /run/cosched && mount --bind {dir}/run /run/cosched && \
             mount --bind {hosts} /etc/hosts && mkdir {dir}/sys && mount -t sysfs sysfs {dir}/sys && \
             for net in class/net devices/virtual/net; do mount --bind {dir}/sys/$net /sys/$net || exit 1; done && \
             umount {dir}/sys && rmdir {dir}/sys && ip link set lo up",
            dir = dir.display(),
            hosts = self.dir.join("hosts").display(),
        );
        let pid = anchor(&self.dir, &name, &script);
        let inside = format!("/proc/{pid}/ns/net");
        self.on_switch(&["link", "add", &port, "type", "veth", "peer", "name", DEVICE, "netns", &pid.to_string()]);
        assert!(Path::new(&inside).exists());
        self.on_switch(&["link", "set", &port, "master", "br0", "up"]);
        // Each node receives its messages on its own CPUs; otherwise the sender's would do the receiver's work.
        let receivers = cpus.iter().fold(0, |mask, cpu| mask | 1_u64 << cpu);
        let host = Host { address: format!("{SUBNET}.{}", n + 1), name, cpus, dir, pid };
        host.run(&["ip", "address", "add", &format!("{}/24", host.address), "dev", DEVICE]);
        host.run(&["ip", "link", "set", DEVICE, "up"]);
        host.run(&["sh", "-c", &format!("echo {receivers:x} > /sys/class/net/{DEVICE}/queues/rx-0/rps_cpus")]);
        self.hosts.push(host);
    }

    /// The kernel reports a carrier up to a second late, and UCX leaves out a device that has none.
    fn until_up(&self) {
        let up = |host: &Host| host.run(&["cat", &format!("/sys/class/net/{DEVICE}/operstate")]).trim() == "up";
        assert!(crate::wait_until(|| self.hosts.iter().all(up)), "the links do not come up");
    }

    /// Takes a node off the network.
    pub fn cut(&self, n: usize) {
        self.on_switch(&["link", "set", &format!("p{n}"), "down"]);
    }

    /// Reconnects it.
    pub fn heal(&self, n: usize) {
        self.on_switch(&["link", "set", &format!("p{n}"), "up"]);
    }

    fn on_switch(&self, words: &[&str]) {
        tool(Command::new("nsenter").args(["-t", &self.switch.to_string(), "-n", "ip"]).args(words));
    }

    /// `agent [OPTIONS] HOST WORDS…`: what launchers call in place of ssh. Like a session that sshd starts, its processes
    /// have an environment of their own and are in no job's cgroup.
    fn write_scripts(&self) {
        let mut cases = String::new();
        for host in &self.hosts {
            let (name, address, pid, cpus) = (&host.name, &host.address, host.pid, host.cpu_list());
            cases.push_str(&format!("{name}|{address}) pid={pid} cpus={cpus} ;;\n"));
        }
        let out: String =
            procs::own_cgroups().iter().map(|dir| format!("echo $$ > {}/cgroup.procs\n", dir.display())).collect();
        let text = format!(
            "#!/bin/sh\nwhile case \"$1\" in -*) true ;; *) false ;; esac; do shift; done\n\
             # With them, what is executed next would join the job of this node again.\nunset LD_PRELOAD COSCHED_JOB\n\
             host=$1\nshift\ncase $host in\n{cases}*) echo \"agent: no host $host\" >&2; exit 255 ;;\nesac\n{out}\
             exec env -i PATH=\"$PATH\" HOME=/root OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
             nsenter -t $pid -n -u -m -- taskset -c $cpus /bin/sh -c \"$*\"\n"
        );
        fs::write(self.agent(), text).expect("agent");
        fs::set_permissions(self.agent(), fs::Permissions::from_mode(0o755)).expect("agent");
    }

    /// The script that is used in place of ssh.
    pub fn agent(&self) -> PathBuf {
        self.dir.join("agent")
    }

    /// What Open MPI 4 has to know of this network: its parameters, which are options of mpirun or variables `OMPI_MCA_…`.
    pub fn openmpi_parameters(&self) -> Vec<(&'static str, String)> {
        let subnet = format!("{SUBNET}.0/24");
        vec![
            ("plm", "rsh".to_owned()),
            ("plm_rsh_agent", self.agent().display().to_string()),
            ("pml", "ob1".to_owned()),
            ("btl", "tcp,self".to_owned()),
            ("btl_tcp_if_include", subnet.clone()),
            ("oob_tcp_if_include", subnet),
            ("orte_tmpdir_base", self.dir.display().to_string()),
        ]
    }

    /// The words before a program that Open MPI is to start, with one rank on each of these nodes.
    pub fn openmpi(&self, nodes: &[usize]) -> Vec<String> {
        let hosts: Vec<&str> = nodes.iter().map(|n| self.hosts[*n].address.as_str()).collect();
        let text = format!("mpirun.openmpi -np {} --host {} --bind-to none", nodes.len(), hosts.join(","));
        let parameters =
            self.openmpi_parameters().into_iter().flat_map(|(name, value)| ["--mca".into(), name.into(), value]);
        text.split_whitespace().map(str::to_owned).chain(parameters).collect()
    }

    /// The same for Open MPI 5, which has another launcher (PRRTE); by its full path, from which it finds itself on the
    /// other nodes. `None` where it is not installed.
    pub fn openmpi_5(&self, nodes: &[usize]) -> Option<Vec<String>> {
        let launcher = crate::target("openmpi5/bin/mpirun")?;
        let hosts: Vec<&str> = nodes.iter().map(|n| self.hosts[*n].address.as_str()).collect();
        let subnet = format!("{SUBNET}.0/24");
        let text = format!(
            "{launcher} -np {} --host {} --bind-to none --prtemca plm_ssh_agent {} --prtemca prte_tmpdir_base {} \
             --prtemca prte_if_include {subnet} --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include {subnet}",
            nodes.len(),
            hosts.join(","),
            self.agent().display(),
            self.dir.display(),
        );
        Some(text.split_whitespace().map(str::to_owned).collect())
    }

    /// The same for MPICH. Its transport is chosen by the environment, which it passes on.
    pub fn mpich(&self, nodes: &[usize]) -> Vec<String> {
        let hosts: Vec<&str> = nodes.iter().map(|n| self.hosts[*n].address.as_str()).collect();
        let text = format!(
            "env UCX_TLS=tcp,self UCX_NET_DEVICES={DEVICE} mpiexec.mpich -n {} -hosts {} -ppn 1 -bind-to none \
             -launcher rsh -launcher-exec {} -disable-hostname-propagation -localhost {}",
            nodes.len(),
            hosts.join(","),
            self.agent().display(),
            hosts[0],
        );
        text.split_whitespace().map(str::to_owned).collect()
    }
}

impl Host {
    /// The process that holds the node's namespaces.
    pub fn anchor(&self) -> i32 {
        self.pid
    }

    /// Its CPUs as taskset reads them.
    fn cpu_list(&self) -> String {
        self.cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
    }

    /// A command on this node. If a time limit of 60 s is wanted, the caller puts `timeout` in front.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.pid.to_string(), "-n", "-u", "-m", "--", "taskset", "-c", &self.cpu_list()]);
        command.arg(program).stdin(Stdio::null());
        // The node's own daemon, by the usual choice.
        command.env_remove("COSCHED_SOCKET").env_remove("XDG_RUNTIME_DIR");
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }

    /// Runs a command on this node; returns its output.
    ///
    /// # Panics
    /// When it fails.
    pub fn run(&self, words: &[&str]) -> String {
        tool(self.command(words[0]).args(&words[1..]))
    }
}

/// A process that holds new namespaces, after this script has run in them.
fn anchor(dir: &Path, name: &str, script: &str) -> i32 {
    let ready = dir.join(format!("{name}.ready"));
    let text = format!("{script} && touch {} && exec sleep infinity", ready.display());
    let log = fs::File::create(dir.join(format!("{name}.log"))).expect("log");
    let mut child = Command::new("unshare")
        .args(["--net", "--uts", "--mount", "sh", "-c", &text])
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("log"))
        .stderr(log)
        .spawn()
        .expect("unshare");
    let pid = child.id() as i32;
    leftovers::anchored(dir, pid);
    let mut ended = None;
    crate::wait_until(|| {
        ended = child.try_wait().expect("wait");
        ready.exists() || ended.is_some()
    });
    let log = || fs::read_to_string(dir.join(format!("{name}.log"))).unwrap_or_default();
    assert!(ready.exists(), "no namespaces for {name}: {ended:?}: {}", log());
    // It is ended, and waited for, by its number.
    drop(child);
    pid
}

impl Drop for Net {
    fn drop(&mut self) {
        leftovers::remove(&self.dir);
    }
}
