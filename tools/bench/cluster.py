"""cluster: two nodes on this machine, a CPU each, on a real etcd: skew, stray CPU time, latency, cost.

A node is a daemon with a CPU, a socket and a cgroup of its own; both have this machine's clock, so skew is caused by the daemons
and not by a time service. Gangs of two processes, one on each node, take turns (strict). skew: between the first moments at
which a gang runs on either node, per turn; the processes read the clock all the time. stray: CPU time of gangs outside
their slots. latency: from `cosched run` to the program's first instruction, alone and beside two gangs. idle: etcd's
puts and revisions while nothing happens. Planning (nodes, one job arrives): cargo run --release -p cosched-core --example
plan_speed.
"""

import json
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import live
from figures import median, quantile, table as make_table, text
from footprint import cpu_ns, family, memory_mib

NEEDS_DAEMON = False

# Records when it ran again after a gap in which it had not run.
WATCH = """
import sys, time
gap, last, end = float(sys.argv[2]), time.time(), time.time() + float(sys.argv[3])
with open(sys.argv[1], "w") as out:
    while last < end:
        now = time.time()
        if now - last > gap:
            print(now, file=out)
        last = now
"""


def add_arguments(parser):
    parser.add_argument("--slots", default="20,100", metavar="MS,…", help="[default: %(default)s]")
    parser.add_argument("--seconds", type=float, metavar="S", help="of each measurement [default: 20; --quick: 6]")


class Node(live.Daemon):
    """A node of the cluster, on one CPU."""

    def __init__(self, arguments, number, name, endpoint):
        config = (f'store = "etcd"\ncluster = "bench"\nnode = "{name}"\nrequire_synchronised_clock = false\n'
                  f'sharing = "strict"\nslot_length = "100ms"\n[etcd]\nendpoints = ["{endpoint}"]\n')
        super().__init__(arguments.bin, arguments.programs, config)
        self.cgroup += f"-{name}"
        self.prefix = ["taskset", "-c", str(number)]
        self.name, self.cpu = name, number


