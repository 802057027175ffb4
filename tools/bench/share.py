"""share: a spinning program with a share of the slots, and under the kernel's CPU quota with the same budget.

A program of T threads (barrier-omp, or ggml) or ranks (barrier-mpi with MPICH) that spin until all have met runs alone, with `cosched run --share`, and
in a cgroup with a CPU quota of the same part of all CPUs (cpu.max, or cpu.cfs_quota_us) with a period of 100 ms or 10 ms, interleaved; each run
has a daemon of its own. Meetings per second are divided by what the budget leaves of the run alone: 1 is a budget that costs nothing but the time
that it takes away. "held" is the CPU time used, relative to the budget, over the middle of the run.
"""

import contextlib
import json
import os
import pathlib
import shutil
import sys
import time

import live
from barrier import calibrated
from figures import median, table as make_table, text
from neighbours import HOG, Neighbour

NEEDS_DAEMON = False

PERIODS_US = {"quota": 100_000, "quota10": 10_000}
ARMS = ("alone", "share", *PERIODS_US)
V1, V2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")


def add_arguments(parser):
    parser.add_argument("--threads", default="2,8", metavar="T,…", help="threads or ranks of the program [default: %(default)s]")
    parser.add_argument("--waits", default="spin,omp,mpich" if shutil.which("mpiexec.mpich") else "spin,omp", metavar="W,…", help="how they wait: by a loop of their own, libgomp's barrier, MPICH's, or as ggml does (ggml) [default: %(default)s]")
    parser.add_argument("--ggml", type=pathlib.Path, metavar="DIR", help="ggml's libraries, for --waits ggml (ggml_layers.py says where to find them)")
    parser.add_argument("--wait", default="auto", metavar="MODE", help="of `cosched run`, alone and with a share [default: %(default)s]")
    parser.add_argument("--arms", default=",".join(ARMS), metavar="A,…", help="[default: %(default)s]")
    parser.add_argument("--share", type=int, default=50, metavar="P", help="the budget in percent of all CPUs [default: %(default)s]")
    parser.add_argument("--hogs", type=int, default=0, metavar="N", help="busy programs beside it, no jobs [default: %(default)s]")
    parser.add_argument("--slot", type=int, default=100, metavar="MS", help="slot length in ms [default: %(default)s]")
    parser.add_argument("--grain", type=int, default=100, metavar="US", help="work between two meetings in us [default: %(default)s]")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each [default: 5; --quick: 1]")
    parser.add_argument("--seconds", type=float, default=4, metavar="S", help="how long a run is [default: %(default)s]")


@contextlib.contextmanager
def quota(percent, period_us):
    """A cgroup with a CPU quota of `percent` of all CPUs; returns the file that takes processes."""
    is_v1 = (V1 / "cpu.cfs_quota_us").exists() or (V1 / "cpu.shares").exists()
    path = (V1 if is_v1 else V2) / f"cosched-bench-{os.getpid()}-quota"
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


def programs_below(pid, name):
    """The processes of the program: this one, or those that it has started."""
    with contextlib.suppress(OSError):
        if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == name:
            return [pid]
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [found for child in children for found in programs_below(int(child), name)]
    return []


