"""Jobs of a real daemon: the runner (tests/bindings/run) has started one and set COSCHED_SOCKET."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cosched
from cosched import _command, errors
from support import needs_daemon


@needs_daemon
class Run(unittest.TestCase):
    def test_a_run_is_as_one_of_subprocess(self):
        words = ["sh", "-c", "cat; echo err >&2; echo $COSCHED_JOB; exit 3"]
        done = cosched.run(words, input="in\n", capture_output=True, text=True, cpus=1, klass="batch", name="as-subprocess")
        self.assertEqual((done.args, done.returncode, done.stderr), (words, 3, "err\n"))
        self.assertEqual(done.stdout, f"in\n{done.job.id}\n")
        job = done.job.refresh()
        self.assertEqual((job.name, job.snapshot["class"], job.snapshot["cpus"], job.returncode), ("as-subprocess", "batch", 1, 3))
        with self.assertRaises(subprocess.CalledProcessError) as failed:
            cosched.run(["sh", "-c", "echo out; exit 4"], stdout=subprocess.PIPE, check=True)
        self.assertEqual((failed.exception.returncode, failed.exception.output), (4, b"out\n"))
        # An exit code that the launcher uses too is the command's if the command ran.
        self.assertEqual(cosched.run(["sh", "-c", "exit 125"]).returncode, 125)
        self.assertEqual(cosched.run(["sh", "-c", "kill -9 $$"]).returncode, 128 + 9)

    def test_folder_and_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            done = cosched.run(
                ["sh", "-c", "pwd; echo $A"], cwd=folder, env=os.environ | {"A": "b"}, stdout=subprocess.PIPE, text=True
            )
        self.assertEqual(done.stdout, f"{os.path.realpath(folder)}\nb\n")

    def test_a_time_limit_ends_the_whole_job(self):
        before = {job.id for job in cosched.jobs(all=True)}
        with self.assertRaises(subprocess.TimeoutExpired) as over:
            cosched.run(["sh", "-c", "echo begun; sleep 1000 & sleep 1000"], timeout=10, capture_output=True)
        self.assertEqual(over.exception.output, b"begun\n")
        [job] = [job for job in cosched.jobs(all=True) if job.id not in before]
        self.assertTrue(job.ended or job.wait(timeout=60) is not None)
        self.assertEqual(job.refresh().snapshot.get("processes", 0), 0)

    def test_what_cannot_run_is_an_error(self):
        with self.assertRaises(FileNotFoundError):
            cosched.run(["/nowhere/program"], stderr=subprocess.DEVNULL)
        with self.assertRaises(FileNotFoundError):
            cosched.submit(["/nowhere/program"])
        with tempfile.NamedTemporaryFile() as file, self.assertRaises(PermissionError):
            cosched.run([file.name], stderr=subprocess.DEVNULL)
        for launch in (cosched.submit, lambda *words, **options: cosched.run(*words, stderr=subprocess.PIPE, text=True, **options)):
            with self.assertRaises(errors.LaunchError) as refused:
                launch(["true"], cpus=100_000)
            self.assertIn("100000 CPUs", refused.exception.what)
            self.assertTrue(refused.exception.why and refused.exception.hint)
            with self.assertRaisesRegex(errors.LaunchError, "invalid value 'gnag' for '--policy"):
                launch(["true"], policy="gnag")
            with self.assertRaisesRegex(TypeError, "no option 'polcy'; is it 'policy'?"):
                launch(["true"], polcy="gang")
            with self.assertRaisesRegex(TypeError, "a list of words"):
                launch("true")
            with self.assertRaises(ValueError):
                launch([])

    def test_a_command_named_like_an_option_is_a_command(self):
        with self.assertRaises(FileNotFoundError):
            cosched.run(["--policy"], stderr=subprocess.DEVNULL)


class Lines(unittest.TestCase):
    def test_only_a_line_feed_ends_one(self):
        self.assertEqual(_command.json_lines('{"name": "a\u2028b\u0085"}\n{}\n'), [{"name": "a\u2028b\u0085"}, {}])


@needs_daemon
class Job(unittest.TestCase):
    def test_a_wait_without_time_asks(self):
        job = cosched.submit(["true"])
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.assertEqual(job.wait(timeout=0), 0)
                return
        self.fail("it has not been asked")

    def test_its_life(self):
        job = cosched.submit(["sh", "-c", "echo begun; read x < $0; echo done; exit 3", self.fifo()], policy="gang", name="its-life")
        self.assertEqual((job.state, job.name, job.ended, job.returncode), ("running", "its-life", False, None))
        self.assertIn(job.id, [other.id for other in cosched.jobs()])
        self.assertEqual(cosched.job("its-life").id, cosched.job(job.id).id)
        for seconds in (0, 0.2):
            with self.assertRaises(subprocess.TimeoutExpired):
                job.wait(timeout=seconds)
        self.assertEqual(job.suspend().state, "suspended")
        self.assertEqual(job.resume().state, "running")
        self.assertEqual(job.set_class("standby").snapshot["class"], "standby")
        self.assertEqual(job.set_policy("local").snapshot["own_policy"], "local")
        self.assertIsNone(job.set_policy(None).snapshot.get("own_policy"))
        self.assertEqual(job.set_share(0.5).snapshot["share_max"], 0.5)
        self.assertIsNone(job.set_share(None).snapshot.get("share_max"))
        lines = job.follow_log()
        self.assertEqual(next(lines), "begun\n")
        with open(self.path, "w") as fifo:
            fifo.write("\n")
        self.assertEqual(list(lines), ["done\n"])
        self.assertEqual((job.wait(timeout=60), job.state, job.log()), (3, "ended", "begun\ndone\n"))
        self.assertLess({"registered", "suspended", "resumed", "ended"}, {event["what"] for event in job.events()} | {""})
        self.assertIn("cpu_time_us", job.usage())

    def fifo(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = f"{folder.name}/fifo"
        os.mkfifo(self.path)
        return self.path

    def test_kill(self):
        job = cosched.submit(["sleep", "1000"])
        job.kill()
        self.assertEqual((job.wait(timeout=60), job.returncode), (-signal.SIGTERM, -signal.SIGTERM))
        job = cosched.submit(["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"])
        self.assertEqual(next(job.follow_log()), "deaf\n")
        job.kill(grace_s=0.1)
        self.assertEqual(job.wait(timeout=60), -signal.SIGKILL)
        with self.assertRaises(errors.Conflict) as refused:
            job.suspend()
        self.assertTrue(refused.exception.why and refused.exception.hint)

    def test_what_is_not_captured_has_no_log(self):
        job = cosched.run(["true"]).job
        with self.assertRaisesRegex(errors.Conflict, "has no output file"):
            job.log()

    def test_terms(self):
        self.assertEqual(cosched.submit(["sleep", "1000"], time=0.5, grace=0.5).wait(timeout=60), -signal.SIGTERM)
        first = cosched.submit(["sleep", "1000"])
        with tempfile.TemporaryDirectory() as folder:
            second = cosched.submit(["echo", "second"], after=[first.id], output=f"{folder}/out-%j")
            self.assertEqual(second.refresh().state, "waiting")
            first.kill()
            self.assertEqual(second.wait(timeout=60), 0)
            with open(f"{folder}/out-{second.id}") as out:
                self.assertEqual(out.read(), second.log())
            self.assertRegex(second.log(), "(?m)^second$")

    def test_an_array(self):
        jobs = cosched.submit_array(["sh", "-c", "echo $COSCHED_ARRAY_INDEX"], "3-5%1", cpus=1)
        self.assertEqual([job.wait(timeout=60) for job in jobs], [0, 0, 0])
        self.assertEqual([job.log() for job in jobs], ["3\n", "4\n", "5\n"])
        with self.assertRaises(errors.LaunchError):
            cosched.submit_array(["true"], "x")
        with self.assertRaisesRegex(TypeError, "array"):
            cosched.submit(["true"], array="1-3")

    def test_no_such_job(self):
        for which in (10**15, "no such name"):
            with self.assertRaises(errors.NotFound):
                cosched.job(which)

    def test_the_machine_and_its_limits(self):
        self.assertEqual(cosched.status()["socket"], os.environ["COSCHED_SOCKET"])
        self.assertIn("limits", cosched.limits())

    def test_events(self):
        job = cosched.run(["true"]).job
        job.wait(timeout=60)
        told, stream = [], cosched.events(follow=True)
        # Changes are reported with a delay.
        while "ended" not in told:
            event = next(stream)
            told += [event["job"]["what"]] if event["kind"] == "job" and event["job"]["id"] == job.id else []
        self.assertEqual(told[0], "registered")
        stream.close()
        job = cosched.submit(["true"])
        with contextlib.closing(cosched.events(follow=True, after=event["id"])) as stream:
            self.assertEqual(next(one for one in stream if one["kind"] == "job")["job"]["id"], job.id)
        self.assertIn(event["id"], [one["id"] for one in cosched.events()])
        with self.assertRaises(errors.CoschedError):
            next(cosched.events(socket="/nowhere/x"))

    def test_ctrl_c_ends_the_job(self):
        program = "import cosched; print(1, flush=True); cosched.run(['sh', '-c', 'echo 2; exec sleep 1000'], name='ctrl-c')"
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            self.assertEqual([process.stdout.readline() for _ in range(2)], ["1\n", "2\n"])
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        self.assertEqual(cosched.job("ctrl-c").wait(timeout=60), -signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
