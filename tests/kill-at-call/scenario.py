"""One run: a daemon with jobs that is killed at one of its system calls, and what has to be true afterwards."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from place import PATIENCE_S, mounts, wait_until
import tracer


class Gone(Exception):
    """The daemon no longer answers."""


class Api:
    """Requests to a daemon, a connection each."""

    def __init__(self, path):
        self.path = str(path)

    def __call__(self, method, target, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PATIENCE_S)
                connection.connect(self.path)
                connection.sendall(head.encode() + data)
                answer = b"".join(iter(lambda: connection.recv(65536), b""))
            head, _, body = answer.partition(b"\r\n\r\n")
            status, body = int(head.split()[1]), json.loads(body)
        except (OSError, ValueError, IndexError) as e:
            raise Gone(str(e)) from e
        assert 200 <= status < 300, f"{method} {target}: {status} {body}"
        return body

    def answers(self):
        """Whether it answers."""
        try:
            return bool(self("GET", "/v1/status"))
        except Gone:
            return False


class Job:
    """A process that counts, behind a gate; what the daemon acknowledged of its job is in `acked`."""

    def __init__(self, place, index, counts_on=True):
        self.name, self.index, self.acked, self.beats = f"j{index}", index, {}, place.beats
        out, self.gate = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.gate)
                os.setsid()
                if os.read(out, 1):
                    self.count(counts_on)
            finally:
                os._exit(7)
        os.close(out)
        self.code, self.begun = None, False

    def count(self, counts_on):
        number, at = 0, 8 * self.index
        while counts_on:
            number += 1
            self.beats[at : at + 8] = number.to_bytes(8, "little")
            time.sleep(0.002)

    def beat(self):
        return bytes(self.beats[8 * self.index : 8 * self.index + 8])

    def open(self):
        self.begun = True
        os.write(self.gate, b"x")

    def ended(self, wait=False):
        """Whether its process has ended."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, 0 if wait else os.WNOHANG)
            self.code = status if pid else None
        return self.code is not None


