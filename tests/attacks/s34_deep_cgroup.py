"""A may create v2 cgroups, as in every systemd session. A nests 1,900 of them, and requests jobs from the deepest, and to join one:
the daemon, which looks for limits in each of them by its path, answered no other user for half a minute.

Must hold: A is refused and told so, and others are answered; from a depth of a few levels A is not refused.
"""

import os
import resource

from lab import PYTHON, mounts
from s08_limits_of_the_caller import Box

LEVELS = 1900
# Enters the deepest cgroup by descriptors, and executes the program.
DEEPER = """
import os, sys
at = os.open(sys.argv[1], os.O_RDONLY)
for _ in range(int(sys.argv[2])):
    os.mkdir("d", dir_fd=at)
    below = os.open("d", os.O_RDONLY, dir_fd=at)
    os.close(at)
    at = below
os.write(os.open("cgroup.procs", os.O_WRONLY, dir_fd=at), b"0")
os.execv(sys.argv[3], sys.argv[3:])
"""


def attack(lab):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * LEVELS, most), most))
    box = Box(lab, {"v2": mounts("cgroup2")[0]}, "deep")
    box.limit("v2", "", [])
    top = box.v1["v2"] / box.name
    for path in (top, top / "cgroup.procs", top / "cgroup.subtree_control"):
        os.chown(path, lab.a.uid, lab.a.uid)
    lab.at_end(lambda: remove_below(top))
    lab.daemon('policy = "local"\n')
    outside = lab.a.detach("--", "sleep", "1000")
    for words in (["run"], ["join", "--job", str(outside)]):
        for levels in (10, LEVELS):
            done = box.run(PYTHON, "-c", DEEPER, top, levels, lab.bin / "cosched", *words, "--", "echo", "let in")
            assert lab.answers(), f"the daemon does not answer after a {words[0]} from {levels} levels"
            remove_below(top)
            assert ("let in" in done.stdout) == (levels == 10), done
            assert levels == 10 or "nested more than" in done.stderr, done


def remove_below(top):
    """The cgroups below one, which are nested in each other, by descriptors."""
    at = [os.open(top, os.O_RDONLY)]
    try:
        while True:
            at.append(os.open("d", os.O_RDONLY, dir_fd=at[-1]))
    except FileNotFoundError:
        pass
    for parent in at[-2::-1]:
        os.rmdir("d", dir_fd=parent)
    for directory in at:
        os.close(directory)
