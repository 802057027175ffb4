"""sim: task-iterations and node-seconds per second of the simulator's engines, and how they scale.

WL3, MPL 5, 40 jobs queued at the start. The two engines run interleaved on the same jobs; the general one is a
straightforward simulator of the same semantics (a heap of events, every tick an event). Then 1024 nodes against 32, a
sweep on one and on two threads, EASY on 77,000 generated jobs, and, if valgrind is installed, instructions per
task-iteration (they do not depend on other load of the machine). Those of earlier versions are in tools/bench/sim-history.csv;
a tenth more than the last recorded ones is an error. --record adds the present ones.
"""

import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import live
from figures import median, table as make_table, text

STRATEGIES = ["GS", "Local", "SB", "SY", "PB", "PB-SB"]
COUNTED = ["GS", "SB", "PB", "PB-SB"]
HISTORY = pathlib.Path(__file__).with_name("sim-history.csv")
NEEDS_DAEMON = False


def add_arguments(parser):
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each [default: 5; --quick: 2]")
    parser.add_argument("--exec-s", type=float, default=4.0, metavar="S", help="mean length of jobs [default: 4]")
    parser.add_argument("--only-count", action="store_true", help="instructions alone: a minute, on a busy machine too")
    parser.add_argument("--record", action="store_true", help="add the instructions to tools/bench/sim-history.csv")


