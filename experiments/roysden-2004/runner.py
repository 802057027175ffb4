"""Runs columnsort with a setting of its stages, alone, beside a hog, or in a gang of cosched.

Two things that would drown what is measured are taken out: the compute-bound version's files are in memory, where no writeback
comes in between, and the I/O-bound version's disk is limited to a rate that it has at any time, as far as the machine permits that.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import live
import plan
import shared
from throttle import Throttle

LIMIT_S = 300
MEMORY = pathlib.Path("/dev/shm")
RECORD = ("--record-size", "100", "--key-size", "10")


class Runner:
    """`bytes_`: of the compute-bound version's input; `memory`: of all buffers of a sort, as columnsort takes it."""

    def __init__(self, options):
        self.bin, self.programs = options.bin, options.programs
        self.columnsort, self.barrier = self.bin / "cosched-columnsort", self.programs / "barrier-omp"
        self.bytes_, self.memory = options.bytes, options.memory
        self.throttle = Throttle(options.build, options.disk_rate * 10**6)
        self.data = {version: directory(version, options) for version in options.versions}
        self.journal = shared.Journal(options.build / "runs.jsonl")
        self.cpus = len(os.sched_getaffinity(0))

    def prepare(self, versions):
        """Makes the inputs."""
        for version in versions:
            size = self.bytes_ * plan.VERSIONS[version] // 100 * 100
            path = self.input(version)
            if not path.exists() or path.stat().st_size != size:
                words = [self.columnsort, "generate", path, "--records", size // 100, "--seed", "2004", *RECORD, "--force"]
                done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S)
                if done.returncode:
                    raise live.Failure(f"generate: exit code {done.returncode}:\n{done.stderr[-2000:]}")

    def input(self, version):
        return self.data[version] / "in.dat"

    def close(self):
        """Removes the data and the limit."""
        for path in self.data.values():
            shutil.rmtree(path, ignore_errors=True)
        self.throttle.close()

    def run(self, run):
        """The numbers of a run, from the journal when it is there."""
        if run.key() not in self.journal.entries:
            self.journal.add(run.key(), report=self._measure(run))
        return self.journal.entries[run.key()]["report"]

    def _measure(self, run):
        words = self.command(run)
        if run.condition == "alone":
            return self.sort(words, run)
        barrier = [str(self.barrier), "--seconds", "3600", "--threads"]  # ended by us
        if run.condition == "hog":
            other = subprocess.Popen([*barrier, "1"], stdout=subprocess.DEVNULL, start_new_session=True)
            return self._beside(other, words, run)
        # A daemon of its own for each run, so that the other conditions have none.
        with live.Daemon(self.bin, self.programs, "") as daemon:
            gang = ("--policy", "gang", "--cpus", self.cpus)
            other = daemon.start(daemon.run_words([*barrier, self.cpus], *gang))
            return self._beside(other, daemon.run_words(words, *gang), run)

    def _beside(self, other, words, run):
        try:
            return self.sort(words, run)
        finally:
            end(other)

    def sort(self, words, run):
        """Runs it: clock, user and system time in seconds, use of CPUs in percent of one."""
        enter = self.throttle.enter if run.version == "io" else None
        begin = time.monotonic()
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=enter) as process:
            try:
                output, errors = process.stdout.read(), process.stderr.read()
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            except BaseException:
                os.killpg(process.pid, signal.SIGTERM)
                raise
        clock_s = time.monotonic() - begin
        if process.returncode:
            raise live.Failure(f"columnsort: exit code {process.returncode}:\n{errors.decode(errors='replace')[-2000:]}")
        used = usage.ru_utime + usage.ru_stime
        return {"clock_s": clock_s, "user_s": usage.ru_utime, "system_s": usage.ru_stime, "use_percent": 100 * used / clock_s,
                "actions": json.loads(output).get("actions", [])}

    def command(self, run):
        """The words of a sort."""
        output = self.data[run.version] / "sorted.dat"
        words = [self.columnsort, "sort", self.input(run.version), "--output", output, "--force", "--version", run.version,
                 "--memory", self.memory, "--temp", output.parent, *RECORD, "--json"]
        words += ["--io", "buffered" if run.version == "compute" else "direct"]
        words += plan.words(run.arm, run.version)
        return [str(word) for word in words]


def end(process):
    """Ends what runs beside; `cosched run` passes the signal on to its job."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def directory(version, options):
    """Where a version's files are: in memory where computing is to limit, if there is room; else below the build folder."""
    needed = 4 * plan.VERSIONS[version] * options.bytes
    if version == "compute" and os.path.ismount(MEMORY) and shutil.disk_usage(MEMORY).free > needed:
        return pathlib.Path(tempfile.mkdtemp(prefix="cosched-roysden-", dir=MEMORY))
    path = options.build / "data" / version
    path.mkdir(parents=True, exist_ok=True)
    return path
