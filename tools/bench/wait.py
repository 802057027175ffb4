"""wait: equal parallel jobs side by side, and how each way to schedule them makes them wait.

Three tables. sharing: j equal jobs of two ranks, on two hosts with one CPU each (tcp) or on this one (shm), under plain
Linux, gang, local with spin-block, auto and more; interleaved; makespans (first start to last end, launchers included)
relative to the one of a job alone under plain Linux. ranks: more ranks than CPUs in one job. alone: what a job pays that
has its CPUs for itself. Writes wait.json and wait.md.
"""

import argparse
import contextlib

import arms as arms_of
import live
import wait_more
import wait_report
import work
from figures import median
from hosts import Hosts

# For a run this long, disturbances of some seconds matter little; it is not repeated.
ENOUGH_S = 15
TABLES = ("sharing", "ranks", "alone")


def add_arguments(parser):
    parser.add_argument("--tables", default=",".join(TABLES), metavar="T,…", help="[default: %(default)s]")
    parser.add_argument("--programs-list", metavar="P,…", help="[default: barrier,matmul,lu; --quick: barrier,lu]")
    parser.add_argument("--grains", metavar="US,…",
                        help="of barrier, in us [default: 50,1000,10000; --quick: 100]")
    parser.add_argument("--mpi", metavar="M,…", help="[default: openmpi,mpich; --quick: openmpi]")
    parser.add_argument("--transport", default=",".join(work.TRANSPORTS), metavar="T,…",
                        help="tcp: two hosts, shm: one [default: %(default)s]")
    parser.add_argument("--rate", metavar="RATE", help="of the link between the hosts, as 1gbit [default: unshaped]")
    parser.add_argument("--jobs", metavar="J,…", help="equal jobs [default: 1,2,4,8; 1 is always among them; --quick: 2,4]")
    parser.add_argument("--arms", default="linux,gang,local-sb,auto", metavar="A,…",
                        help=f"{arms_of.HELP} [default: %(default)s]")
    parser.add_argument("--library", default=live.ROOT / "target/release/libcosched_wait.so", metavar="FILE",
                        help="for preload arms [default: target/release/libcosched_wait.so]")
    parser.add_argument("--ranks", metavar="R,…", help="in one job on this host [default: 4,5,8; --quick: 5]")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each [default: 3; --quick: 1]")
    parser.add_argument("--seconds", type=float, metavar="S", help="one job alone [default: 1; --quick: 0.5]")
    parser.add_argument("--limit", type=float, metavar="S",
                        help="a run that takes longer is ended, counts as at least this long and is not repeated "
                             "[default: 40; --quick: 6]")
    parser.add_argument("--reserve", type=float, default=0.02, metavar="R",
                        help="the share of the CPUs that is left to what else runs here, under every arm "
                             "[default: %(default)s]")
    parser.add_argument("--matmul-n", type=int, default=1000, metavar="N", help="[default: %(default)s]")
    parser.add_argument("--lu-n", type=int, default=1000, metavar="N", help="[default: %(default)s]")


def config(arguments):
    """For the daemon, so that other load does not decide what is measured."""
    return f"reserve = {arguments.reserve}\n"


def with_defaults(arguments):
    """The options, completed by what --quick or its absence implies."""
    quick = arguments.quick
    implied = {"programs_list": "barrier,lu" if quick else ",".join(work.PROGRAMS), "ranks": "5" if quick else "4,5,8",
               "grains": "100" if quick else "50,1000,10000", "mpi": "openmpi" if quick else "openmpi,mpich",
               "jobs": "2,4" if quick else "1,2,4,8", "repeat": 1 if quick else 3, "seconds": 0.5 if quick else 1.0,
               "limit": 6.0 if quick else 40.0}
    return argparse.Namespace(**{**vars(arguments), **{name: value for name, value in implied.items()
                                                       if getattr(arguments, name) is None}})


def measure(daemon, arguments):
    arguments = with_defaults(arguments)
    tables = work.chosen(arguments.tables, TABLES, "--tables")
    arms = arms_of.parse(arguments.arms)
    result = {"options": {name: str(value) for name, value in vars(arguments).items()}, "sharing": [], "ranks": [],
              "alone": []}
    with Hosts(arguments.rate) if "tcp" in arguments.transport else contextlib.nullcontext() as hosts:
        machine = work.Machine(daemon, hosts)
        runner = arms_of.Runner(daemon, arguments.library, hosts)
        parts = {"sharing": lambda: sharing(machine, runner, arms, arguments, result["sharing"]),
                 "ranks": lambda: wait_more.ranks(machine, runner, arms, arguments, result["ranks"]),
                 "alone": lambda: wait_more.alone(machine, runner, arms, arguments, result["alone"])}
        for name in tables:
            parts[name]()
            # After each table, so that an aborted long measurement is not lost.
            wait_report.write(result, arguments.out / "wait.md")
    result["failed"] = wait_report.problems(result)
    return result


def sharing(machine, runner, arms, arguments, cases):
    """Adds to `cases` each program's runs under all arms."""
    jobs = sorted({1, *map(int, arguments.jobs.split(","))})
    for one in work.works(machine.daemon, arguments):
        problem = work.calibrate(one, runner, arms["linux"], machine, arguments.seconds)
        case = {"program": one.program, "mpi": one.mpi, "transport": one.transport, "iterations": one.iterations,
                "runs": {name: {j: [] for j in jobs} for name in arms}}
        cases.append(case)
        if problem:
            case["runs"]["linux"][1].append(problem)
            continue
        for _ in range(arguments.repeat):
            for j in jobs:
                for name, arm in arms.items():
                    add_run(case["runs"][name], j, runner, arm, one.command(machine), arguments.limit)
        case["cpu_share"] = cpu_share(case, runner, arms, one, machine, arguments)
        print("\n".join(wait_report.progress(case)), flush=True)


def add_run(runs, j, runner, arm, command, limit_s):
    """One more run of j jobs, unless it is known to take too long or fail, or one was long enough to count alone."""
    if any(run.get("past_limit") or run.get("failed") or run["makespan_s"] > ENOUGH_S for run in runs[j]):
        return
    if any(run.get("past_limit") for fewer in runs if fewer < j for run in runs[fewer]):
        runs[j].append({"makespan_s": limit_s, "past_limit": True, "fewer_jobs_were": True})
        return
    runs[j].append(runner.run(arm, command, j, limit_s))


def cpu_share(case, runner, arms, one, machine, arguments):
    """CPU time that a job alone needs when it yields at once while it waits, relative to its time alone when it polls.

    A polling program's own CPU share is 1, however long it waits. None when no way to block is available.
    """
    alone_s = [run["jobs"][0]["main_phase_s"] for run in case["runs"]["linux"][1] if run.get("jobs")]
    blocking = next((arm for arm in arms.values() if (arm.wait or arm.preload or "").startswith("spin-block")), None)
    if blocking is None or not alone_s:
        return None
    blocking = arms_of.dataclasses.replace(blocking, policy=blocking.policy and "local",
                                           wait=blocking.wait and "spin-block:0us",
                                           preload=blocking.preload and "spin-block:0us")
    shares = []
    for _ in range(min(3, arguments.repeat)):
        done = runner.run(blocking, one.command(machine), 1, arguments.limit)
        if done.get("jobs"):
            shares.append(done["jobs"][0]["cpu_s"] / one.ranks / median(alone_s))
    return min(1.0, median(shares)) if shares else None


def table(result):
    return wait_report.lines(result)
