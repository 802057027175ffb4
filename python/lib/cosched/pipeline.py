"""Programs as pipelines of stages on recycled buffers.

A program is divided into stages, its data into blocks carried by buffers. Stages work concurrently, each on a different buffer, so
that the running time tends to the longest of computing, communicating and I/O, not to their sum. Buffers come from a fixed pool
and move from stage to stage without a copy; the memory is the number of buffers times their size, known before the run.

A stage is a callable that gets a `Buffer`. The first stage of a path fills empty buffers and returns `Flow.LAST` with the last
one, or `Flow.END` with an empty one after it; all other stages return None. If the callable has methods `init` and `cleanup`,
they are called before its first and after its last buffer.

**The interpreter lock** is held only while the callable runs: a stage that waits for a buffer does not hold it. Stages in
Python overlap where they release it: NumPy on large arrays, file I/O, sockets, ctypes.

**Views** of a buffer (`memoryview(buffer)`, `numpy.frombuffer(buffer)`) are the buffer's memory. They must not exist any more when
the callable returns, which is the case for local variables; data that is to be kept has to be copied. If a view is left, the stage
fails with a BufferError, and the view keeps its memory. The `Buffer` object itself may be kept: using it raises an error.

**Exceptions** in a stage end the pipeline: `run` raises a `StageError` with the stage's name, whose `__cause__` is the exception
with its traceback. KeyboardInterrupt in `run` or `wait` stops the pipeline, and is raised when its threads have ended, which is
when their callables have returned.

Every stage in Python has a thread of its own, unless `kind="worker"` is given.
"""

from __future__ import annotations

import atexit
import json
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Literal, TypeVar

from cosched import _native
from cosched._native import Buffer, Flow, Port
from cosched._typing import TypeAlias

__all__ = [
    "Body", "Buffer", "Flow", "Graph", "GraphError", "Pipeline", "PipelineError", "Port", "Report", "Running", "Stage",
    "StageError", "Stalled", "Stopped", "Work", "chrome_trace", "text",
]

Resource: TypeAlias = Literal["compute", "communicate", "io"]
Kind: TypeAlias = Literal["thread", "worker"]
Scheduling: TypeAlias = Literal["normal", "batch", "idle", "fifo"]
Work: TypeAlias = "Callable[[Buffer], Flow | None]"
Body: TypeAlias = "Callable[[Port], None]"
#: A report of a run: "elapsed_s", "memory_bytes", and "stages", a list of flat dicts, as pandas.DataFrame takes it.
Report: TypeAlias = dict[str, Any]

AnyWork = TypeVar("AnyWork", bound=Callable[..., Any])


class PipelineError(Exception):
    """A pipeline that failed. `report` is what its stages had done, or None if it did not start."""

    def __init__(self, message: str, report: Report | None = None) -> None:
        super().__init__(message)
        self.report = report


class GraphError(PipelineError):
    """A graph that was refused: no stage has run."""


class StageError(PipelineError):
    """A stage that failed; `stage` is its name. `__cause__` is the exception that it raised, with its traceback."""

    def __init__(self, message: str, stage: str, report: Report | None = None) -> None:
        super().__init__(message, report)
        self.stage = stage


class Stalled(StageError):
    """A stage that held a buffer for longer than `stall_limit_s`. Its thread cannot be ended from outside: it is left behind."""


class Stopped(PipelineError):
    """A run that was stopped by `Running.stop`."""


