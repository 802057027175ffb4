"""precision: how exactly a job has its share of the CPU time.

A program of a thread for each CPU that spins (barrier-omp) runs alone, once, while its share is changed by `cosched share`. After each change its
CPU time is measured over windows of 10 s, and divided by the budget: that part of all CPUs. The share 100 shows what is missing without
any limit, since other programs and the daemon use CPU time as well ("others", of the machine, in the same windows).
"""

import json
import os
import pathlib
import time

import live
from figures import median, table as make_table, text
from share import cpu_s, programs_below

NEEDS_DAEMON = False


def add_arguments(parser):
    parser.add_argument("--shares", default="100,90,70,50,30,10", metavar="P,…", help="in percent [default: %(default)s]")
    parser.add_argument("--slots", default="20,100", metavar="MS,…", help="slot lengths in ms [default: %(default)s]")
    parser.add_argument("--reserve", default="fair", metavar="R", help="of the daemon's configuration; 0 leaves neighbours no part of the slots [default: %(default)s]")
    parser.add_argument("--windows", type=int, metavar="N", help="windows of each [default: 5; --quick: 2]")
    parser.add_argument("--window", type=float, default=10, metavar="S", help="how long a window is [default: %(default)s]")


def busy_s():
    """The CPU time that all programs of the machine have used, and other machines of its host have taken."""
    user, nice, system, _, _, irq, softirq, steal = map(int, pathlib.Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def window(pids, seconds):
    """The job's part of all CPUs over a window, and that of others."""
    begin, own, busy = time.monotonic(), cpu_s(pids), busy_s()
    time.sleep(seconds)
    own, busy, all_s = cpu_s(pids) - own, busy_s() - busy, (time.monotonic() - begin) * os.cpu_count()
    return {"own": own / all_s, "others": (busy - own) / all_s}


def measure(_, arguments):
    count, cpus = arguments.windows or (2 if arguments.quick else 5), os.cpu_count()
    shares, cases = [int(share) for share in arguments.shares.split(",")], []
    reserve = '"fair"' if arguments.reserve == "fair" else arguments.reserve
    for slot in arguments.slots.split(","):
        with live.Daemon(arguments.bin, arguments.programs, f'slot_length = "{slot}ms"\nreserve = {reserve}\n') as daemon:
            program = daemon.programs / "barrier-omp"
            words = [program, "--threads", cpus, "--wait", "spin", "--grain-us", 1000, "--seconds", 3600]
            process = daemon.start(daemon.run_words(words, "--wait", "off"))
            time.sleep(1)
            pids, job = programs_below(process.pid, program.name), json.loads(daemon.cli("ps", "--json"))["jobs"][0]["id"]
            if not pids:
                raise live.Failure(f"the program does not run: {process.communicate(timeout=60)[0].strip()}")
            for share in shares:
                daemon.cli("share", str(job), f"{share}%" if share < 100 else "none")
                windows = [window(pids, arguments.window) for _ in range(count)]
                cases.append({"slot_ms": int(slot), "share": share, "windows": windows})
                print(slot, share, json.dumps(windows), flush=True)
    return {"cpus": cpus, "reserve": arguments.reserve, "window_s": arguments.window, "cases": cases}


def rows_of(case):
    budget = case["share"] / 100
    own = [window["own"] for window in case["windows"]]
    points = max((abs(part - budget) for part in own)) * 100
    others = median([window["others"] for window in case["windows"]])
    return [f"{case['slot_ms']} ms, {case['share']}%", len(own), text(median(own) / budget, 4), f"{text(min(own) / budget, 4)} to {text(max(own) / budget, 4)}",
            text(points, 2), text(others, 3)]


def table(result):
    head = ["slots, share", "n", "of the budget", "from, to", "farthest in points", "others"]
    return make_table(f"precision: CPU time over {result['window_s']:g} s, {result['cpus']} CPUs, reserve {result['reserve']}, medians", head, [rows_of(case) for case in result["cases"]])
