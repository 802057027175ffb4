"""Runs `cosched sim backfill` on a list under a policy and keeps what is finished in a journal."""

import csv
import hashlib
import json
import math
import subprocess

import plan
import shared


class Failed(Exception):
    """A simulation failed; the text says which and why."""


class Runner:
    def __init__(self, program, folder):
        self.program, self.folder = str(program), folder
        (folder / "lists").mkdir(parents=True, exist_ok=True)
        self.program_hash = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
        self.journal = shared.Journal(folder / "runs.jsonl")

    def keys(self, part):
        return {policy: json.dumps([part[0].name, options, self.program_hash]) for policy, options in plan.POLICIES.items()}

    def is_finished(self, part):
        return all(key in self.journal.entries for key in self.keys(part).values())

    def measured(self, part):
        """The measures of a list under each policy."""
        path, begin, length = part
        keys = self.keys(part)
        if not self.is_finished(part):
            base = None
            for policy, key in keys.items():
                if key in self.journal.entries and policy != plan.BASE:
                    continue
                jobs, utilisation = self.simulate(path, begin, length, plan.POLICIES[policy])
                base = base or {job: turnaround for job, turnaround, _, _ in jobs}
                if key not in self.journal.entries:
                    self.journal.add(key, **measures(jobs, base), utilisation=utilisation)
        return {policy: self.journal.entries[key] for policy, key in keys.items()}

    def simulate(self, path, begin, length, options):
        """(number, turnaround, wait, bounded slowdown) of each measured job, and the utilisation of the whole list."""
        table = self.folder / f"jobs-{path.stem}.csv"
        command = [self.program, "sim", "backfill", "--json", "--trace", str(path), "--jobs-csv", str(table), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
        with table.open() as rows:
            jobs = [job_of(row) for row in csv.DictReader(rows) if inside(float(row["submission_time"]), begin, length)]
        table.unlink()
        return jobs, json.loads(done.stdout)["utilization"]


def inside(submitted, begin, length):
    margin = plan.MARGIN * length
    return begin + margin <= submitted < begin + length - margin


def job_of(row):
    turnaround = float(row["turnaround_time"])
    alone = turnaround / float(row["stretch"])
    return row["job_id"], turnaround, float(row["waiting_time"]), max(1.0, turnaround / max(alone, 10.0))


def measures(jobs, base):
    """Means and shares over the jobs; `base`: their turnarounds under the policy that others are compared with."""
    slowdowns = sorted(job[3] for job in jobs)
    later = sum(turnaround > 1.1 * base[job] for job, turnaround, _, _ in jobs)
    return {
        "jobs": len(jobs), "turnaround_s": mean(job[1] for job in jobs), "wait_s": mean(job[2] for job in jobs), "slowdown": mean(slowdowns),
        "slowdown_p95": slowdowns[int(0.95 * len(slowdowns))], "jain": jain(slowdowns), "later": later / len(jobs),
    }


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values)


def jain(values):
    """Jain's index of fairness: 1 if all are equal, 1/n if one has all."""
    return math.fsum(values) ** 2 / (len(values) * math.fsum(value * value for value in values))