class Run:
    """A run in a place. With `at` 0, no process is killed, and the calls are counted."""

    def __init__(self, place, of, at):
        self.place, self.of, self.at, self.calls, self.jobs, self.slowest_s = place, of, at, 0, [], 0.0
        self.api = Api(place.dir / "coschedd.sock")

    def traced(self):
        """Starts a daemon that is traced; its tracer, and its number."""
        at = max(self.at - self.calls, 0) if self.at else 0
        log = self.place.log()
        env = {"PATH": "/usr/bin:/bin", "COSCHED_LOG": "info"}
        pid, pipe = tracer.spawn(self.place.argv(), env, log, self.of, at)
        os.close(log)
        return pid, pipe, int(pipe.readline())

    def until_over(self, traced):
        """Called when the tracer's daemon has ended: adds the calls that were counted."""
        self.calls += int(traced[1].readline())
        traced[1].close()
        os.waitpid(traced[0], 0)

    def until_ready(self, daemon):
        """Waits until it answers, or has ended."""
        ready = lambda: self.api.answers() or not alive(daemon)
        assert wait_until(ready, PATIENCE_S), "the daemon neither answers nor ends"

    def register(self, index, **more):
        job = Job(self.place, index, **more)
        self.jobs.append(job)
        request = {"command": ["count"], "name": job.name, "pid": job.pid, "class": "interactive"}
        job.acked["id"] = self.api("POST", "/v1/jobs", request)["id"]
        job.open()
        return job

    def change(self, job, what, body, **acked):
        self.api("POST", f"/v1/jobs/{job.acked['id']}/{what}", body)
        job.acked.update(acked)

    def first_half(self):
        """What users do before the restart."""
        a, b = self.register(0), self.register(1)
        # Both have had a slot, so the plan is in use.
        for job in (a, b):
            before = job.beat()
            wait_until(lambda j=job, then=before: j.beat() != then or not self.api.answers(), PATIENCE_S)
        self.change(a, "suspend", {}, state="suspended")
        a.acked.pop("state")
        self.change(a, "resume", {}, state="running")
        self.change(b, "class", {"class": "standby"}, **{"class": "standby"})
        c = self.register(2)
        self.change(c, "kill", {"signal": 9}, over=True)
        d = self.register(3, counts_on=False)
        d.ended(wait=True)
        self.change(d, "exit", {"exit": {"code": 7}}, over=True, code=7)
        self.change(b, "suspend", {}, state="suspended")

    def second_half(self):
        """What users do after the restart."""
        a, b = self.jobs[:2]
        b.acked.pop("state")
        self.change(b, "resume", {}, state="running")
        self.change(a, "kill", {"signal": 9}, over=True)

    def run(self):
        """Runs both halves; the place ends what they start."""
        for half in (self.first_half, self.second_half):
            traced = self.traced()
            daemon = traced[2]
            try:
                self.until_ready(daemon)
                half()
            except Gone:
                pass
            if self.of == "guard" and self.at and self.calls < self.at:
                self.guard_is_back(daemon)
            # The tracer may kill it at this moment.
            with contextlib.suppress(ProcessLookupError):
                if alive(daemon):
                    # The first is restarted as an operator does; the last one only has to end.
                    os.kill(daemon, signal.SIGTERM if half == self.first_half else signal.SIGKILL)
            self.until_over(traced)
            if self.at and self.calls >= self.at:
                break
        self.look()

    def guard_is_back(self, daemon):
        """A guard that was killed is replaced, without any effect."""
        guard = lambda: self.api("GET", "/v1/status")["safety"].get("guard_pid")
        try:
            assert wait_until(lambda: alive(guard() or 0), PATIENCE_S), "no guard"
        except Gone:
            assert not alive(daemon), "the daemon does not answer"

    def look(self):
        """What has to be true, whatever was killed at whatever time."""
        self.nobody_stands_still()
        daemon = self.another()
        self.acknowledged()
        last = self.register(len(self.jobs))
        others = [job.acked.get("id", 0) for job in self.jobs[:-1]]
        assert last.acked["id"] > max(others, default=0), f"a number twice: {last.acked} after {others}"
        for job in self.jobs:
            if not job.ended():
                os.kill(job.pid, signal.SIGKILL)
                job.ended(wait=True)
        # As launchers do; otherwise the daemon waits for them for a while.
        for job in self.api("GET", "/v1/jobs")["jobs"]:
            self.api("POST", f"/v1/jobs/{job['id']}/exit", {"exit": {"signal": 9}})
        if not wait_until(lambda: not self.place.job_cgroups(), 5):
            self.only_unregistered()
            daemon.kill()
            daemon.wait()
            self.another()
        assert wait_until(lambda: not self.place.job_cgroups(), PATIENCE_S), f"left: {self.place.job_cgroups()}"

    def another(self):
        """Starts a daemon without a tracer, and waits until it answers."""
        argv, log = self.place.argv(), self.place.log()
        daemon = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        os.close(log)
        self.until_ready(daemon.pid)
        assert daemon.poll() is None, f"another daemon does not start: {daemon.returncode}"
        return daemon

    def only_unregistered(self):
        """A process that was being registered may be in v1 cgroups only, where no daemon looks for processes: once it has
        ended, the next daemon removes them. Nothing else may be left."""
        known = {f"job-{job.acked['id']}" for job in self.jobs if "id" in job.acked}
        v2 = mounts("cgroup2")
        wrong = [path for path in self.place.job_cgroups() if path.name in known or any(mount in path.parents for mount in v2)]
        assert not wrong, f"left: {wrong}"

    def nobody_stands_still(self):
        """No daemon is running: every process that has not ended continues, within the bound."""
        start = time.monotonic()
        for job in self.jobs:
            before = job.beat()
            goes_on = lambda j=job, then=before: not j.begun or j.ended() or j.beat() != then
            assert wait_until(goes_on, 3), f"{job.name} stands still without a daemon; acknowledged: {job.acked}"
            self.slowest_s = max(self.slowest_s, time.monotonic() - start)

    def acknowledged(self):
        """What the daemons acknowledged exists."""
        for job in self.jobs:
            if "id" not in job.acked:
                continue
            # The end of its processes is noticed asynchronously, so this polls.
            right = lambda j=job: self.is_right(j, self.api("GET", f"/v1/jobs/{j.acked['id']}"))
            shown = lambda j=job: self.api("GET", f"/v1/jobs/{j.acked['id']}")
            assert wait_until(right, 5), f"acknowledged: {job.name} {job.acked}; there is: {shown()}"

    @staticmethod
    def is_right(job, shown):
        over = shown["state"] in ("ended", "lost")
        wanted = job.acked.get("state")
        return (
            shown["name"] == job.name
            and (over if job.acked.get("over") or job.ended() else not over)
            and (not job.acked.get("over") or job.ended())
            and (over or wanted is None or shown["state"] == wanted)
            and (over or shown["class"] == job.acked.get("class", shown["class"]))
            and job.acked.get("code") in (None, shown.get("exit", {}).get("code"))
        )


def alive(pid):
    """Whether a process exists and is not a zombie."""
    try:
        return pid > 0 and Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
