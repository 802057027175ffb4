"""The simulator: workloads, one run, strategies compared, sweeps. docs/simulator.md has the semantics.

>>> jobs = workload("WL3", count=20, nodes=8, mean_exec_s=0.1, seed=7)
>>> result = simulate(jobs, strategy="GS", nodes=8)
>>> result.finished
20
>>> result == simulate(jobs, strategy="GS", nodes=8)
True
>>> table = compare(["GS", "PB"], jobs, nodes=8)
>>> [row["strategy"] for row in table]
['GS', 'PB']

Results are Arrow tables, by the Arrow C data interface, without a copy: `pyarrow.table(result)`,
`polars.DataFrame(result)`, `result.to_pandas()`. A run leaves the interpreter lock to other threads, and Ctrl-C ends it.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from cosched import _native
from cosched._policy import Hooks, Moment, Policy, Start, Wait, Waiting
from cosched._typing import Unpack

if TYPE_CHECKING:
    from cosched._plot import ComparisonPlot, ResultPlot

__all__ = [
    "Comparison", "Costs", "Job", "Model", "Moment", "Policy", "Result", "Start", "Wait", "Waiting", "Workload", "compare", "fit", "simulate", "sweep", "workload",
]

NS_PER_S = 1_000_000_000
#: As in job lists.
SECONDS_MAX = 1e9
TASKS_MAX = 2**32 - 1
COUNT_MAX = 10_000_000


class Job(TypedDict, total=False):
    """A job of a list. `tasks` and `exec_s` must be there."""

    arrival_s: float
    """When it arrives; 0 unless told."""
    tasks: int
    """Its tasks, one on each node that it gets."""
    exec_s: float
    """Its execution time alone."""
    type: str
    """J1 to J6: how that time is divided (Zhang et al. 2000, Table 2); J4 unless told."""
    klass: str
    """express, interactive, batch or standby, for the strategy live; batch unless told."""


class Costs(TypedDict, total=False):
    """Costs in µs that are not the paper's (Table 3)."""

    spin_us: float
    """How long SB and SY spin before they block or yield; 200."""
    check_us: float
    """Looking at one endpoint for messages; 2."""
    qmove_us: float
    """Moving a process between queues; 3."""


class ArrowTable:
    """Columns, as a sequence of rows to Python, and as an Arrow stream to others."""

    def __init__(self, table: _native.Table) -> None:
        self._table = table

    @property
    def columns(self) -> list[str]:
        """The names of the columns. Units stand last."""
        return self._table.names

    def column(self, name: str) -> list[Any]:
        """A column; what did not happen is None. Raises KeyError."""
        return self._table.column(name)

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = self.columns
        for values in zip(*(self.column(name) for name in names)):
            yield dict(zip(names, values))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrowTable) or self.columns != other.columns:
            return NotImplemented if not isinstance(other, ArrowTable) else False
        return all(self.column(name) == other.column(name) for name in self.columns)

    __hash__ = None  # type: ignore[assignment]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface."""
        return self._table.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """As a pyarrow.Table (needs pyarrow). It shares the memory."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> Any:
        """As a pandas.DataFrame (needs pandas and pyarrow). Columns of numbers without gaps are the simulator's memory, and so read-only: `.copy()`
        of it can be written to. Others are copied."""
        return self.to_arrow().to_pandas(split_blocks=True)


class Workload(ArrowTable):
    """A list of jobs; `workload` makes it. Columns: id, tasks, type, class, exec_ns, arrival_ns."""

    def __init__(self, jobs: _native.Jobs, name: str, left_out: Mapping[str, int]) -> None:
        super().__init__(jobs.table())
        self._jobs = jobs
        #: What a sweep's table calls it.
        self.name = name
        #: Jobs of a trace that were not taken, by reason.
        self.left_out = dict(left_out)

    def __repr__(self) -> str:
        return f"<cosched.sim.Workload {self.name!r}, {len(self)} jobs>"


class Model:
    """A model of a trace's jobs: for each class of sizes the distributions of gaps and run times. `fit` makes it, `workload` draws from it."""

    def __init__(self, json_text: str, load: float, left_out: list[str]) -> None:
        self._json = json_text
        #: The load that it generates on the trace's machine.
        self.load = load
        #: Classes of sizes for which no distribution could be fitted.
        self.left_out = left_out

    @property
    def classes(self) -> list[dict[str, Any]]:
        """Sizes and distributions, in the form of `cosched workload fit --json`."""
        classes: list[dict[str, Any]] = json.loads(self._json)["classes"]
        return classes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it for `cosched workload generate --model FILE.json`."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._json + "\n")


