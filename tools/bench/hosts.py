"""Two hosts on one machine: network namespaces with one CPU each, joined by a pair of virtual Ethernet devices.

The namespaces are held by two processes that end when their standard input does, so nothing is left behind even when this
program is killed. A remote-shell agent enters a host by address; it does not change cgroups, so the ranks of a job are
born in the job's cgroups on both hosts. As root only.
"""

import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from live import Failure

NET = "10.77.0.0/24"
ADDRESSES = ("10.77.0.1", "10.77.0.2")
DEVICE = "cst0"  # the name of each host's device inside its namespace
TOOLS = ("ip", "nsenter", "unshare", "taskset", "hostname", "mount")

# Launchers that share a session directory remove it while others still use it.
OWN_DIRECTORY = "--mca orte_tmpdir_base $(mktemp -d {}/ompi-XXXXXX)"
# What `mpirun` must name for Open MPI to pass it to the ranks: known only where it runs, below `cosched run`. `cosched
# run --wait` does it itself with Open MPI's list of variables, which must not be combined with -x.
FORWARD = r"""if [ -z "$OMPI_MCA_mca_base_env_list" ]; then
    for variable in $(env | sed -n 's/^\(COSCHED_[A-Z0-9_]*\|LD_PRELOAD\)=.*/\1/p'); do
        forward="$forward -x $variable"
    done
fi
"""


