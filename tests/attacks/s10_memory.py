"""A makes the daemon hold memory: bodies and heads that do not end, lists that are never read; then garbage and crowds of connections.

Must hold: the daemon grows by no more than the budgets of [limits] and the connections' buffers allow, everything unfinished is
closed after `request_time`, B is answered all the time, and a client that waits for a job (`/wait`) is not cut off.
"""

import time
from pathlib import Path

REQUEST_TIME_S = 3
# The user's budget, 16 KiB per connection in each direction, and what an allocator keeps.
GROWTH_MAX = (16 + 512 * 32 // 1024 + 48) << 20
BUSY = 'policy = "local"\n[limits]\nbuffered_bytes = "16M"\nbuffered_bytes_all = "32M"\nrequest_time = "%ds"\n' % REQUEST_TIME_S

OPEN = """
import os, resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
def opened(count):
    inside = []
    for _ in range(count):
        s = socket.socket(socket.AF_UNIX); s.settimeout(20)
        try: s.connect(os.environ["COSCHED_SOCKET"])
        except OSError: continue
        inside.append(s)
    return inside
def send(s, data):
    try: s.sendall(data)
    except OSError: pass
def closed(s):
    s.settimeout(30)
    try:
        while s.recv(65536): pass
    except TimeoutError: return False
    except OSError: pass
    return True
"""
# Each prints "sent", and later how many of its connections the daemon has closed.
BODIES = OPEN + """
body = b"x" * ((1 << 20) - 1)
inside = opened(512)
for s in inside:
    s.settimeout(0.02)
    send(s, b"POST /v1/jobs HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 1048576\\r\\n\\r\\n" + body)
print("sent", flush=True); print(sum(map(closed, inside)), len(inside), flush=True)
"""
HEADS = OPEN + """
inside = opened(512)
for s in inside: send(s, b"GET /v1/jobs HTTP/1.1\\r\\nX: " + b"y" * 8000)
print("sent", flush=True); print(sum(map(closed, inside)), len(inside), flush=True)
"""
LISTS = OPEN + """
inside = opened(400)
for s in inside: send(s, b"GET /v1/jobs?all=true HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
print("sent", flush=True); sys.stdin.read(); print(sum(map(closed, inside)), len(inside), flush=True)
"""
GARBAGE = OPEN + """
import time
end, sent, rubbish = time.monotonic() + 8, 0, os.urandom(1 << 16)
while time.monotonic() < end and sent < 50 << 20:
    for s in opened(50):
        send(s, rubbish * 4); sent += 4 << 16; s.close()
print("sent", flush=True); print(1, 1, flush=True)
"""
CROWD = OPEN + """
import time
end, asked = time.monotonic() + 8, 0
while time.monotonic() < end and asked < 10000:
    for s in opened(20):
        send(s, b"GET /v1/version HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" * 25); asked += 25; s.close()
print("sent", flush=True); print(1, 1, flush=True)
"""
WAIT = OPEN + """
s = opened(1)[0]
send(s, b"GET /v1/jobs/%s/wait?timeout_ms=60000 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" % sys.argv[1].encode())
print("sent", flush=True)
s.settimeout(60); print(s.recv(12).decode(), flush=True)
"""


def attack(lab):
    lab.daemon(BUSY)
    names = ["n" * 250 + str(number) for number in range(60)]
    for name in names:
        lab.a.detach("--name", name, "--", "sleep", "1000")
    waited = lab.b.detach("--", "sleep", "1000")
    waiting = started(lab.b, WAIT, str(waited))
    before = resident(lab)
    for what, source in [("bodies", BODIES), ("heads", HEADS), ("lists", LISTS), ("garbage", GARBAGE), ("crowd", CROWD)]:
        attacker = started(lab.a, source)
        grown = max(look(lab) for _ in range(5)) - before
        assert grown <= GROWTH_MAX, f"{what}: the daemon has grown by {grown >> 20} MiB"
        if what == "lists":
            time.sleep(REQUEST_TIME_S + 1)
        attacker.stdin.close()
        closed, opened = map(int, attacker.stdout.read().split())
        assert closed == opened > 0, f"{what}: {opened - closed} of {opened} connections were left open"
        print(f"{what}: grown by {grown >> 20} MiB at most, {max(resident(lab) - before, 0) >> 20} MiB afterwards")
    lab.root.cosched("kill", "-9", str(waited))
    answer = waiting.stdout.readline()
    assert "200" in answer, f"who waited for a job got: {answer!r}"


def started(user, source, *args):
    """An attacker that has sent everything."""
    process = user.python(source, *args, stdin=-1, stdout=-1, text=True)
    assert process.stdout.readline() == "sent\n"
    return process


def look(lab):
    """The daemon's memory in bytes, checked while B is answered."""
    assert lab.b.cosched("ps", timeout_s=10).returncode == 0, "B gets no answer"
    time.sleep(0.1)
    return resident(lab)


def resident(lab):
    lines = Path(f"/proc/{lab.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))
