"""The second and third table of wait: more ranks than CPUs in one job, and a job that has its CPUs for itself."""

import wait_report
import work
from arms import Arm

# Open MPI yields by itself when it sees more ranks than slots; both settings are explicit, because it does not
# always see the slots.
YIELD = {"yield": "1", "no yield": "0"}
# A few short runs cannot show a difference of 1 %.
ALONE_RUNS, ALONE_RUNS_QUICK = 15, 3
PINGPONG_REPEAT = 2000


def ranks(machine, runner, arms, arguments, cases):
    """One job of more ranks than CPUs on this host: the launcher alone, told to yield or not, and `cosched run`."""
    for one in work.works(machine.daemon, arguments):
        if one.transport != "shm":
            continue
        if problem := work.calibrate(one, runner, Arm(), machine, arguments.seconds):
            cases.append({"program": one.program, "mpi": one.mpi, "ranks": 2, "runs": {"default": [problem]}})
            continue
        iterations = one.iterations
        for one.ranks in map(int, arguments.ranks.split(",")):
            # Each rank computes a grain, so more ranks mean more work; matmul and lu divide the same work.
            one.iterations = max(1, iterations * 2 // one.ranks) if one.program.startswith("barrier") else iterations
            ways = {"default": (Arm(), None)}
            if one.mpi == "openmpi":
                ways |= {name: (Arm(), value) for name, value in YIELD.items()}
            ways |= {name: (arm, None) for name, arm in arms.items() if arm != Arm()}
            case = {"program": one.program, "mpi": one.mpi, "ranks": one.ranks, "iterations": one.iterations,
                    "runs": {name: [] for name in ways}}
            cases.append(case)
            for _ in range(arguments.repeat):
                for name, (arm, yields) in ways.items():
                    add_run(case["runs"][name], runner, arm, yielding(one.command(machine), yields), arguments.limit)
            print("\n".join(wait_report.progress_ranks(case)), flush=True)


def yielding(command, yields):
    """The command with Open MPI told to yield (1) or not (0) where it waits, or unchanged (None)."""
    return command if yields is None else ["env", f"OMPI_MCA_mpi_yield_when_idle={yields}", *command]


def add_run(runs, runner, arm, command, limit_s):
    """One more run, unless it is known to take too long or fail."""
    if not any(run.get("past_limit") or run.get("failed") for run in runs):
        runs.append(runner.run(arm, command, 1, limit_s))


def alone(machine, runner, arms, arguments, cases):
    """One job of two ranks with nothing beside it: plain Linux and our ways in turn, many short runs."""
    for one in [*work.works(machine.daemon, arguments), *pingpongs(machine, arguments)]:
        problem = one.program != "pingpong" and work.calibrate(one, runner, Arm(), machine, min(arguments.seconds, 1.0))
        case = {"program": one.program, "mpi": one.mpi, "transport": one.transport, "iterations": one.iterations,
                "runs": {name: [] for name in arms}}
        cases.append(case)
        if problem:
            case["runs"]["linux"].append(problem)
            continue
        for _ in range(ALONE_RUNS_QUICK if arguments.quick else ALONE_RUNS):
            for name, arm in arms.items():
                add_run(case["runs"][name], runner, arm, one.command(machine), arguments.limit)
        print("\n".join(wait_report.progress_alone(case)), flush=True)


def pingpongs(machine, arguments):
    """The latency program, for every library and transport."""
    found = []
    for transport in arguments.transport.split(","):
        for mpi in arguments.mpi.split(","):
            path = machine.daemon.programs / ("mpich" if mpi == "mpich" else "") / "pingpong"
            if not path.exists():
                print(f"wait: pingpong, {mpi} left out: {path} is not there", flush=True)
                continue
            found.append(Pingpong("pingpong", mpi, transport, [path], 0, PINGPONG_REPEAT))
    return found


class Pingpong(work.Work):
    """Its amount of work is called --repeat."""

    def command(self, machine, iterations=None):
        words = super().command(machine, iterations)
        return ["--repeat" if word == "--iterations" else word for word in words]
