"""A real root daemon and two unprivileged users for the scripts of this folder: the argument of `attack(lab)`.

Everything runs under private names: a directory in /tmp, a cgroup, a socket. `Lab.end` removes all of it, also after a failure.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The users' Python: root's own may be in a place that they cannot access.
PYTHON = "/usr/bin/python3"
UID_A, UID_B = 61531, 61532
PATIENCE_S = 20


def bin_dir():
    """Where cargo has put the programs."""
    built = Path(os.environ.get("BUILT", "target/debug"))
    return built if built.is_absolute() else ROOT / built


def wait_until(ready, patience_s=PATIENCE_S):
    """Whether `ready()` becomes true within the patience."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if ready():
            return True
        time.sleep(0.02)
    return False


def mounts(*kinds):
    """The mount points of file systems of these kinds."""
    fields = [line.split(" ") for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [Path(f[1]) for f in fields if f[2] in kinds]


class User:
    """An unprivileged user, with the daemon's socket in the environment. `home` is the user's own directory."""

    def __init__(self, lab, name, uid):
        self.lab, self.name, self.uid = lab, name, uid
        self.home = lab.dir / name
        self.home.mkdir(mode=0o700)
        os.chown(self.home, uid, uid)

    def popen(self, argv, **options):
        """Starts a program as this user, in a session of its own, which ends with the lab."""
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), **self.lab.environment()}
        env.update(options.pop("env", {}))
        process = subprocess.Popen(
            [str(word) for word in argv], user=self.uid, group=self.uid, extra_groups=[], cwd=options.pop("cwd", self.home),
            env=env, start_new_session=True, stdin=options.pop("stdin", subprocess.DEVNULL), **options,
        )
        self.lab.children.append(process)
        return process

    def run(self, argv, timeout_s=PATIENCE_S, **options):
        """Runs a program until it ends: its exit code (None when it took too long), output and errors as texts."""
        process = self.popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", **options)
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            return subprocess.CompletedProcess(argv, None, out, err)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def python(self, source, *args, **options):
        """Starts a Python program as this user."""
        return self.popen([PYTHON, "-c", source, *args], **options)

    def sh(self, command, **options):
        """Runs a shell command as this user until it ends."""
        return self.run(["/bin/bash", "-c", command], **options)

    def cosched(self, *args, **options):
        """Runs `cosched ARGS` as this user until it ends."""
        return self.run([self.lab.bin / "cosched", *args], **options)

    def detach(self, *args):
        """`cosched run --detach ARGS`: the job's number."""
        done = self.cosched("run", "--detach", *args)
        assert done.returncode == 0, f"{self.name}: cosched run {args}: {done.returncode} {done.stderr}"
        return int(done.stdout.strip())


