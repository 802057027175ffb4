"""places: MPI jobs side by side, each on a part of the CPUs, whose launchers bind their ranks.

J jobs of CPUs / J ranks each (barrier-mpi: a fixed number of meetings, ranks that spin) run at the same time: under plain Linux as the
launcher binds them, with --bind-to none, and as gangs of that many CPUs (`cosched run --cpus N`), interleaved. The makespan is divided by
that of one such job alone: 1 is a machine whose CPUs are all used. Each launcher that believes to be alone binds to the same first cores.
"""

import os
import shlex
import shutil

import live
from barrier import calibrated
from figures import median, table as make_table

ARMS = ("linux", "unbound", "cosched")


def add_arguments(parser):
    parser.add_argument("--jobs", default=f"2,{max(2, len(os.sched_getaffinity(0)) // 4)}", metavar="J,…", help="jobs side by side [default: %(default)s]")
    parser.add_argument("--mpirun", default="mpirun.openmpi" if shutil.which("mpirun.openmpi") else "mpirun", metavar="WORDS",
                        help="the launcher, an Open MPI [default: %(default)s]")
    parser.add_argument("--grain", type=int, default=1000, metavar="US", help="work between two meetings in us [default: %(default)s]")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each [default: 3; --quick: 1]")
    parser.add_argument("--seconds", type=float, metavar="S", help="one job alone [default: 3; --quick: 1]")
    parser.add_argument("--limit", type=float, default=60, metavar="S", help="a run that takes longer is ended and counts as this long [default: %(default)s]")


def measure(daemon, arguments):
    repeat = arguments.repeat or (1 if arguments.quick else 3)
    seconds = arguments.seconds or (1 if arguments.quick else 3)
    launcher, cpus = shlex.split(arguments.mpirun), len(os.sched_getaffinity(0))
    if not shutil.which(launcher[0]):
        raise live.Failure(f"--mpirun: there is no {launcher[0]}; tools/setup demo installs Open MPI")
    program = [daemon.programs / "barrier-mpi", "--wait", "spin", "--grain-loops", calibrated(daemon, arguments.grain),
               "--iterations", round(seconds * 1e6 / arguments.grain)]
    daemon.policy("gang", "soft")
    cases = []
    for jobs in sorted({int(word) for word in arguments.jobs.split(",")}):
        ranks = max(1, cpus // jobs)
        bound, unbound = [[*launcher, *how, "-n", ranks, *program] for how in ((), ("--bind-to", "none"))]
        commands = {"linux": bound, "unbound": unbound, "cosched": daemon.run_words(bound, "--cpus", ranks)}
        makespans_s = {"alone": [], **{arm: [] for arm in ARMS}}
        for _ in range(repeat):
            makespans_s["alone"].append(daemon.makespan([bound], arguments.limit) or arguments.limit)
            for arm, command in commands.items():
                makespans_s[arm].append(daemon.makespan([command] * jobs, arguments.limit) or arguments.limit)
        alone_s = median(makespans_s["alone"])
        cases.append({"jobs": jobs, "ranks": ranks, "makespans_s": makespans_s, "ratios": {arm: median(makespans_s[arm]) / alone_s for arm in ARMS}})
    return {"cpus": cpus, "mpirun": arguments.mpirun, "repeat": repeat, "cases": cases}


def table(result):
    rows = [[f"{case['jobs']} jobs of {case['ranks']} ranks", *(f"{case['ratios'][arm]:.2f}" for arm in ARMS)] for case in result["cases"]]
    title = f"places: makespan / one job alone, {result['cpus']} CPUs, {result['mpirun']}, medians of {result['repeat']}"
    return make_table(title, ["jobs", "as it binds", "--bind-to none", "cosched run --cpus N"], rows)
