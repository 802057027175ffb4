"""Which simulations the reproduction needs.

A cell is one simulation: strategy, job list and parameters. A chain is a list of cells that may end early: once late jobs' response
passes `GIVE_UP_STRETCH` times the mean execution time, higher loads are not tried."""

import typing


class Reading(typing.NamedTuple):
    """How the paper's times are read: messages and spin time are `grain` times as long as it prints, and so are iterations; or
    computation and I/O alone are, `cd_scale` times, at literal messages."""

    grain: int
    cd_scale: int = 1

    def __str__(self):
        return f"grain {self.grain}" if self.cd_scale == 1 else f"cd-scale {self.cd_scale}"


STRATEGIES = ["Local", "GS", "SB", "DCS", "DCS-SB", "PB", "PB-SB", "SY", "PB-SY", "DCS-SY"]
SWEPT = ["GS", "SB", "PB", "PB-SB", "PB-SY", "DCS"]
TABLE5 = ["GS", "SB", "DCS", "DCS-SB", "PB-SB", "PB"]
WORKLOADS = ["WL4", "WL5", "WL2", "WL3"]
GIVE_UP_STRETCH = 8.0
# Computation and I/O of the paper's job types (Table 2), as shares of the ideal time.
TYPES = {"J1": (0.35, 0.15), "J2": (0.35, 0.50), "J3": (0.35, 0.35), "J4": (0.90, 0.05), "J5": (0.35, 0.05), "J6": (0.65, 0.05)}

# Table 5's columns as (context switch us, interrupt us, GS quantum ms).
COSTS = {
    "GS": {"base": (2000, 50, 200), "half": (1000, 50, 100), "half_switch": (2000, 50, 100)},
    "other": {"base": (200, 50, 200), "half": (100, 25, 200), "half_switch": (100, 50, 200)},
}

READINGS = [Reading(4), Reading(1), Reading(1, 4)]

# Jobs of a list, also for Figure 3 (it needs the backlog to show), mean execution time in s, loads of Figure 3 and of the rest, seeds,
# lengths compared, readings of everything, readings of the sweep over them.
SIZES = {
    "tiny": {
        "jobs": 8, "figure3_jobs": 8, "mean_exec_s": 0.5, "figure3": [0.5], "loads": [0.8], "seeds": 1, "lengths": [],
        "readings": [Reading(4), Reading(1, 4)], "sweep": [],
    },
    "quick": {
        "jobs": 40, "figure3_jobs": 100, "mean_exec_s": 2.0, "figure3": [0.3, 0.5, 0.7, 0.9, 1.1], "loads": [1.2], "seeds": 2,
        "lengths": [2.0, 4.0], "readings": READINGS, "sweep": [],
    },
    "full": {
        "jobs": 150, "figure3_jobs": 400, "mean_exec_s": 2.0, "figure3": [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2],
        "loads": [0.8, 1.2, 1.6], "seeds": 5, "lengths": [2.0, 4.0, 8.0], "readings": READINGS,
        "sweep": [*map(Reading, (1, 2, 3, 4, 8)), *(Reading(1, scale) for scale in (2, 3, 4, 6))],
    },
}


def cell(size, strategy, workload, load, seed, reading, mpl=5, skew=0.2, costs="base", mean_exec_s=None, jobs=None):
    """The inputs of one simulation. `load` None: all jobs are queued at t = 0 and the run is cut while the queue is not empty."""
    switch_us, interrupt_us, quantum_ms = COSTS["GS" if strategy == "GS" else "other"][costs]
    return {
        "strategy": strategy, "workload": workload, "load": load, "seed": seed, **reading._asdict(), "mpl": mpl, "skew": skew,
        "jobs": jobs or size["jobs"], "mean_exec_s": mean_exec_s or size["mean_exec_s"], "nodes": 32,
        "cs_us": switch_us, "intr_us": interrupt_us, "quantum_ms": quantum_ms,
    }


def chains(size):
    """All chains, seed by seed, so that a run that is cut short has whole seeds; none is there twice."""
    seen = set()
    for seed in range(1, size["seeds"] + 1):
        for reading in size["readings"]:
            for chain in _one_seed(size, seed, reading):
                identity = str(chain)
                if identity not in seen:
                    seen.add(identity)
                    yield chain


def _one_seed(size, seed, reading):
    first = reading == size["readings"][0]
    for load in size["loads"]:
        for strategy in STRATEGIES:
            for workload in WORKLOADS:
                yield [cell(size, strategy, workload, load, seed, reading)]
            for workload in ("WL4", "WL5"):
                yield [cell(size, strategy, workload, load, seed, reading, skew=1.5)]
            for workload, mpl in (("WL2", 2), ("WL4", 2), ("WL5", 2), ("WL4", 16), ("WL5", 16)):
                yield [cell(size, strategy, workload, load, seed, reading, mpl=mpl)]
        for strategy in TABLE5:
            for costs in ("half", "half_switch"):
                if not (strategy == "PB" and costs == "half_switch"):
                    yield [cell(size, strategy, "WL5", load, seed, reading, costs=costs)]
    for strategy in STRATEGIES:
        yield [cell(size, strategy, "WL7", load, seed, reading, jobs=size["figure3_jobs"]) for load in size["figure3"]]
        yield [cell(size, strategy, "WL7", None, seed, reading)]
    if first:
        for swept in size["sweep"]:
            for strategy in SWEPT:
                yield [cell(size, strategy, "WL5", size["loads"][-1], seed, swept)]
                yield [cell(size, strategy, "WL7", None, seed, swept)]
    if first and seed <= 3:
        for length in size["lengths"]:
            for strategy in STRATEGIES:
                for workload in ("WL4", "WL5"):
                    yield [cell(size, strategy, workload, size["loads"][0], seed, reading, mean_exec_s=length)]


def cost(cell_):
    """A guess of how long the simulation takes, in no unit, for the time left."""
    by_workload = {"WL4": 0.5, "WL2": 0.6, "WL3": 1.0, "WL5": 1.5, "WL7": 0.8}[cell_["workload"]]
    by_strategy = 0.4 if cell_["strategy"] in ("GS", "Local") else 1.0
    return by_workload * by_strategy * cell_["mean_exec_s"] * cell_["jobs"] * (2.2 if cell_["grain"] == 1 else 1.0)
