"""A daemon that is restarted while the owners of its jobs do their worst still answers.

User A has many jobs (100, or `JOBS=1000 tests/attacks/run s31`). When the daemon has died, A takes a write lease on every wait page
(opening one waits for `lease-break-time`, 45 s), and A's jobs have long names and commands, several processes each, environments
of 100 KB, and some start and end processes all the time, on all CPUs, because nothing limits them while no daemon runs. A new
daemon must answer B about as soon as one whose jobs are quiet: in at most 1 s, or five times that.
"""

import json
import os
import time

CONFIG = "slot_length = '50ms'\n"

# Registers `count` jobs, or fewer if the daemon refuses more; then waits for a line before it becomes a
# nuisance.
OWNER = r"""
import fcntl, http.client, json, os, signal, socket, sys, time

path, count, daemon = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
signal.signal(signal.SIGCHLD, signal.SIG_IGN)

class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)

def sleeper():
    for _ in range(2):
        if os.fork() == 0:
            break
    time.sleep(600)

def churner():
    while True:
        if os.fork() == 0:
            os._exit(0)
        time.sleep(0.01)

def heavy_environment():
    os.execve("/bin/sleep", ["sleep", "600"], {f"X{n}": "x" * 10000 for n in range(10)})

pages, api = [], Unix("daemon", timeout=60)
for n in range(count):
    out, gate = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(gate)
        os.read(out, 1)
        [sleeper, heavy_environment, churner][(n % 20 == 1) + 2 * (n % 50 == 2)]()
    os.close(out)
    body = {"command": ["x" * 200] * 30, "name": "n" * 200, "pid": pid, "waiting": {"mode": "auto"}, "class": "batch", "cpus": 1}
    api.request("POST", "/v1/jobs", json.dumps(body), {"Content-Type": "application/json"})
    answer = api.getresponse()
    job = json.loads(answer.read())
    if answer.status >= 300:
        os.kill(pid, 9)
        print("refused", json.dumps(job), flush=True)
        break
    pages.append(job.get("waiting", {}).get("page"))
    os.close(gate)
print("jobs", len(pages), flush=True)
for line in sys.stdin:
    leased = 0
    files = []
    for page in filter(None, pages):
        try:
            files.append(os.open(page, os.O_RDWR))
            fcntl.fcntl(files[-1], fcntl.F_SETLEASE, fcntl.F_WRLCK)
            leased += 1
        except OSError:
            pass
    # Whoever wants the page does not get it before the time is over.
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    print("leased", leased, flush=True)
"""


# Prints when it was answered, by the clock that all processes share.
CLIENT = r"""
import socket, sys, time
print("ready", flush=True)
end = time.monotonic() + 100
while time.monotonic() < end:
    try:
        s = socket.socket(socket.AF_UNIX); s.settimeout(100); s.connect(sys.argv[1])
        s.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        if s.recv(12) == b"HTTP/1.1 200":
            print(time.monotonic())
            break
    except OSError:
        time.sleep(0.01)
"""


def restart(lab):
    """The seconds from the start of a new daemon until it answers a user who keeps asking."""
    client = lab.b.python(CLIENT, str(lab.socket), stdout=-1, text=True)
    assert client.stdout.readline() == "ready\n"
    start = time.monotonic()
    lab.daemon(CONFIG, wait=False)
    answered = client.stdout.readline()
    assert answered, "the daemon does not answer"
    return float(answered) - start


def attack(lab):
    wanted = int(os.environ.get("JOBS", "100"))
    lab.daemon(CONFIG)
    owner = lab.a.python(OWNER, str(lab.socket), str(wanted), str(lab.process.pid), stdin=-1, stdout=-1, text=True)
    words = owner.stdout.readline().split(" ", 1)
    if words[0] == "refused":
        print(f"after so many jobs A is refused: {json.loads(words[1])['why']}")
        words = owner.stdout.readline().split(" ", 1)
    jobs = int(words[1])
    assert jobs > 0, "A has no job"
    lab.kill()
    still = restart(lab)
    lab.kill()
    owner.stdin.write("now\n")
    owner.stdin.flush()
    leased = int(owner.stdout.readline().split()[1])
    worst = restart(lab)
    print(f"{jobs} jobs, {leased} leases: {worst:.2f} s until an answer; {still:.2f} s without them")
    known = [job for job in lab.json("ps") ["jobs"] if job["state"] not in ("ended", "lost")]
    assert len(known) == jobs, f"{len(known)} of {jobs} jobs are known"
    assert worst <= max(1.0, 5 * still), f"{worst:.2f} s until an answer, {still:.2f} s when A keeps still"