def fit(trace: str | os.PathLike[str], *, method: str = "em", max_gap_s: float | None = None, procs: int | None = None) -> Model:
    """Fits a model to a trace or job list, as `cosched workload fit` does: by maximum likelihood ("em") or by three moments ("moments"). Gaps above
    `max_gap_s` are outages; `procs` are the machine's processors, if the trace does not say."""
    if procs is not None and not 1 <= procs <= TASKS_MAX:
        raise ValueError(f"procs is {procs}\n  why: no machine has that many processors\n  hint: give 1 to {TASKS_MAX}")
    with open(trace, "rb") as file:
        content = file.read()
    longest = math.inf if max_gap_s is None else float(max_gap_s)
    return Model(*_native.fit_model(content, os.path.basename(trace), procs, method, longest))


def workload(
    source: str | os.PathLike[str] | Model | Iterable[Job],
    *,
    count: int = 100,
    nodes: int = 32,
    mean_exec_s: float | None = None,
    load: float | None = None,
    seed: int = 1,
    name: str | None = None,
) -> Workload:
    """A list of jobs.

    `source`: "WL1" to "WL8" generates `count` jobs of Zhang et al. 2000 of this mean execution time (10 s unless told) and load (0.7). "lublin",
    "lublin-batch", "lublin-interactive", "lublin-no-types" (Lublin and Feitelson 2003), "ctc-1996-refit" and what `fit` returns have a mean and load of their own; types
    are as in WL7. A path is read, plain or gzip: a job list (CSV) as it is; of a trace (SWF, Batsim) the jobs that fit on `nodes` nodes, with types as
    in WL7. Other sources are jobs, as dicts. `seed` is for what is drawn.

    >>> workload([{"tasks": 4, "exec_s": 1.5, "type": "J3"}, {"arrival_s": 2, "tasks": 1, "exec_s": 1}]).column("exec_ns")
    [1500000000, 1000000000]
    >>> max(workload("lublin", count=200, nodes=16).column("tasks")) <= 16
    True
    """
    for what, number, most in (("nodes", nodes, TASKS_MAX), ("jobs", count, COUNT_MAX)):
        if not 1 <= number <= most:
            raise ValueError(f"the number of {what} is {number}\n  why: no simulation can have that\n  hint: give 1 to {most}")
    if mean_exec_s is not None and not 0 < mean_exec_s <= SECONDS_MAX:
        raise ValueError(f"mean_exec_s is {mean_exec_s}\n  why: execution times are above 0\n  hint: give seconds")
    if isinstance(source, str) and source.upper() in _GENERATED:
        mean_s, rho = 10.0 if mean_exec_s is None else float(mean_exec_s), 0.7 if load is None else float(load)
        return Workload(_native.Jobs.generate(source.upper(), count, nodes, mean_s, rho, seed), name or source.upper(), {})
    if isinstance(source, Model) or isinstance(source, str) and source.lower() in _MODELS:
        model, called = (source._json, "fit") if isinstance(source, Model) else (source, source.lower())
        return Workload(_native.Jobs.draw(model, count, nodes, mean_exec_s, load, seed), name or called, {})
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            made, left_out = _native.Jobs.read(file.read(), nodes, seed)
        return Workload(made, name or os.path.basename(source), left_out)
    return Workload(_native.Jobs.of([_row(job) for job in source]), name or "jobs", {})


_MODELS = ("ctc-1996-refit", "hyper-erlang", "lublin", "lublin-batch", "lublin-interactive", "lublin-no-types")
_GENERATED = [f"WL{number}" for number in range(1, 9)]


def _row(job: Job) -> tuple[int, int, int, str, str]:
    if not isinstance(job, Mapping):
        raise TypeError(f"a job is a dict with the keys {', '.join(Job.__annotations__)}, not a {type(job).__name__}")
    unknown = job.keys() - Job.__annotations__.keys()
    if unknown or not {"tasks", "exec_s"} <= job.keys():
        what = f"unknown: {', '.join(sorted(unknown))}" if unknown else "tasks and exec_s are missing"
        raise ValueError(f"a job has the keys {', '.join(Job.__annotations__)}; {what}, in {job}")
    arrival_s, exec_s = job.get("arrival_s", 0), job["exec_s"]
    if not (0 <= arrival_s <= SECONDS_MAX and 0 <= exec_s <= SECONDS_MAX and 1 <= job["tasks"] <= TASKS_MAX):
        raise ValueError(f"times are 0 to {SECONDS_MAX:g} s, and tasks 1 to {TASKS_MAX}, not as in {job}")
    return round(arrival_s * NS_PER_S), round(exec_s * NS_PER_S), job["tasks"], job.get("type", "J4"), job.get("klass", "batch")