class Stage:
    """A stage and how to run it.

    `resource` is what it mostly uses: "compute", "communicate" or "io". `kind` "thread" gives it a thread of its own, "worker"
    puts it on the pipeline's workers. `thread`: all stages with the same text share one thread and take turns on it, each for
    `repeat` buffers. `incarnations`: the number of concurrent executions, on buffers of their own; they share the callable, which
    must be safe for that; `ordered` says whether the buffers leave them in the order in which they arrived. `replicable`: the
    maximum number of incarnations for autotune.

    The scheduling of its threads: `nice` value (-20 highest priority, 19 lowest); `slice_us` (100 to 100000, Linux 6.12); `scheduling`
    class, for "fifo" with `fifo_priority` (1 to 99); `cpus`. If the system refuses a setting, the report notes that, and the run continues.
    """

    def __init__(
        self,
        name: str,
        work: Work,
        *,
        resource: Resource = "compute",
        kind: Kind = "thread",
        incarnations: int = 1,
        replicable: int = 0,
        ordered: bool = True,
        thread: str | None = None,
        repeat: int = 1,
        nice: int | None = None,
        slice_us: int | None = None,
        scheduling: Scheduling | None = None,
        fifo_priority: int = 0,
        cpus: Iterable[int] | None = None,
    ) -> None:
        if not callable(work):
            raise TypeError(f"stage {name!r} is not callable but {type(work).__name__}")
        self.name = name
        self._make: Callable[[int], Any] = lambda number: work
        self._how = {
            "resource": resource, "kind": kind, "incarnations": incarnations, "replicable": replicable,
            "ordered": ordered, "thread": thread, "repeat": repeat, "body": False, "nice": nice,
            "slice_us": slice_us, "scheduling": scheduling, "fifo_priority": fifo_priority,
            "cpus": None if cpus is None else list(cpus), "holds": None,
        }

    @classmethod
    def replicated(cls, name: str, incarnations: int, make: Callable[[int], Work], **options: Any) -> Stage:
        """A stage with this number of incarnations, each a callable of its own, which `make(number)` returns; `make` is called on the
        incarnation's own thread before its first buffer. Options as for Stage."""
        stage = cls(name, make, incarnations=incarnations, **options)  # type: ignore[arg-type]
        stage._make = make
        return stage

    @classmethod
    def body(
        cls, name: str, work: Body, *, resource: Resource = "compute", holds: int | None = None, **options: Any
    ) -> Stage:
        """A stage that accepts and conveys buffers itself, through the `Port` that it gets: it may hold several buffers, and be where
        paths meet. `holds`: the maximum number of other buffers of a path that it holds while it waits for one of that path; a path
        with too few buffers for that is refused. Scheduling options as for Stage."""
        stage = cls(name, work, resource=resource, **options)  # type: ignore[arg-type]
        stage._how["holds"] = holds
        stage._how["body"] = True
        return stage

    def __repr__(self) -> str:
        return f"<cosched.pipeline.Stage {self.name!r}>"


def text(report: Report) -> str:
    """A report as a table for people."""
    return _native.report_text(json.dumps(report))


def chrome_trace(report: Report) -> str:
    """A report as a Chrome trace (Perfetto, chrome://tracing), in JSON. It contains the rounds if `trace=True` was given."""
    return _native.report_trace(json.dumps(report))


class Running:
    """A running graph. As a context manager it waits at the end of its block, unless `wait` was called; an exception in the block
    stops the graph."""

    def __init__(self, native: _native.Running) -> None:
        self._native = native
        self._waited = False
        _running.add(self)

    def wait(self) -> Report:
        """Waits until the graph has ended. Raises StageError, or Stopped; all threads have ended then. May be called once."""
        self._waited = True
        outcome = self._native.wait()
        report: Report = json.loads(outcome.report)
        if outcome.failure is None:
            return report
        if outcome.failure == "stopped":
            raise Stopped(outcome.message, report)
        if outcome.stage is not None and outcome.failure == "stalled":
            raise Stalled(outcome.message, outcome.stage, report)
        if outcome.stage is not None:
            raise StageError(outcome.message, outcome.stage, report) from outcome.exception
        raise PipelineError(outcome.message, report) from outcome.exception

    def stop(self) -> None:
        """Stops the graph as soon as each stage has finished its current buffer. May be called from any thread, also from a stage."""
        self._native.stop()

    def snapshot(self) -> Report:
        """A report of what has been done so far. May be called from any thread."""
        report: Report = json.loads(self._native.snapshot())
        return report

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and not self._waited:
            self.wait()
        elif error is not None:
            self._native.close()


