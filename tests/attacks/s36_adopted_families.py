"""A adopts a process whose children come and go by the thousand: the daemon, which moved descendants until it found none that was new to it,
answered nobody any more. And B (A may move no more within this minute) lets a process wait to be adopted, makes it another job meanwhile, which root suspends: when the first job began, it
took the process out of the second one.

Must hold: others are answered, whether A is refused or not; what root has suspended stays so.
"""

import json
import time

from lab import PYTHON, wait_until

STORM = "i=0; while [ $i -lt 40 ]; do (while :; do /bin/true; done) & i=$((i+1)); done; i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i+1)); done; wait"
POST = """
import http.client, os, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.connect(os.environ["COSCHED_SOCKET"])
c = Unix("x", timeout=60)
c.request("POST", "/v1/jobs", sys.argv[1]); answer = c.getresponse()
print(answer.status, answer.read().decode())
"""


def attack(lab):
    lab.daemon('policy = "local"\n')
    families(lab)
    suspended(lab)


def families(lab):
    storm = lab.a.popen(["sh", "-c", STORM])
    time.sleep(1)
    adopting = lab.a.popen([lab.bin / "cosched", "adopt", "--pid", str(storm.pid)])
    end = time.monotonic() + 20
    while time.monotonic() < end:
        # A move of processes, and back, takes two seconds each; the rest is this machine's.
        assert lab.answers(20), "the daemon does not answer while it adopts"
        time.sleep(0.2)
    adopting.wait(60)
    for job in lab.json("ps")["jobs"]:
        lab.a.cosched("kill", "-s", "KILL", str(job["id"]))
    storm.kill()


def suspended(lab):
    first = lab.b.detach("--", "sleep", "1000")
    sleeper = lab.b.popen(["sleep", "1000"])
    hatch = json.dumps({"command": ["hatch"], "pid": 0, "adopt": {"pid": sleeper.pid}, "after": [{"job": first}]})
    waiting = lab.b.run([PYTHON, "-c", POST, hatch])
    assert waiting.stdout.startswith("20"), waiting
    made = lab.b.run([PYTHON, "-c", POST, json.dumps({"command": ["second"], "pid": 0, "adopt": {"pid": sleeper.pid}})])
    assert made.stdout.startswith("20"), made
    second = json.loads(made.stdout.split(" ", 1)[1])["id"]
    assert lab.root.cosched("suspend", str(second)).returncode == 0
    assert lab.b.cosched("kill", "-s", "KILL", str(first)).returncode == 0
    number = json.loads(waiting.stdout.split(" ", 1)[1])["id"]
    assert wait_until(lambda: lab.job(number)["state"] in ("ended", "lost", "running")), lab.job(number)
    assert lab.pids(second) == [sleeper.pid], f"root has suspended it, and it is in {lab.job(number)}"
    assert lab.job(second)["state"] == "suspended", lab.job(second)
