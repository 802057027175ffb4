"""footprint: memory and CPU of the daemon and its guard, with and without jobs, at slots of 100 ms; what a short program pays.

RSS and PSS in MiB; CPU in percent of one CPU, from the kernel's nanosecond counters of every thread. The short program is
`true` in a job, with and without the wait library in turn: medians of its CPU time in microseconds.
"""

import json
import pathlib
import sys
import time

from figures import table as make_table, text

SETTINGS = [("no jobs", 0, 0), ("10 sleeping", 10, 0), ("10 spinning", 0, 10), ("200 sleeping", 200, 0),
            ("180 sleeping, 20 spinning", 180, 20)]


def add_arguments(parser):
    parser.add_argument("--seconds", type=float, metavar="S", help="for each setting [default: 15; --quick: 5]")


def family(pid):
    """The daemon and its children (the guard)."""
    found = [pid]
    for parent in found:
        for task in pathlib.Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in task.read_text().split()]
    return found


def cpu_ns(pid):
    """CPU time of all threads."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
        total += int(task.read_text().split()[0])
    return total


def memory_mib(pid, key):
    """A value of /proc/PID/smaps_rollup."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def measure(daemon, arguments):
    seconds = arguments.seconds or (5 if arguments.quick else 15)
    daemon.policy("gang", "soft", 100)
    runs, started = [], {"sleep": 0, "spin": 0}
    for name, sleeping, spinning in SETTINGS:
        start_jobs(daemon, started, sleeping, spinning)
        time.sleep(2)
        pids = family(daemon.process.pid)
        before = {pid: cpu_ns(pid) for pid in pids}
        begin = time.monotonic()
        time.sleep(seconds)
        span_ns = (time.monotonic() - begin) * 1e9
        daemon_pid, guards = pids[0], pids[1:]
        runs.append({
            "setting": name, "seconds": seconds,
            "cpu_percent": (cpu_ns(daemon_pid) - before[daemon_pid]) / span_ns * 100,
            "guard_cpu_percent": sum(cpu_ns(pid) - before[pid] for pid in guards) / span_ns * 100,
            "rss_mib": memory_mib(daemon_pid, "Rss"), "pss_mib": memory_mib(daemon_pid, "Pss"),
            "guard_pss_mib": sum(memory_mib(pid, "Pss") for pid in guards),
        })
    times = "200" if arguments.quick else "2000"
    start_jobs(daemon, started, 0, 0)
    said = daemon.cli("run", "--", sys.executable, str(pathlib.Path(__file__).with_name("programs.py")), times)
    return {"slot_ms": 100, "runs": runs, "short_program": json.loads(said)}


def start_jobs(daemon, started, sleeping, spinning):
    """Brings the number of jobs of each kind to the wanted values."""
    commands = {"sleep": ["sleep", "100000"],
                "spin": [daemon.programs / "barrier-omp", "--threads", "2", "--seconds", "100000"]}
    for kind, wanted in (("sleep", sleeping), ("spin", spinning)):
        while started[kind] < wanted:
            daemon.cli("run", "--detach", "--name", f"{kind}{started[kind]}", "--", *map(str, commands[kind]))
            started[kind] += 1
        if started[kind] > wanted:
            names = [f"{kind}{i}" for i in range(wanted, started[kind])]
            daemon.cli("kill", "-9", *names)
            started[kind] = wanted


def table(result):
    rows = []
    for run in result["runs"]:
        rows.append([run["setting"], text(run["rss_mib"], 1), text(run["pss_mib"], 1), text(run["cpu_percent"], 3),
                     text(run["guard_pss_mib"], 1), text(run["guard_cpu_percent"], 3)])
    head = ["jobs", "RSS MiB", "PSS MiB", "CPU %", "guard PSS", "guard CPU %"]
    short = result["short_program"]
    bare, loaded = short["bare_us"], short["loaded_us"]
    cost = (f"a short program of a job: {bare:.0f} us of CPU without the wait library, {loaded:.0f} with it "
            f"({loaded / bare:.2f}), medians of {short['times']}")
    return [*make_table(f"footprint: the daemon at slots of {result['slot_ms']} ms", head, rows), "", cost]