class Result(ArrowTable):
    """A run. One row for each job: id, tasks, type, class, exec_ns, arrival_ns, start_ns, finish_ns, wait_s, response_s, execution_s,
    slowdown, bounded_slowdown; None for what did not happen before the end of the simulation."""

    def __init__(self, table: _native.Table, metrics: dict[str, Any], strategy: str, sampling_ci95_s: float | None) -> None:
        super().__init__(table)
        #: All numbers of the run, as `cosched sim run --json` has them in `metrics`.
        self.metrics = metrics
        #: The strategy's name.
        self.strategy = strategy
        #: Of a sampled run: the exact mean response time is expected within this (95 %).
        self.sampling_ci95_s = sampling_ci95_s

    @property
    def finished(self) -> int:
        """Jobs that ended."""
        return int(self.metrics["finished"])

    @property
    def makespan_s(self) -> float | None:
        """From the first arrival to the last end; None if a job has not ended."""
        makespan: float | None = self.metrics["makespan_s"]
        return makespan

    @property
    def mean_response_s(self) -> float | None:
        """The mean time from arrival to end; None if no job ended."""
        return self._mean("response_s")

    @property
    def mean_wait_s(self) -> float | None:
        """The mean time in the arrival queue."""
        return self._mean("wait_s")

    @property
    def mean_slowdown(self) -> float | None:
        """The mean of response over the time alone."""
        return self._mean("slowdown")

    @property
    def utilisation(self) -> dict[str, float | None]:
        """How much of the CPU time was work, by the definitions of docs/simulator.md (D26)."""
        return dict(self.metrics["utilisation"])

    @property
    def cpu(self) -> dict[str, float]:
        """How the CPU time was spent: compute, spin, switch, interrupt, sched, idle. The sum is 1."""
        return dict(self.metrics["cpu"])

    @property
    def plot(self) -> ResultPlot:
        """Pictures (needs Matplotlib or Altair)."""
        from cosched._plot import ResultPlot

        return ResultPlot(self)

    def _mean(self, what: str) -> float | None:
        summary = self.metrics[what]
        return None if summary is None else float(summary["mean"])

    def __repr__(self) -> str:
        mean = self.mean_response_s
        return f"<cosched.sim.Result {self.strategy}, {self.finished} of {len(self)} jobs" + (
            f", mean response {mean:.3f} s>" if mean is not None else ">")


