"""Where the daemons of a run live, and how everything that a run started and made is removed, whatever happened to it."""

import ctypes
import mmap
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/attacks"))

from lab import end_cgroup, mounts, remove_cgroups, wait_until  # noqa: E402

# Two gangs that each use the whole machine: one of them is frozen at any time.
# Without the thread that looks for neighbours: its calls are others in each run.
CONFIG = 'sharing = "strict"\nslot_length = "20ms"\nlease = "1s"\nreserve = 0.1\n'
PATIENCE_S = 20
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def adopt_orphans():
    """Processes that descendants of this process leave behind become its children: daemons, guards and jobs can all be found."""
    assert LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def end_with_parent():
    """SIGTERM when the process that created this one has been killed."""
    assert LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) == 0


def children(pid):
    """All descendants of a process."""
    try:
        tasks = [task.read_text().split() for task in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    own = [int(child) for task in tasks for child in task]
    return own + [below for child in own for below in children(child)]


def end_descendants():
    """Kills and reaps every descendant of this process; returns whether none is left."""
    for pid in children(os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


class Place:
    """Where the daemons of consecutive runs live: under private names, removed at the end."""

    def __init__(self, programs, directory, name):
        self.dir, self.cgroup, self.programs = Path(directory) / name, name, programs
        self.dir.mkdir(mode=0o755)
        self.beats = mmap.mmap(-1, 4096)
        (self.dir / "cosched.toml").write_text(CONFIG)

    def argv(self):
        file = lambda name: str(self.dir / name)
        return [str(self.programs / "coschedd"), "--cgroup", self.cgroup, "--config", file("cosched.toml"),
                "--socket", file("coschedd.sock"), "--state-dir", file("state")]

    def log(self):
        return os.open(self.dir / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def trees(self):
        """Its cgroups, in every hierarchy."""
        return [mount / self.cgroup for mount in mounts("cgroup", "cgroup2") if (mount / self.cgroup).exists()]

    def job_cgroups(self):
        return [path for tree in self.trees() for path in tree.glob("job-*")]

    def clear(self):
        """Removes what a run left, for the next one: its processes first, which would create and hold the rest."""
        end = time.monotonic() + PATIENCE_S
        while not end_descendants():
            assert time.monotonic() < end, f"these processes cannot be killed: {children(os.getpid())}"
            # A process that is frozen in a job dies once no daemon can freeze it again.
            for job in self.job_cgroups():
                end_cgroup(job)
            time.sleep(0.01)
        for tree in self.trees():
            assert wait_until(lambda tree=tree: remove_cgroups(tree), 5), f"cannot be removed: {tree}"
        self.unmount()
        for path in self.dir.iterdir():
            if path.name not in ("cosched.toml", "agent"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def unmount(self):
        """The mounts of daemons in its directory."""
        for mount in (m for m in mounts("cgroup", "tmpfs") if self.dir in m.parents):
            for left in mount.glob("*/"):
                wait_until(lambda left=left: remove_cgroups(left), 5)
            # The kernel's helper that reports an empty cgroup may still be using it.
            away = lambda mount=mount: not subprocess.run(["umount", mount], stderr=subprocess.DEVNULL).returncode
            assert wait_until(away, 5), f"cannot be unmounted: {mount}"

    def end(self):
        """Also removes the hierarchy of the kernel's last resort."""
        self.clear()
        shutil.rmtree(self.dir)
        subprocess.run([ROOT / "tools/leftovers", "--forget", self.cgroup], check=True)
