"""The native part. Buffer, Flow and Port are public by way of cosched.pipeline; the rest is what that module is made of."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

__version__: str

def report_text(json: str) -> str: ...
def report_trace(json: str) -> str: ...

@final
class Flow:
    """What the stage at the beginning of a path returns. All other stages return None."""

    MORE: Flow
    """There are more buffers to come. None says the same."""
    LAST: Flow
    """This buffer is the last."""
    END: Flow
    """This buffer carries nothing; the one before was the last."""

@final
class Buffer:
    """A buffer of a path's pool, for as long as the stage has it.

    It supports the buffer protocol, writable and without a copy, over the bytes that it holds (`len(buffer)`).
    """

    tag: int
    """A number of the program's own that goes with the buffer; 0 at the beginning of a path."""

    @property
    def capacity(self) -> int:
        """How many bytes it can hold."""
    @property
    def storage(self) -> memoryview:
        """All its memory, whatever it holds, as a writable view."""
    @property
    def round(self) -> int:
        """The number of its round on its path, from 0; known behind the stage that begins the path."""
    @property
    def path(self) -> int:
        """The number of its path, as Graph.path returned it."""
    @property
    def is_last(self) -> bool:
        """Whether it is its path's last one."""
    @property
    def carries_block(self) -> bool:
        """Whether it carries a block, and not only the end of its path. Only bodies see one that does not."""
    def resize(self, size_bytes: int) -> None:
        """Says how many bytes it holds. Raises ValueError if that is more than its capacity."""
    def mark_last(self) -> None:
        """Says that it is its path's last one: for a body that begins the path, before it conveys it."""
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Port:
    """Where a body accepts buffers and conveys them. For the body's own thread, until the body returns."""

    @property
    def paths(self) -> list[int]:
        """The numbers of the paths that the body is on."""
    @property
    def backlog(self) -> int:
        """How many buffers wait for the body."""
    @property
    def stopping(self) -> bool:
        """Whether the pipeline stops: time to return."""
    def accept(self) -> Buffer | None:
        """Waits for the next buffer of any path. None when all paths that come in have ended, or when the pipeline stops."""
    def accept_from(self, path: int) -> Buffer | None:
        """Waits for the next buffer of one path; of one that the body begins, for an empty one."""
    def try_accept(self) -> Buffer | None:
        """The next buffer, if one waits now."""
    def convey(self, buffer: Buffer) -> None:
        """Hands a buffer to the successor on its path, or back to the pool. BufferError if there are views of it."""
    def end(self, path: int) -> bool:
        """Ends a path that the body begins, behind its last block. False when the pipeline stops."""
    def output_backlog(self, path: int) -> int:
        """How many buffers wait behind the body, before its successor on a path."""
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
    """Columns of one length. Arrow's readers take them without a copy."""

    def __new__(cls, columns: list[tuple[str, list[Any]]]) -> Table: ...
    @property
    def names(self) -> list[str]: ...
    def column(self, name: str) -> list[Any]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Jobs:
    """A list of jobs of the simulator."""

    @staticmethod
    def read(content: bytes, cpus: int, seed: int) -> tuple[Jobs, dict[str, int]]: ...
    @staticmethod
    def generate(name: str, count: int, nodes: int, mean_exec_s: float, load: float, seed: int) -> Jobs: ...
    @staticmethod
    def of(rows: list[tuple[int, int, int, str, str]]) -> Jobs: ...
    def table(self) -> Table: ...
    def __len__(self) -> int: ...

def simulate_jobs(
    jobs: Jobs, description: str, costs: str, progress: Callable[[float], object] | None
) -> tuple[Table, str, float | None]: ...
def sweep_cells(
    description: str, costs: str, lists: Mapping[str, Jobs], threads: int, progress: Callable[[int, int, float], object] | None
) -> str: ...