class Lab:
    """The environment of one attack: `daemon()` starts the daemon, `a` and `b` are the users, `root` is root."""

    def __init__(self, name=""):
        self.dir = Path(tempfile.mkdtemp(prefix="csa-"))
        self.dir.chmod(0o755)
        self.cgroup = f"csa-{os.getpid()}{name}"
        # A copy that users may execute, wherever the project is.
        self.bin = self.dir / "bin"
        self.bin.mkdir()
        for program in bin_dir().iterdir():
            if program.is_file() and (program.name in ("cosched", "coschedd", "cosched-guard") or program.name.endswith("_wait.so")):
                os.symlink(program, self.bin / program.name) if reachable(program) else shutil.copy2(program, self.bin)
        self.socket = self.dir / "coschedd.sock"
        self.state = self.dir / "state"
        self.config = self.dir / "cosched.toml"
        self.children, self.process, self.undo = [], None, []
        self.a, self.b, self.root = User(self, "a", UID_A), User(self, "b", UID_B), User(self, "root", 0)

    def environment(self):
        """The environment that users' programs and the daemon share."""
        return {"COSCHED_SOCKET": str(self.socket), "COSCHED_LOG": "info"}

    def daemon(self, config="", wait=True, args=(), log=None):
        """Starts the daemon (again), with this configuration (TOML); waits until it answers. log: instead of coschedd.log."""
        # Other tests' processes are no neighbours whose part of the slots is to be tested.
        self.config.write_text(config if "reserve" in config else "reserve = 0.1\n" + config)
        log = log or open(self.dir / "coschedd.log", "ab")
        self.process = subprocess.Popen(
            [str(self.bin / "coschedd"), "--cgroup", self.cgroup, "--config", str(self.config), "--socket", str(self.socket),
             "--state-dir", str(self.state), *args],
            env={**os.environ, **self.environment()}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )
        if wait:
            assert wait_until(self.answers), f"the daemon does not answer; its log:\n{self.log()}"
        return self.process

    def restart(self, config=None, wait=True):
        """kill -9 of the daemon, then a new one on its state."""
        self.kill()
        return self.daemon(self.config.read_text() if config is None else config, wait)

    def kill(self):
        """kill -9 of the daemon."""
        self.process.kill()
        self.process.wait()

    def answers(self, timeout_s=2):
        """Whether the daemon answers a status request in time."""
        return self.root.cosched("--json", "status", timeout_s=timeout_s).returncode == 0

    def json(self, *args):
        """The answer of `cosched --json ARGS` to root."""
        done = self.root.cosched("--json", *args)
        assert done.returncode == 0, f"cosched {args}: {done.returncode} {done.stderr}\n{self.log()}"
        return json.loads(done.stdout)

    def job(self, number):
        """A job, as root sees it."""
        return self.json("show", str(number))

    def log(self):
        """The daemon's log."""
        path = self.dir / "coschedd.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def v2_job(self, number):
        """The job's cgroup in the v2 hierarchy."""
        return mounts("cgroup2")[0] / self.cgroup / f"job-{number}"

    def pids(self, number):
        """The processes of a job."""
        files = self.v2_job(number).rglob("cgroup.procs")
        return [int(pid) for file in files for pid in file.read_text().split()]

    def at_end(self, undo):
        """Calls this at the end, also after a failure."""
        self.undo.append(undo)

    def end(self):
        """Ends every process and removes everything that was made."""
        for undo in reversed(self.undo):
            try:
                undo()
            except Exception as e:  # Everything else must still be removed.
                print(f"cleaning up: {e!r}")
        # The daemon first: it would start jobs that wait for the ended ones.
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for job in (mounts("cgroup2")[0] / self.cgroup).glob("job-*"):
            end_cgroup(job)
        # Before any environment is read: that of a process in the middle of a fork is locked, and in a fork bomb all of them
        # are.
        for child in self.children:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
        self.end_supervisors()
        for mount in mounts("cgroup", "cgroup2"):
            wait_until(lambda tree=mount / self.cgroup: remove_cgroups(tree), 5)
        for mount in sorted((m for m in mounts("tmpfs", "cgroup", "fuse") if self.dir in m.parents), reverse=True):
            subprocess.run(["umount", "-l", str(mount)], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)
        forget_hierarchy(self.cgroup)

    def end_supervisors(self):
        """Ends what `cosched run --detach` has left: it waits in a session of its own for the daemon to come back."""
        ours = f"COSCHED_SOCKET={self.socket}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if ours in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:  # It has ended, or root may not look at it (the first process in a container).
                pass


def reachable(program):
    """Whether every user may execute this file."""
    return all(folder.stat().st_mode & 0o005 == 0o005 for folder in [program, *program.parents])


def end_cgroup(directory):
    """Thaws and kills everything in a cgroup."""
    for file, text in [("cgroup.freeze", "0"), ("gang/cgroup.freeze", "0"), ("cgroup.kill", "1")]:
        try:
            (directory / file).write_text(text)
        except OSError:
            pass


def forget_hierarchy(name):
    """The v1 hierarchy of a killed daemon's last resort."""
    subprocess.run([ROOT / "tools/leftovers", "--forget", name], check=True)


def remove_cgroups(tree):
    """Removes a subtree of cgroups; returns whether it no longer exists."""
    for directory, _, _ in os.walk(tree, topdown=False):
        try:
            os.rmdir(directory)
        except OSError:
            return False
    return True
