"""A gives jobs names, directories, output paths and commands of up to 1 MiB each, so that lists can no longer be read, and the disk
of the state fills; then A suspends and resumes one of them again and again.

Must hold: what is too long is refused, lists stay small whatever A does, `ps` works for all users, and a change of a job writes little.
"""

import json
from pathlib import Path
from lab import wait_until

CLIENT = """
import http.client, json, os, socket, subprocess, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.connect(os.environ["COSCHED_SOCKET"])
c = Unix("x")
def ask(method, path, body=None):
    c.request(method, path, json.dumps(body) if body is not None else None)
    answer = c.getresponse(); text = answer.read()
    return answer.status, json.loads(text), len(text)
def job(**fields):
    child = subprocess.Popen(["sleep", "1000"])
    return ask("POST", "/v1/jobs", {"command": ["sleep"], "pid": child.pid, **fields})
"""
LONG = CLIENT + """
much = "x" * 900000
codes = [job(**{key: much})[0] for key in ("name", "cwd", "log_path", "queue")]
codes += [job(name="é" * 129)[0], job(name="n" * 256)[0]]
# What is allowed, as much as is allowed of it.
for number in range(40):
    status, answer, _ = job(name="n" * 256, cwd="/" + "d" * 4095, log_path="/" + "l" * 4095, command=["\\x01" * 150000, "c" * 50000])
    assert status == 200, answer
    job_id = answer["id"]
program = job(command=["/bin/" + "p" * 10000])[1]
print(json.dumps({"codes": codes, "id": job_id, "name": len(program["name"])}), flush=True)
sys.stdin.read()
"""
CHURN = CLIENT + """
for _ in range(200):
    for what in ("suspend", "resume"):
        status, answer, _ = ask("POST", f"/v1/jobs/{sys.argv[1]}/{what}", {})
        assert status == 200, answer
print("done", flush=True)
"""
LIST = CLIENT + """
status, answer, size = ask("GET", "/v1/jobs?all=true")
print(json.dumps({"status": status, "jobs": len(answer["jobs"]), "bytes": size}))
"""


def attack(lab):
    lab.daemon('policy = "local"\n')
    attacker = lab.a.python(LONG, stdin=-1, stdout=-1, text=True)
    told = json.loads(attacker.stdout.readline())
    assert told["codes"] == [400, 400, 400, 400, 400, 200], told
    assert told["name"] <= 256, "the name that is made of a program's is not bounded"
    listed = json.loads(lab.b.python(LIST, stdout=-1, text=True).communicate()[0])
    assert listed["status"] == 200 and listed["jobs"] >= 40, listed
    assert listed["bytes"] <= listed["jobs"] * 4096, f"{listed['bytes']} bytes for {listed['jobs']} jobs"
    assert lab.b.cosched("ps").returncode == 0
    own = json.loads(lab.a.python(LIST, stdout=-1, text=True).communicate()[0])
    assert own["bytes"] <= own["jobs"] * 4096, own
    before = written(lab)
    # A's own process does the churning.
    churn = lab.a.python(CHURN, str(told["id"]), stdout=-1, text=True)
    assert churn.stdout.readline() == "done\n", "suspend and resume"
    wrote = written(lab) - before
    print(f"400 changes of a job wrote {wrote >> 10} KiB")
    assert wrote <= 400 * 96 << 10, f"400 changes of a job wrote {wrote >> 20} MiB"
    attacker.stdin.close()
    attacker.wait(20)
    lab.restart()
    assert wait_until(lab.answers), "the daemon does not start again"


def written(lab):
    """The number of bytes that the daemon has passed to write(2) so far."""
    lines = Path(f"/proc/{lab.process.pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))
