"""A puts a link where B's own daemon would listen, and B's `cosched` must not follow it; and when a daemon and its jobs have ended, also by
kill -9, nothing of them is left on the machine: no cgroup, no named hierarchy, no page, no file in /tmp."""

import os
import time
from pathlib import Path

from lab import UID_B, mounts, wait_until

LISTEN = """
import os, socket, sys
os.umask(0)
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1] + "/coschedd.sock")
s.listen()
print("listens", flush=True)
s.settimeout(60)
c, _ = s.accept()
print(c.recv(1000), flush=True)
"""


def attack(lab):
    false_daemon(lab)
    nothing_is_left(lab)


def false_daemon(lab):
    """With fs.protected_symlinks = 0, which is not the default: otherwise the kernel itself refuses."""
    setting = Path("/proc/sys/fs/protected_symlinks")
    before = setting.read_text()
    place = Path(f"/tmp/cosched-{UID_B}")
    assert not os.path.lexists(place)
    lab.at_end(lambda: (setting.write_text(before), place.unlink(missing_ok=True)))
    setting.write_text("0")
    # Owned by root and sticky, like /var/tmp: A may listen there.
    sticky = lab.dir / "sticky"
    sticky.mkdir()
    sticky.chmod(0o1777)
    listener = lab.a.python(LISTEN, sticky, stdout=-1, text=True)
    assert listener.stdout.readline() == "listens\n"
    assert lab.a.sh(f"ln -s {sticky} {place}").returncode == 0
    done = lab.b.cosched("ps", env={"COSCHED_SOCKET": ""}, timeout_s=5)
    assert done.returncode not in (0, None), f"B's cosched went to A's daemon: {done}"
    place.unlink()


def nothing_is_left(lab):
    before = seen(lab)
    lab.daemon('[[queue]]\nname = "main"\n')
    lab.a.detach("--", "sleep", "1000")
    lab.a.detach("--wait", "spin-block", "--", "sh", "-c", "sleep 1000 & wait")
    launcher = lab.b.popen([lab.bin / "cosched", "run", "--", "sleep", "1000"])
    assert wait_until(lambda: len(lab.json("ps")["jobs"]) == 3)
    launcher.kill()
    lab.restart()
    for job in lab.json("ps")["jobs"]:
        assert lab.root.cosched("kill", "-9", str(job["id"])).returncode == 0
    assert wait_until(lambda: not lab.json("ps")["jobs"]), lab.json("ps")
    lab.process.terminate()
    lab.process.wait(20)
    end = time.monotonic() + 5
    while seen(lab) - before and time.monotonic() < end:
        time.sleep(0.05)
    left = seen(lab) - before
    assert not left, f"left: {sorted(left)}"


def seen(lab):
    """Everything that could be left of this lab's daemon, by name."""
    hierarchies = [line.split(":")[1] for line in Path("/proc/self/cgroup").read_text().splitlines()]
    found = {f"hierarchy {name}" for name in hierarchies if lab.cgroup in name}
    found |= {f"cgroup {mount / lab.cgroup}" for mount in mounts("cgroup", "cgroup2") if (mount / lab.cgroup).exists()}
    found |= {f"mount {mount}" for mount in mounts("tmpfs", "cgroup") if lab.dir in mount.parents}
    mine = [path for path in Path("/tmp").iterdir() if path.name.startswith("cosched")]
    return found | {f"file {path}" for path in mine if path.lstat().st_uid in (lab.a.uid, lab.b.uid)}
