"""A declares a FIFO, an endless device, root's file, or a link to one as a job's output; root requests it with `cosched log`.

Root's command must end at once, with a reason, and show nothing that does not belong to A."""

import os

# A registers a child process with a path of A's choice, as any client may.
REGISTER = """
import http.client, json, os, socket, subprocess, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.connect(os.environ["COSCHED_SOCKET"])
child = subprocess.Popen(["sleep", "1000"])
c = Unix("x")
c.request("POST", "/v1/jobs", json.dumps({"command": ["sleep"], "pid": child.pid, "detached": True, "log_path": sys.argv[1]}))
print(json.loads(c.getresponse().read())["id"], flush=True)
child.wait()
"""


def attack(lab):
    lab.daemon('policy = "local"\n')
    secret = lab.dir / "secret"
    secret.write_text("root's secret\n")
    secret.chmod(0o600)
    fifo, link, real = lab.a.home / "fifo", lab.a.home / "link", lab.a.home / "real"
    os.mkfifo(fifo)
    os.symlink(secret, link)
    real.write_text("A's output\n")
    for path in (fifo, link, real):
        os.chown(path, lab.a.uid, lab.a.uid, follow_symlinks=False)
    for path in (fifo, "/dev/zero", "/dev/tty", secret, link, lab.a.home):
        job = lab.a.python(REGISTER, str(path), stdout=-1, text=True).stdout.readline().strip()
        done = lab.root.cosched("log", job, timeout_s=5)
        assert done.returncode == 1, f"{path}: {done.returncode} {done.stdout[:100]!r} {done.stderr}"
        assert not done.stdout and "cannot read" in done.stderr, f"{path}: {done}"
    job = lab.a.python(REGISTER, str(real), stdout=-1, text=True).stdout.readline().strip()
    assert lab.root.cosched("log", job).stdout == "A's output\n"
