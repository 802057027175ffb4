"""A takes as much as possible: jobs, declared memory, processes; and sends refused requests until the audit log would fill.

Must hold: each limit refuses with the code `limit` and is shown by `cosched limits`; B and administrators are not affected; the log tells
who did what, is readable by root only, grows by a bounded number of lines, and a log that cannot be written fails no request.
"""

import json
from lab import wait_until

CONFIG = 'policy = "local"\n[limits]\njobs = 3\nmemory = "1G"\nprocesses = 4\n'
REFUSED = """
import http.client, os, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.connect(os.environ["COSCHED_SOCKET"])
c, count = Unix("x"), 0
for _ in range(3000):
    c.request("POST", f"/v1/jobs/{sys.argv[1]}/suspend", "{}"); answer = c.getresponse(); answer.read(); count += answer.status == 403
print(count)
"""


def attack(lab):
    lab.daemon(CONFIG)
    first = lab.a.detach("--mem", "800M", "--", "sleep", "1000")
    over = lab.a.cosched("run", "-d", "--mem", "800M", "--", "sleep", "1000")
    assert over.returncode != 0 and "limit of memory" in over.stderr, over
    lab.a.detach("--", "sleep", "1000")
    lab.a.detach("--", "sleep", "1000")
    over = lab.a.cosched("run", "-d", "--", "sleep", "1000")
    assert over.returncode != 0 and "limit of jobs" in over.stderr, over
    lab.a.popen([lab.bin / "cosched", "join", "--job", str(first), "--", "sleep", "1000"])
    assert wait_until(lambda: used(lab.a)["processes"] == (4, 4)), used(lab.a)
    over = lab.a.cosched("join", "--job", str(first), "--", "sleep", "1000", timeout_s=5)
    assert over.returncode not in (0, None) and "limit of processes" in over.stderr, over
    limits = used(lab.a)
    assert limits["jobs"] == (3, 3) and limits["memory_bytes"] == (800 << 20, 1 << 30), limits
    assert limits["record_bytes"][0] > 0 and limits["connections"][0] >= 1, limits
    other = lab.b.detach("--mem", "900M", "--", "sleep", "1000")
    for _ in range(4):
        lab.root.detach("--mem", "2G", "--", "sleep", "1000")

    told = lab.a.python(REFUSED, str(other), stdout=-1, text=True).communicate(timeout=90)[0]
    assert told == "3000\n", told
    log = lab.state / "audit.log"
    assert log.stat().st_mode & 0o777 == 0o600 and log.stat().st_uid == 0
    assert wait_until(lambda: any(e.get("uid") == lab.a.uid and e["act"] == "suspend" for e in entries(log)))
    refused = [e for e in entries(log) if e.get("uid") == lab.a.uid and e["act"] == "suspend"]
    assert len(refused) < 1500, f"3000 refusals are {len(refused)} lines"
    one = refused[0]
    assert (one["job"], one["outcome"], one["code"], one["gid"]) == (other, "refused", "forbidden", lab.a.uid) and one["pid"] > 1, one
    done = [e for e in entries(log) if e["act"] == "register" and e["outcome"] == "done"]
    assert {e["uid"] for e in done} == {0, lab.a.uid, lab.b.uid} and {e["job"] for e in done} >= {first, other}, done
    # No request is refused because there is no log.
    lab.root.sh(f"rm {log}; mkdir {log}")
    lab.restart()
    assert lab.b.cosched("suspend", str(other)).returncode == 0, "a log that cannot be written"


def entries(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def used(user):
    done = user.cosched("--json", "limits")
    return {limit["name"]: (limit["used"], limit.get("max")) for limit in json.loads(done.stdout)["limits"]}
