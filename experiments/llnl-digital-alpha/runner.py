"""Runs a program beside its competitors, under cosched's gangs or under plain Linux."""

import os
import pathlib
import signal
import statistics
import subprocess

import arms
import live
import plan
import shared

LIMIT_S = 300
# They run until they are ended; a footprint, because the paper's competitors were applications with data in the cache.
COMPETITOR = ("barrier-omp", "--threads", "1", "--footprint", "256K", "--seconds", "3600")


class Runner:
    """`journal`: its path; a run that stands there is not repeated."""

    def __init__(self, daemon, journal):
        self.daemon, self.journal = daemon, shared.Journal(journal)
        self.cpus = len(os.sched_getaffinity(0))
        self.plain = arms.plain_cgroup(daemon)
        self.tables = {table.number: table for table in plan.TABLES}

    def run(self, run):
        """The report of the program's run, from the journal when it is there."""
        if run.key() not in self.journal.entries:
            before = cpu_ticks()
            report = self._measure(run)
            stolen, everything = (now - then for now, then in zip(cpu_ticks(), before))
            self.journal.add(run.key(), report=report, stolen=stolen / max(1, everything))
        return self.journal.entries[run.key()]["report"]

    def stolen(self, runs):
        """The share of the CPUs' time that the hypervisor kept during these runs: the median."""
        return statistics.median(self.journal.entries[run.key()]["stolen"] for run in runs)

    def _measure(self, run):
        table = self.tables[run.table]
        programs = self.daemon.programs
        competitor = [programs / COMPETITOR[0], *COMPETITOR[1:]]
        command = [programs / table.program, "--threads", run.threads, "--n", table.order, "--json"]
        beside = [self._start(competitor, run.arm, 1) for _ in range(plan.competitors(table, self.cpus))]
        try:
            process = self._start(command, run.arm, run.threads)
            output, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise live.Failure(f"{table.program}: not ended after {LIMIT_S} s") from None
        finally:
            for other in beside:
                end(other)
        report = live.last_json(output)
        if process.returncode or report is None:
            raise live.Failure(f"{table.program}: exit code {process.returncode}:\n{output[-2000:]}")
        return report

    def _start(self, command, arm, cpus):
        if arm == "gang":
            command = self.daemon.run_words(command, "--policy", "gang", "--cpus", cpus, "--wait", "off")
        else:
            command = arms.in_cgroup(self.plain, command)
        return self.daemon.start(command)


def cpu_ticks():
    """(what the hypervisor kept, everything) of all CPUs since the machine started."""
    ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[7], sum(ticks)


def end(process):
    """Ends a competitor; `cosched run` passes the signal on to its job."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
