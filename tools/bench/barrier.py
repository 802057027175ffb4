"""barrier: copies of a program whose processes meet often, side by side.

j copies of barrier-mpi and barrier-omp (two spinning processes each, or --threads, a fixed number of meetings) under plain Linux,
cosched local and cosched gang (soft and strict), interleaved. The makespan (first start to last end, launchers
included) of j = 2, 4 copies is divided by that of one copy alone under the same arm: j would be perfect sharing. The
rows j=1 divide by plain Linux instead and so show what an arm costs one copy alone.
"""

import json
import shutil

import live
from figures import median, table as make_table

ARMS = ("linux", "local", "soft", "strict")


def add_arguments(parser):
    parser.add_argument("--programs-list", default="barrier-mpi,barrier-omp", metavar="P,…",
                        help="[default: %(default)s]")
    parser.add_argument("--grains", default="100,1000", metavar="US,…", help="grains in us [default: %(default)s]")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="processes or threads of a copy [default: %(default)s]")
    parser.add_argument("--jobs", default="1,2,4", metavar="J,…", help="copies [default: %(default)s]")
    parser.add_argument("--arms", default=",".join(ARMS), metavar="A,…", help="[default: %(default)s]")
    parser.add_argument("--slot", type=int, default=100, metavar="MS", help="slot length in ms [default: %(default)s]")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each [default: 3; --quick: 1]")
    parser.add_argument("--seconds", type=float, metavar="S", help="one copy alone [default: 3; --quick: 1]")
    parser.add_argument("--limit", type=float, default=90, metavar="S",
                        help="a run that takes longer is ended, counts as this long and is not repeated [default: 90]")


def calibrated(daemon, grain_us):
    """The grain as loops, determined once for all runs."""
    words = [daemon.programs / "barrier-omp", "--threads", 1, "--iterations", 1, "--grain-us", grain_us, "--json"]
    output, _ = daemon.start(words).communicate(timeout=60)
    return json.loads(output)["grain_loops"]


def command_of(daemon, program, loops, iterations, threads):
    own = [daemon.programs / program, "--wait", "spin", "--grain-loops", loops, "--iterations", iterations]
    if program == "barrier-omp":
        return [*own, "--threads", threads]
    return [*live.mpirun(threads), *own]


def run_once(daemon, arm, command, copies, slot_ms, limit_s):
    """The makespan in s, or None past the limit."""
    if arm == "linux":
        return daemon.makespan([command] * copies, limit_s)
    daemon.policy("local" if arm == "local" else "gang", None if arm == "local" else arm, slot_ms)
    return daemon.makespan([daemon.run_words(command)] * copies, limit_s)


def measure(daemon, arguments):
    repeat = arguments.repeat or (1 if arguments.quick else 3)
    seconds = arguments.seconds or (1 if arguments.quick else 3)
    copies = [int(j) for j in arguments.jobs.split(",")]
    arms, cases = arguments.arms.split(","), []
    if unknown := set(arms) - set(ARMS):
        raise live.Failure(f"--arms: {', '.join(unknown)} unknown; there are {', '.join(ARMS)}")
    for program in arguments.programs_list.split(","):
        if program == "barrier-mpi" and not (shutil.which("mpirun.openmpi") and (daemon.programs / program).exists()):
            print("barrier: barrier-mpi left out: Open MPI is not installed")
            continue
        for grain_us in map(int, arguments.grains.split(",")):
            command = command_of(daemon, program, calibrated(daemon, grain_us), round(seconds * 1e6 / grain_us), arguments.threads)
            cases.append(case(daemon, program, grain_us, command, copies, arms, repeat, arguments))
    return {"slot_ms": arguments.slot, "limit_s": arguments.limit, "repeat": repeat, "cases": cases}


def case(daemon, program, grain_us, command, copies, arms, repeat, arguments):
    """One program and grain: all arms and numbers of copies, round after round."""
    makespans_s = {arm: {j: [] for j in copies} for arm in arms}
    too_long = set()
    for _ in range(repeat):
        for j in copies:
            for arm in arms:
                if (arm, j) in too_long:
                    continue
                took_s = run_once(daemon, arm, command, j, arguments.slot, arguments.limit)
                if took_s is None:
                    too_long.add((arm, j))
                makespans_s[arm][j].append(took_s or arguments.limit)
    return {"program": program, "grain_us": grain_us, "makespans_s": makespans_s, "ratios": ratios_of(makespans_s),
            "past_limit": sorted(f"{arm}, j={j}" for arm, j in too_long)}


def ratios_of(makespans_s):
    """Medians relative to the median of one copy: of the same arm for several copies, of the first arm for one."""
    medians_s = {arm: {j: median(times) for j, times in of_arm.items()} for arm, of_arm in makespans_s.items()}
    reference_s = next(iter(medians_s.values()))
    one = min(reference_s)
    return {arm: {j: s / (reference_s[one] if j == one else of_arm[one]) for j, s in of_arm.items()}
            for arm, of_arm in medians_s.items()}


def table(result):
    cases = result["cases"]
    if not cases:
        return ["barrier: nothing measured"]
    arms = list(cases[0]["ratios"])
    rows = []
    for c in cases:
        for j in c["ratios"][arms[0]]:
            row = [f"{c['program']}, {c['grain_us']} us, j={j}"]
            for arm in arms:
                more = ">" if f"{arm}, j={j}" in c["past_limit"] else ""
                row.append(f"{more}{c['ratios'][arm][j]:.2f}")
            rows.append(row)
    title = (f"barrier: makespan of j copies / one alone under the same arm (j=1: / {arms[0]}), medians of "
             f"{result['repeat']}, slots of {result['slot_ms']} ms")
    return make_table(title, ["program, grain, copies", *arms], rows)