#: Runs whose threads may still come to the interpreter.
_running: weakref.WeakSet[Running] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # A thread that enters an interpreter during its finalisation never returns.
    for running in list(_running):
        running._native.close()


class Graph:
    """Stages and the paths of buffers through them. A graph runs once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._native = _native.Graph(name)

    def stage(self, stage: Stage) -> int:
        """Adds a stage. Returns its index, for `path`."""
        return self._native.stage(stage.name, stage._make, stage._how)

    def path(self, name: str, stages: Iterable[int], *, buffers: int, size_bytes: int) -> int:
        """Adds a path with a pool of `buffers` buffers of `size_bytes`, which pass through the stages with these indices in this order
        and return to the pool. Returns the path's index, which is also `Buffer.path`."""
        return self._native.path(name, buffers, size_bytes, list(stages))

    @property
    def memory_bytes(self) -> int:
        """The memory of all buffers in bytes."""
        return self._native.memory_bytes()

    def check(self) -> None:
        """Raises GraphError if the graph cannot run."""
        wrong = self._native.check()
        if wrong is not None:
            raise GraphError(f"pipeline {self.name!r}: {wrong}")

    def start(
        self,
        *,
        workers: int | None = None,
        priorities: str = "default",
        pin_in_turn: bool = False,
        stall_limit_s: float | None = None,
        stall_warning_s: float | None = None,
        trace: bool = False,
        serve: bool = False,
    ) -> Running:
        """Starts it and returns.

        `workers`: the number of threads for stages of kind "worker"; the default is one per CPU. `priorities`: how the scheduling of the
        stages' threads is chosen: "auto", "adjust-once", "adjust-up-down", or a fixed rule such as "nice-up-io" (docs/pipeline.md).
        `pin_in_turn`: each stage with a thread of its own is bound to one CPU, in turn. `stall_limit_s`: a stage that works on one buffer
        for longer than this ends the run with Stalled. `stall_warning_s`: a stage that takes longer than this is named on standard error;
        the default is 30 s. `trace`: every round is recorded, for chrome_trace. `serve`: `cosched pipeline show` can inspect the run.
        """
        how = {
            "workers": workers, "priorities": priorities, "stall_limit_s": stall_limit_s,
            "stall_warning_s": stall_warning_s, "pin_in_turn": pin_in_turn, "trace": trace, "serve": serve,
        }
        running, wrong = self._native.start(how)
        if running is None:
            raise GraphError(f"pipeline {self.name!r}: {wrong}")
        return Running(running)

    def run(self, **options: Any) -> Report:
        """Runs it until it has ended. Options as for `start`; raises GraphError, StageError or Stopped."""
        return self.start(**options).wait()


class Pipeline:
    """The common case: a single path, stage after stage, with `buffers` buffers of `size_bytes`."""

    def __init__(self, name: str, *, buffers: int, size_bytes: int) -> None:
        self._graph = Graph(name)
        self._buffers, self._size_bytes = buffers, size_bytes
        self._stages: list[int] = []

    def add(self, stage: Stage) -> Pipeline:
        """Adds the next stage; the first one fills the buffers."""
        self._stages.append(self._graph.stage(stage))
        return self

    def stage(self, name: str, **options: Any) -> Callable[[AnyWork], AnyWork]:
        """Adds the decorated callable as the next stage. Options as for Stage."""

        def decorate(work: AnyWork) -> AnyWork:
            self.add(Stage(name, work, **options))
            return work

        return decorate

    def start(self, **options: Any) -> Running:
        """Starts it and returns. Options as for Graph.start."""
        self._graph.path(self._graph.name, self._stages, buffers=self._buffers, size_bytes=self._size_bytes)
        return self._graph.start(**options)

    def run(self, **options: Any) -> Report:
        """Runs it until it has ended. Options as for Graph.start; raises GraphError, StageError or Stopped."""
        return self.start(**options).wait()