class Hosts:
    """`with Hosts(rate) as hosts:` creates them; `words(mpi, ranks, program)` is the command that runs a program on both (from /).

    rate: the link's bits per second as tc writes them ("1gbit"), or None for an unlimited rate.
    """

    def __init__(self, rate=None):
        self.rate, self.anchors, self.cpus = rate, [], sorted(os.sched_getaffinity(0))

    def __enter__(self):
        if os.geteuid() != 0:
            raise Failure("two hosts need network namespaces: run as root, or leave the transport tcp out")
        if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
            raise Failure(f"two hosts need {', '.join(missing)} (packages iproute2, util-linux, hostname)")
        if len(self.cpus) < 2:
            raise Failure("two hosts need two CPUs, one each")
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cst-hosts-"))
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        # Both ends get their address before any of our processes could reach an address of the same net elsewhere.
        if any(address in run("ip", "-brief", "address") for address in ADDRESSES):
            raise Failure(f"an address of {NET} is already used on this machine")
        for number in range(2):
            self.anchors.append(anchor(f"cst-host{number + 1}"))
        first, second = (f"cst{os.getpid() % 10 ** 7}{end}" for end in "ab")
        run("ip", "link", "add", first, "netns", self.anchors[0].pid, "type", "veth", "peer", "name", second, "netns",
            self.anchors[1].pid)
        for number, name in enumerate((first, second)):
            inside = self._inside(number)
            run(*inside, "ip", "link", "set", name, "name", DEVICE)
            run(*inside, "ip", "address", "add", f"{ADDRESSES[number]}/24", "dev", DEVICE)
            for device in ("lo", DEVICE):
                run(*inside, "ip", "link", "set", device, "up")
            # The host's own devices in /sys, where UCX looks for them; the rest stays, so that cgroups are still
            # visible.
            run(*inside, "sh", "-c", f"mount -t sysfs sysfs {self.dir} && for net in class/net devices/virtual/net; do "
                f"mount --bind {self.dir}/$net /sys/$net || exit 1; done; umount {self.dir}")
            # Each host receives its messages on its own CPU; otherwise the sender's CPU would do the receiver's work.
            run(*inside, "sh", "-c",
                f"echo {1 << self.cpus[number]:x} > /sys/class/net/{DEVICE}/queues/rx-0/rps_cpus")
            if self.rate:
                run(*inside, "tc", "qdisc", "add", "dev", DEVICE, "root", "tbf", "rate", self.rate, "burst", "256k",
                    "latency", "50ms")
        self._wait_until_up()
        self._scripts()

    def _wait_until_up(self):
        """The kernel reports a carrier up to a second late, and UCX leaves out a device that has none."""
        end = time.monotonic() + 10
        for number in range(2):
            while run(*self._inside(number), "cat", f"/sys/class/net/{DEVICE}/operstate").strip() != "up":
                if time.monotonic() > end:
                    raise Failure(f"the link between the two hosts does not come up (device {DEVICE})")
                time.sleep(0.02)

    def _inside(self, number):
        return ["nsenter", "--target", str(self.anchors[number].pid), "--net", "--uts", "--mount", "--"]

    def _scripts(self):
        """`enter ADDRESS COMMAND…`, the agent that the launchers call, and one launcher for each library."""
        cases = "\n".join(f"    {address}) shift; exec {shlex.join(self._inside(n))} taskset -c {self.cpus[n]} \"$@\" ;;"
                          for n, address in enumerate(ADDRESSES))
        self._script("enter", f'case "$1" in\n{cases}\nesac\necho "enter: no host $1" >&2\nexit 2\n')
        self._script("agent", 'while case "$1" in -*) true ;; *) false ;; esac; do shift; done\nhost=$1\nshift\n'
                     f'exec {self.dir}/enter "$host" /bin/sh -c "$*"\n')
        # The first word is the number of ranks, dealt to the hosts in turn.
        self._script("openmpi", f"ranks=$1\nshift\n{FORWARD}"
                     f"exec {self.dir}/enter {ADDRESSES[0]} mpirun.openmpi -np $ranks --map-by node"
                     f" --host {':64,'.join(ADDRESSES)}:64 --bind-to none --mca plm rsh"
                     f" --mca plm_rsh_agent {self.dir}/agent --mca pml ob1 --mca btl tcp,self"
                     f" --mca btl_tcp_if_include {NET} --mca oob_tcp_if_include {NET}"
                     f" {OWN_DIRECTORY.format(self.dir)} $forward \"$@\"\n")
        self._script("mpich", "ranks=$1\nshift\n"
                     f"exec {self.dir}/enter {ADDRESSES[0]} env UCX_TLS=tcp,self UCX_NET_DEVICES={DEVICE}"
                     f" mpiexec.mpich -n $ranks -hosts {','.join(ADDRESSES)} -ppn 1 -bind-to none -launcher rsh"
                     f" -launcher-exec {self.dir}/agent -disable-hostname-propagation -localhost {ADDRESSES[0]}"
                     " \"$@\"\n")

    def _script(self, name, text):
        path = self.dir / name
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)

    def words(self, mpi, ranks, program):
        """The command that runs a program on both hosts; mpi: openmpi or mpich."""
        return [str(self.dir / mpi), str(ranks), *map(str, program)]

    def processes(self):
        """The processes on the hosts, except the two that hold them."""
        ours = {namespace(anchor.pid) for anchor in self.anchors} - {None}
        held = {anchor.pid for anchor in self.anchors}
        pids = (int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*"))
        return [pid for pid in pids if pid not in held and namespace(pid) in ours]

    def kill_all(self):
        """Ends every process on the hosts: launchers leave daemons behind when they are killed themselves."""
        end = time.monotonic() + 10
        while (pids := self.processes()) and time.monotonic() < end:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    def __exit__(self, *_):
        # A second Ctrl-C must not stop the cleaning.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self.kill_all()
            for holder in self.anchors:
                holder.stdin.close()
                holder.stdout.close()
                holder.wait()
            self.anchors = []
            shutil.rmtree(self.dir, ignore_errors=True)
        finally:
            signal.signal(signal.SIGINT, before)


def anchor(name):
    """A process that holds a host's namespaces (network, hostname, mounts) until its standard input ends."""
    # A session of its own: Ctrl-C is handled by this program, which then ends it in order.
    process = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "sh", "-c", f"hostname {name} && echo ready && exec cat"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
    line = process.stdout.readline().strip()
    if line != "ready":
        process.stdin.close()
        process.wait()
        raise Failure(f"network namespaces cannot be made here: {line}")
    return process


def namespace(pid):
    """Identifies a process's network namespace, or None when the process has ended."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return None


def run(*words):
    """The output of a system command; a Failure when it fails."""
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Failure(f"{shlex.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def one_host_words(directory, mpi, ranks, program):
    """The command that runs a program on this host alone, over shared memory; `directory` takes a script."""
    path = directory / f"one-host-{mpi}"
    if not path.exists():
        # Unbound: otherwise Open MPI would pin the ranks of every job to the same CPUs.
        launch = {"openmpi": "mpirun.openmpi -np $ranks --bind-to none --oversubscribe --mca pml ob1"
                             f" --mca btl vader,self {OWN_DIRECTORY.format(directory)} $forward",
                  "mpich": "mpiexec.mpich -n $ranks -bind-to none"}[mpi]
        path.write_text(f"#!/bin/sh\nranks=$1\nshift\n{FORWARD}exec {launch} \"$@\"\n")
        path.chmod(0o755)
    return [str(path), str(ranks), *map(str, program)]
