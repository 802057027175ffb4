#!/usr/bin/env python3
"""One task, three programs: gang scheduling of a list of jobs, written with SimPy (gang.py), as a strategy in Python, and by name.

    python experiments/simpy/compare.py [--repeat N]      with the packages cosched and simpy (4.1 from PyPI)

All three must give the same ends of all jobs, to the nanosecond. Prints the lines of code of each (without blank lines, comments and docstrings) and
the median of its times, and ratios. Exit codes: 0 they agree, 1 they do not, 2 a package is missing.
"""

import argparse
import ast
import inspect
import statistics
import sys
import time

try:
    import gang
    from cosched import sim
except ImportError as error:
    print(f"compare: {error}: pip install simpy, and the wheel of cosched", file=sys.stderr)
    sys.exit(2)

WORKLOADS, NODES = ("WL1", "WL3", "WL7"), 8


class Rows(sim.Policy):
    """GS with every decision in Python."""

    base = "GS"

    def on_arrival(self, moment):
        job = moment.waiting[0]
        tasks = moment.jobs[job]["tasks"]
        for number, row in enumerate(moment.rows):
            free = [column for column, other in enumerate(row) if other is None]
            if len(free) >= tasks:
                return sim.Start(job, free[:tasks], number)
        return None

    def on_row_change(self, moment):
        order = [(moment.row + step) % moment.mpl for step in range(1, moment.mpl + 1)]
        return next(row for row in order if any(job is not None for job in moment.rows[row]))


def by_name(jobs):
    return sim.simulate(jobs, strategy="GS", nodes=NODES, skew=0).column("finish_ns")


def as_policy(jobs):
    return sim.simulate(jobs, strategy=Rows(), nodes=NODES, skew=0).column("finish_ns")


def with_simpy(jobs):
    return gang.simulate(list(jobs), NODES)


def lines_of(*parts):
    """Lines of code, by what the parser finds on them."""
    lines = 0
    for part in parts:
        tree = ast.parse(inspect.getsource(part))
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        docs = {id(node.body[0]) for node in ast.walk(tree) if isinstance(node, documented) and ast.get_docstring(node) is not None}
        skipped = {line for node in ast.walk(tree) if id(node) in docs for line in range(node.lineno, node.end_lineno + 1)}
        own = {node.lineno for node in ast.walk(tree) if hasattr(node, "lineno")}
        lines += len(own - skipped)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="how often each is timed [5]")
    parser.add_argument("--jobs", type=int, default=20, help="jobs of a list [20]")
    parser.add_argument("--mean-s", type=float, default=0.5, help="their mean execution time in s [0.5]")
    options = parser.parse_args()
    programs = {"SimPy": (with_simpy, lines_of(gang)), "strategy in Python": (as_policy, lines_of(Rows, as_policy)), "by name": (by_name, lines_of(by_name))}
    print(f"{'':20}{'lines':>6}" + "".join(f"{name + ' (s)':>12}" for name in WORKLOADS) + "   times of SimPy over it")
    lists = [sim.workload(name, count=options.jobs, nodes=NODES, mean_exec_s=options.mean_s, load=0.7, seed=1) for name in WORKLOADS]
    expected, slowest = [by_name(jobs) for jobs in lists], []
    times = {name: [[] for _ in lists] for name in programs}
    for _ in range(options.repeat):
        for name, (program, _) in programs.items():
            for place, jobs in enumerate(lists):
                begin = time.perf_counter()
                found = program(jobs)
                times[name][place].append(time.perf_counter() - begin)
                if found != expected[place]:
                    print(f"compare: {name} does not agree on {jobs.name}: {found} and {expected[place]}", file=sys.stderr)
                    return 1
    for name, (_, lines) in programs.items():
        medians = [statistics.median(one) for one in times[name]]
        slowest = slowest or medians
        ratios = ", ".join(f"{slow / own:.0f}" for slow, own in zip(slowest, medians))
        print(f"{name:20}{lines:6}" + "".join(f"{median:12.4f}" for median in medians) + f"   {ratios}")
    print(f"all ends of {len(WORKLOADS)} × {options.jobs} jobs are equal, to the nanosecond; n = {options.repeat}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
