"""The interpreter lock, signals, and the interpreter's end."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy

from cosched.pipeline import Stage
from support import line


class Lock(unittest.TestCase):
    def test_a_numpy_stage_that_sorts_holds_no_lock(self):
        source = numpy.random.default_rng(1).normal(size=300_000)
        count, spans, moments = 24, [], []

        def sort(buffer):
            scratch = source.copy()
            begin = time.perf_counter()
            scratch.sort()
            spans.append((begin, time.perf_counter()))

        # While the next one is being sorted: for as long as that takes, on any number of CPUs.
        def look(buffer):
            while len(spans) < min(buffer.tag + 2, count):
                moments.append(time.perf_counter())
                time.sleep(0.001)

        line(sort, look, count=count).run()

        # If the stage held the lock while it sorts, no other one could read the clock in the middle of that
        # time.
        def is_inside(moment, begin, end):
            rest = (end - begin) / 4
            return begin + rest < moment < end - rest

        inside = [any(is_inside(moment, *span) for moment in moments) for span in spans]
        self.assertGreater(sum(inside), 0, "sorts in which the other stage looked at the clock")

    def test_a_stage_that_waits_holds_no_lock(self):
        waits, seen = threading.Event(), threading.Event()

        def wait(buffer):
            waits.set()
            self.assertTrue(seen.wait(20))

        running = line(wait, lambda buffer: None, count=10).start()
        self.assertTrue(waits.wait(20))
        seen.set()
        running.wait()


class Signals(unittest.TestCase):
    def test_a_keyboard_interrupt_stops_it(self):
        ended = threading.Event()

        class Endless:
            def __call__(self, buffer):
                if buffer.tag == 100:
                    os.kill(os.getpid(), signal.SIGINT)

            def cleanup(self):
                ended.set()

        with self.assertRaises(KeyboardInterrupt):
            line(Stage("endless", Endless()), count=10**9).run()
        self.assertTrue(ended.is_set())

    def run_python(self, program):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def test_the_interpreter_may_end_while_a_pipeline_runs(self):
        # The threads of the run end before the interpreter does.
        code, out, err = self.run_python(
            "import sys, time\n"
            "from cosched.pipeline import Pipeline, Stage\n"
            "running = Pipeline('p', buffers=2, size_bytes=8).add(Stage('endless', lambda buffer: None)).start()\n"
            "time.sleep(0.1)\n"
            "print('end')\n"
        )
        self.assertEqual((code, out, err), (0, "end\n", ""))

    def test_an_exit_in_a_stage_is_its_failure(self):
        code, out, err = self.run_python(
            "import sys\n"
            "from cosched.pipeline import Pipeline, Stage\n"
            "Pipeline('p', buffers=2, size_bytes=8).add(Stage('leave', lambda buffer: sys.exit(3))).run()\n"
        )
        self.assertEqual(code, 1)
        self.assertIn("StageError: pipeline 'p': stage 'leave': SystemExit: 3", err)


if __name__ == "__main__":
    unittest.main()
