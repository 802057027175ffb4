"""A locks every file of the daemon that A can open while it lives, and keeps the locks: the daemon has to start again at once."""

from pathlib import Path

from lab import mounts, wait_until

# Takes every kind of lock that the kernel grants to a process that can only read a file, on each file and directory below
# the places named.
GRAB = """
import fcntl, os, struct, sys, time
held = []
for top in sys.argv[1:]:
    names = [top]
    for folder, folders, files in os.walk(top):
        names += [os.path.join(folder, name) for name in folders + files]
    for name in names:
        for flags in (os.O_RDWR, os.O_WRONLY, os.O_RDONLY):
            try:
                fd = os.open(name, flags | os.O_NONBLOCK)
            except OSError:
                continue
            held.append(fd)
            for take in (lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda: fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)):
                try:
                    take()
                    break
                except OSError:
                    pass
            for kind in (fcntl.F_WRLCK, fcntl.F_RDLCK):
                try:
                    fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", kind, 0, 0, 0, 0))
                    break
                except OSError:
                    pass
print(len(held), flush=True)
# What the daemon holds now is free when it dies.
end = time.time() + 100
while time.time() < end:
    for fd in held:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass
    time.sleep(0.001)
"""


def attack(lab):
    # A directory as earlier versions left it.
    lab.state.mkdir(mode=0o755)
    (lab.state / "lock").touch(mode=0o644)
    (lab.state / "lock").chmod(0o644)
    before = lab.a.python(GRAB, lab.state, stdout=-1)
    assert int(before.stdout.readline()) >= 2, "A opened what an earlier version left open"
    lab.daemon()
    tree = mounts("cgroup2")[0] / lab.cgroup
    grab = lab.a.python(GRAB, lab.state, tree, lab.dir, stdout=-1)
    assert int(grab.stdout.readline()) > 5, "A can read the cgroup's files"
    job = lab.b.detach("--", "sleep", "1000")
    lab.restart(wait=False)
    assert wait_until(lab.answers), f"the daemon does not start: {lab.log()}"
    assert lab.job(job)["state"] == "running", lab.job(job)
    seen = lab.a.sh(f"ls {lab.state}; cat {lab.state}/*")
    assert seen.returncode != 0, f"A looks into the state: {seen.stdout}"
    second = lab.root.run([lab.bin / "coschedd", "--cgroup", lab.cgroup, "--socket", lab.dir / "two.sock", "--state-dir", lab.dir / "two"])
    assert second.returncode == 1 and "another daemon" in second.stderr, second.stderr
    assert not Path(lab.dir / "two.sock").exists()
