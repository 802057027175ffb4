"""A opens as many streams of events as possible and reads none of them, and causes events as fast as possible.

Must hold: A gets no more streams than the budget allows (the rest is refused with 429), B's own stream reports B's job meanwhile, root is
answered, and the daemon does not grow by more than the ring and the streams hold.
"""

import json
import time
from pathlib import Path

from lab import wait_until

REQUEST_TIME_S = 3
STREAMS_MAX = 16
CONFIG = 'policy = "local"\n[limits]\nbuffered_bytes = "16M"\nrequest_time = "%ds"\n' % REQUEST_TIME_S
# Two events for each stream (64 KiB each at most), the ring, and what an allocator keeps.
GROWTH_MAX = (STREAMS_MAX * 2 * 64 << 10) + (48 << 20)

DEAF = """
import os, socket, sys
inside = []
for _ in range(100):
    s = socket.socket(socket.AF_UNIX); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096); s.settimeout(1)
    s.connect(os.environ["COSCHED_SOCKET"])
    s.sendall(b"GET /v1/events?after=0 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    inside.append(s)
heads = []
for s in inside:
    try: heads.append(s.recv(12))
    except TimeoutError: heads.append(b"")
print(heads.count(b"HTTP/1.1 200"), flush=True)
sys.stdin.read()
"""
FLIP = """
import http.client, os, socket, sys, time
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.connect(os.environ["COSCHED_SOCKET"])
connection, end, done = Connection("x"), time.monotonic() + 6, 0
while time.monotonic() < end:
    for job in sys.argv[1:]:
        for verb in ("suspend", "resume"):
            connection.request("POST", f"/v1/jobs/{job}/{verb}", "{}"); connection.getresponse().read(); done += 1
print(done, flush=True)
"""


def resident_bytes(pid):
    """What a process has in memory."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) << 10


def attack(lab):
    daemon = lab.daemon(CONFIG)
    jobs = [str(lab.a.detach("--", "sleep", "1000")) for _ in range(12)]
    before = resident_bytes(daemon.pid)
    deaf = lab.a.python(DEAF, stdin=-1, stdout=-1, text=True)
    flips = [lab.a.python(FLIP, *jobs, stdout=-1, text=True) for _ in range(2)]
    follow = lab.b.popen([lab.bin / "cosched", "events", "--follow", "--json"], stdout=open(lab.dir / "seen", "w"))
    own = lab.b.detach("--", "sleep", "1000")

    def told():
        events = [json.loads(line) for line in (lab.dir / "seen").read_text().splitlines()]
        return any((event.get("job") or {}).get("id") == own for event in events)

    assert wait_until(told), "B's stream does not tell of B's job"
    longest_s = 0
    while any(flip.poll() is None for flip in flips):
        begun = time.monotonic()
        assert lab.answers(timeout_s=20), "root gets no answer"
        longest_s = max(longest_s, time.monotonic() - begun)
        time.sleep(0.2)
    changes = sum(int(flip.stdout.read()) for flip in flips)
    assert changes > 2 * len(jobs), f"{changes} changes are no flood"
    streams = int(deaf.stdout.readline())
    assert 0 < streams <= STREAMS_MAX, f"{streams} streams of one user"
    grown = resident_bytes(daemon.pid) - before
    assert grown < GROWTH_MAX, f"the daemon has grown by {grown >> 20} MiB"
    assert follow.poll() is None, "B's stream has ended"
    print(f"{streams} of 100 streams, {changes} changes, {grown >> 20} MiB, the longest answer {longest_s:.2f} s")
