"""neighbours: what programs outside jobs, and a gang, leave each other under plain Linux, a fixed reserve, and reserve = "fair".

Cases: hogs (single-threaded, each in a session of its own) beside one gang of two spinning threads that meet every 100 us; hogs beside two
gangs; bursts (pairs of short processes, as `make -j2`); a shell loop (`sleep 0.05; date`) that is timed; no neighbours. Arms are interleaved, each
run has a daemon of its own. A neighbour's figure is CPU time per second (bursts: pairs per second; the loop: ms beyond its sleep); a gang's
is meetings per second, relative to those of a gang alone on the CPU time that its neighbours leave ("of the rest").
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import live
from barrier import calibrated
from figures import median, quantile, table as make_table, text

NEEDS_DAEMON = False

CASES = {"hogs-1": (1, 1), "hogs-2": (1, 2), "hogs-4": (1, 4), "gangs-2": (2, 2), "bursts": (1, 0), "loop": (1, 0), "nobody": (1, 0)}
ARMS = {"linux": None, "fixed": "reserve = 0.1\n", "fair": 'reserve = "fair"\n'}
HOG = "while :; do :; done"
WORK = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
BURSTS = f"while :; do sh -c '{WORK}' & sh -c '{WORK}' & wait; echo .; done"
LOOP = """import subprocess, time
while True:
    start = time.monotonic()
    subprocess.run(["sh", "-c", "sleep 0.05; date"], stdout=subprocess.DEVNULL)
    print((time.monotonic() - start - 0.05) * 1000, flush=True)
"""


def add_arguments(parser):
    parser.add_argument("--cases", default=",".join(CASES), metavar="C,…", help="[default: %(default)s]")
    parser.add_argument("--arms", default=",".join(ARMS), metavar="A,…", help="[default: %(default)s]")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each [default: 5; --quick: 1]")
    parser.add_argument("--seconds", type=float, default=6, metavar="S", help="how long a gang works [default: %(default)s]")
    parser.add_argument("--slot", type=int, default=100, metavar="MS", help="slot length in ms [default: %(default)s]")


class Neighbour:
    """A program in a session of its own, which is killed as a whole at the end."""

    def __init__(self, words):
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def lines(self):
        """What it has printed since the last call."""
        return (self.process.stdout.read() or b"").split()

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


def neighbours_of(case):
    if case == "bursts":
        return [Neighbour(["sh", "-c", BURSTS])]
    if case == "loop":
        return [*(Neighbour(["sleep", "1000"]) for _ in range(5)), Neighbour([sys.executable, "-c", LOOP])]
    return [Neighbour(["sh", "-c", HOG]) for _ in range(CASES[case][1])]


def run_once(daemon, arm, case, command, seconds):
    """{gang: meetings per second, cpu_s, values}: one run of a case under an arm."""
    words = daemon.run_words(command, "--wait", "off") if ARMS[arm] else command
    neighbours = neighbours_of(case)
    try:
        time.sleep(0.3)
        gangs = [daemon.start(words) for _ in range(CASES[case][0])]
        time.sleep(0.1 * seconds)
        begin, before = time.monotonic(), [n.cpu_s() for n in neighbours]
        neighbours[-1:] and neighbours[-1].lines()
        time.sleep(0.8 * seconds)
        took_s, lines = time.monotonic() - begin, neighbours[-1].lines() if neighbours else []
        # The load balancer decides which of them share a CPU.
        cpu = [sum(n.cpu_s() - then for n, then in zip(neighbours, before)) / took_s / max(1, len(neighbours))]
        rates = [live.last_json(gang.communicate(timeout=60)[0])["iterations_per_s"] for gang in gangs]
    finally:
        for neighbour in neighbours:
            neighbour.end()
    values = [float(line) for line in lines] if case == "loop" else [len(lines) / took_s] if case == "bursts" else cpu
    return {"gang": sum(rates), "values": values}


def measure(_, arguments):
    repeat = arguments.repeat or (1 if arguments.quick else 5)
    seconds = arguments.seconds
    cases, arms = arguments.cases.split(","), arguments.arms.split(",")
    if unknown := (set(cases) - set(CASES)) | (set(arms) - set(ARMS)):
        raise live.Failure(f"{', '.join(unknown)} unknown; there are {', '.join([*CASES, *ARMS])}")
    runs, loops = {case: {arm: [] for arm in arms} for case in cases}, None
    for _ in range(repeat):
        for case in cases:
            for arm in arms:
                config = f'{ARMS[arm] or ""}slot_length = "{arguments.slot}ms"\n'
                with live.Daemon(arguments.bin, arguments.programs, config) as daemon:
                    loops = loops or calibrated(daemon, 100)
                    command = [daemon.programs / "barrier-omp", "--threads", 2, "--wait", "spin", "--grain-loops", loops,
                               "--seconds", seconds, "--json"]
                    run = run_once(daemon, arm, case, command, seconds)
                runs[case][arm].append(run)
                print(case, arm, json.dumps(run)[:150], flush=True)
    return {"repeat": repeat, "slot_ms": arguments.slot, "alone": 10_000, "runs": runs}


def rows_of(case, of_arms):
    first = next(iter(of_arms))
    values = {arm: [value for run in runs for value in run["values"]] for arm, runs in of_arms.items()}
    gangs = {arm: median([run["gang"] for run in runs]) for arm, runs in of_arms.items()}
    for arm in of_arms:
        row = [f"{case} {arm}", len(of_arms[arm]), text(gangs[arm]), text(gangs[arm] / gangs[first], 2)]
        if case == "loop":
            marks = [" / ".join(text(quantile(values[a], q), 1) for q in (0.5, 0.99, 1)) for a in (arm,)]
            yield [*row, *marks, text(quantile(values[arm], 0.99) / quantile(values[first], 0.99), 2), "-"]
        elif case == "nobody":
            yield [*row, "-", "-", "-"]
        else:
            own, plain = median(values[arm]), median(values[first])
            cpus = min(2, CASES[case][1])
            rest = 1 - min(1, CASES[case][1] * own / cpus) if cpus else None
            yield [*row, text(own, 3), text(own / plain, 2), text(rest and gangs[arm] / 10_000 / rest, 2)]


def table(result):
    rows = [row for case, of_arms in result["runs"].items() for row in rows_of(case, of_arms)]
    head = ["case, arm", "n", "gang/s", "/ first", "neighbour", "/ first", "of the rest"]
    return make_table(f"neighbours: medians, slots of {result['slot_ms']} ms; loop: p50 / p99 / longest in ms", head, rows)
