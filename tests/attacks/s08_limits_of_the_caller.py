"""A is in cgroups with a CPU quota, a memory limit, a limit of processes, one CPU, a device less, or no huge pages, and starts jobs to escape them: by `cosched
run`, many at once, by joining a job that was started outside, by an empty job. And a job forks without end.

Must hold: each limit is kept, or the run is refused and the message names the limit and its cgroup; `caller_cgroup = "per-job"` keeps a quota
for each job; a job has at most `tasks_per_job` processes, and `cosched limits` says so.
"""

import json
import os
import subprocess
from pathlib import Path

from lab import mounts, remove_cgroups, wait_until

BURN = "import time\nt = time.monotonic()\nwhile time.monotonic() - t < 4: pass\nprint(time.process_time())"
# Counts how many children it gets; they live until all have been counted.
FORK = """
import os, signal, sys
pids = []
try:
    while len(pids) < 500:
        pid = os.fork()
        if pid == 0: signal.pause()
        pids.append(pid)
except OSError:
    pass
for pid in pids: os.kill(pid, 9)
print(len(pids))
"""
EMPTY = """
import http.client, json, os, socket
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.connect(os.environ["COSCHED_SOCKET"])
c = Unix("x")
def ask(method, path, body):
    c.request(method, path, json.dumps(body)); answer = c.getresponse()
    return answer.status, json.loads(answer.read())
status, job = ask("POST", "/v1/jobs", {"command": ["x"], "pid": 0})
print(json.dumps(ask("POST", "/v1/jobs/%d/processes" % job["id"], {"pid": os.getpid()})))
"""


def attack(lab):
    v1 = {mount.name: mount for mount in mounts("cgroup")}
    if not {"cpu", "memory", "pids", "cpuset"} <= v1.keys():
        print("SKIPPED: the v1 controllers cpu, memory, pids and cpuset are not mounted here, each by itself")
        return
    box = lambda name: Box(lab, v1, name)
    quota, rest = box("quota"), box("rest")
    quota.limit("cpu", "inner", [("cpu.cfs_period_us", 100000), ("cpu.cfs_quota_us", 10000)])
    rest.limit("memory", "", [("memory.limit_in_bytes", 64 << 20)])
    rest.limit("pids", "", [("pids.max", 40)])
    rest.limit("cpuset", "", [("cpuset.cpus", 0), ("cpuset.mems", 0)])

    lab.daemon('policy = "local"\n[limits]\ntasks_per_job = 60\n')
    # A quota cannot be shared with processes that stay behind: refused, and the message names the
    # limit and its cgroup.
    outside = lab.a.detach("--", "sleep", "1000")
    refused(quota.run("cosched", "run", "--", "/usr/bin/python3", "-c", BURN))
    refused(quota.run("cosched", "join", "--job", str(outside), "--", "/usr/bin/python3", "-c", BURN))
    status, told = json.loads(quota.run("/usr/bin/python3", "-c", EMPTY).stdout)
    assert status == 403 and "0.10 CPUs" in json.dumps(told), told

    # The controllers that stay where they are go with the process.
    seen = rest.run("cosched", "run", "--", "cat", "/proc/self/cgroup").stdout
    for controller in ("memory", "pids", "cpuset"):
        assert f":{controller}:/{rest.name}" in seen, seen
    assert int(rest.run("cosched", "run", "--", "/usr/bin/python3", "-c", FORK).stdout) < 40
    assert rest.run("cosched", "run", "--", "nproc").stdout == "1\n"
    big = rest.run("cosched", "run", "--", "/usr/bin/python3", "-c", "x = bytearray(200 << 20); print('had it')")
    assert "had it" not in big.stdout, big

    stays_where_it_is(lab, v1)

    # A job without such a caller cannot have any number of processes, either.
    forked = lab.a.cosched("run", "--", "/usr/bin/python3", "-c", FORK)
    assert 30 < int(forked.stdout) < 60, forked
    limits = {limit["name"]: limit for limit in json.loads(lab.a.cosched("--json", "limits").stdout)["limits"]}
    assert limits["tasks_per_job"]["max"] == 60 and limits["tasks_per_job"]["used"] >= 1, limits

    # An administrator may give the quota to each job.
    lab.restart('policy = "local"\n[limits]\ncaller_cgroup = "per-job"\n')
    burnt = float(quota.run("cosched", "run", "--", "/usr/bin/python3", "-c", BURN).stdout)
    assert burnt < 4 * 0.2, f"{burnt} s of CPU in 4 s, where 0.1 of a CPU is the limit"
    no_job_can_keep_it(lab)
    assert lab.root.cosched("kill", str(outside)).returncode == 0


