"""Runs `cosched sim run` on a list and keeps what is finished in a journal."""

import concurrent.futures
import csv
import hashlib
import io
import json
import os
import subprocess

import lists
import plan
import shared


class Failed(Exception):
    """A simulation failed; the text says which and why."""


class Runner:
    def __init__(self, program, folder):
        self.program, self.folder = str(program), folder
        folder.mkdir(parents=True, exist_ok=True)
        self.program_hash = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
        self.inputs_hash = hashlib.sha256(plan.PLATFORM.read_bytes() + (plan.HERE / "lists.py").read_bytes()).hexdigest()[:16]
        self.journal = shared.Journal(folder / "runs.jsonl")

    def key(self, strategy, machine, jobs, number):
        return json.dumps([strategy, machine, jobs, number, self.program_hash, self.inputs_hash], sort_keys=True)

    def measured(self, strategy, machine, jobs, number, simulate=True):
        """The mean response time of the jobs that count, in s; None if it is not finished and nothing is to be simulated."""
        key = self.key(strategy, machine, jobs, number)
        if key not in self.journal.entries and simulate:
            self.journal.add(key, response_s=self.simulate(strategy, machine, jobs, number))
        entry = self.journal.entries.get(key)
        return entry and entry["response_s"]

    def all_of(self, machine, jobs, count, simulate=True):
        """strategy -> the response times of the lists 1 to count, on all CPUs."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
            futures = {strategy: [workers.submit(self.measured, strategy, machine, jobs, number, simulate) for number in range(1, count + 1)] for strategy in plan.STRATEGIES}
            try:
                return {strategy: [future.result() for future in all_of] for strategy, all_of in futures.items()}
            except BaseException:
                workers.shutdown(wait=False, cancel_futures=True)
                raise

    def simulate(self, strategy, machine, jobs, number):
        made = lists.made(jobs["list"], jobs["type"], number)
        command = [self.program, "sim", "run", "--quiet", "--jobs", "-", "--csv", "-", "--seed", str(number), *plan.options(strategy, machine, jobs)]
        done = subprocess.run(command, input=lists.text(made), capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
        return response_s(done.stdout, made)


def response_s(output, made):
    """Of the simulator's CSV, whose rows are the jobs in the order of the list."""
    rows = csv.DictReader(io.StringIO(output))
    counted = [float(row["response_s"]) for row, job in zip(rows, made, strict=True) if job[4]]
    return sum(counted) / len(counted)
