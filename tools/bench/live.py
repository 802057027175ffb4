"""A private daemon and the jobs on it: separate socket, state and cgroup name; whatever happens, nothing is left behind."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CGROUP_MOUNTS = pathlib.Path("/sys/fs/cgroup")


class Failure(Exception):
    """An error that ends the measurement; the text is for users."""


def machine():
    """The machine that the numbers were measured on."""
    memory_kib = int(pathlib.Path("/proc/meminfo").read_text().split()[1])
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": os.uname().release,
        "memory_gib": round(memory_kib / 1048576, 1),
        "load_1min": os.getloadavg()[0],
    }


def mpirun(ranks):
    """The words that start a program on that many ranks. Unbound: Open MPI would otherwise pin the ranks of every copy to the same cores."""
    if not shutil.which("mpirun.openmpi"):
        raise Failure("mpirun.openmpi is not there; tools/setup demo installs it")
    return ["mpirun.openmpi", "--bind-to", "none", "--oversubscribe", "-n", ranks]


class Daemon:
    """`with Daemon(bin, programs) as daemon:` starts coschedd, and at the end kills its jobs, it, and its cgroups."""

    def __init__(self, binaries, programs, config=""):
        self.binaries, self.programs, self.config = pathlib.Path(binaries), pathlib.Path(programs), config
        self.cgroup = f"cosched-bench-{os.getpid()}"
        self.started = []
        self.process = None
        self.prefix = []  # words before the daemon's, such as taskset's
        self.also_remove = []  # names of our other cgroups, removed with the daemon's

    def __enter__(self):
        for name in ("cosched", "coschedd"):
            if not (self.binaries / name).exists():
                raise Failure(f"{self.binaries / name} is not there; run 'make build' first")
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cosched-bench-"))
        self.socket = self.dir / "coschedd.sock"
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        (self.dir / "config.toml").write_text(self.config)
        command = [*self.prefix, self.binaries / "coschedd", "--socket", self.socket, "--state-dir", self.dir / "state",
                   "--runtime-dir", self.dir / "run", "--cgroup", self.cgroup, "--config", self.dir / "config.toml"]
        self.log = open(self.dir / "coschedd.log", "w")
        # A session of its own: Ctrl-C is handled by this program, which then ends the daemon in order.
        self.process = subprocess.Popen(command, stderr=self.log, stdout=self.log, start_new_session=True)
        end = time.monotonic() + 20
        while time.monotonic() < end and self.process.poll() is None:
            if self.socket.exists() and self.try_cli("status", "--json") is not None:
                return
            time.sleep(0.02)
        text = (self.dir / "coschedd.log").read_text().strip()
        raise Failure(f"coschedd did not start:\n{text}")

    def __exit__(self, *_):
        # A second Ctrl-C must not stop the cleaning.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._end_jobs()
            if self.process is not None and self.process.poll() is None:
                self.process.terminate()
                try:
                    self.process.wait(10)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
            for name in (*self.also_remove, self.cgroup):
                remove_cgroups(name)
            shutil.rmtree(self.dir, ignore_errors=True)
        finally:
            signal.signal(signal.SIGINT, before)

    def _end_jobs(self):
        for directory in cgroups_named(self.cgroup):
            kill_below(directory)
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        self.started = []
        # The supervisors of detached jobs still report to the daemon: let them, or they would start another one.
        end = time.monotonic() + 10
        while time.monotonic() < end and (self.left_behind() or self._launchers()):
            time.sleep(0.05)

    def _launchers(self):
        """Processes of `cosched run` on our socket."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if pathlib.Path(os.fsdecode(words[0])).name == "cosched" and os.fsencode(self.socket) in words:
                    found.append(int(path.parent.name))
        return found

    def try_cli(self, *words):
        """The output of `cosched WORDS`, or None."""
        command = [self.binaries / "cosched", "--socket", self.socket, *words]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return done.stdout if done.returncode == 0 else None

    def cli(self, *words):
        """The output of `cosched WORDS`; a Failure when it fails."""
        command = [self.binaries / "cosched", "--socket", self.socket, *words]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Failure(f"cosched {' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def status(self):
        """`cosched status --json`."""
        return json.loads(self.cli("status", "--json"))

    def status_facts(self):
        """The part of the status that is recorded with the numbers."""
        status = self.status()
        keys = ("version", "layout", "mechanism", "realtime_priority", "reserve", "switches", "safety", "warnings")
        return {key: status.get(key) for key in keys}

    def policy(self, policy, sharing=None, slot_ms=None):
        """Switches the machine's policy."""
        words = ["policy", policy]
        words += ["--sharing", sharing] if sharing else []
        words += ["--slot", f"{slot_ms}ms"] if slot_ms else []
        self.cli(*words)

    def run_words(self, command, *options):
        """The words that run a command as a job."""
        return [str(w) for w in (self.binaries / "cosched", "--socket", self.socket, "run", *options, "--", *command)]

    def start(self, words, environment=None, stderr=subprocess.STDOUT):
        """Starts a command (a job's or a plain one); it is killed at the end of the `with` if it still runs. Its errors
        are part of its output; stderr=None shows them instead."""
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           **(environment or {}))
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=stderr, text=True, env=environment, start_new_session=True)
        self.started.append(process)
        return process

    def makespan(self, commands, limit_s, environment=None, outputs=None):
        """Starts all, waits for all: the seconds from the first start to the last end, or None past the limit.

        The output of each is appended to the list `outputs`.
        """
        begin = time.monotonic()
        processes = [self.start(command, environment) for command in commands]
        for process in processes:
            try:
                output, _ = process.communicate(timeout=max(0.01, limit_s - (time.monotonic() - begin)))
            except subprocess.TimeoutExpired:
                self._stop(processes)
                return None
            if process.returncode:
                self._stop(processes)
                raise Failure(f"{' '.join(process.args)}: exit code {process.returncode}:\n{output}")
            if outputs is not None:
                outputs.append(output)
        took_s = time.monotonic() - begin
        self._forget(processes)
        return took_s

    def _stop(self, processes):
        """Ends commands that take too long: the processes in the daemon's cgroups, and each one's session."""
        for directory in cgroups_named(self.cgroup):
            kill_below(directory)
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in processes:
            try:
                process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        self._forget(processes)

    def _forget(self, processes):
        self.started = [process for process in self.started if process not in processes]

    def left_behind(self):
        """Job cgroups and processes in them, when none should exist."""
        left = []
        for top in cgroups_named(self.cgroup):
            # The daemon's own idle probe has a cgroup here, too.
            for directory in (d for d in descend(top) if d != top and "probe" not in d.parts):
                for pid in processes_in(directory):
                    left.append(f"process {pid} in {directory}")
                if directory.name.startswith("job"):
                    left.append(str(directory))
        return left


