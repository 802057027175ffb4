"""Runs cells with `cosched sim program` and keeps what is finished in a journal."""

import concurrent.futures
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
import tomllib

import plan
import programs
import shared

# What `measures` gives; a change of it makes older entries of the journal unusable.
FORM = 2


class Failed(Exception):
    """A simulation failed; the text says which and why."""


class Runner:
    """The simulator, the folder of programs and the journal."""

    def __init__(self, program, folder):
        self.program, self.folder = str(program), folder
        (folder / "programs").mkdir(parents=True, exist_ok=True)
        self.program_hash = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
        self.journal = shared.Journal(folder / "cells.jsonl")
        self.keys = {}

    def key(self, cell):
        """All inputs: the cell, what its program and machine file hold, the simulator itself and the form of results."""
        name = json.dumps({**cell, "machine": cell["machine"].name}, sort_keys=True)
        if name not in self.keys:
            inputs = text_of(cell) + cell["machine"].read_text()
            self.keys[name] = f"{name} {hashlib.sha256(inputs.encode()).hexdigest()[:16]} {self.program_hash} {FORM}"
        return self.keys[name]

    def result(self, cell):
        entry = self.journal.entries.get(self.key(cell))
        return entry and entry["result"]

    def spent(self, cells):
        """How many simulations the cells are, and how long they took."""
        found = [result for result in map(self.result, cells) if result]
        return {"simulations": sum(len(cell["jobs"]) * cell["seeds"] for cell in cells if self.result(cell)), "simulation_s": round(sum(result["wall_s"] for result in found), 1)}

    def run_all(self, cells, workers):
        """Runs what is missing; prints progress on stderr."""
        missing = [cell for cell in cells if self.result(cell) is None]
        print(f"reproduce: {len(missing)} of {len(cells)} calls of the simulator to make", file=sys.stderr)
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(self._run, cell) for cell in missing]
            try:
                for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
                    cell = future.result()
                    end = "\r" if sys.stderr.isatty() and done < len(missing) else "\n"
                    text = f"reproduce: {done} of {len(missing)}, {time.monotonic() - start:.0f} s; {cell['program']} p = {cell['p']}, {cell['strategy']}"
                    print(f"{text:78}", end=end, file=sys.stderr, flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _run(self, cell):
        result = self._simulate(cell)
        self.journal.add(self.key(cell), result=result)
        return cell

    def _simulate(self, cell):
        path = self.folder / "programs" / f"{hashlib.sha256(self.key(cell).encode()).hexdigest()[:16]}.prog"
        path.write_text(text_of(cell))
        start, runs = time.monotonic(), []
        for seed in range(1, cell["seeds"] + 1):
            runs.append(self._simulate_seed(cell, path, seed))
        path.unlink()
        return {"jobs": mean(runs), "wall_s": time.monotonic() - start}

    def _simulate_seed(self, cell, path, seed):
        command = [
            self.program, "sim", "program", str(path), "--json", "--quiet", "--tasks", str(cell["p"]), "--strategies", cell["strategy"],
            "--nodes", str(cell["p"] // cell["cpus_per_node"]), "--cpus-per-node", str(cell["cpus_per_node"]),
            "--machine", str(cell["machine"]), "--copies", ",".join(map(str, cell["jobs"])), *cell["options"],
            "--skew", str(cell["skew"]), "--seed", str(seed),
        ]
        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda: os.nice(10))
        if done.returncode:
            raise Failed(f"a simulation failed: {' '.join(command)}\n  exit code {done.returncode}: {done.stderr.strip()}")
        return measures(json.loads(done.stdout))


def text_of(cell):
    """The cell's program."""
    machine = tomllib.loads(cell["machine"].read_text())
    machine["cpus_per_node"] = cell["cpus_per_node"]
    if cell["level2_ns"] is not None:
        machine["compute"]["flop_ns_level2"] = cell["level2_ns"]
    grid = programs.grid_of(cell["p"])
    return str(programs.text(cell["program"], cell["n"], *grid, machine, cell["packet"]))


def measures(rows):
    """What the tables need: for each number of jobs t_j (until the last has ended), s_j, and how the CPUs' time was spent."""
    alone_s = rows[0]["makespan_s"]
    jobs = {}
    for row in rows:
        busy = row["util_compute"] + row["messages"] + row["spin"]
        jobs[str(row["copies"])] = {
            "t_s": row["makespan_s"], "slowdown": row["makespan_s"] / alone_s, "cpu": busy, "compute": row["util_compute"],
            "messages": row["messages"], "spin": row["spin"], "switches": row["context_switches"],
        }
    return jobs


def mean(runs):
    """The same over the seeds; of slowdowns the standard error too."""
    found = {}
    for jobs in runs[0]:
        found[jobs] = {name: statistics.fmean(run[jobs][name] for run in runs) for name in runs[0][jobs]}
        spread = statistics.stdev(run[jobs]["slowdown"] for run in runs) if len(runs) > 1 else 0.0
        found[jobs]["slowdown_stderr"] = spread / len(runs) ** 0.5
    return found
