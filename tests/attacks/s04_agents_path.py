"""Root puts the run directory below a directory of A's. A replaces the kernel's agent by a program of their own, and waits for the daemon's end."""

import os
import subprocess
import time

from lab import forget_hierarchy

SWAP = """
import os, sys
home, witness = sys.argv[1:]
os.rename(f"{home}/sub", f"{home}/away")
os.mkdir(f"{home}/sub")
for name in ("cosched-agent", "agent"):
    with open(f"{home}/sub/{name}", "w") as file:
        file.write(f"#!/bin/sh\\nid > {witness}\\n")
    os.chmod(f"{home}/sub/{name}", 0o755)
"""


def attack(lab):
    sub, witness = lab.a.home / "sub", lab.a.home / "witness"
    lab.a.home.chmod(0o755)
    sub.mkdir(mode=0o755)
    assert sub.stat().st_uid == 0
    command = [lab.bin / "coschedd", "--cgroup", f"{lab.cgroup}x", "--socket", sub / "c.sock", "--state-dir", lab.dir / "s"]
    daemon = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lab.at_end(lambda: clean(lab, sub))
    try:
        # It should refuse by itself; an earlier version would be running and armed by now.
        words = daemon.communicate(timeout=5)[1].decode()
        assert daemon.returncode == 1 and "owner 61531" in words and "--runtime-dir" in words, words
    except subprocess.TimeoutExpired:
        guards = subprocess.run(["pgrep", "-P", str(daemon.pid)], capture_output=True, text=True).stdout.split()
        lab.a.python(SWAP, lab.a.home, witness).wait()
        for pid in [daemon.pid, *map(int, guards)]:
            os.kill(pid, 9)
        daemon.wait()
        time.sleep(2)
        text = witness.read_text() if witness.exists() else "nothing of A's was run, this time"
        raise AssertionError(f"the daemon took A's directory: {text}") from None
    assert not (sub / "c.sock").exists()


def clean(lab, sub):
    for place in (sub, lab.a.home / "away"):
        subprocess.run(["umount", "-l", str(place / "agent")], check=False, stderr=subprocess.DEVNULL)
    for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory"):
        for name in ("probe", ""):
            try:
                os.rmdir(f"{mount}/{lab.cgroup}x/{name}")
            except OSError:
                pass
    forget_hierarchy(f"{lab.cgroup}x")
