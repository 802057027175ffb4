"""B searches for a password in A's command line, in every answer and in the status file; and A's many short jobs push B's ended job, with
its exit code, out of the history."""

import json
from lab import wait_until

SECRET = "hunter2secret"
ASK = """
import http.client, os, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.connect(os.environ["COSCHED_SOCKET"])
c = Unix("x")
for path in sys.argv[1:]:
    c.request("GET", path); answer = c.getresponse(); print(answer.status, answer.read().decode())
"""


def attack(lab):
    lab.daemon('policy = "local"\nkeep_ended = 5\n')
    kept = lab.b.detach("--", "sh", "-c", "exit 7")
    wait_ended(lab, kept)
    job = lab.a.detach("--name", "quiet", "--", "sh", "-c", "sleep 1000; :", f"--password={SECRET}")
    paths = ["/v1/jobs", "/v1/jobs?all=true", f"/v1/jobs/{job}", f"/v1/jobs/{job}/events", "/v1/status", "/metrics",
             f"/v1/jobs/{job}/wait?timeout_ms=10"]

    def seen_by(user):
        said = user.python(ASK, *paths, stdout=-1, text=True).communicate(timeout=30)[0]
        for words in (["ps"], ["show", str(job)], ["log", "--events", str(job)], ["top", "--once"], ["status"]):
            said += user.cosched(*words).stdout
        return said + (lab.dir / "status").read_text()

    assert wait_until(lambda: '"quiet"' in (lab.dir / "status").read_text()), "the status file has the job"
    said = seen_by(lab.b)
    assert "quiet" in said, "B sees that there is a job"
    assert SECRET not in said and str(lab.a.home) not in said, f"B sees A's command line or paths: {said}"
    for user in (lab.a, lab.root):
        assert SECRET in user.cosched("show", str(job)).stdout, f"{user.name} may see it"
    for _ in range(8):
        wait_ended(lab, lab.a.detach("--", "true"))
    mine = json.loads(lab.b.cosched("--json", "show", str(kept)).stdout or "{}")
    assert mine.get("exit", {}).get("code") == 7, f"B's exit code is gone: {mine}"
    ended = [j for j in lab.json("ps", "--all")["jobs"] if j["uid"] == lab.a.uid and j["state"] == "ended"]
    assert len(ended) == 5, f"{len(ended)} ended jobs of A are kept"

    lab.restart('policy = "local"\nprivate_data = ["jobs", "commands"]\n')
    assert wait_until(lambda: (lab.dir / "status").exists())
    said = seen_by(lab.b)
    assert "quiet" not in said and SECRET not in said, f"B sees A's job: {said}"
    assert lab.b.cosched("kill", str(job)).returncode == 4, "to B there is no such job"
    assert lab.json("show", str(job))["command"][0] == "sh"


def wait_ended(lab, job):
    assert wait_until(lambda: lab.job(job)["state"] == "ended"), lab.job(job)
