"""gpu: jobs that train on one GPU, side by side.

j copies of a PyTorch program (gpu_train.py; a narrow net, whose kernels are shorter than their launch, and a wide one) under plain Linux, as
gangs that take turns (soft and strict), and local, interleaved. The longest time of a copy's steps, start-up apart, divided by that of one copy
alone under plain Linux. A gang that is stopped launches nothing; what it has launched runs to its end. Needs a GPU that PyTorch sees.
"""

import pathlib
import subprocess

import live
from figures import median, table as make_table

ARMS = ("linux", "local", "soft", "strict")
PROGRAM = pathlib.Path(__file__).with_name("gpu_train.py")


def add_arguments(parser):
    parser.add_argument("--python", default="python3", metavar="FILE", help="a Python with PyTorch [default: %(default)s]")
    parser.add_argument("--widths", default="256,8192", metavar="N,…", help="widths of the net [default: %(default)s]")
    parser.add_argument("--jobs", default="1,2", metavar="J,…", help="copies [default: %(default)s]")
    parser.add_argument("--slot", type=int, default=100, metavar="MS", help="slot length in ms [default: %(default)s]")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each [default: 3; --quick: 1]")
    parser.add_argument("--seconds", type=float, metavar="S", help="one copy alone [default: 3; --quick: 1]")
    parser.add_argument("--limit", type=float, default=90, metavar="S", help="a run that takes longer is ended [default: %(default)s]")


def has_gpu(python):
    check = [python, "-c", "import torch; assert torch.cuda.is_available()"]
    try:
        return subprocess.run(check, capture_output=True).returncode == 0
    except OSError:
        return False


def longest_s(daemon, command, copies, limit_s):
    """The longest time of the copies' steps; a Failure past the limit."""
    outputs = []
    if daemon.makespan([command] * copies, limit_s, outputs=outputs) is None:
        raise live.Failure(f"gpu: {copies} copies took more than {limit_s} s")
    return max(live.last_json(output)["steps_s"] for output in outputs)


def measure(daemon, arguments):
    if not has_gpu(arguments.python):
        return {"cases": []}
    repeat = arguments.repeat or (1 if arguments.quick else 3)
    seconds = arguments.seconds or (1 if arguments.quick else 3)
    cases = []
    for width in map(int, arguments.widths.split(",")):
        program = [arguments.python, PROGRAM, width]
        steps = max(1, round(100 * seconds / longest_s(daemon, [*program, 100], 1, arguments.limit)))
        times_s = {(arm, int(j)): [] for j in arguments.jobs.split(",") for arm in ARMS}
        for _ in range(repeat):
            for (arm, j), times in times_s.items():
                command = [*program, steps]
                if arm != "linux":
                    sharing = None if arm == "local" else arm
                    daemon.policy("local" if arm == "local" else "gang", sharing, arguments.slot)
                    command = daemon.run_words(command)
                times.append(longest_s(daemon, command, j, arguments.limit))
        alone_s = median(times_s["linux", min(j for _, j in times_s)])
        cases += [{"width": width, "arm": arm, "jobs": j, "steps": steps, "times_s": times, "ratio": median(times) / alone_s}
                  for (arm, j), times in times_s.items()]
    return {"slot_ms": arguments.slot, "repeat": repeat, "cases": cases}


def table(result):
    cases = result["cases"]
    if not cases:
        return ["gpu: nothing measured: PyTorch sees no GPU here"]
    ratios = {(case["width"], case["jobs"], case["arm"]): case["ratio"] for case in cases}
    rows = [[f"width {width}, j={jobs}", *(f"{ratios[width, jobs, arm]:.2f}" for arm in ARMS)]
            for width, jobs in dict.fromkeys((case["width"], case["jobs"]) for case in cases)]
    title = f"gpu: longest time of j copies / one alone under plain Linux, medians of {result['repeat']}, slots of {result['slot_ms']} ms"
    return make_table(title, ["net, copies", *ARMS], rows)
