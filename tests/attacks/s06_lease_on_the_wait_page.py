"""A takes leases on the wait pages of A's own jobs when the daemon dies, holds their inodes' locks, and cuts them: the daemon answers at once
when it is back, and others' jobs start and end."""

import time

from lab import mounts, wait_until

LEASE = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
held = set()
print("ready", flush=True)
end = time.time() + 60
files = [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]
while time.time() < end and len(held) < len(files):
    for fd in files:
        if fd in held:
            continue
        for kind in (fcntl.F_WRLCK, fcntl.F_RDLCK):
            try:
                fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)
                held.add(fd)
                break
            except OSError:
                pass
print("leased", len(held), flush=True)
time.sleep(100)
"""


def attack(lab):
    lab.daemon()
    # The library maps the page, and a process that has it open for writing prevents a lease.
    jobs = [lab.a.detach("--wait", "spin-block", "--", "env", "-u", "LD_PRELOAD", "sleep", "1000") for _ in range(2)]
    pages = [lab.job(job)["waiting"]["page"] for job in jobs]
    holder = lab.a.python(LEASE, *pages, stdout=-1, text=True)
    assert holder.stdout.readline() == "ready\n"
    lab.kill()
    assert holder.stdout.readline() == "leased 2\n", "A has no leases: nothing was tried"
    start = time.monotonic()
    lab.daemon(wait=False)
    # Each lease that is waited for costs 45 s (fs.lease-break-time).
    assert wait_until(lab.answers), f"after {time.monotonic() - start:.0f} s the daemon does not answer: {lab.log()}"
    assert [lab.job(job)["state"] for job in jobs] == ["running"] * 2
    for page in pages:
        lab.a.sh(f"truncate -s 1 {page}")
    other = lab.b.run([lab.bin / "cosched", "run", "--wait", "spin-block", "--", "true"])
    assert other.returncode == 0, other.stderr
    for job in jobs:
        assert lab.a.cosched("kill", "-9", str(job)).returncode == 0
    assert wait_until(lambda: all(lab.job(job)["state"] == "ended" for job in jobs))
    left = [mount for mount in mounts("tmpfs") if lab.dir in mount.parents]
    assert not left, f"pages are left: {left}"
