"""The native part. Buffer, Flow and Port are public through cosched.pipeline; the rest is internal to the package."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

__version__: str

def report_text(json: str) -> str: ...
def report_trace(json: str) -> str: ...

@final
class Flow:
    """What the first stage of a path returns. All other stages return None."""

    MORE: Flow
    """More buffers follow. None means the same."""
    LAST: Flow
    """This buffer is the last."""
    END: Flow
    """This buffer carries no block; the previous one was the last."""

@final
class Buffer:
    """A buffer of a path's pool, valid while the stage has it.

    It supports the buffer protocol, writable and without a copy, over its contents (`len(buffer)` bytes).
    """

    tag: int
    """A number that the program may attach to the buffer; 0 at the beginning of a path."""

    @property
    def capacity(self) -> int:
        """Its capacity in bytes."""
    @property
    def storage(self) -> memoryview:
        """All of its memory, regardless of the length of the contents, as a writable view."""
    @property
    def round(self) -> int:
        """The number of its round on its path, from 0; known only after the path's first stage."""
    @property
    def path(self) -> int:
        """The index of its path, as returned by Graph.path."""
    @property
    def is_last(self) -> bool:
        """Whether it is the last one of its path."""
    @property
    def carries_block(self) -> bool:
        """Whether it carries a block. One without a block only ends its path, and is only seen by bodies."""
    def resize(self, size_bytes: int) -> None:
        """Sets the length of its contents. Raises ValueError if it exceeds the capacity."""
    def mark_last(self) -> None:
        """Marks it as the last one of its path: for a body that begins the path, before it conveys the buffer."""
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Port:
    """Through which a body accepts and conveys buffers. Only for the body's own thread, until the body returns."""

    @property
    def paths(self) -> list[int]:
        """The indices of the paths that the body is on."""
    @property
    def backlog(self) -> int:
        """The number of buffers that wait for the body."""
    @property
    def stopping(self) -> bool:
        """Whether the pipeline is stopping: the body should return."""
    def accept(self) -> Buffer | None:
        """Waits for the next buffer of any path. None when all incoming paths have ended, or when the pipeline stops."""
    def accept_from(self, path: int) -> Buffer | None:
        """Waits for the next buffer of one path; if the body is the path's first stage, for an empty one."""
    def try_accept(self) -> Buffer | None:
        """The next buffer, if one is waiting; does not block."""
    def convey(self, buffer: Buffer) -> None:
        """Hands a buffer to the next stage of its path, or back to the pool. Raises BufferError if there are views of it."""
    def end(self, path: int) -> bool:
        """Ends a path that the body begins, after its last block. False if the pipeline is stopping."""
    def output_backlog(self, path: int) -> int:
        """The number of buffers that wait for the next stage on a path."""
    def __iter__(self) -> Iterator[Buffer]: ...
    def __next__(self) -> Buffer: ...

@final
class Graph:
    def __new__(cls, name: str) -> Graph: ...
    def stage(self, name: str, make: Callable[[int], Any], how: Mapping[str, Any]) -> int: ...
    def path(self, name: str, buffers: int, size_bytes: int, stages: list[int]) -> int: ...
    def memory_bytes(self) -> int: ...
    def check(self) -> str | None: ...
    def start(self, how: Mapping[str, Any]) -> tuple[Running | None, str | None]: ...

@final
class Running:
    def wait(self) -> Outcome: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def snapshot(self) -> str: ...

@final
class Outcome:
    report: str
    failure: str | None
    message: str
    stage: str | None
    exception: BaseException | None

@final
class Table:
    """Columns of the same length. Arrow's readers take them without a copy."""

    def __new__(cls, columns: list[tuple[str, list[Any]]]) -> Table: ...
    @property
    def names(self) -> list[str]: ...
    def column(self, name: str) -> list[Any]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Jobs:
    """A list of jobs for the simulator."""

    @staticmethod
    def read(content: bytes, cpus: int, seed: int) -> tuple[Jobs, dict[str, int]]: ...
    @staticmethod
    def generate(name: str, count: int, nodes: int, mean_exec_s: float, load: float, seed: int) -> Jobs: ...
    @staticmethod
    def draw(model: str, count: int, nodes: int, mean_exec_s: float | None, load: float | None, seed: int) -> Jobs: ...
    @staticmethod
    def of(rows: list[tuple[int, int, int, str, str]]) -> Jobs: ...
    def table(self) -> Table: ...
    def __len__(self) -> int: ...

def fit_model(content: bytes, name: str, procs: int | None, method: str, max_gap_s: float) -> tuple[str, float, list[str]]: ...
def simulate_jobs(
    jobs: Jobs, description: str, costs: str, progress: Callable[[float], object] | None
) -> tuple[Table, str, float | None]: ...
def simulate_policy(
    jobs: Jobs, description: str, costs: str, hooks: object, progress: Callable[[float], object] | None
) -> tuple[Table, str]: ...
def sweep_cells(
    description: str, costs: str, lists: Mapping[str, Jobs], threads: int, progress: Callable[[int, int, float], object] | None
) -> str: ...
