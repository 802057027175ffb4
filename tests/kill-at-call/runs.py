"""Concurrent runs, each in a process of its own, which ends and removes all that it started, also when it is late or stopped."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import time
import traceback
from dataclasses import dataclass

from place import Place, adopt_orphans, end_with_parent
from scenario import Run

# After its time limit, a run has this long to clean up, in seconds.
CLEARING_S = 60
SIGNALS = {signal.SIGTERM, signal.SIGALRM}


class Late(Exception):
    """A run took too long."""


class Stopped(BaseException):
    """A signal has requested the end."""


def stop(*_):
    raise Stopped


@dataclass
class Result:
    """The result of a run: messages about what was wrong, the calls that were counted, the longest standstill."""

    of: str
    at: int
    wrong: str | None
    calls: int = 0
    slowest_s: float = 0.0
    clear: bool = False


def attempt(place, of, at, limit_s):
    """Does a run, and removes everything that it leaves."""
    run, wrong, clear = Run(place, of, at), None, True

    def late(*_):
        raise Late(f"the run took longer than {limit_s:g} s")

    signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        run.run()
    except Exception:
        log = (place.dir / "log").read_text(errors="replace") if (place.dir / "log").exists() else ""
        wrong = f"{traceback.format_exc()}--- the daemons' log\n{log[-6000:]}"
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            place.clear()
        except Exception:
            wrong, clear = f"{wrong or ''}--- clearing up\n{traceback.format_exc()}", False
    return Result(of, at, wrong, run.calls, run.slowest_s, clear)


def in_a_process(place, of, at, limit_s, into):
    """The process of a run. In a session of its own: ^C at a terminal is for the process that started all runs."""
    os.setsid()
    end_with_parent()
    adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        into.send(attempt(place, of, at, limit_s))
    except Stopped:
        pass


class Runs:
    """Up to `workers` runs at a time."""

    def __init__(self, programs, directory, workers, limit_s):
        self.programs, self.directory, self.workers, self.limit_s = programs, directory, workers, limit_s
        self.made, self.free, self.under_way = [], [], {}

    def has_room(self):
        return len(self.under_way) < self.workers

    def start(self, of, at):
        place = self.free.pop() if self.free else self.new_place()
        out, into = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.Process(target=in_a_process, args=(place, of, at, self.limit_s, into))
        process.start()
        into.close()
        self.under_way[out] = (process, place, of, at)

    def new_place(self):
        self.made.append(Place(self.programs, self.directory, f"csk-{os.getpid()}-{len(self.made)}"))
        return self.made[-1]

    def next(self):
        """Waits until a run has ended: its result."""
        end = time.monotonic() + self.limit_s + CLEARING_S
        ready, dead = [], []
        while not ready and not dead and time.monotonic() < end:
            ready = multiprocessing.connection.wait(self.under_way, 1)
            # The pipe of a killed run stays open, because the processes that it started have it,
            # too.
            dead = [out for out, (process, *_) in self.under_way.items() if not process.is_alive()]
        # Of those that are late beyond all limits, the one that was started first.
        out = (ready or dead or list(self.under_way))[0]
        process, place, of, at = self.under_way.pop(out)
        try:
            result = out.recv() if out.poll() else Result(of, at, f"its process does not end, or was killed ({process.exitcode})")
        except EOFError:
            result = Result(of, at, "its process ended without a word")
        out.close()
        process.kill()
        process.join()
        # A place that was not cleaned up is not used by another run.
        if result.clear:
            self.free.append(place)
        return result

    def end(self):
        """Ends the runs in progress, and everything that is left of any run."""
        for process, *_ in self.under_way.values():
            process.terminate()
        for process, *_ in self.under_way.values():
            process.join(CLEARING_S)
        for place in self.made:
            try:
                place.end()
            except Exception:
                traceback.print_exc()
