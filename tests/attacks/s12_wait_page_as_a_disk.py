"""A writes into the wait page until nothing more fits: its length does not change, and the run directory has room for others' pages, the
status file and the kernel's agent."""

import os
import subprocess

from lab import mounts


def attack(lab):
    small = lab.dir / "run"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0755", "csa-run", str(small)], check=True)
    lab.socket = small / "coschedd.sock"
    lab.daemon()
    job = lab.a.detach("--wait", "spin-block", "--", "sleep", "1000")
    page = lab.job(job)["waiting"]["page"]
    before = os.stat(page).st_size
    done = lab.a.sh(f"dd if=/dev/zero of={page} bs=64k count=1000 conv=notrunc oflag=append 2>&1; cp {page} {page}2; truncate -s 1G {page}; "
                    f"echo x > {os.path.dirname(page)}/more; mkdir {os.path.dirname(page)}/dir")
    blocks = os.stat(page).st_blocks * 512
    assert blocks <= before, f"A's page takes {blocks} bytes instead of {before}: {done.stdout}"
    free = os.statvfs(small)
    assert free.f_bfree * 2 > free.f_blocks, f"A filled the run directory: {free}"
    other = lab.b.detach("--wait", "spin-block", "--", "sleep", "1000")
    assert os.path.exists(lab.job(other)["waiting"]["page"])
    lab.restart()
    assert not [w for w in lab.json("status")["warnings"] if "status file" in w["what"]]
    # A process that has it open and mapped keeps no memory of the machine after its job has ended,
    # either.
    for user, number in ((lab.a, job), (lab.b, other)):
        assert user.cosched("kill", "-9", str(number)).returncode == 0
    assert lab.root.cosched("run", "--", "true").returncode == 0
    left = [mount for mount in mounts("tmpfs") if mount != small and small in mount.parents]
    assert not left, f"pages are left: {left}"
