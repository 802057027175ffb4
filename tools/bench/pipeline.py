"""pipeline: what it costs to hand a buffer from stage to stage, compared with oneTBB, Taskflow and Rust's queues.

ns per buffer and stage, in rows of serial stages with 16 buffers (tokens, lines), pinned to 1 and 2 CPUs. Run to completion
is compared with oneTBB's parallel_pipeline and Taskflow's Pipeline, a thread per stage with Rust's queues; all in turn
(A B C A B C …), medians, each relative to the best peer of the same run. With work, all are compared with plain threads that
share it and hand nothing over: the bound. Taskflow is taken from TASKFLOW_INCLUDE or /usr/include; a missing peer
is named and left out.

`spsc-yield` is a ring written by hand whose threads only yield. It never sleeps, so no thread has to check whether another one does; it has no
end and no stop, and it keeps a CPU busy for each waiting stage, as long as it waits. No library offers that, and no
pipeline with a slow stage could use it: it shows what being able to sleep costs. So a thread per stage is compared with the best
of all, and with the best of those that sleep.
"""

import json
import os
import pathlib
import re
import subprocess

import live
from figures import median, table as make_table, text

NEEDS_DAEMON = False
SOURCE = pathlib.Path(__file__).resolve().parent / "pipeline_peers.cpp"
COMPLETION, THREADS = "cosched-worker", "cosched-thread"
CPP_PEERS = {"tbb": "oneTBB", "taskflow": "Taskflow"}
RUST_PEERS = ("kanal", "crossbeam", "flume", "std-mpsc", "mutex-condvar", "spsc-yield")
NEVER_SLEEPS = "spsc-yield"
BUFFERS = 16
LIMIT_S = 120


def add_arguments(parser):
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each [default: 9; --quick: 3]")
    parser.add_argument("--cells", default="2x1,2x2,5x1,5x2,5x2w10", metavar="C,…",
                        help="STAGESxCPUS, and wN for N us of work per stage [default: %(default)s]")
    parser.add_argument("--no-threads", action="store_true", help="run to completion only")


def parse_cell(words):
    """{stages, cpus, work_us} of "5x2w10"; a Failure if it is none."""
    found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)(?:w(\d+))?", words)
    if not found or int(found[1]) < 2:
        raise live.Failure(f"--cells: '{words}' is no cell; write STAGESxCPUS or STAGESxCPUSwMICROSECONDS with 2 stages or more")
    return {"stages": int(found[1]), "cpus": int(found[2]), "work_us": int(found[3] or 0)}


