"""A second task, which schedulers of Batsim can be asked as well: first come, first served, where each job has its processors to itself."""

import csv
import json
import pathlib
import random
import subprocess
import sys

import simpy

PROCS = 32
FCFS = pathlib.Path(__file__).with_name("fcfs.py")
PYBATSIM = pathlib.Path(sys.executable).with_name("pybatsim")


def workload(count, seed=1):
    """Jobs in Batsim's form; times are whole seconds."""
    draw, at_s, jobs = random.Random(seed), 0, []
    for number in range(1, count + 1):
        at_s += draw.randint(0, 60)
        run_s = 1 + draw.randrange(400)
        jobs.append({"id": str(number), "subtime": at_s, "res": 1 + draw.randrange(16), "profile": str(run_s), "walltime": run_s + 1 + draw.randrange(run_s)})
    profiles = {job["profile"]: {"type": "delay", "delay": int(job["profile"])} for job in jobs}
    return {"nb_res": PROCS, "jobs": jobs, "profiles": profiles}


def with_simpy(jobs):
    env = simpy.Environment()
    free, ends = simpy.Container(env, PROCS, PROCS), {}

    def run(job):
        yield env.timeout(job["subtime"])
        yield free.get(job["res"])
        yield env.timeout(int(job["profile"]))
        free.put(job["res"])
        ends[job["id"]] = env.now

    for job in jobs["jobs"]:
        env.process(run(job))
    env.run()
    return ends


class Command:
    """The programs that are commands; `folder` is theirs."""

    def __init__(self, command, folder):
        self.command, self.folder = command, pathlib.Path(folder)

    def files(self, jobs):
        trace, ends = self.folder / "jobs.json", self.folder / "ends.csv"
        trace.write_text(json.dumps(jobs))
        ends.unlink(missing_ok=True)
        return trace, ends

    def with_batsim(self, jobs):
        (trace, ends), endpoint = self.files(jobs), f"ipc://{self.folder}/zmq"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self.folder}
        with subprocess.Popen([PYBATSIM, FCFS, "--timeout=0", "--verbosity=error", "--socket-endpoint", endpoint], **quiet) as scheduler:
            try:
                subprocess.run([self.command, "sim", "decide", trace, "-s", endpoint, "--csv", ends], check=True, **quiet)
            except BaseException:
                scheduler.kill()
                raise
        return finishes(ends)

    def by_name(self, jobs):
        trace, ends = self.files(jobs)
        subprocess.run([self.command, "sim", "backfill", "--trace", trace, "--policy", "fcfs", "--jobs-csv", ends], check=True, capture_output=True)
        return finishes(ends)


def finishes(path):
    with open(path, newline="") as file:
        return {row["job_id"]: float(row["finish_time"]) for row in csv.DictReader(file)}