def cgroups_named(name):
    """The cgroups of this name in every hierarchy, at any depth of delegation."""
    found = []
    for path, directories, _ in os.walk(CGROUP_MOUNTS):
        if name in directories:
            found.append(pathlib.Path(path) / name)
            directories.remove(name)
    return found


def descend(directory):
    """The cgroup and all below, children first."""
    for path, _, _ in os.walk(directory, topdown=False):
        yield pathlib.Path(path)


def processes_in(directory):
    """The processes directly in a cgroup."""
    try:
        return [int(pid) for pid in (directory / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def kill_below(directory):
    """Kills every process in one of our cgroups, except the daemon (it is not in a job's)."""
    for below in descend(directory):
        if below == directory:
            continue
        for pid in processes_in(below):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def remove_cgroups(name):
    """Thaws, empties and removes the daemon's cgroups, if it has not done so itself."""
    end = time.monotonic() + 10
    while (left := cgroups_named(name)) and time.monotonic() < end:
        for top in left:
            for directory in descend(top):
                for file, value in (("cgroup.freeze", "0"), ("freezer.state", "THAWED")):
                    with contextlib.suppress(OSError):
                        (directory / file).write_text(value)
                for pid in processes_in(directory):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(OSError):
                    directory.rmdir()
        time.sleep(0.05)
    if left:
        raise Failure(f"cgroups could not be removed: {', '.join(map(str, left))}")


def kill_marked(variable, value):
    """Kills the processes that have this in their environment: they are ours, wherever their launcher left them."""
    mark = f"{variable}={value}".encode()
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)


def last_json(output):
    """The last line of an output that is a JSON object, since libraries print warnings of their own; None when there is none."""
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                return json.loads(line)
    return None
