"""An administrator suspends A's job, lowers its class, gives it a policy; A undoes all of it: by the same commands, by a signal that A's
program ignores, by a new job for the same process, by taking the process out of its job. On one machine, and on one with queues.

Must hold: each is refused, and A is told who has decided it; it is recorded, shown, and in the audit log, also after a restart; an
administrator revokes it, and then A may do it again. A may resume what A has suspended. A process in a job cannot start another job.
"""

import json
import os
import time
from lab import wait_until

# A program that ends only by force, and that sends the daemon the requests that it is told to send.
STUBBORN = """
import http.client, json, os, signal, socket, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.connect(os.environ["COSCHED_SOCKET"])
while True:
    time.sleep(0.1)
"""
REGISTER = """
import http.client, json, os, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.connect(os.environ["COSCHED_SOCKET"])
c = Unix("x")
c.request(sys.argv[1], sys.argv[2], sys.argv[3].replace("SELF", str(os.getpid()))); answer = c.getresponse()
print(answer.status, answer.read().decode())
"""
QUEUES = '[[queue]]\nname = "normal"\n'


def attack(lab):
    for config in ['policy = "gang"\n', 'policy = "gang"\n' + QUEUES]:
        lab.daemon(config)
        one_machine(lab, config)
        lab.process.terminate()
        lab.process.wait()


def one_machine(lab, config):
    job = lab.a.detach("--class", "interactive", "--", "/usr/bin/python3", "-c", STUBBORN)
    assert wait_until(lambda: lab.pids(job))
    a = lambda *words: lab.a.cosched(*words)
    root = lambda *words: assert_done(lab.root.cosched(*words))

    # A's own decisions can be undone by A.
    assert_done(a("suspend", str(job)))
    assert_done(a("resume", str(job)))
    assert lab.job(job)["state"] == "running" and not lab.job(job).get("decided"), lab.job(job)

    # Root's decisions cannot.
    root("suspend", str(job))
    root("class", str(job), "batch")
    root("policy", "--job", str(job), "local")
    lab.restart(config)
    for words in (["resume", str(job)], ["class", str(job), "standby"], ["class", str(job), "batch"],
                  ["policy", "--job", str(job), "gang"], ["policy", "--job", str(job), "default"]):
        refused(a(*words))
    refused(lab.b.cosched("resume", str(job)), "")
    seen = lab.job(job)
    assert (seen["state"], seen["class"], seen["own_policy"]) == ("suspended", "batch", "local"), seen
    assert [d["matter"] for d in seen["decided"]] == ["suspension", "class", "policy"], seen
    assert all((d["uid"], d["user"]) == (0, "root") for d in seen["decided"]), seen
    shown = lab.b.cosched("show", str(job)).stdout
    assert "suspended, set by root" in shown and "batch, set by root" in shown, shown
    assert "suspended by root" in a("ps").stdout, a("ps").stdout

    # Nor in any other way: out of the job, or into a new one.
    pid = lab.pids(job)[0]
    told = ask(lab.a, "DELETE", f"/v1/jobs/{job}/processes", {"pid": pid})
    assert told.startswith("403") and "root" in told, told
    refused(a("suspend", str(job)), None)
    told = register_inside(lab, job)
    assert told.startswith("409") and f"is in job {job}" in told, told
    assert lab.pids(job) and lab.job(job)["state"] == "suspended", lab.job(job)

    # A signal to end lets it run, but it cannot ignore the signal and continue.
    took = time.monotonic()
    a("kill", "--signal", "TERM", "--grace", "1h", str(job))
    assert wait_until(lambda: lab.job(job)["state"] == "ended", 30), lab.job(job)
    assert 1 < time.monotonic() - took < 30

    # Root revokes it by restoring the previous setting.
    job = lab.a.detach("--class", "interactive", "--", "sleep", "1000")
    root("suspend", str(job))
    root("class", str(job), "standby")
    root("policy", "--job", str(job), "local")
    refused(a("resume", str(job)))
    for words in (["resume", str(job)], ["class", str(job), "interactive"], ["policy", "--job", str(job), "default"]):
        root(*words)
    assert not lab.job(job).get("decided"), lab.job(job)
    for words in (["class", str(job), "batch"], ["policy", "--job", str(job), "local"], ["suspend", str(job)], ["resume", str(job)]):
        assert_done(a(*words))
    # A may end it in any case.
    root("suspend", str(job))
    assert_done(a("kill", str(job)))

    log = [json.loads(line) for line in (lab.state / "audit.log").read_text().splitlines()]
    acts = lambda uid, outcome: {e["act"] for e in log if e.get("uid") == uid and e.get("job") and e["outcome"] == outcome}
    assert {"suspend", "resume", "class", "policy"} <= acts(0, "done"), acts(0, "done")
    assert {"resume", "class", "policy"} <= acts(lab.a.uid, "refused"), acts(lab.a.uid, "refused")


def register_inside(lab, job):
    """A process of the job asks to become a job of its own. The job is stopped: root puts the asking process's cgroup there by hand."""
    inside = lab.a.popen(["/bin/sh", "-c", "read go; exec \"$@\"", "sh", "/usr/bin/python3", "-c", REGISTER, "POST", "/v1/jobs",
                          json.dumps({"command": ["again"], "pid": "SELF"}).replace('"SELF"', "SELF")], stdin=-1, stdout=-1, text=True)
    # Beside `gang`, where it still belongs to the job and is not frozen.
    beside = lab.v2_job(job) / "beside"
    beside.mkdir(exist_ok=True)
    (beside / "cgroup.procs").write_text(str(inside.pid))
    told = inside.communicate("go\n", timeout=20)[0]
    os.rmdir(beside)
    return told


def ask(user, method, path, body):
    done = user.run(["/usr/bin/python3", "-c", REGISTER, method, path, json.dumps(body)])
    return done.stdout or done.stderr


def refused(done, who="root"):
    if who is None:
        return
    assert done.returncode not in (0, None), f"done: {done.args} {done.stdout}"
    assert who in done.stderr, done.stderr


def assert_done(done):
    assert done.returncode == 0, f"{done.args}: {done.stderr}"
