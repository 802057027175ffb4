"""A opens as many connections to the port of the metrics as the daemon may open files. The socket must answer all the time, the
port must recover by itself, and the daemon must keep nearly all of its descriptors."""

import os
import resource
import time
import urllib.request
from lab import wait_until

PORT = 20000 + os.getpid() % 20000
CROWD = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
inside = []
for _ in range(1000):
    s = socket.socket(); s.settimeout(0.05)
    try: s.connect(("127.0.0.1", int(sys.argv[1])))
    except OSError: pass
    inside.append(s)
print("open", flush=True); sys.stdin.read()
"""


def attack(lab):
    lab.daemon(f'policy = "local"\nmetrics_listen = "127.0.0.1:{PORT}"\n[limits]\nrequest_time = "500ms"\n')
    # So that the crowd could take all descriptors of the daemon.
    resource.prlimit(lab.process.pid, resource.RLIMIT_NOFILE, (512, 512))
    assert scraped(), "the metrics are there"
    crowd = lab.a.python(CROWD, str(PORT), stdin=-1, stdout=-1, text=True)
    assert crowd.stdout.readline() == "open\n"
    for _ in range(10):
        assert lab.b.cosched("ps").returncode == 0, "B gets no answer"
        files = len(os.listdir(f"/proc/{lab.process.pid}/fd"))
        assert files < 200, f"the daemon has {files} files open"
        time.sleep(0.05)
    crowd.communicate("")
    assert wait_until(scraped, 60), "the port does not come back"
    assert "Too many open files" not in lab.log(), lab.log()


def scraped():
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=2) as answer:
            return b"cosched_connections" in answer.read()
    except OSError:
        return False
