"""CoschedExecutor, with a real daemon."""

import concurrent.futures
import functools
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import cosched
from cosched import errors
from support import needs_daemon


def job_of_call(*_):
    return int(os.environ["COSCHED_JOB"])


def returns_and_leaves_a_process():
    return subprocess.Popen(["sleep", "1000"]).pid


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(") ", 1)[1][0] != "Z"
    except FileNotFoundError:
        return False


class Odd(Exception):
    def __init__(self, one, two):
        super().__init__("odd")


def raises(kind, *args):
    raise kind(*args)


def leaves_a_process():
    subprocess.Popen(["sleep", "1000"])
    time.sleep(1000)


@needs_daemon
class Executor(unittest.TestCase):
    def test_each_call_is_a_job(self):
        with cosched.CoschedExecutor(2, klass="batch", cpus=1) as executor:
            numbers = list(executor.map(job_of_call, range(3)))
            future = executor.submit(functools.partial(pow, 2), 5)
            self.assertEqual(future.result(60), 32)
            self.assertEqual((future.job.refresh().returncode, future.job.snapshot["class"]), (0, "batch"))
        self.assertEqual(len(set(numbers)), 3)
        self.assertEqual({cosched.job(number).name for number in numbers}, {"job_of_call"})
        with self.assertRaises(RuntimeError):
            executor.submit(job_of_call)

    def test_what_a_call_leaves_ends_with_it(self):
        with cosched.CoschedExecutor(1) as executor:
            left = executor.submit(returns_and_leaves_a_process).result(60)
        deadline = time.monotonic() + 60
        while is_running(left) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertFalse(is_running(left))

    def test_exceptions_come_back(self):
        with cosched.CoschedExecutor(2) as executor:
            error = executor.submit(raises, KeyError, "k").exception(60)
            self.assertEqual((type(error), error.args), (KeyError, ("k",)))
            self.assertIn("test_executor.py", str(error.__cause__))
            self.assertRegex(str(executor.submit(raises, Odd, 1, 2).exception(60)), "^Odd: odd .it cannot be pickled")
            self.assertRegex(str(executor.submit(os._exit, 7).exception(60)), "exit code 7")
            self.assertIsInstance(executor.submit(os._exit, 7).exception(60), errors.JobEnded)
            self.assertIsInstance(executor.submit(raises, SystemExit, 1).exception(60), SystemExit)
        with self.assertRaises(TypeError):
            cosched.CoschedExecutor(2, polcy="gang")
        with cosched.CoschedExecutor(2, cpus=100_000) as executor:
            self.assertIsInstance(executor.submit(job_of_call).exception(60), errors.LaunchError)

    def test_a_running_call_can_be_cancelled(self):
        with cosched.CoschedExecutor(1) as executor:
            future, waiting = executor.submit(leaves_a_process), executor.submit(job_of_call)
            deadline = time.monotonic() + 60
            while not (jobs := [job for job in cosched.jobs() if job.name == "leaves_a_process"]) and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual((future.running(), waiting.running()), (True, False))
            self.assertTrue(future.cancel())
            self.assertEqual(concurrent.futures.wait([future], 60).not_done, set())
            self.assertEqual((future.cancelled(), future.running()), (True, False))
            self.assertIsInstance(waiting.result(60), int)
        self.assertEqual(jobs[0].wait(60), jobs[0].returncode)
        self.assertEqual(jobs[0].refresh().snapshot.get("processes", 0), 0)

    def test_shutdown_can_cancel_all(self):
        executor = cosched.CoschedExecutor(1)
        futures = [executor.submit(time.sleep, 1000) for _ in range(3)]
        threading.Timer(1, executor.shutdown, kwargs={"cancel_futures": True}).start()
        self.assertEqual(concurrent.futures.wait(futures, 60).not_done, set())
        self.assertTrue(all(future.cancelled() for future in futures))

    def test_the_job_ends_with_its_caller(self):
        program = "import cosched, os\nif __name__ == '__main__': cosched.CoschedExecutor(1, name='orphan').submit(os.system, 'sleep 1000')"
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(program)
            file.flush()
            with subprocess.Popen([sys.executable, file.name]) as process:
                deadline = time.monotonic() + 60
                while not (jobs := [job for job in cosched.jobs() if job.name == "orphan"]) and time.monotonic() < deadline:
                    time.sleep(0.05)
                process.kill()
        self.assertIsNotNone(jobs[0].wait(60))

    def test_the_main_module_is_imported_for_its_functions_and_must_not_start_calls(self):
        guarded = "import cosched\ndef f(x): return x + 1\nif __name__ == '__main__': print(cosched.CoschedExecutor(1).submit(f, 1).result(60))"
        unguarded = guarded.replace("if __name__ == '__main__': ", "")
        for program, expected in ((guarded, "^2\n$"), (unguarded, "(?s)RuntimeError: the process of a call.*__main__")):
            with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
                file.write(program)
                file.flush()
                done = subprocess.run([sys.executable, file.name], capture_output=True, text=True, timeout=100)
            self.assertRegex(done.stdout + done.stderr, expected)


if __name__ == "__main__":
    unittest.main()
