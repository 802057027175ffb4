"""A writes into the wait page from memory whose data never arrive, because it maps a file of A's own file system (FUSE in a user namespace): the
kernel holds the page's inode lock meanwhile. The daemon must neither write nor unlink it: it has to keep answering, and the job has to end."""

import os
import signal
import time

from lab import wait_until

HOLD = r"""
import ctypes, mmap, os, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
uid, gid, home = os.getuid(), os.getgid(), os.getcwd()
page = os.open(sys.argv[1], os.O_WRONLY)
if libc.unshare(0x10020000):
    print("none: no user namespace", flush=True); sys.exit()
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
    open(f"/proc/self/{name}", "w").write(text)
try:
    fuse = os.open(sys.argv[2], os.O_RDWR)
except OSError as e:
    print(f"none: {e}", flush=True); sys.exit()
os.makedirs(home + "/m", exist_ok=True)
if libc.mount(b"x", (home + "/m").encode(), b"fuse", 0, f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()):
    print(f"none: no FUSE in a user namespace ({os.strerror(ctypes.get_errno())})", flush=True); sys.exit()
def attr(node):
    mode = 0o40755 if node == 1 else 0o100644
    return struct.pack("<QQQQQQIIIIIIIIII", node, 1 << 20, 2048, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
def answer(unique, data=b"", error=0):
    os.write(fuse, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
def serve():
    while True:
        request = os.read(fuse, 1 << 20)
        length, op, unique, node = struct.unpack_from("<IIQQ", request)
        if op == 26:
            answer(unique, struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 0, 0, 65536, 1, 0, 0, 0))
        elif op == 1:
            answer(unique, struct.pack("<QQQQII", 2, 0, 100, 100, 0, 0) + attr(2))
        elif op == 3:
            answer(unique, struct.pack("<QII", 100, 0, 0) + attr(node))
        elif op in (14, 27):
            answer(unique, struct.pack("<QII", 0, 0, 0))
        elif op == 15:
            print("held", flush=True)
        else:
            answer(unique, error=-38)
# The file is touched by another process: the one that answers must not wait for itself.
if os.fork():
    serve()
os.close(fuse)
file = os.open(home + "/m/f", os.O_RDONLY)
data = mmap.mmap(file, 4096, prot=mmap.PROT_READ)
os.pwrite(page, memoryview(data), 0)
"""


def attack(lab):
    lab.daemon()
    job = lab.a.detach("--wait", "spin-block", "--", "sleep", "1000")
    # With the permissions that distributions give it.
    fuse = lab.dir / "fuse"
    os.mknod(fuse, 0o020666, os.makedev(10, 229))
    fuse.chmod(0o666)
    holder = lab.a.python(HOLD, lab.job(job)["waiting"]["page"], fuse, stdout=-1, text=True)
    # Before the daemon is ended: one that hangs continues then.
    lab.at_end(lambda: os.killpg(holder.pid, signal.SIGKILL))
    said = holder.stdout.readline().strip()
    if said.startswith("none"):
        print(f"SKIPPED: A cannot hold the lock: {said}")
        return
    assert said == "held", said
    # Its rivals change, so there are new orders for A's job.
    others = [lab.b.detach("--wait", "spin-block", "--cpus", "2", "--", "sleep", "1000") for _ in range(2)]
    assert wait_until(lab.answers, 5), "the daemon waits for A's lock"
    lab.restart(wait=False)
    assert wait_until(lab.answers), f"a new daemon waits for A's lock: {lab.log()}"
    assert lab.a.cosched("kill", "-9", str(job)).returncode == 0
    time.sleep(0.5)
    assert wait_until(lab.answers, 5), "the daemon waits for A's lock at the job's end"
    assert wait_until(lambda: lab.job(job)["state"] == "ended"), lab.job(job)
    assert all(lab.job(other)["state"] == "running" for other in others)
