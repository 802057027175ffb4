"""Shared helpers of the tests: sources, a daemon, and a watchdog."""

import faulthandler
import os
import unittest

from cosched.pipeline import Flow, Pipeline, Stage

# A hang must not block the suite: the threads' stacks are printed, and the run fails.
faulthandler.dump_traceback_later(580, exit=True)

#: For tests that need a daemon: tests/bindings/run starts one.
needs_daemon = unittest.skipUnless(os.environ.get("COSCHED_SOCKET"), "no daemon is named in COSCHED_SOCKET")


def numbers(count, name="numbers", **options):
    """A source of the numbers below `count`, as tags."""
    waiting = iter(range(count))

    def produce(buffer):
        number = next(waiting, None)
        if number is None:
            return Flow.END
        buffer.tag = number
        buffer.resize(8)
        return Flow.MORE

    return Stage(name, produce, **options)


def line(*stages, count=100, size_bytes=4096, buffers=4):
    """A pipeline of numbers through these stages."""
    pipeline = Pipeline("line", buffers=buffers, size_bytes=size_bytes).add(numbers(count))
    for number, work in enumerate(stages):
        pipeline.add(work if isinstance(work, Stage) else Stage(f"stage {number}", work))
    return pipeline