class Etcd:
    """A separate etcd on free ports of the loopback."""

    def __enter__(self):
        if not shutil.which("etcd"):
            raise live.Failure("etcd is not installed; tools/setup test installs it")
        self.dir = pathlib.Path(live.tempfile.mkdtemp(prefix="cosched-bench-etcd-"))
        client, peer = free_port(), free_port()
        self.endpoint = f"http://127.0.0.1:{client}"
        peers = f"http://127.0.0.1:{peer}"
        words = ["etcd", "--name", "b", "--data-dir", self.dir / "data", "--listen-client-urls", self.endpoint,
                 "--advertise-client-urls", self.endpoint, "--listen-peer-urls", peers,
                 "--initial-advertise-peer-urls", peers, "--initial-cluster", f"b={peers}"]
        with open(self.dir / "log", "w") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                self.counts()
                return self
            except OSError:
                time.sleep(0.05)
        self.__exit__()
        raise live.Failure("etcd did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def counts(self):
        """What it has written so far: puts, and changes of its log (including leases that are granted or end)."""
        with urllib.request.urlopen(f"{self.endpoint}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        value = {line.split()[0]: float(line.split()[1]) for line in lines if not line.startswith("#")}
        return {"puts": value["etcd_mvcc_put_total"], "proposals": value["etcd_server_proposals_committed_total"]}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def measure(_, arguments):
    seconds = arguments.seconds or (6 if arguments.quick else 20)
    result = {"skew": [], "latency": [], "seconds": seconds}
    with Etcd() as etcd, Node(arguments, 0, "a", etcd.endpoint) as a, Node(arguments, 1, "b", etcd.endpoint) as b:
        until(lambda: len(a.status()["nodes"]) == 2)
        time.sleep(3)
        result["idle"] = idle(etcd, [a, b], seconds)
        result["latency"].append(latency(a, "alone", 5 if arguments.quick else 20))
        for slot_ms in map(int, arguments.slots.split(",")):
            a.cli("policy", "--slot", f"{slot_ms}ms")
            result["skew"].append(skew(a, b, slot_ms, seconds))
        gangs = [gang(a, b, [sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        result["latency"].append(latency(a, "beside 2 gangs", 5 if arguments.quick else 20))
        result["busy"] = cost([a, b], seconds)
        end(a, gangs)
        # Supervisors still have to report.
        until(lambda: not json.loads(a.cli("ps", "--json"))["jobs"])
        result["status"] = a.status_facts()
    return result


def until(ready, patience_s=20):
    deadline = time.monotonic() + patience_s
    while not ready():
        if time.monotonic() > deadline:
            raise live.Failure("the cluster does not do what it should")
        time.sleep(0.05)


def gang(a, b, command):
    """A job over both nodes, the same program on each; its id."""
    words = ["run", "--json", "-d", "--nodes", "a:1,b:1", "--", "taskset", "-c", str(a.cpu), *command]
    job = json.loads(a.cli(*words))
    until(lambda: str(job["id"]) in (b.try_cli("show", "--json", str(job["id"])) or ""))
    join = [b.binaries / "cosched", "--socket", b.socket, "join", "--job", str(job["id"]), "--", "taskset", "-c",
            str(b.cpu), *[word.replace("/a.txt", "/b.txt") for word in command]]
    started = until_joined(b, join)
    b.started.append(started)
    return job["id"]


def until_joined(node, words):
    """The job's part may appear a moment later."""
    for _ in range(100):
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   stdin=subprocess.DEVNULL)
        time.sleep(0.1)
        if process.poll() is None:
            return process
    raise live.Failure(f"nobody joins on {node.name}")


def end(node, jobs):
    node.cli("kill", "-9", *map(str, jobs))


def skew(a, b, slot_ms, seconds):
    """Two gangs that watch the clock, for `seconds`."""
    directory = pathlib.Path(live.tempfile.mkdtemp(prefix="cosched-bench-"))
    try:
        jobs = []
        for number in range(2):
            place = directory / str(number)
            place.mkdir()
            jobs.append(gang(a, b, [sys.executable, "-c", WATCH, f"{place}/a.txt", str(slot_ms / 4000), str(seconds + 3)]))
        time.sleep(seconds + 5)
        stray = [json.loads(a.cli("show", "--json", str(job))) for job in jobs]
        apart_us = []
        for number in range(2):
            times = [[float(line) for line in (directory / str(number) / f"{name}.txt").read_text().split()] for name in "ab"]
            apart_us += pairs(*times, slot_ms / 2000)
        end_if_there(a, jobs)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    used_ms = sum(job.get("cpu_time_ms", 0) for job in stray)
    outside_ms = sum(job.get("outside_ms", 0) for job in stray)
    return {"slot_ms": slot_ms, "turns": len(apart_us), "p50_us": median(apart_us), "p99_us": quantile(apart_us, 0.99),
            "max_us": max(apart_us, default=None), "stray_percent": 100 * outside_ms / used_ms if used_ms else None}


def end_if_there(node, jobs):
    for job in jobs:
        node.try_cli("kill", "-9", str(job))
    until(lambda: not json.loads(node.cli("ps", "--json"))["jobs"])


def pairs(first, second, window_s):
    """The distances between the beginnings of the same turn, in us; turns that one of them did not see are left out."""
    apart, at = [], 0
    for begin in first:
        while at < len(second) and second[at] < begin - window_s:
            at += 1
        if at < len(second) and abs(second[at] - begin) < window_s:
            apart.append(abs(second[at] - begin) * 1e6)
    return apart


def latency(node, name, runs):
    """For jobs on both nodes, in ms: from the call to the program's first line, less the time for the same without cosched."""
    program = [sys.executable, "-c", "import time; print(time.time())"]

    def once(words):
        begin = time.time()
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
        return (float(done.stdout) - begin) * 1e3

    job, bare = [], []
    for _ in range(runs):
        # The plan without the previous run has to take effect: until then no job may start early.
        time.sleep(1)
        bare.append(once(program))
        job.append(once(node.run_words(program, "--nodes", "a:1,b:1")))
    return {"setting": name, "runs": runs, "p50_ms": median(job) - median(bare), "max_ms": max(job) - median(bare)}


def idle(etcd, nodes, seconds):
    before, begin = etcd.counts(), time.monotonic()
    facts = cost(nodes, max(seconds, 20))
    span_s = time.monotonic() - begin
    after = etcd.counts()
    facts.update({f"{key}_per_hour": (after[key] - before[key]) * 3600 / span_s for key in before})
    return facts


def cost(nodes, seconds):
    """CPU and memory of the daemons, the mean of both."""
    pids = [node.process.pid for node in nodes]
    before, begin = sum(map(cpu_ns, pids)), time.monotonic()
    time.sleep(seconds)
    span_ns = (time.monotonic() - begin) * 1e9
    return {"cpu_percent": (sum(map(cpu_ns, pids)) - before) / span_ns * 100 / len(pids),
            "rss_mib": sum(memory_mib(pid, "Rss") for pid in pids) / len(pids),
            "processes": sum(len(family(pid)) for pid in pids)}


def table(result):
    skews = [[f"{row['slot_ms']} ms", row["turns"], text(row["p50_us"]), text(row["p99_us"]), text(row["max_us"]),
              text(row["stray_percent"], 2)] for row in result["skew"]]
    latencies = [[row["setting"], row["runs"], text(row["p50_ms"], 1), text(row["max_ms"], 1)] for row in result["latency"]]
    idle, busy = result["idle"], result["busy"]
    costs = [[name, text(row["cpu_percent"], 2), text(row["rss_mib"], 1)] for name, row in (("idle", idle), ("2 gangs", busy))]
    return [
        *make_table("skew of a gang's begin between two nodes", ["slot", "turns", "p50 us", "p99 us", "max us", "stray %"], skews),
        *make_table("from submission to the program, over two nodes", ["setting", "runs", "p50 ms", "max ms"], latencies),
        *make_table("a node's daemon", ["setting", "CPU %", "RSS MiB"], costs),
        f"    etcd while nothing happens: {idle['puts_per_hour']:.0f} puts an hour, {idle['proposals_per_hour']:.0f} log entries"
        f" (2 nodes, leases of 5 s)",
    ]
