"""A user hangs the daemon: sockets whose last close waits (SO_LINGER), which the daemon has borrowed when their program is killed.

pb reads the state of a job's sockets by borrowing them. If the program dies meanwhile, the daemon's close is the last one, and waits for a
peer that never reads. It may block the thread that reads this user's sockets, and nothing else: all users are answered, others' sockets are
watched. And a driver that hangs for whatever reason is noticed: the daemon is ended, and frozen jobs run.
"""

import ctypes
import os
import time
from pathlib import Path

from lab import PYTHON, wait_until

SINK = r"""
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
listener.bind(("127.0.0.1", 0))
listener.listen(4096)
print(listener.getsockname()[1], flush=True)
kept = []
while True:
    kept = kept[-6000:] + [listener.accept()[0]]
"""

# Fills sockets until nothing fits, reports that, and waits to be killed.
FILL = r"""
import resource, socket, struct, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
kept = []
for _ in range(int(sys.argv[2])):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 100000))
    s.connect(("127.0.0.1", int(sys.argv[1])))
    s.setblocking(False)
    try:
        while True:
            s.send(b"x" * 65536)
    except BlockingIOError:
        pass
    kept.append(s)
open("filled", "w").write("yes")
time.sleep(1000)
"""
SOCKETS = 1500
ATTACK_S = 20
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207


def stuck(lab):
    """Whether the daemon says that a user's socket holds its thread."""
    return any("blocks the daemon's thread" in warning["why"] for warning in lab.json("status")["warnings"])


def attack(lab):
    lab.daemon('watchdog = "2s"\nlease = "500ms"\n')
    held = linger(lab)
    if held:
        others_are_watched(lab)
    else:
        print(f"SKIPPED: no close of the daemon's lingered in {ATTACK_S} s: the rest of s02 is not told apart from luck")
    hung_driver_is_ended(lab)


def linger(lab):
    """Tries until a close of the daemon waits for A; all users are answered in every attempt."""
    sink = lab.a.python(SINK, stdout=-1, text=True)
    port = sink.stdout.readline().strip()
    filled, end = lab.a.home / "filled", time.monotonic() + ATTACK_S
    while time.monotonic() < end:
        filled.unlink(missing_ok=True)
        job = lab.a.detach("--policy", "pb", "--cpus", "1", "--", PYTHON, "-c", FILL, port, str(SOCKETS))
        assert wait_until(filled.exists), "the sockets were not filled"
        pids = lab.pids(job)
        # While the daemon reads the sockets, as far as that is visible from outside; it takes only
        # moments.
        until = time.monotonic() + 2
        while not reads(lab) and time.monotonic() < until:
            pass
        for pid in pids:
            os.kill(pid, 9)
        assert lab.answers(10), f"A hangs the daemon, pid {lab.process.pid}"
        if waits_for_a_user(lab) and wait_until(lambda: stuck(lab)):
            return True
    return False


def scanners(lab):
    """The threads that read users' sockets, each with its state."""
    for task in Path(f"/proc/{lab.process.pid}/task").iterdir():
        name, rest = text_of(task / "stat").partition("(")[2].rpartition(")")[::2]
        if name.startswith("scan-"):
            yield task, rest.split()[0]


def text_of(file):
    """The contents of a file of /proc; empty for a thread that has just ended."""
    try:
        return file.read_text()
    except OSError:
        return ""


def reads(lab):
    """Whether such a thread is running."""
    return any(state == "R" for _, state in scanners(lab))


def waits_for_a_user(lab):
    """Whether such a thread sleeps, and not because it has nothing to do."""
    places = [text_of(task / "wchan") for task, state in scanners(lab) if state == "S"]
    return any(place and "futex" not in place for place in places)


def others_are_watched(lab):
    source = "import socket, time; pair = socket.socketpair(); time.sleep(1000)"
    before = lab.json("status")["boosting"]["sockets"]
    lab.b.detach("--policy", "pb", "--cpus", "1", "--", PYTHON, "-c", source)
    assert wait_until(lambda: lab.json("status")["boosting"]["sockets"] >= before + 2), "B's sockets are not watched"


def hung_driver_is_ended(lab):
    """One thread of the daemon is stopped, and no other: the slot thread keeps running."""
    libc = ctypes.CDLL(None, use_errno=True)
    pid = lab.process.pid
    for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
        assert libc.ptrace(request, pid, 0, 0) == 0, os.strerror(ctypes.get_errno())
    assert wait_until(lambda: was_killed(pid)), "a driver that hangs is not noticed"


def was_killed(pid):
    """Whether this child was ended by a signal; since we trace it, we are also told when it was stopped."""
    ended, status = os.waitpid(pid, os.WNOHANG | 0x40000000)
    return ended == pid and os.WIFSIGNALED(status)