def stays_where_it_is(lab, v1):
    """The cgroups of I/O and devices, where these are v1 controllers of their own, go with the process."""
    if not {"blkio", "devices"} <= v1.keys():
        print("not looked at: v1 blkio and devices are not mounted here, each by itself")
        return
    box = Box(lab, v1, "stays")
    disk = sorted(path.name for path in Path("/sys/dev/block").iterdir())[0]
    box.limit("blkio", "", [("blkio.throttle.read_bps_device", f"{disk} 1048576")])
    box.limit("devices", "", [("devices.deny", "c 1:5 rwm")])
    seen = box.run("cosched", "run", "--", "cat", "/proc/self/cgroup").stdout
    for controller in ("blkio", "devices"):
        assert f":{controller}:/{box.name}" in seen, seen
    zero = box.run("cosched", "run", "--", "head", "-c1", "/dev/zero")
    assert zero.returncode != 0 and "Operation not permitted" in zero.stderr, zero


def no_job_can_keep_it(lab):
    """A v2 limit that `caller_cgroup = "per-job"` cannot give to a job is refused in spite of it."""
    v2 = mounts("cgroup2")[0]
    if "hugetlb" not in (v2 / "cgroup.controllers").read_text().split():
        print("not looked at: this machine has no v2 controller of huge pages")
        return
    control = v2 / "cgroup.subtree_control"
    if "hugetlb" not in control.read_text().split():
        control.write_text("+hugetlb")
        lab.at_end(lambda: control.write_text("-hugetlb"))
    box = Box(lab, {"v2": v2}, "pages")
    box.limit("v2", "", [])
    limit = sorted((v2 / box.name).glob("hugetlb.*B.max"))[0]
    assert box.run("cosched", "run", "--", "echo", "let in").stdout == "let in\n"
    limit.write_text("0")
    done = box.run("cosched", "run", "--", "echo", "let in")
    assert done.returncode != 0 and f"huge pages 0 ({limit.name} of /{box.name})" in done.stderr, done
    assert "per-job" not in done.stderr, done


class Box:
    """A cgroup of root's in some hierarchies, in which A starts programs."""

    def __init__(self, lab, v1, name):
        self.lab, self.v1, self.name, self.places = lab, v1, f"{lab.cgroup}-{name}", []

    def limit(self, controller, below, files):
        top = self.v1[controller] / self.name
        top.mkdir()
        self.lab.at_end(lambda: wait_until(lambda: remove_cgroups(top), 5))
        for file, value in files:
            (top / file).write_text(str(value))
        # The limit may be on an ancestor of the process's cgroup.
        place = top / below
        place.mkdir(exist_ok=True)
        self.places.append(place / "cgroup.procs")

    def run(self, program, *args):
        program = self.lab.bin / program if program == "cosched" else program
        child = self.lab.a.popen(["/bin/sh", "-c", 'read go; exec "$@"', "sh", program, *args], stdin=-1, stdout=-1, stderr=-1, text=True)
        for place in self.places:
            place.write_text(str(child.pid))
        try:
            out, err = child.communicate("go\n", timeout=40)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
        return subprocess.CompletedProcess(args, child.returncode, out, err)


def refused(done):
    assert done.returncode != 0 and "0.10 CPUs" in done.stderr and "quota" in done.stderr, done
