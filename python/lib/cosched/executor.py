"""CoschedExecutor: functions as jobs, with the interface of concurrent.futures.

>>> import math
>>> with CoschedExecutor(max_workers=2, policy="local") as executor:
...     list(executor.map(math.factorial, [5, 6]))
[120, 720]
"""

from __future__ import annotations

import multiprocessing.spawn
import os
import pickle
import socket as sockets
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from cosched import _worker
from cosched._command import Report, RunOptions, option_words
from cosched.errors import JobEnded
from cosched._jobs import Job, end_run, socket_of
from cosched._typing import ParamSpec, Unpack

__all__ = ["CoschedExecutor", "JobFuture"]

P = ParamSpec("P")
T = TypeVar("T")


_NOT_MAIN = """the process of a call cannot start calls while it imports this program's main module again
  hint: put what starts them under `if __name__ == "__main__":`, or the function into another module"""


class JobFuture(Future[T]):
    """The future of a call. `cancel` also ends a running call: its job is killed with all its processes."""

    _started = False
    #: The job of the call, once it has ended.
    job: Job | None = None

    def running(self) -> bool:
        """Whether its job has been started and has not ended."""
        # For concurrent.futures it is pending until its end, so that it can be cancelled.
        return self._started and not self.done()


class RemoteTraceback(Exception):
    """The origin of an exception in the job: its text is the job's traceback."""


class CoschedExecutor(Executor):
    """Runs each call as a separate job, in a new Python process that `cosched run` starts.

    `max_workers`: the maximum number of concurrent calls (default: the number of CPUs). The other keywords are options of `cosched run`.
    Functions, arguments and results are pickled, as with ProcessPoolExecutor; processes that a call starts (including MPI ranks) belong
    to its job, and are killed when the call has returned (`leftovers="wait"` keeps them). Exceptions are raised here, with the job's traceback as their cause; JobEnded means that there was no result.
    """

    def __init__(self, max_workers: int | None = None, **options: Unpack[RunOptions]) -> None:
        option_words(options)
        # Else what a call has started would outlive this process when that dies.
        self._options: RunOptions = {"leftovers": "kill", **options}
        self._threads = ThreadPoolExecutor(max_workers or os.cpu_count() or 1, thread_name_prefix="cosched")
        self._futures: set[JobFuture[Any]] = set()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> JobFuture[T]:
        """Starts a call, as soon as fewer than `max_workers` are running."""
        future: JobFuture[T] = JobFuture()
        if _worker.is_preparing:
            raise RuntimeError(_NOT_MAIN)
        content = _content((fn, args, kwargs))
        name = str(self._options.get("name") or getattr(fn, "__name__", "call"))
        self._threads.submit(self._call, future, content, name)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accepts no more calls. `cancel_futures` also kills the jobs of running calls."""
        if cancel_futures:
            for future in list(self._futures):
                future.cancel()
        self._threads.shutdown(wait)

    def _call(self, future: JobFuture[Any], content: bytes, name: str) -> None:
        try:
            outcome: tuple[bool, Any] | None = self._run(future, content, name) if not future.cancelled() else None
        except BaseException as error:
            outcome = (False, error)
        if not future.set_running_or_notify_cancel() or outcome is None:
            return
        is_result, value = outcome
        if is_result:
            future.set_result(value)
        else:
            future.set_exception(value)

    def _run(self, future: JobFuture[Any], content: bytes, name: str) -> tuple[bool, Any]:
        """Whether there is a result, and the result or the exception."""
        ours, its = sockets.socketpair()
        report = Report()
        try:
            with ours, its:
                words = report.words(self._options | {"name": name}, [sys.executable, "-c", "from cosched._worker import main; main()"])
                process = subprocess.Popen(words, stdin=its.fileno())
                its.close()
                future._started = True
                future.add_done_callback(lambda done: _hang_up(ours) if done.cancelled() else None)
                received = _talk(ours, content)
            if future.cancelled():
                end_run(process, report, socket_of(self._options, None))
            code = process.wait()
            snapshot = None if future.cancelled() else report.job(words, code, None)
        finally:
            report.close()
        future.job = None if snapshot is None else Job(snapshot, socket_of(self._options, None))
        return _outcome(received, code)


def _content(call: Any) -> bytes:
    """A call, with what its process needs to import the names in it: the same folders and, if it refers to this program's main module,
    that module."""
    pickled = pickle.dumps(call)
    prepared = multiprocessing.spawn.get_preparation_data("cosched")
    kept = {"sys_path", "sys_argv", "dir", "orig_dir"}
    if b"__main__" in pickled:
        kept |= {"init_main_from_name", "init_main_from_path"}
    return pickle.dumps({name: value for name, value in prepared.items() if name in kept}) + pickled


def _hang_up(stream: sockets.socket) -> None:
    try:
        stream.shutdown(sockets.SHUT_RDWR)
    except OSError:
        pass  # The process has ended meanwhile.


def _talk(stream: sockets.socket, content: bytes) -> bytes:
    """Sends a call, and returns the answer; empty if the process ended before it was complete."""
    try:
        stream.sendall(len(content).to_bytes(8, "little") + content)
        head = _receive(stream, 8)
        return _receive(stream, int.from_bytes(head, "little")) if len(head) == 8 else b""
    except OSError:
        return b""  # The process did not read it.


def _receive(stream: sockets.socket, count: int) -> bytes:
    """This number of bytes, or none."""
    received = bytearray()
    while len(received) < count and (piece := stream.recv(min(count - len(received), 1 << 20))):
        received += piece
    return bytes(received) if len(received) == count else b""


def _outcome(received: bytes, code: int) -> tuple[bool, Any]:
    if not received:
        why = f"its process ended with exit code {code}" + (f" (signal {code - 128})" if code > 128 else "")
        raise JobEnded("the job of a call ended without a result", why, "was it killed, or does the function end the process?")
    is_result, value, traceback = pickle.loads(received)
    if not is_result:
        value.__cause__ = RemoteTraceback(f'\n"""\n{traceback}"""')
    return is_result, value
