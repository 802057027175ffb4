"""Finding 13: 200 sleeping gangs of A take nearly all slots of a machine that shares them strictly.

Must hold: a user has the share of their most urgent gang, however many gangs they have, so B's one gang has about half of the time.
"""

import time

GANGS = 200
SECONDS = 6

REGISTER = """
import http.client, json, os, socket, sys, time
for _ in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0:
        time.sleep(600); os._exit(0)
    c = http.client.HTTPConnection("localhost")
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(os.environ["COSCHED_SOCKET"])
    job = {"command": ["sleep"], "pid": pid, "cpus": int(sys.argv[2]), "class": "batch", "policy": "gang"}
    c.request("POST", "/v1/jobs", json.dumps(job), {"content-type": "application/json"})
    answer = c.getresponse()
    body = answer.read()
    assert answer.status < 300, body
print("ready", flush=True)
time.sleep(600)
"""


def cpu_us(lab, job):
    """CPU time of a job so far."""
    stat = dict(line.split() for line in (lab.v2_job(job) / "cpu.stat").read_text().splitlines())
    return int(stat["usage_usec"])


def attack(lab):
    lab.daemon('sharing = "strict"\npolicy = "gang"\nslot_length = "20ms"\n')
    cpus = len(lab.json("status")["cpus"])
    own = lab.b.detach("--cpus", str(cpus), "--", "/bin/sh", "-c", "while :; do :; done")
    gangs = lab.a.python(REGISTER, str(GANGS), str(cpus), stdout=-1, text=True)
    assert gangs.stdout.readline() == "ready\n", lab.log()[-2000:]
    before, began = cpu_us(lab, own), time.monotonic()
    time.sleep(SECONDS)
    # One process that spins: it can use one CPU only, and others on the machine take some of that.
    had = (cpu_us(lab, own) - before) / 1e6 / (time.monotonic() - began)
    assert had > 0.3, f"B has {had:.3f} of a CPU beside {GANGS} sleeping gangs of A's"
