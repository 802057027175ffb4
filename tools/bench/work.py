"""The parallel programs that are scheduled: their commands, and an amount of work that takes a given time alone."""

import dataclasses
import shutil

import barrier
import live
from hosts import one_host_words

MPI = ("openmpi", "mpich")
TRANSPORTS = ("tcp", "shm")
PROGRAMS = ("barrier", "matmul", "lu")


@dataclasses.dataclass
class Work:
    """A program, a library, a transport; `iterations` is the fixed amount."""

    program: str
    mpi: str
    transport: str  # tcp: two hosts with a CPU each; shm: this host
    own: list  # the program and its options except --iterations
    probe_iterations: int
    iterations: int = 0
    ranks: int = 2

    @property
    def name(self):
        return f"{self.program}, {self.mpi}, {self.transport}"

    def command(self, machine, iterations=None):
        """The command that runs it; machine: see Machine."""
        words = [*self.own, "--iterations", iterations or self.iterations, "--json"]
        if self.transport == "tcp":
            return machine.hosts.words(self.mpi, self.ranks, words)
        return one_host_words(machine.daemon.dir, self.mpi, self.ranks, words)


@dataclasses.dataclass
class Machine:
    """The daemon, and the two hosts where a transport needs them (else None)."""

    daemon: live.Daemon
    hosts: object


def chosen(text, known, option):
    """The words of a comma-separated list, all of them known."""
    words = text.split(",")
    if unknown := set(words) - set(known):
        raise live.Failure(f"{option}: {', '.join(sorted(unknown))} unknown; there are {', '.join(known)}")
    return words


def works(daemon, arguments):
    """Everything that the options name and that is installed; what is left out is reported."""
    found, loops = [], {}
    names = chosen(arguments.programs_list, PROGRAMS, "--programs-list")
    for transport in chosen(arguments.transport, TRANSPORTS, "--transport"):
        for mpi in chosen(arguments.mpi, MPI, "--mpi"):
            directory = daemon.programs / ("mpich" if mpi == "mpich" else "")
            launcher = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.mpich"}[mpi]
            if not shutil.which(launcher) or not (directory / "barrier-mpi").exists():
                print(f"wait: {mpi} left out: {launcher} or its programs are not there", flush=True)
                continue
            for name in names:
                found += of_program(daemon, name, mpi, transport, directory, arguments, loops)
    return found


def of_program(daemon, name, mpi, transport, directory, arguments, loops):
    if name == "barrier":
        made = []
        for grain_us in map(int, arguments.grains.split(",")):
            if grain_us not in loops:
                loops[grain_us] = barrier.calibrated(daemon, grain_us)
            own = [directory / "barrier-mpi", "--wait", "spin", "--grain-loops", loops[grain_us]]
            made.append(Work(f"barrier {grain_us} us", mpi, transport, own, max(20, 300_000 // grain_us)))
        return made
    if not (directory / name).exists():
        print(f"wait: {name}, {mpi} left out: {directory / name} is not there", flush=True)
        return []
    order = {"matmul": arguments.matmul_n, "lu": arguments.lu_n}[name]
    return [Work(f"{name} {order}", mpi, transport, [directory / name, "--n", order], 2)]


def calibrate(work, runner, plain, machine, seconds):
    """Sets the number of iterations that take it about this time alone, found in two steps of growing length.

    Returns the run that did not end, as Runner.run does, or None when all went well.
    """
    iterations = work.probe_iterations
    for part in (0.25, 1):
        times_s = []
        # The minimum of several tries, because other load only adds time.
        for _ in range(3):
            done = runner.run(plain, work.command(machine, iterations), 1, 120)
            if not done.get("jobs"):
                return {"makespan_s": None, "failed": f"alone: {done.get('failed', 'not ended after 120 s')}"}
            times_s.append(done["jobs"][0]["main_phase_s"])
        iterations = max(1, round(iterations * seconds * part / min(times_s)))
    work.iterations = iterations
    return None