def cpu_s(pids):
    """The CPU time of all threads of these processes."""
    tasks = [task for pid in pids for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def run_once(daemon, arm, command, name, arguments):
    """Meetings per second, and the CPUs that were used in the middle of the run."""
    percent, seconds = arguments.share, arguments.seconds
    with quota(percent, PERIODS_US[arm]) if arm in PERIODS_US else contextlib.nullcontext() as procs:
        limit = ["--share", f"{percent}%"] if arm == "share" else []
        words = daemon.run_words(command, "--wait", arguments.wait, *limit)
        if procs:
            words = ["sh", "-c", f'echo $$ > {procs} && exec "$@"', "sh", *command]
        process = daemon.start(words, {"OMP_WAIT_POLICY": "active"})
        time.sleep(0.1 * seconds)
        pids = programs_below(process.pid, name)
        if not pids:
            raise live.Failure(f"{arm}: the program does not run: {process.communicate(timeout=60)[0].strip()}")
        begin, before = time.monotonic(), cpu_s(pids)
        time.sleep(0.83 * seconds)
        used = (cpu_s(pids) - before) / (time.monotonic() - begin)
        result = live.last_json(process.communicate(timeout=120)[0])
    return {"rate": result["iterations_per_s"], "cpus": used}


def command_of(programs, wait, threads, loops, arguments):
    """The words of the program, and the name of its processes."""
    own = ["--grain-loops", loops, "--seconds", arguments.seconds, "--json"]
    if wait == "ggml":
        name = pathlib.Path(sys.executable).name
        words = [sys.executable, pathlib.Path(__file__).with_name("ggml_layers.py"), arguments.ggml, threads, arguments.seconds]
    elif wait == "mpich":
        name = "barrier-mpi"
        words = ["mpiexec.mpich", "-bind-to", "none", "-n", threads, programs / "mpich" / name, "--wait", "spin", *own]
    else:
        name = "barrier-omp"
        words = [programs / name, "--threads", threads, "--wait", wait, *own]
    return [str(word) for word in words], name


def measure(_, arguments):
    repeat = arguments.repeat or (1 if arguments.quick else 5)
    arms = arguments.arms.split(",")
    if unknown := set(arms) - set(ARMS):
        raise live.Failure(f"{', '.join(sorted(unknown))} unknown; there are {', '.join(ARMS)}")
    if "ggml" in arguments.waits.split(",") and not arguments.ggml:
        raise live.Failure("--waits ggml: --ggml says where its libraries are")
    cases = [(int(threads), wait) for threads in arguments.threads.split(",") for wait in arguments.waits.split(",")]
    runs, loops = {f"{wait}-{threads}": {arm: [] for arm in arms} for threads, wait in cases}, None
    for _ in range(repeat):
        for threads, wait in cases:
            for arm in arms:
                with live.Daemon(arguments.bin, arguments.programs, f'slot_length = "{arguments.slot}ms"\n') as daemon:
                    loops = loops or calibrated(daemon, arguments.grain)
                    command = command_of(daemon.programs, wait, threads, loops, arguments)
                    with hogs(arguments.hogs):
                        run = run_once(daemon, arm, *command, arguments)
                runs[f"{wait}-{threads}"][arm].append(run)
                print(f"{wait}-{threads}", arm, json.dumps(run), flush=True)
    return {"repeat": repeat, "wait": arguments.wait, "hogs": arguments.hogs, "slot_ms": arguments.slot, "share": arguments.share, "cpus": os.cpu_count(), "runs": runs}


def rows_of(case, of_arms, budget, cpus):
    rates = {arm: median([run["rate"] for run in runs]) for arm, runs in of_arms.items()}
    against = [[text(rates[arm] / rates[other], 2) if other in rates else "-" for other in PERIODS_US] for arm in of_arms]
    for (arm, runs), ratios in zip(of_arms.items(), against):
        part = 1 if arm == "alone" else budget
        progress = rates[arm] / rates["alone"] / part if "alone" in rates else None
        held = [run["cpus"] / cpus / part for run in runs]
        spread = f"{text(min(held), 3)} to {text(max(held), 3)}"
        yield [f"{case} {arm}", len(runs), text(rates[arm]), text(progress, 3), *ratios, spread]


def table(result):
    budget, cpus = result["share"] / 100, result["cpus"]
    rows = [row for case, of_arms in result["runs"].items() for row in rows_of(case, of_arms, budget, cpus)]
    head = ["case, arm", "n", "meetings/s", "of the budget's part of alone", "/ quota", "/ quota10", "held"]
    return make_table(f"share: {result['share']}% of {cpus} CPUs, medians, slots of {result['slot_ms']} ms, --wait {result['wait']}", head, rows)
