"""Runs cells with `cosched sim run` on a pool of threads and keeps what is finished in a journal."""

import csv
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import threading
import time

import plan
import shared

# An open run may last this many times the time that the jobs' nominal work needs on all nodes; then it counts as saturated.
HORIZON_WORK = 6.0
# A closed run (all jobs queued at t = 0) is cut at this share of the time that the nominal work needs on all nodes.
CLOSED_WORK = 0.4
# What `measures` gives; a change of it makes older entries of the journal unusable.
FORM = 2


class Failed(Exception):
    """A simulation failed; the text says which and why."""


class Runner:
    """The simulator, the folder of job lists and the journal."""

    def __init__(self, program, folder):
        self.program, self.folder = str(program), folder
        (folder / "jobs").mkdir(parents=True, exist_ok=True)
        self.program_hash = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
        self.journal = shared.Journal(folder / "cells.jsonl")

    def key(self, cell):
        """All inputs, the simulator itself and the form of results."""
        return json.dumps({**cell, "program": self.program_hash, "form": FORM}, sort_keys=True)

    def result(self, cell):
        entry = self.journal.entries.get(self.key(cell))
        return entry and entry["result"]

    def spent(self, size, seeds):
        """How many simulations the seeds needed, and their time in the event loop."""
        keys = {self.key(cell) for chain in plan.chains(size) for cell in chain if cell["seed"] in seeds}
        found = [self.journal.entries[key]["result"] for key in keys if key in self.journal.entries]
        seconds = sum(result["wall_s"] for result in found)
        return {"simulations": len(found), "simulation_s": round(seconds, 1), "simulated_node_s": round(sum(r["sim_s"] * 32 for r in found))}

    def run_chains(self, chains, workers):
        """Runs what is missing; prints progress on stderr."""
        chains = [chain for chain in chains if not self.settled(chain)]
        left = sum(plan.cost(cell) for chain in chains for cell in chain)
        progress = Progress(left, len(chains))
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            futures = {pool.submit(self._run_chain, chain): chain for chain in chains}
            try:
                for future in concurrent.futures.as_completed(futures):
                    future.result()
                    progress.advance(sum(plan.cost(cell) for cell in futures[future]))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        progress.end()

    def settled(self, chain):
        for cell in chain:
            result = self.result(cell)
            if result is None:
                return False
            if cell is chain[-1] or gives_up(result):
                return True
        return True

    def _run_chain(self, chain):
        for cell in chain:
            result = self.result(cell)
            if result is None:
                result = self._simulate(cell)
                self.journal.add(self.key(cell), result=result)
            if cell is chain[-1] or gives_up(result):
                break

    def _simulate(self, cell):
        path = self._job_list(cell)
        jobs = read_jobs(path)
        work_s = sum(job["tasks"] * job["exec_s"] for job in jobs) / cell["nodes"]
        last_s = max(job["arrival_s"] for job in jobs)
        end_s = CLOSED_WORK * work_s if cell["load"] is None else last_s + HORIZON_WORK * work_s
        command = [
            self.program, "sim", "run", "--json", "--quiet", "--strategy", cell["strategy"], "--jobs", str(path),
            "--nodes", str(cell["nodes"]), "--mpl", str(cell["mpl"]), "--skew", str(cell["skew"]), "--grain", str(cell["grain"]),
            "--cd-scale", str(cell["cd_scale"]), "--seed", str(cell["seed"]), "--cs-us", str(cell["cs_us"]), "--intr-us", str(cell["intr_us"]),
            "--quantum-ms", str(cell["quantum_ms"]), "--max-sim-s", f"{end_s:.6f}",
        ]
        offered = None if cell["load"] is None else useful_work_s(jobs, cell["cd_scale"]) / (cell["nodes"] * last_s)
        return measures(json.loads(call(command)), offered, [job["exec_s"] for job in jobs])

    def _job_list(self, cell):
        names = ("workload", "load", "jobs", "mean_exec_s", "nodes", "seed")
        path = self.folder / "jobs" / ("-".join(str(cell[name]) for name in names) + f"-{self.program_hash}.csv")
        if not path.exists():
            load = ["--together"] if cell["load"] is None else ["--load", str(cell["load"])]
            command = [
                self.program, "workload", "generate", "--model", cell["workload"], "--jobs", str(cell["jobs"]), "--nodes", str(cell["nodes"]),
                "--mean-exec-s", str(cell["mean_exec_s"]), "--seed", str(cell["seed"]), *load,
            ]
            part = path.with_suffix(f".{threading.get_ident()}.part")
            part.write_text(call(command))
            part.rename(path)
        return path