class Simulator:
    def __init__(self, arguments):
        self.cosched = arguments.bin / "cosched"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cosched-bench-"))

    def words(self, *words):
        done = subprocess.run([self.cosched, *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            raise live.Failure(f"cosched {' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def jobs(self, name, count, exec_s, max_tasks, **more):
        path = self.folder / f"{name}.csv"
        options = [word for key, value in more.items() for word in (f"--{key}", value)]
        self.words("workload", "generate", "--model", "WL3", "--jobs", count, "--together", "--mean-exec-s", exec_s,
                   "--max-tasks", max_tasks, "--seed", 1, "--output", path, *options)
        return path

    def run(self, strategy, jobs, nodes=32, engine="auto"):
        out = json.loads(self.words("sim", "run", "--strategy", strategy, "--jobs", jobs, "--nodes", nodes, "--engine",
                                    engine, "--json", "--quiet"))
        return {
            "iterations_per_s": out["task_iterations"] / out["wall_s"],
            "node_s_per_s": out["sim_end_ns"] / 1e9 * nodes / out["wall_s"],
            "events_per_iteration": out["events"] / out["task_iterations"],
            "finishes_ns": [job["finish_ns"] for job in out["jobs"]],
        }


def measure(_, arguments):
    simulator = Simulator(arguments)
    try:
        repeat = arguments.repeat or (2 if arguments.quick else 5)
        counted = instructions(simulator)
        result = {"instructions": counted, "failed": compare(counted)}
        if arguments.record and counted:
            record(counted)
        if arguments.only_count:
            return result
        jobs = simulator.jobs("wl3", 40, arguments.exec_s, 32)
        return result | {
            "engines": engines(simulator, jobs, repeat),
            "scale": scale(simulator, arguments.exec_s, repeat),
            "sweep": sweep(simulator, arguments.exec_s, repeat),
            "backfill_s": backfill(simulator, repeat),
        }
    finally:
        shutil.rmtree(simulator.folder)


def engines(simulator, jobs, repeat):
    runs = {strategy: {"fast": [], "general": []} for strategy in STRATEGIES}
    for _ in range(repeat):
        for strategy in STRATEGIES:
            for engine in ("fast", "general"):
                runs[strategy][engine].append(simulator.run(strategy, jobs, engine=engine))
            fast, general = (runs[strategy][engine][-1].pop("finishes_ns") for engine in ("fast", "general"))
            if fast != general:
                raise live.Failure(f"the engines disagree on {strategy}")
    return runs


def scale(simulator, exec_s, repeat):
    """The same load on 32 times as many nodes: 40 jobs of up to 32 tasks each 32 nodes."""
    small, large = simulator.jobs("small", 40, exec_s, 32), simulator.jobs("large", 1280, exec_s, 32)
    ratios = {}
    for strategy in ("GS", "SB", "PB"):
        pairs = [(simulator.run(strategy, small, 32), simulator.run(strategy, large, 1024)) for _ in range(repeat)]
        ratios[strategy] = [b["node_s_per_s"] / a["node_s_per_s"] for a, b in pairs]
    return ratios


def sweep(simulator, exec_s, repeat):
    times_s = {1: [], 2: []}
    for i in range(repeat):
        for threads in times_s:
            journal = simulator.folder / f"sweep-{i}-{threads}.jsonl"
            begin = time.monotonic()
            simulator.words("sim", "sweep", "--strategies", "GS,SB,PB,PB-SB", "--workloads", "WL3", "--seeds", 3,
                            "--count", 40, "--mean-exec-s", exec_s, "--threads", threads, "--journal", journal, "--quiet")
            times_s[threads].append(time.monotonic() - begin)
    return times_s


def backfill(simulator, repeat):
    trace = simulator.folder / "lublin.swf"
    simulator.words("workload", "generate", "--model", "lublin", "--jobs", 77000, "--nodes", 338, "--load", 0.8, "--estimates-max-s",
                    64800, "--output", trace)
    times_s = []
    for _ in range(repeat):
        begin = time.monotonic()
        simulator.words("sim", "backfill", "--trace", trace, "--policy", "easy", "--json")
        times_s.append(time.monotonic() - begin)
    return times_s


def instructions(simulator):
    """Instructions per task-iteration, by callgrind; the list is always the same."""
    if not shutil.which("valgrind"):
        return None
    jobs = simulator.jobs("short", 40, 0.4, 32)
    found = {}
    for strategy in COUNTED:
        words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={os.devnull}", simulator.cosched, "sim", "run",
                 "--strategy", strategy, "--jobs", jobs, "--json", "--quiet"]
        done = subprocess.run(words, capture_output=True, text=True)
        collected = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode or not collected:
            raise live.Failure(f"valgrind: {done.stderr.strip()[-500:]}")
        found[strategy] = int(collected[1]) / json.loads(done.stdout)["task_iterations"]
    return found


def compare(counted):
    """The strategies that need a tenth more instructions than when they were last recorded."""
    last = {row["strategy"]: float(row["instructions"]) for row in csv.DictReader(HISTORY.open())}
    return [f"{strategy}: {count:.0f} instructions per task-iteration, {last[strategy]:.0f} when last recorded"
            for strategy, count in (counted or {}).items() if count > 1.1 * last.get(strategy, count)]


def record(counted):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=live.ROOT).stdout.strip()
    with HISTORY.open("a") as history:
        for strategy, count in counted.items():
            history.write(f"{time.strftime('%Y-%m-%d')},{commit},{strategy},{count:.0f}\n")


def count_lines(result):
    if not result["instructions"]:
        return ["    instructions not counted: valgrind is not installed"]
    counts = ", ".join(f"{strategy} {text(count)}" for strategy, count in result["instructions"].items())
    return [f"    instructions per task-iteration: {counts}", *(f"    SLOWER: {line}" for line in result["failed"])]


def table(result):
    if "engines" not in result:
        return count_lines(result)
    rows = []
    for strategy, runs in result["engines"].items():
        of = lambda engine, field: median([run[field] for run in runs[engine]])
        ratio = median([a["iterations_per_s"] / b["iterations_per_s"] for a, b in zip(runs["fast"], runs["general"])])
        rows.append([strategy, text(of("fast", "iterations_per_s") / 1e6, 2), text(of("fast", "node_s_per_s")),
                     text(of("fast", "events_per_iteration"), 1), text(of("general", "events_per_iteration"), 1),
                     text(ratio, 1)])
    head = ["strategy", "M task-iter/s", "node-s/s", "events/iter", "general's", "fast / general"]
    lines = make_table("sim: WL3, 32 nodes, MPL 5, 40 jobs queued; medians, both engines agree on every job", head, rows)
    scales = ", ".join(f"{name} {text(median(ratios), 2)}" for name, ratios in result["scale"].items())
    one, two = (median(result["sweep"][threads]) for threads in (1, 2))
    return lines + count_lines(result) + [
        f"    node-s/s on 1024 nodes over 32: {scales}",
        f"    sweep on two threads over one: {text(one / two, 2)} times as fast",
        f"    EASY on 77,000 jobs, reading included: {text(median(result['backfill_s']), 2)} s",
    ]
