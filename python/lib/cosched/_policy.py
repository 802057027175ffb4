"""Strategies written in Python, for `cosched.sim.simulate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

NS_PER_US = 1000


@dataclass(frozen=True)
class Moment:
    """What a strategy sees of the machine when jobs wait or a row's quantum is over."""

    time_ns: int
    """The simulated time."""
    waiting: list[int]
    """Jobs that have arrived and not started, by their place in the list of jobs; first come first."""
    rows: list[list[int | None]]
    """The matrix, `mpl` rows: the job of each CPU. Empty for a base without rows."""
    row: int
    """The current row."""
    loads: list[int]
    """How many processes each node has."""
    jobs: Sequence[dict[str, Any]]
    """All jobs of the list: id, tasks, type, class, exec_ns, arrival_ns."""
    mpl: int
    """How many rows, or processes on a node, there may be."""


@dataclass(frozen=True)
class Waiting:
    """A process that begins to wait for a message."""

    time_ns: int
    """The simulated time."""
    job: int
    """Its job, by its place in the list of jobs."""
    task: int
    """Its task."""
    sender: int
    """The task whose message it needs."""
    node: int
    """Its node."""
    ready: int
    """How many other processes of the node could run now."""


class Start(NamedTuple):
    """A job that starts now: a node for each of its tasks (CPUs of one node are nodes here), and its row where there are rows."""

    job: int
    nodes: Sequence[int]
    row: int = 0


class Wait(NamedTuple):
    """How a process waits: "spin" until the message comes; or spin for `after_us`, then "block" or "yield"."""

    how: str
    after_us: float = 200.0


class Policy:
    """A strategy of one's own. Its hooks decide instead of `base`, a strategy that has the mechanism: the rows of "GS", "paired-gang" and
    "soft-gang" take turns; "Local", "SB", "SY", "DCS", "PB" and their combinations have a queue on each node. A hook that is not written, or returns what
    `super()` does, leaves the decision to `base`. One object is for one run.

    >>> from cosched import sim
    >>> class ShortestFirst(sim.Policy):
    ...     base = "Local"
    ...     def on_arrival(self, moment):
    ...         job = min(moment.waiting, key=lambda job: moment.jobs[job]["exec_ns"])
    ...         free = [node for node, load in enumerate(moment.loads) if load < moment.mpl]
    ...         tasks = moment.jobs[job]["tasks"]
    ...         return sim.Start(job, free[:tasks]) if len(free) >= tasks else None
    >>> jobs = [{"tasks": 2, "exec_s": exec_s} for exec_s in (0.1, 0.3, 0.2)]
    >>> result = sim.simulate(jobs, strategy=ShortestFirst(), nodes=2, mpl=1)
    >>> sorted(range(3), key=lambda job: result.column("start_ns")[job])
    [0, 2, 1]
    """

    base: str = "GS"

    def on_arrival(self, moment: Moment) -> Start | None:
        """Jobs wait, and one has arrived, started or ended: which starts now? None: none of them, until the next arrival or end."""
        return NotImplemented  # type: ignore[no-any-return]

    def on_row_change(self, moment: Moment) -> int:
        """The current row's quantum is over: which row is next? It must have a job; the current one may go on, at no cost."""
        return NotImplemented  # type: ignore[no-any-return]

    def on_wait(self, waiting: Waiting) -> Wait:
        """A process begins to wait: how does it do that?"""
        return NotImplemented  # type: ignore[no-any-return]


class Hooks:
    """What the native part calls: numbers in, numbers out; None is "as usual"."""

    def __init__(self, policy: Policy, jobs: Sequence[dict[str, Any]], mpl: int) -> None:
        self._policy, self._jobs, self._mpl = policy, jobs, mpl

    def _moment(self, time_ns: int, waiting: list[int], rows: list[list[int | None]], row: int, loads: list[int]) -> Moment:
        return Moment(time_ns, waiting, rows, row, loads, self._jobs, self._mpl)

    def arrival(self, *seen: Any) -> list[tuple[int, int, list[int]]] | None:
        answer = self._policy.on_arrival(self._moment(*seen))
        if answer is NotImplemented:
            return None
        if answer is None:
            return []
        if not isinstance(answer, Start):
            raise self._wrong("on_arrival", answer, "a cosched.sim.Start, or None")
        return [(answer.job, answer.row, list(answer.nodes))]

    def row_change(self, *seen: Any) -> int | None:
        answer = self._policy.on_row_change(self._moment(*seen))
        if answer is NotImplemented:
            return None
        if isinstance(answer, bool) or not isinstance(answer, int) or answer < 0:
            raise self._wrong("on_row_change", answer, "a row's number, from 0")
        return answer

    def wait(self, *seen: int) -> tuple[str, int] | None:
        answer = self._policy.on_wait(Waiting(*seen))
        if answer is NotImplemented:
            return None
        if not isinstance(answer, Wait) or not 0 <= answer.after_us <= 3.6e9:
            raise self._wrong("on_wait", answer, 'a cosched.sim.Wait of up to an hour, as Wait("block", after_us=200)')
        return answer.how, round(answer.after_us * NS_PER_US)

    def _wrong(self, hook: str, answer: object, expected: str) -> TypeError:
        name = f"{type(self._policy).__name__}.{hook}"
        return TypeError(f"{name} returned {answer!r}\n  why: the simulator needs {expected}\n  hint: return that, or what super() returns to leave it to {self._policy.base}")
