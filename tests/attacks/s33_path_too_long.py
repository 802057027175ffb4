"""A is in a cgroup with a CPU quota, and may create v2 cgroups, as in every systemd session. A nests them until the path of
the deepest is longer than the kernel reports (/proc/PID/cgroup shows a part of it, or fails), and requests a job from there, or to join one.

Must hold: A is refused, because of the limit or because it cannot be determined that there is none.
"""

import os

from lab import PYTHON, mounts
from s08_limits_of_the_caller import Box

# Enters the deepest cgroup by descriptors, and executes the program.
DEEPER = """
import os, sys
at = os.open(sys.argv[1], os.O_RDONLY)
for _ in range(20):
    os.mkdir("d" * 250, dir_fd=at)
    at = os.open("d" * 250, os.O_RDONLY, dir_fd=at)
os.write(os.open("cgroup.procs", os.O_WRONLY, dir_fd=at), b"0")
os.execv(sys.argv[2], sys.argv[2:])
"""


def attack(lab):
    v1 = {mount.name: mount for mount in mounts("cgroup")}
    if "cpu" not in v1:
        print("SKIPPED: the v1 controller cpu is not mounted here by itself")
        return
    box = Box(lab, {**v1, "v2": mounts("cgroup2")[0]}, "deep")
    box.limit("cpu", "", [("cpu.cfs_period_us", 100000), ("cpu.cfs_quota_us", 10000)])
    box.limit("v2", "", [])
    top = box.v1["v2"] / box.name
    for path in (top, top / "cgroup.procs", top / "cgroup.subtree_control"):
        os.chown(path, lab.a.uid, lab.a.uid)
    lab.at_end(lambda: remove_below(os.open(top, os.O_RDONLY)))
    lab.daemon('policy = "local"\n')
    outside = lab.a.detach("--", "sleep", "1000")
    for words in (["run"], ["join", "--job", str(outside)]):
        done = box.run(PYTHON, "-c", DEEPER, top, lab.bin / "cosched", *words, "--", "echo", "let in")
        remove_below(os.open(top, os.O_RDONLY))
        assert "let in" not in done.stdout and done.returncode != 0, done
        assert "0.10 CPUs" in done.stderr or "limits cannot be read" in done.stderr, done


def remove_below(at):
    """The cgroups below one, by descriptors."""
    for name in (entry.name for entry in os.scandir(at) if entry.is_dir(follow_symlinks=False)):
        remove_below(os.open(name, os.O_RDONLY, dir_fd=at))
        os.rmdir(name, dir_fd=at)
    os.close(at)
