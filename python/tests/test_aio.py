"""Jobs for asyncio, with a real daemon."""

import asyncio
import subprocess
import unittest

from cosched import aio, errors
from support import needs_daemon


@needs_daemon
class Aio(unittest.IsolatedAsyncioTestCase):
    async def test_runs_at_the_same_time(self):
        # Each waits for a file of the other: one after the other they would never end.
        words = ["sh", "-c", 'for i in 1 2; do echo; done; while [ "$(ls "$0" | wc -l)" != 2 ]; do :> "$0/$1"; sleep 0.1; done; exit $1']
        folder = subprocess.check_output(["mktemp", "-d"], text=True).strip()
        self.addCleanup(subprocess.run, ["rm", "-r", folder])
        runs = [aio.run([*words, folder, str(code)], capture_output=True, text=True, cpus=1) for code in (1, 2)]
        done = await asyncio.wait_for(asyncio.gather(*runs), 60)
        self.assertEqual([(one.returncode, one.stdout) for one in done], [(1, "\n\n"), (2, "\n\n")])
        self.assertEqual((await asyncio.to_thread(done[0].job.refresh)).returncode, 1)

    async def test_a_cancelled_run_ends_its_job(self):
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(aio.run(["sh", "-c", "sleep 1000 & sleep 1000"], name="cancelled"), 10)
        job = await aio.job("cancelled")
        self.assertEqual(await asyncio.wait_for(job.wait(), 60), -9)

    async def test_the_life_of_a_job(self):
        job = await aio.submit(["sh", "-c", "echo begun; exec sleep 1000"], name="aio-life", policy="local")
        async for line in job.follow_log():
            self.assertEqual(line, "begun\n")
            break
        self.assertEqual((await job.suspend()).state, "suspended")
        self.assertEqual((await job.resume()).state, "running")
        self.assertEqual((await job.set_class("standby")).snapshot["class"], "standby")
        self.assertEqual((await job.set_policy("gang")).snapshot["own_policy"], "gang")
        self.assertEqual((await job.set_share(0.5)).snapshot["share_max"], 0.5)
        self.assertIn(job.id, [other.id for other in await aio.jobs()])
        waiter = asyncio.create_task(job.wait())
        await (await aio.job(job.id)).kill()
        self.assertEqual(await asyncio.wait_for(waiter, 60), -15)
        self.assertRegex(await job.log(), "^begun\n")
        self.assertIn("ended", [event["what"] for event in await job.events()])
        async for event in aio.events(follow=True):
            if event["kind"] == "job" and (event["job"]["id"], event["job"]["what"]) == (job.id, "ended"):
                break
        self.assertIn("cpu_time_us", await job.usage())
        self.assertTrue((await aio.status())["cpus"] and (await aio.limits())["limits"])

    async def test_errors(self):
        with self.assertRaises(errors.NotFound):
            await aio.job(10**15)
        with self.assertRaises(errors.NoDaemon):
            await aio.status(socket="/nowhere/x")
        with self.assertRaises(FileNotFoundError):
            await aio.run(["/nowhere/program"], stderr=subprocess.DEVNULL)
        with self.assertRaises(errors.LaunchError):
            await aio.submit(["true"], cpus=100_000)
        with self.assertRaises(subprocess.CalledProcessError):
            await aio.run(["false"], check=True)


if __name__ == "__main__":
    unittest.main()
