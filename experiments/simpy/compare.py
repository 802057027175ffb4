#!/usr/bin/env python3
"""Two tasks, each as several programs. Gang scheduling: with SimPy (gang.py), as a strategy in Python, by name. First come, first served (space.py): with
SimPy, with pybatsim (fcfs.py) by the command's side of Batsim's protocol, by name.

    python experiments/simpy/compare.py [--repeat N]      with the packages cosched and simpy (4.1 from PyPI), and pybatsim 3.2 if it is there

All programs of a task must give the same ends of all jobs. Prints the lines of code of each (without blank lines, comments and docstrings; a command is one) and
the median of its times (a command's with its start), and ratios. Exit codes: 0 they agree, 1 they do not, 2 a package or the command is missing.
"""

import argparse
import ast
import inspect
import os
import shutil
import statistics
import sys
import tempfile
import time

try:
    import gang
    import space
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
    return sum(lines_of_text(inspect.getsource(part)) for part in parts)


def lines_of_text(text):
    """Lines of code, by what the parser finds on them."""
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {id(node.body[0]) for node in ast.walk(tree) if isinstance(node, documented) and ast.get_docstring(node) is not None}
    skipped = {line for node in ast.walk(tree) if id(node) in docs for line in range(node.lineno, node.end_lineno + 1)}
    return len({node.lineno for node in ast.walk(tree) if hasattr(node, "lineno")} - skipped)


def table(programs, lists, repeat):
    """Prints a line for each program: lines of code, medians of its times, and those of the first one over them. Whether all give the same ends."""
    print(f"{'':20}{'lines':>6}" + "".join(f"{name + ' (s)':>12}" for name in lists) + f"   times of {next(iter(programs))} over it")
    times, ends = {name: {task: [] for task in lists} for name in programs}, {}
    for _ in range(repeat):
        for name, (program, _) in programs.items():
            for task, jobs in lists.items():
                begin = time.perf_counter()
                found = program(jobs)
                times[name][task].append(time.perf_counter() - begin)
                if found != ends.setdefault(task, found):
                    print(f"compare: {name} does not agree on {task}: {found} and {ends[task]}", file=sys.stderr)
                    return False
    slowest = None
    for name, (_, lines) in programs.items():
        medians = [statistics.median(one) for one in times[name].values()]
        slowest = slowest or medians
        ratios = ", ".join(f"{slow / own:.2g}" if slow < 100 * own else f"{slow / own:.0f}" for slow, own in zip(slowest, medians))
        print(f"{name:20}{lines:6}" + "".join(f"{median:12.4f}" for median in medians) + f"   {ratios}")
    return True


def gangs(options):
    programs = {"SimPy": (with_simpy, lines_of(gang)), "strategy in Python": (as_policy, lines_of(Rows, as_policy)), "by name": (by_name, lines_of(by_name))}
    lists = {name: sim.workload(name, count=options.jobs, nodes=NODES, mean_exec_s=options.mean_s, load=0.7, seed=1) for name in WORKLOADS}
    agree = table(programs, lists, options.repeat)
    if agree:
        print(f"all ends of {len(WORKLOADS)} × {options.jobs} jobs are equal, to the nanosecond; n = {options.repeat}")
    return agree


def queues(options):
    with tempfile.TemporaryDirectory() as folder:
        of = space.Command(options.cosched, folder)
        programs = {"SimPy": (space.with_simpy, lines_of(space.with_simpy))}
        if space.PYBATSIM.exists():
            programs["pybatsim"] = (of.with_batsim, lines_of_text(space.FCFS.read_text()))
        programs["by name"] = (of.by_name, 1)
        agree = table(programs, {"FCFS": space.workload(options.queued)}, options.repeat)
    if agree:
        print(f"all ends of {options.queued} jobs are equal{'' if len(programs) == 3 else '; pybatsim is not installed'}; n = {options.repeat}")
    return agree


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="how often each is timed [5]")
    parser.add_argument("--jobs", type=int, default=20, help="jobs of a list of gangs [20]")
    parser.add_argument("--mean-s", type=float, default=0.5, help="their mean execution time in s [0.5]")
    parser.add_argument("--queued", type=int, default=500, help="jobs of the queue [500]")
    parser.add_argument("--cosched", default=os.environ.get("COSCHED_COMMAND", "cosched"), help="the command [$COSCHED_COMMAND, or that in PATH]")
    options = parser.parse_args()
    if not shutil.which(options.cosched):
        print(f"compare: there is no command {options.cosched}: install cosched, or name its command with --cosched", file=sys.stderr)
        return 2
    return 0 if gangs(options) and queues(options) else 1


if __name__ == "__main__":
    sys.exit(main())
