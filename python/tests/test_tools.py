"""Jobs in other tools: pytest, IPython, JupyterHub. With a real daemon; tools that are not installed are skipped."""

import asyncio
import contextlib
import getpass
import importlib.util
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import cosched
from support import needs_daemon

TEST = """
import os, pytest
@pytest.mark.parametrize("number", range(4))
def test_job(number):
    with open({out!r}, "a") as out:
        out.write(os.environ.get("COSCHED_JOB", "none") + "\\n")
"""


def needs(module):
    return unittest.skipUnless(importlib.util.find_spec(module), f"{module} is not installed")


@needs_daemon
@needs("pytest")
class Pytest(unittest.TestCase):
    def session(self, *words, command=None, **variables):
        """The exit code, and the number of tests that each job has run; by a command of the shell, if one is given."""
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "out")
            pathlib.Path(folder, "test_job.py").write_text(TEST.format(out=str(out)))
            path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
            self.done = subprocess.run(
                ["sh", "-c", command] if command else [sys.executable, "-m", "pytest", *words, "test_job.py"], cwd=folder,
                env=os.environ | {"PATH": path} | variables, capture_output=True, text=True, timeout=200,
            )
            jobs = out.read_text().split() if out.exists() else []
        return self.done.returncode, {job: jobs.count(job) for job in jobs}

    def test_without_the_option_it_does_nothing(self):
        self.assertEqual(self.session(), (0, {"none": 4}))

    def test_the_session_is_a_job(self):
        code, jobs = self.session("--cosched-options=--class batch --name my-tests")
        self.assertEqual((code, list(jobs.values())), (0, [4]), self.done)
        self.assertEqual((cosched.job("my-tests").id, cosched.job("my-tests").snapshot["class"]), (int([*jobs][0]), "batch"))
        code, jobs = self.session("--cosched-options=--polcy x")
        self.assertEqual((code, jobs), (125, {}))
        self.assertIn("unexpected argument '--polcy'", self.done.stderr)

    def test_the_plug_in_that_is_named_is_enough(self):
        settings = [{}, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, {"PYTEST_ADDOPTS": "-p cosched"}]
        for words, variables in zip([("-pcosched", "--cosched"), ("-p", "cosched"), ()], settings):
            with self.subTest(words, **variables):
                code, jobs = self.session(*words, "-W", "error", **variables)
                self.assertEqual((code, [*jobs.values()], "none" in jobs), (0, [4], False), self.done)
                self.assertTrue(cosched.job(int([*jobs][0])).ended)

    @needs("xdist")
    def test_the_commands_of_the_guide(self):
        guide = (pathlib.Path(__file__).resolve().parents[2] / "docs/python.md").read_text()
        commands = re.search(r"(?ms)^## pytest\n.*?^```sh\n(.*?)^```$", guide)[1].splitlines()
        for command in commands:
            with self.subTest(command):
                code, jobs = self.session(command=command)
                self.assertEqual((code, sum(jobs.values()), "none" in jobs), (0, 4, False), self.done)
        self.assertEqual(len(commands), 2)

    @needs("xdist")
    def test_each_worker_of_xdist_is_a_job(self):
        code, jobs = self.session("--cosched", "-n", "2")
        self.assertEqual((code, sum(jobs.values()), "none" in jobs), (0, 4, False), self.done)
        self.assertIn(len(jobs), (1, 2))


@needs_daemon
@needs("IPython")
class Magic(unittest.TestCase):
    def setUp(self):
        from IPython.core.interactiveshell import InteractiveShell

        self.shell = InteractiveShell.instance()
        self.shell.run_line_magic("load_ext", "cosched")

    def cell(self, line, text):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            self.shell.run_cell_magic("cosched", line, text)
        return out.getvalue(), err.getvalue()

    def test_a_cell_is_a_job(self):
        program = "import os, sys\nprint(os.environ['COSCHED_JOB'])\nprint('err', file=sys.stderr)"
        out, err = self.cell("--class batch --name cell", program)
        self.assertEqual((int(out), err), (cosched.job("cell").id, "err\n"))
        self.assertEqual(self.cell("--cpus 1 -- sh -e", "echo $((6 * 7))"), ("42\n", ""))
        with self.assertRaises(subprocess.CalledProcessError):
            self.cell("-- sh", "exit 3")

    def test_interrupting_the_kernel_kills_the_job(self):
        over = threading.Event()

        def interrupt():
            while not any(job.name == "endless" and job.state == "running" for job in cosched.jobs()):
                if over.wait(0.05):
                    return
            # As the kernel does: the signal interrupts the main thread.
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                self.cell("--name endless -- sh", "exec sleep 300")
        finally:
            over.set()
            thread.join()
        cosched.job("endless").wait(timeout=30)


@needs_daemon
@needs("jupyterhub")
class JupyterHub(unittest.IsolatedAsyncioTestCase):
    async def test_a_server_is_a_job(self):
        from cosched.jupyterhub import CoschedSpawner

        user = mock.Mock(settings={}, url="/user/x/")
        user.name = getpass.getuser()
        spawner = CoschedSpawner(user=user, hub=None, cosched_options=["--cpus", "1"], cmd=["sh", "-c", "exec sleep 1000"])
        spawner.env_keep = [*spawner.env_keep, "COSCHED_SOCKET"]
        with (
            mock.patch.object(CoschedSpawner, "get_args", lambda self: []),
            mock.patch.object(CoschedSpawner, "get_env", lambda self: dict(os.environ)),
        ):
            await spawner.start()
        self.assertIsNone(await spawner.poll())
        deadline = time.monotonic() + 60
        while not (jobs := [job for job in cosched.jobs() if job.name == f"jupyter-{user.name}"]) and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        self.assertEqual(jobs[0].snapshot["cpus"], 1)
        await spawner.stop()
        self.assertEqual(jobs[0].wait(60), -2)


if __name__ == "__main__":
    unittest.main()
