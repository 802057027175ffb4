"""Which runs: the tables, their programs, who competes, and in which order the runs take turns."""

import dataclasses

ARMS = ("gang", "unix")


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of the paper as it is run here."""

    number: int
    title: str
    program: str  # of programs/
    order: int  # N of the program
    competitors_per_cpu: float
    published_arms: tuple


# The paper's machine had 12 CPUs. Tables 3 and 4: twelve single-threaded programs beside; Table 1: about twenty runnable threads.
TABLES = (
    Table(1, "speedup on a busy computer", "matmul-threads", 1000, 20 / 12, ("gang",)),
    Table(3, "Gaussian elimination", "gauss", 1200, 1, ARMS),
    Table(4, "matrix multiply", "matmul-threads", 1200, 1, ARMS),
)


@dataclasses.dataclass(frozen=True)
class Run:
    """One execution of a program."""

    table: int
    threads: int
    arm: str
    repetition: int

    def key(self):
        """What names it in the journal."""
        return f"{self.table}/{self.threads}/{self.arm}/{self.repetition}"


def runs(cpus, repetitions, tables):
    """All runs, as the paper took them: gang and UNIX scheduling alternate; who is first alternates too."""
    planned = []
    for repetition in range(repetitions):
        for table in tables:
            for threads in range(1, cpus + 1):
                arms = ARMS if repetition % 2 == 0 else ARMS[::-1]
                planned += [Run(table.number, threads, arm, repetition) for arm in arms]
    return planned


def competitors(table, cpus):
    """How many single-threaded programs run beside it."""
    return round(table.competitors_per_cpu * cpus)