class Comparison(ArrowTable):
    """A table with a row for each setting: its inputs, the mean over its seeds of each quantity, half the width of the mean's 95 %
    interval (`…_ci95`), and `response_ratio` to the first strategy, in pairs of the same seed."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        #: Why seeds gave no result, for each row.
        self.failures: list[list[str]] = [row.pop("failures") for row in rows]
        names = list(rows[0]) if rows else []
        super().__init__(_native.Table([(name, [row[name] for row in rows]) for name in names]))

    @property
    def plot(self) -> ComparisonPlot:
        """Pictures (needs Matplotlib or Altair)."""
        from cosched._plot import ComparisonPlot

        return ComparisonPlot(self)

    def __repr__(self) -> str:
        return f"<cosched.sim.Comparison, {len(self)} settings>"


def simulate(
    jobs: Workload | str | os.PathLike[str] | Iterable[Job],
    *,
    strategy: str | Policy,
    nodes: int = 32,
    seed: int = 1,
    mpl: int = 5,
    skew: float = 0.2,
    grain: int = 1,
    cs_us: float | None = None,
    intr_us: float | None = None,
    quantum_ms: float | None = None,
    max_sim_s: float | None = None,
    bound_s: float = 10.0,
    sampled: bool = False,
    progress: Callable[[float], object] | None = None,
    **costs: Unpack[Costs],
) -> Result:
    """Simulates jobs (a Workload, or what `workload` takes) under a strategy: GS, Local, SB, SY, DCS, PB, DCS-SB … auto, live (`cosched sim run --help` names all), or one of
    one's own (`Policy`).

    `mpl` is the multiprogramming level, `skew` the variation of computation and I/O, `grain` makes iterations coarser; `cs_us`, `intr_us`
    and `quantum_ms` are a context switch, an interrupt and a gang's quantum. `max_sim_s` ends it at this simulated time. `sampled` skips
    intervals in which all rates are steady: an estimate, for long jobs. `progress` is called with the part that is done, 0 to 1.
    Raises ValueError for what no simulation can have.
    """
    jobs = jobs if isinstance(jobs, Workload) else workload(jobs, nodes=nodes, seed=seed)
    if isinstance(strategy, type) and issubclass(strategy, Policy):
        raise TypeError(f"{strategy.__name__} is a class, not a strategy\n  why: a run needs an object, with a state of its own\n  hint: give {strategy.__name__}()")
    base = strategy.base if isinstance(strategy, Policy) else strategy
    description = _description(
        {"strategies": [base], "workloads": [jobs.name], "nodes": [nodes], "mpl": [mpl], "skew": [skew], "grain": [grain],
         "seeds": [seed], "bound_s": bound_s, "max_sim_s": max_sim_s, "sampled": sampled},
        # A gang's costs have axes of their own.
        {"cs_us": cs_us, "gang_cs_us": cs_us, "intr_us": intr_us, "quantum_ms": quantum_ms},
    )
    if isinstance(strategy, Policy):
        hooks = Hooks(strategy, list(jobs), mpl)
        table, metrics = _native.simulate_policy(jobs._jobs, description, _costs(costs), hooks, progress)
        return Result(table, json.loads(metrics), type(strategy).__name__, None)
    table, metrics, error_s = _native.simulate_jobs(jobs._jobs, description, _costs(costs), progress)
    return Result(table, json.loads(metrics), strategy, error_s)


def compare(
    strategies: str | Sequence[str] = ("paper",), jobs: Workload | str = "WL7", *, nodes: int = 32, seeds: int | Sequence[int] = 20,
    **more: Any,
) -> Comparison:
    """Compares strategies on the same jobs with the same draws; ratios are to the first. "paper" are the ten of Zhang et al. 2000.
    Other keywords as of `sweep`."""
    return sweep(strategies=strategies, workloads=[jobs], nodes=[nodes], seeds=seeds, **more)


def sweep(
    *,
    strategies: str | Sequence[str] = ("paper",),
    workloads: str | Sequence[Workload | str],
    load: Sequence[float] = (),
    nodes: Sequence[int] = (32,),
    mpl: Sequence[int] = (),
    skew: Sequence[float] = (),
    grain: Sequence[int] = (),
    cs_us: Sequence[float] = (),
    intr_us: Sequence[float] = (),
    gang_cs_us: Sequence[float] = (),
    quantum_ms: Sequence[float] = (),
    seeds: int | Sequence[int] = 20,
    count: int = 100,
    mean_exec_s: float = 10.0,
    bound_s: float = 10.0,
    max_sim_s: float | None = None,
    sampled: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int, float], object] | None = None,
    **costs: Unpack[Costs],
) -> Comparison:
    """Simulates every combination, each with all seeds (a number, 1 to N, or the seeds themselves), on all CPUs unless `threads`.

    With fewer than 20 seeds the 95 % intervals cover less than that (decision 0059).

    `workloads`: "WL1" to "WL8", generated for each seed with `count` jobs of `mean_exec_s`, or Workloads as they are; `load` scales the
    arrivals. An empty axis has the paper's value. `progress` is called with the cells that are done, all cells, and the part of the work
    that is done. The result has the same bytes for any number of threads.
    """
    strategies = [strategies] if isinstance(strategies, (str, Policy)) else list(strategies)
    for strategy in strategies:
        if not isinstance(strategy, str):
            name = getattr(strategy, "__name__", type(strategy).__name__)
            raise TypeError(f"the strategy {name} is not a name\n  why: a comparison runs on several threads, and a strategy written in Python has one state and one thread\n"
                            "  hint: call simulate(…, strategy=…) for each seed, with a new object each time")
    sources = [workloads] if isinstance(workloads, str) else list(workloads)
    lists = {one.name: one._jobs for one in sources if isinstance(one, Workload)}
    for name, count_of_name in Counter(one.name for one in sources if isinstance(one, Workload)).items():
        if count_of_name > 1:
            raise ValueError(f"{count_of_name} workloads are named {name!r}\n  why: rows are told apart by it\n  hint: workload(…, name=…)")
    names = [one.name if isinstance(one, Workload) else one for one in sources]
    description = _description(
        {"strategies": strategies, "workloads": names, "load": list(load), "nodes": list(nodes), "mpl": list(mpl),
         "skew": list(skew), "grain": list(grain), "cs_us": list(cs_us), "intr_us": list(intr_us), "gang_cs_us": list(gang_cs_us),
         "quantum_ms": list(quantum_ms), "seeds": seeds if isinstance(seeds, int) else list(seeds), "jobs": count,
         "mean_exec_s": mean_exec_s, "bound_s": bound_s, "max_sim_s": max_sim_s, "sampled": sampled}, {},
    )
    count = threads or len(os.sched_getaffinity(0))
    return Comparison(json.loads(_native.sweep_cells(description, _costs(costs), lists, count, progress)))


def _costs(costs: Costs) -> str:
    for unknown in costs.keys() - Costs.__annotations__.keys():
        raise TypeError(f"no parameter {unknown!r}; further costs are {', '.join(Costs.__annotations__)}")
    return json.dumps(costs)


def _description(values: dict[str, Any], axes: Mapping[str, float | None]) -> str:
    # Numbers and arrays of NumPy.
    plain = lambda value: value.tolist()  # noqa: E731
    return json.dumps(values | {name: [value] for name, value in axes.items() if value is not None}, default=plain)
