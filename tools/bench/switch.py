"""switch: how fast and how cleanly one gang replaces another at a slot boundary.

Four jobs of processes that spin and record when they really ran (programs/occupancy), with one and with two processes on
each CPU, under gang at several slot lengths, soft and strict. From the records alone:
  switch     from the boundary until the first process of the incoming gang runs on every CPU and every process of the
             outgoing one has stopped: median and p99 in us
  in, all    until every process of the incoming gang has run (with two on a CPU the second waits for Linux's own
             scheduler, not for the switch)
  out, last  the last time in the slot at which a process of the outgoing gang ran
  stray      CPU time of processes whose job did not own the slot, in percent of all
"""

import os
import time

import intervals
import live
from figures import table as make_table, text

JOBS = 4


def add_arguments(parser):
    parser.add_argument("--slots", default="10,20,100", metavar="MS,…", help="slot lengths in ms [default: %(default)s]")
    parser.add_argument("--per-cpu", default="1,2", metavar="N,…", help="processes on a CPU [default: %(default)s]")
    parser.add_argument("--sharing", default="soft,strict", metavar="S,…", help="[default: %(default)s]")
    parser.add_argument("--seconds", type=float, metavar="S",
                        help="length of a run [default: 100 slots, at least 5 s; --quick: 3 s]")


def one(daemon, slot_ms, per_cpu, sharing, seconds):
    """One setting: runs the jobs and reads their records."""
    daemon.policy("gang", sharing, slot_ms)
    cpus = sorted(os.sched_getaffinity(0))
    prefix = daemon.dir / f"occupancy-{slot_ms}-{per_cpu}-{sharing}"
    running = []
    for job in range(JOBS):
        command = [daemon.programs / "occupancy", "--out", f"{prefix}-{job}", "--processes", per_cpu * len(cpus),
                   "--cpus", ",".join(map(str, cpus)), "--seconds", seconds]
        running.append(daemon.start(daemon.run_words(command, "--name", f"occupancy{job}")))
    limit = time.monotonic() + seconds * JOBS + 60
    for process in running:
        output, _ = process.communicate(timeout=max(1, limit - time.monotonic()))
        if process.returncode:
            raise live.Failure(f"occupancy: exit code {process.returncode}: {output}")
    jobs = []
    for job in range(JOBS):
        notes = [intervals.read(daemon.dir / f"{prefix.name}-{job}.{i}") for i in range(per_cpu * len(cpus))]
        jobs.append([intervals.Process(cpus[i % len(cpus)], note) for i, note in enumerate(notes)])
    result = intervals.switches(jobs, slot_ms * 1_000_000)
    return {"slot_ms": slot_ms, "per_cpu": per_cpu, "sharing": sharing, **result}


def measure(daemon, arguments):
    runs = []
    for per_cpu in map(int, arguments.per_cpu.split(",")):
        for slot_ms in map(int, arguments.slots.split(",")):
            for sharing in arguments.sharing.split(","):
                seconds = arguments.seconds or (3 if arguments.quick else max(5, slot_ms / 10))
                runs.append(one(daemon, slot_ms, per_cpu, sharing, seconds))
    return {"runs": runs}


def table(result):
    rows = []
    for run in result["runs"]:
        row = [f"{run['slot_ms']} ms, {run['per_cpu']} per CPU, {run['sharing']}", run["switches"]]
        for name in ("switch", "in_all", "out_last"):
            row += [text(run[name]["p50_us"]), text(run[name]["p99_us"])]
        row.append(text(None if run["stray_share"] is None else run["stray_share"] * 100, 3))
        rows.append(row)
    head = ["switch, us after the boundary", "switches", "switch p50", "p99", "in, all p50", "p99", "out, last p50", "p99",
            "stray %"]
    return make_table(f"switch: {JOBS} jobs of spinning processes", head, rows)
