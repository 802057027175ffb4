"""Builds the job and runs it: alone, or several at once, in each way of waiting and sharing."""

import collections
import itertools
import json
import os
import pathlib
import signal
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
GRAINS_US = [50, 500, 5000]
JOBS = [2, 4]
# What each way is: the form of the job, and whether cosched starts it.
WAYS = {"nosv": ("nosv", False), "futex": ("futex", False), "linux": ("spin", False), "cosched": ("spin", True)}
ALONE = ["linux", "nosv", "futex"]
WORK_S = 0.5  # computation of a task of one job
SWITCHES = 20000  # rounds without work, which show what a switch of nOS-V costs
LIMIT = 10  # a run that takes this many times its ideal is ended
START_S = 0.3  # the time that all jobs have to start up, before they begin at once

Case = collections.namedtuple("Case", "repetition grain_us jobs way")


class Failed(Exception):
    """A job or a simulation failed; the text says which and why."""


def cases(repetitions):
    """All runs in their order: the ways are interleaved within each repetition. A grain of 0 is the cost of a switch."""
    found = []
    for repetition, grain in itertools.product(range(repetitions), [0, *GRAINS_US]):
        if grain == 0:
            found.append(Case(repetition, 0, 2, "nosv"))
            continue
        found += [Case(repetition, grain, 1, way) for way in ALONE]
        found += [Case(repetition, grain, jobs, way) for jobs in JOBS for way in WAYS]
    return found


def key(case):
    return f"{case.repetition} {case.grain_us} {case.jobs} {case.way}"


def build(nosv, folder):
    """The programs by form: nOS-V replaces functions of the C library, so the other forms are built without it."""
    common = ["gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-pthread", str(HERE / "job.c")]
    linked = ["-DNOSV", f"-I{nosv}/include", f"-L{nosv}/lib", "-lnosv", f"-Wl,-rpath,{nosv}/lib"]
    made = {"plain": [*common, "-o", str(folder / "job")], "nosv": [*common, *linked, "-o", str(folder / "job-nosv")]}
    for command in made.values():
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{' '.join(command)}:\n{done.stderr}")
    return {"spin": folder / "job", "futex": folder / "job", "nosv": folder / "job-nosv"}


class Machine:
    """The daemon, the programs and the journal."""

    def __init__(self, daemon, programs, nosv, journal, folder):
        self.daemon, self.programs, self.journal, self.folder = daemon, programs, journal, folder
        # Its own instance: all processes of this user that have this name share the CPUs.
        self.instance = f"cosched-experiment-{os.getpid()}"
        options = ["shared_memory.isolation_level=user", f"shared_memory.name={self.instance}"]
        self.environment = dict(os.environ, NOSV_CONFIG=str(nosv / "share/nosv.toml"), NOSV_CONFIG_OVERRIDE=",".join(options))
        self.environment.pop("NOSV_PRESET", None)
        if "calibration" not in journal.entries:
            done = subprocess.run([programs["spin"], "calibrate"], capture_output=True, text=True, check=True)
            journal.add("calibration", loops_per_us=json.loads(done.stdout)["loops_per_us"], cpus=len(os.sched_getaffinity(0)), kernel=os.uname().release)
        self.loops_per_us = journal.entries["calibration"]["loops_per_us"]

    def finish(self, case):
        if key(case) not in self.journal.entries:
            ends = self.run(case)
            self.journal.add(key(case), **case._asdict(), seconds=max(ends) if ends else None, ends=ends)

    def run(self, case):
        """Of each job the seconds from the common start to its end; None beyond the limit."""
        form, scheduled = WAYS[case.way]
        rounds = int(WORK_S * 1e6 / case.grain_us) if case.grain_us else SWITCHES
        start = time.monotonic() + START_S
        command = [str(self.programs[form]), form, str(int(case.grain_us * self.loops_per_us)), str(rounds), str(int(start * 1e9))]
        words = self.daemon.run_words(command) if scheduled else command
        started = [subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env=self.environment, start_new_session=True) for _ in range(case.jobs)]
        try:
            return self._ends(started, start + LIMIT * case.jobs * WORK_S)
        finally:
            for process in started:
                if process.poll() is None:
                    # `cosched run` ends its job when it is told to end.
                    os.killpg(process.pid, signal.SIGTERM if scheduled else signal.SIGKILL)
                process.communicate()
            # A process that was killed leaves the instance's memory behind, perhaps with a lock held.
            for left in pathlib.Path("/dev/shm").glob(f"*{self.instance}*"):
                left.unlink()

    @staticmethod
    def _ends(started, end):
        ends = []
        for process in started:
            try:
                output, errors = process.communicate(timeout=max(0.01, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                return None
            if process.returncode:
                raise Failed(f"{' '.join(process.args)}: exit code {process.returncode}:\n{output}{errors}")
            ends.append(json.loads(output)["seconds"])
        return ends
