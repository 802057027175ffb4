"""The comparison with SimPy and pybatsim (experiments/simpy): the same ends, from independent programs."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

COMPARE = pathlib.Path(__file__).parents[2] / "experiments/simpy/compare.py"


@unittest.skipUnless(COMPARE.exists(), "not in a checkout")
class Simpy(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("simpy"), "SimPy is not installed (tools/setup test)")
    @unittest.skipUnless(os.environ.get("COSCHED_COMMAND"), "no command is named in COSCHED_COMMAND")
    def test_it_agrees(self):
        words = [sys.executable, COMPARE, "--repeat=1", "--jobs=8", "--mean-s=0.05", "--queued=20"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=200)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("all ends of 3 × 8 jobs are equal", done.stdout)
        self.assertIn("all ends of 20 jobs are equal", done.stdout)

    def test_a_package_that_is_missing_is_named(self):
        blocked = "import sys; sys.modules['simpy'] = None; sys.path.insert(0, sys.argv[1]); import runpy; runpy.run_path(sys.argv[2], run_name='__main__')"
        done = subprocess.run([sys.executable, "-c", blocked, COMPARE.parent, COMPARE], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("simpy", done.stderr)

    @unittest.skipUnless(importlib.util.find_spec("simpy"), "SimPy is not installed (tools/setup test)")
    def test_a_command_that_is_missing_is_named(self):
        done = subprocess.run([sys.executable, COMPARE, "--cosched=/nowhere/cosched"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("/nowhere/cosched", done.stderr)


if __name__ == "__main__":
    unittest.main()