def read_jobs(path):
    """arrival_s, tasks, exec_s and type of each job."""
    with open(path, newline="") as file:
        return [
            {"arrival_s": float(row["arrival_s"]), "tasks": int(row["tasks"]), "exec_s": float(row["exec_s"]), "type": row["type"]}
            for row in csv.DictReader(file)
        ]


def useful_work_s(jobs, cd_scale):
    """CPU time of computing plus ideal communication (D26): all but I/O; a lone task has no communication (D10)."""
    total = 0.0
    for job in jobs:
        computing, io = plan.TYPES[job["type"]]
        messages = 0.0 if job["tasks"] == 1 else (1.0 - computing - io) / cd_scale
        share = 1.0 - io / (computing + io + messages)
        total += job["tasks"] * job["exec_s"] * share
    return total


def call(command):
    """stdout of a command, run at low priority."""
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda: os.nice(10))
    if done.returncode:
        raise Failed(f"{' '.join(command)}\n  exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def measures(output, offered, ideal_s):
    """What the exhibits need of one run. Times of jobs that did not end (start) count up to the end: lower bounds."""
    end_ns = output["sim_end_ns"]
    jobs = output["jobs"]
    responses = [((job["finish_ns"] or end_ns) - job["arrival_ns"]) / 1e9 for job in jobs]
    waits = [((end_ns if job["start_ns"] is None else job["start_ns"]) - job["arrival_ns"]) / 1e9 for job in jobs]
    count = len(jobs)
    # In a system that is not saturated, those who come late fare like the others.
    late = responses[3 * count // 4:]
    mean_ideal_s = sum(ideal_s) / count
    response, wait = sum(responses) / count, sum(waits) / count
    total_ns = sum(output["cpu_ns"].values())
    return {
        "response": response, "wait": wait, "execution": response - wait,
        "stretch": response / mean_ideal_s, "late_stretch": sum(late) / len(late) / mean_ideal_s,
        "unfinished": sum(job["finish_ns"] is None for job in jobs),
        "unstarted": sum(job["start_ns"] is None for job in jobs),
        "useful": output["util_useful"],
        # Useful work that arrives for each second and node; None if all jobs are there at the start.
        "offered": offered,
        "sim_s": end_ns / 1e9, "wall_s": output["wall_s"],
        **{f"{part}_share": value / total_ns for part, value in output["cpu_ns"].items()},
    }


def gives_up(result):
    return result["unfinished"] > 0 or result["late_stretch"] > plan.GIVE_UP_STRETCH


class Progress:
    """One line on stderr, with the time left by the weights of what is done."""

    def __init__(self, weight, chains):
        self.weight, self.chains, self.done, self.done_chains = weight, chains, 0.0, 0
        self.start = self.last = time.monotonic()
        print(f"reproduce: {chains} simulations and series to run", file=sys.stderr)

    def advance(self, weight):
        self.done += weight
        self.done_chains += 1
        now = time.monotonic()
        if now - self.last >= 5 or self.done_chains == self.chains:
            self.last = now
            left_s = (now - self.start) * (self.weight - self.done) / self.done
            text = f"reproduce: {self.done_chains} of {self.chains}, {now - self.start:.0f} s, about {max(0.0, left_s):.0f} s left"
            print(text, end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)

    def end(self):
        if sys.stderr.isatty():
            print(file=sys.stderr)
