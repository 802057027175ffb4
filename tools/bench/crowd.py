"""crowd: the cost of starting, changing and ending jobs while many others exist: ms per job, and CPU ms of the daemon.

Sleeping jobs are started by one `cosched run --detach` after the other, some of them are suspended and resumed by one command each, and
one `cosched kill -9` ends them all. With --against the programs of two directories are measured in turn, each with a daemon of its
own, and the ratio of their medians is what counts; that of the CPU time also counts on a busy machine.
"""

import pathlib
import time

import footprint
import launch
import live
from figures import median, table as make_table, text

NEEDS_DAEMON = False

STEPS = ["begin", "suspend", "resume", "kill"]


def add_arguments(parser):
    parser.add_argument("--jobs", metavar="N,…", default="100,500,1000", help="how many jobs [default: 100,500,1000]")
    parser.add_argument("--against", type=pathlib.Path, metavar="DIR", help="other programs to compare with")
    parser.add_argument("--repeat", type=int, metavar="N", help="daemons of each [default: 5; --quick: 1]")
    parser.add_argument("--changed", type=int, metavar="N", default=50, help="jobs that are changed [default: 50]")
    parser.add_argument("--config", default="", metavar="TOML", help="lines of the daemons' configuration")


def measure(_, arguments):
    repeat = arguments.repeat or (1 if arguments.quick else 5)
    counts = [int(word) for word in arguments.jobs.split(",")]
    arms = {"bin": arguments.bin} | ({"against": arguments.against} if arguments.against else {})
    runs = [{"arm": arm, "jobs": jobs, "ms": [], "cpu_ms": []} for jobs in counts for arm in arms]
    for turn in range(repeat):
        # The first one in one round is the last one in the next.
        for run in runs if turn % 2 == 0 else reversed(runs):
            with live.Daemon(arms[run["arm"]], arguments.programs, arguments.config) as daemon:
                ms, cpu_ms = one(daemon, run["jobs"], min(arguments.changed, run["jobs"]))
            run["ms"].append(ms)
            run["cpu_ms"].append(cpu_ms)
    return {"repeat": repeat, "programs": {arm: str(path) for arm, path in arms.items()}, "runs": runs}


def one(daemon, jobs, changed):
    """Each step's time per job, and the daemon's CPU time, in ms."""
    ids, ms, cpu_ms = [], {}, {}

    def begin():
        for _ in range(jobs):
            ids.append(daemon.cli("run", "--detach", "--", "sleep", "100000").strip())
        return jobs

    def change(*words, of):
        daemon.cli(*words, *ids[:of])
        return of

    for step, does in [("begin", begin), ("suspend", lambda: change("suspend", of=changed)),
                       ("resume", lambda: change("resume", of=changed)), ("kill", lambda: change("kill", "-9", of=jobs))]:
        before_ns, started = footprint.cpu_ns(daemon.process.pid), time.monotonic()
        done = does()
        ms[step] = (time.monotonic() - started) * 1000 / done
        if step == "kill":
            # The last ones have ended when their cgroups no longer exist.
            launch.wait_for_nothing(daemon)
        cpu_ms[step] = (footprint.cpu_ns(daemon.process.pid) - before_ns) / 1e6 / done
    return ms, cpu_ms


def table(result):
    rows = []
    for jobs in dict.fromkeys(run["jobs"] for run in result["runs"]):
        arms = [run for run in result["runs"] if run["jobs"] == jobs]
        for unit, name in [("ms", "ms"), ("cpu_ms", "CPU ms")]:
            medians = [[median([times[step] for times in run[unit]]) for step in STEPS] for run in arms]
            for run, values in zip(arms, medians):
                rows.append([f"{jobs} jobs, {name}, {run['arm']}", *(text(value, 2) for value in values)])
            if len(arms) == 2:
                rows.append(["  bin is so many times it", *(text(one / other, 2) for one, other in zip(*medians))])
    return make_table(f"crowd: a job's, medians of {result['repeat']}", ["", *STEPS], rows)
