"""share: a spinning program with a share of the slots, and under the kernel's CPU quota with the same budget.

A program of T threads that spin until all have met (barrier-omp) runs alone, with `cosched run --share`, and in a cgroup with a CPU quota of
the same part of all CPUs (cpu.max, or cpu.cfs_quota_us), interleaved; each run has a daemon of its own. Meetings per second are divided by
what the budget leaves of the run alone: 1 is a budget that costs nothing but the time that it takes away. "held" is the CPU time used,
relative to the budget, over the middle of the run.
"""

import contextlib
import json
import os
import pathlib
import time

import live
from barrier import calibrated
from figures import median, table as make_table, text
from neighbours import HOG, Neighbour

NEEDS_DAEMON = False

ARMS = ("alone", "share", "quota")
V1, V2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")


def add_arguments(parser):
    parser.add_argument("--threads", default="2,8", metavar="T,…", help="threads of the program [default: %(default)s]")
    parser.add_argument("--waits", default="spin,omp", metavar="W,…", help="how they wait, as barrier-omp has it [default: %(default)s]")
    parser.add_argument("--arms", default=",".join(ARMS), metavar="A,…", help="[default: %(default)s]")
    parser.add_argument("--share", type=int, default=50, metavar="P", help="the budget in percent of all CPUs [default: %(default)s]")
    parser.add_argument("--hogs", type=int, default=0, metavar="N", help="busy programs beside it, no jobs [default: %(default)s]")
    parser.add_argument("--slot", type=int, default=100, metavar="MS", help="slot length in ms [default: %(default)s]")
    parser.add_argument("--grain", type=int, default=100, metavar="US", help="work between two meetings in us [default: %(default)s]")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each [default: 5; --quick: 1]")
    parser.add_argument("--seconds", type=float, default=12, metavar="S", help="how long a run is [default: %(default)s]")


@contextlib.contextmanager
def quota(percent):
    """A cgroup with a CPU quota of `percent` of all CPUs; returns the file that takes processes."""
    is_v1 = (V1 / "cpu.cfs_quota_us").exists() or (V1 / "cpu.shares").exists()
    path = (V1 if is_v1 else V2) / f"cosched-bench-{os.getpid()}-quota"
    period_us = 100_000
    quota_us = period_us * os.cpu_count() * percent // 100
    path.mkdir()
    try:
        if is_v1:
            (path / "cpu.cfs_period_us").write_text(str(period_us))
            (path / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (path / "cpu.max").write_text(f"{quota_us} {period_us}")
        yield path / "cgroup.procs"
    finally:
        end = time.monotonic() + 5
        while time.monotonic() < end and (path / "cgroup.procs").read_text():
            time.sleep(0.02)
        path.rmdir()


@contextlib.contextmanager
def hogs(count):
    running = [Neighbour(["sh", "-c", HOG]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in running:
            hog.end()


def program_below(pid, name):
    """The process of the program: this one, or one that it has started."""
    with contextlib.suppress(OSError):
        if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == name:
            return pid
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if found := program_below(int(child), name):
                return found
    return None


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_once(daemon, arm, command, percent, seconds):
    """Meetings per second, and the CPUs that were used in the middle of the run."""
    with quota(percent) if arm == "quota" else contextlib.nullcontext() as procs:
        words = {"alone": daemon.run_words(command, "--wait", "off"),
                 "share": daemon.run_words(command, "--wait", "off", "--share", f"{percent}%"),
                 "quota": ["sh", "-c", f'echo $$ > {procs} && exec "$@"', "sh", *command]}[arm]
        process = daemon.start(words, {"OMP_WAIT_POLICY": "active"})
        time.sleep(0.1 * seconds)
        pid = program_below(process.pid, pathlib.Path(command[0]).name)
        if pid is None:
            raise live.Failure(f"{arm}: the program does not run: {process.communicate(timeout=60)[0].strip()}")
        begin, before = time.monotonic(), cpu_s(pid)
        time.sleep(0.83 * seconds)
        used = (cpu_s(pid) - before) / (time.monotonic() - begin)
        result = live.last_json(process.communicate(timeout=120)[0])
    return {"rate": result["iterations_per_s"], "cpus": used}


def measure(_, arguments):
    repeat = arguments.repeat or (1 if arguments.quick else 5)
    arms = arguments.arms.split(",")
    if unknown := set(arms) - set(ARMS):
        raise live.Failure(f"{', '.join(sorted(unknown))} unknown; there are {', '.join(ARMS)}")
    cases = [(int(threads), wait) for threads in arguments.threads.split(",") for wait in arguments.waits.split(",")]
    runs, loops = {f"{wait}-{threads}": {arm: [] for arm in arms} for threads, wait in cases}, None
    for _ in range(repeat):
        for threads, wait in cases:
            for arm in arms:
                with live.Daemon(arguments.bin, arguments.programs, f'slot_length = "{arguments.slot}ms"\n') as daemon:
                    loops = loops or calibrated(daemon, arguments.grain)
                    command = [daemon.programs / "barrier-omp", "--threads", threads, "--wait", wait, "--grain-loops", loops,
                               "--seconds", arguments.seconds, "--json"]
                    with hogs(arguments.hogs):
                        run = run_once(daemon, arm, [str(word) for word in command], arguments.share, arguments.seconds)
                runs[f"{wait}-{threads}"][arm].append(run)
                print(f"{wait}-{threads}", arm, json.dumps(run), flush=True)
    return {"repeat": repeat, "hogs": arguments.hogs, "slot_ms": arguments.slot, "share": arguments.share, "cpus": os.cpu_count(), "runs": runs}


def rows_of(case, of_arms, budget, cpus):
    rates = {arm: median([run["rate"] for run in runs]) for arm, runs in of_arms.items()}
    for arm, runs in of_arms.items():
        part = 1 if arm == "alone" else budget
        progress = rates[arm] / rates["alone"] / part if "alone" in rates else None
        held = [run["cpus"] / cpus / part for run in runs]
        spread = f"{text(min(held), 3)} to {text(max(held), 3)}"
        yield [f"{case} {arm}", len(runs), text(progress, 3), text(rates[arm] / rates["quota"], 2) if "quota" in rates else "-", spread]


def table(result):
    budget, cpus = result["share"] / 100, result["cpus"]
    rows = [row for case, of_arms in result["runs"].items() for row in rows_of(case, of_arms, budget, cpus)]
    head = ["case, arm", "n", "of the budget's part of alone", "/ quota", "held"]
    return make_table(f"share: {result['share']}% of {cpus} CPUs, medians, slots of {result['slot_ms']} ms", head, rows)