class Programs:
    """The programs, built, and the available peers."""

    def __init__(self, arguments):
        self.out = arguments.out
        self.out.mkdir(parents=True, exist_ok=True)
        self.cpus = sorted(os.sched_getaffinity(0))
        build = ["cargo", "build", "--release", "--quiet", "-p", "cosched-pipeline", "--example", "handoff"]
        run([os.environ.get("CARGO", "cargo"), *build[1:]], limit_s=1800, cwd=live.ROOT)
        self.handoff = live.ROOT / "target/release/examples/handoff"
        self.missing = {}
        self.peers = self.compile()

    def compile(self):
        """pipeline_peers with the available libraries; None without a C++ compiler."""
        compiler = os.environ.get("CXX", "g++")
        # The compiler's own directories must not be named again, because the order of its headers
        # matters.
        taskflow = os.environ.get("TASKFLOW_INCLUDE")
        include = ["-isystem", taskflow] if taskflow else []
        wanted = {"tbb": ("oneapi/tbb/parallel_pipeline.h", [], ["-DWITH_TBB"], "install libtbb-dev (tools/setup bench)"),
                  "taskflow": ("taskflow/algorithm/pipeline.hpp", include, ["-DWITH_TASKFLOW", *include],
                               "header-only and not in Debian: set TASKFLOW_INCLUDE to the directory with taskflow/")}
        flags = []
        try:
            for name, (header, where, more, hint) in wanted.items():
                if compiles([compiler, "-std=c++20", *where, "-E", "-x", "c++", "-"], f"#include <{header}>\n"):
                    flags += more
                else:
                    self.missing[name] = f"{CPP_PEERS[name]}: {hint}"
        except OSError as error:
            self.missing = {name: f"{full}: no C++ compiler ({error})" for name, full in (CPP_PEERS | {"bound": "the bound"}).items()}
            return None
        libraries = [] if "tbb" in self.missing else ["-ltbb"]
        program = self.out / "pipeline_peers"
        run([compiler, "-O2", "-std=c++20", *flags, SOURCE, "-o", program, "-pthread", *libraries], limit_s=600)
        return program

    def arms(self, threads):
        """The names of what is compared, in the order of a round."""
        cpp = [name for name in CPP_PEERS if name not in self.missing]
        return [COMPLETION, *cpp, *([THREADS, *RUST_PEERS] if threads else [])]

    def calibrate(self, work_us):
        """The number of steps of work that take this time."""
        if work_us == 0 or not self.peers:
            return 0
        steps = 20_000
        return round(steps * work_us * 1000 / min(self.peer("bound", 2, 1, 20, steps)["ns_per_visit"] for _ in range(15)))

    def once(self, arm, cell, steps):
        """ns per buffer and stage of one run."""
        if arm in CPP_PEERS or arm == "bound":
            tokens = 200_000 if not cell["work_us"] else max(1, 100_000 // cell["work_us"])
            return self.peer(arm, cell["stages"], cell["cpus"], tokens, steps)["ns_per_visit"]
        work = f"s{steps}" if steps else f"w{cell['work_us']}"
        words = [self.handoff, "--runs", 1, "--buffers", BUFFERS, "--engines", arm, "--cells", f"{cell['stages']}x{cell['cpus']}{work}"]
        return json.loads(run(words, cpus=self.cpus[:cell["cpus"]]))["ns_per_buffer_stage"]

    def peer(self, kind, stages, cpus, tokens, steps):
        words = [self.peers, kind, "--stages", stages, "--tokens", tokens, "--buffers", BUFFERS, "--workers", cpus, "--steps", steps]
        return json.loads(run(words, cpus=self.cpus[:cpus]))


def compiles(words, source):
    return subprocess.run(words, input=source, capture_output=True, text=True, timeout=LIMIT_S).returncode == 0


def run(words, cpus=None, limit_s=LIMIT_S, cwd=None):
    """The output of a program that runs on these CPUs; a Failure when it fails."""
    words = [str(word) for word in words]
    pin = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit_s, preexec_fn=pin, cwd=cwd)
    except subprocess.TimeoutExpired as error:
        raise live.Failure(f"pipeline: {' '.join(words)} did not end within {limit_s} s") from error
    if done.returncode:
        raise live.Failure(f"pipeline: {' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def measure(_, arguments):
    cells = [parse_cell(words) for words in arguments.cells.split(",")]
    programs = Programs(arguments)
    arms = programs.arms(not arguments.no_threads)
    repeat = arguments.repeat or (3 if arguments.quick else 9)
    result = {"buffers": BUFFERS, "repeat": repeat, "missing": programs.missing, "cells": []}
    for cell in cells:
        if cell["cpus"] > len(programs.cpus):
            result["cells"].append(cell | {"left_out": f"{cell['cpus']} CPUs are not there"})
            continue
        steps = programs.calibrate(cell["work_us"])
        with_bound = [*arms, "bound"] if cell["work_us"] and programs.peers else arms
        ns = {arm: [] for arm in with_bound}
        for _ in range(repeat):
            for arm in with_bound:
                ns[arm].append(programs.once(arm, cell, steps))
        result["cells"].append(cell | {"steps": steps, "ns": ns} | verdicts(ns))
    return result


def verdicts(ns):
    """Medians, and each of ours relative to its best peer and to the bound. Ratios are those of one round's runs, their median."""
    medians = {arm: median(values) for arm, values in ns.items()}
    found = {"median_ns": medians, "over_best_peer": {}, "over_bound": {}, "best_peer": {}}
    for ours, peers in ((COMPLETION, CPP_PEERS), (THREADS, RUST_PEERS)):
        there = [peer for peer in peers if peer in ns]
        if ours in ns and there:
            best = min(there, key=medians.get)
            found["best_peer"][ours] = best
            found["over_best_peer"][ours] = median([a / b for a, b in zip(ns[ours], ns[best])])
    sleeping = [peer for peer in RUST_PEERS if peer in ns and peer != NEVER_SLEEPS]
    if THREADS in ns and sleeping:
        best = min(sleeping, key=medians.get)
        found["best_sleeping_peer"] = best
        found["over_best_sleeping_peer"] = median([a / b for a, b in zip(ns[THREADS], ns[best])])
    if "bound" in ns:
        found["over_bound"] = {arm: median([a / b for a, b in zip(values, ns["bound"])]) for arm, values in ns.items()}
    return found


def name_of(cell):
    work = f", {cell['work_us']} us" if cell["work_us"] else ""
    return f"{cell['stages']} stages, {cell['cpus']} CPU{'s' if cell['cpus'] > 1 else ''}{work}"


def table(result):
    cells = [cell for cell in result["cells"] if "ns" in cell]
    arms = list(dict.fromkeys(arm for cell in cells for arm in cell["ns"]))
    rows = []
    for arm in arms:
        full = {"bound": "bound (no hand-off)", COMPLETION: "cosched, run to completion", THREADS: "cosched, thread per stage"}
        rows.append([full.get(arm, CPP_PEERS.get(arm, arm)),
                     *(text(cell["median_ns"].get(arm), 0 if cell["work_us"] else 1) for cell in cells)])
    for title, ours in (("run to completion / best peer", COMPLETION), ("thread per stage / best peer", THREADS)):
        rows.append([title, *(ratio(cell["over_best_peer"].get(ours), cell["best_peer"].get(ours)) for cell in cells)])
    rows.append(["thread per stage / best that sleeps",
                 *(ratio(cell.get("over_best_sleeping_peer"), cell.get("best_sleeping_peer")) for cell in cells)])
    rows.append(["run to completion / bound", *(text(cell["over_bound"].get(COMPLETION), 3) for cell in cells)])
    lines = make_table(f"pipeline: ns per buffer and stage, medians of {result['repeat']} interleaved runs, {result['buffers']} buffers",
                       ["", *map(name_of, cells)], rows)
    lines += [f"    not there: {why}" for why in result["missing"].values()]
    lines += [f"    left out: {name_of(cell)}: {cell['left_out']}" for cell in result["cells"] if "left_out" in cell]
    return lines + ["    bars: 1 or less beside the best peer; 1.030 or less over the bound with 10 us on 2 CPUs"]


def ratio(value, best):
    return f"{text(value, 2)} ({CPP_PEERS.get(best, best)})" if best else text(value, 2)
