"""tools/leftovers: what appears after the first listing is named, but neither what existed before nor what a live process has."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent.parent / "leftovers"


class Leftovers(unittest.TestCase):
    def test_only_what_is_new_and_nobody_has(self):
        with tempfile.TemporaryDirectory(prefix="cosched-was-there-", dir="/tmp") as old, tempfile.NamedTemporaryFile("w+") as file:
            subprocess.run([TOOL], stdout=file, check=True)
            self.assertIn(old, pathlib.Path(file.name).read_text())
            with tempfile.TemporaryDirectory(prefix="cosched-new-", dir="/tmp") as new:
                own = tempfile.mkdtemp(prefix=f"cst-{os.getpid()}-", dir="/tmp")
                unnamed = f"/tmp/.tmp{os.getpid() % 1000000:06}"
                os.makedirs(f"{unnamed}/run/left-by-this-test")
                launcher = subprocess.Popen(["sleep", "100"], env={**os.environ, "COSCHED_SOCKET": f"{new}/socket"})
                done = subprocess.run([TOOL, "--since", file.name], capture_output=True, text=True)
                launcher.kill()
                launcher.wait()
                os.rmdir(own)
                shutil.rmtree(unnamed)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"left: file {new}, empty", done.stdout)
                self.assertIn(f"left: process {launcher.pid} (sleep 100) of {new}/socket", done.stdout)
                self.assertIn(f"left: file {unnamed}, with run, run/left-by-this-test", done.stdout)
                self.assertNotIn(old, done.stdout)
                self.assertNotIn(own, done.stdout)

    def test_a_hierarchy_is_forgotten(self):
        name = f"cst-{os.getpid()}-forgotten"
        with tempfile.TemporaryDirectory() as place:
            mounted = subprocess.run(["mount", "-t", "cgroup", "-o", f"none,name={name}", name, place], capture_output=True)
            if mounted.returncode:
                self.skipTest("no v1 hierarchy can be mounted")
            os.mkdir(f"{place}/live")
            subprocess.run(["umount", place], check=True)
        listed = lambda: f"name={name}:" in pathlib.Path("/proc/self/cgroup").read_text()
        self.assertTrue(listed())
        self.assertEqual(subprocess.run([TOOL, "--forget", name]).returncode, 0)
        self.assertFalse(listed())


if __name__ == "__main__":
    unittest.main()
