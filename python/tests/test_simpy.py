"""The comparison with SimPy (experiments/simpy): the same ends, from an independent program."""

import importlib.util
import pathlib
import subprocess
import sys
import unittest

COMPARE = pathlib.Path(__file__).parents[2] / "experiments/simpy/compare.py"


@unittest.skipUnless(COMPARE.exists(), "not in a checkout")
class Simpy(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("simpy"), "SimPy is not installed (tools/setup test)")
    def test_it_agrees(self):
        words = [sys.executable, COMPARE, "--repeat=1", "--jobs=8", "--mean-s=0.05"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=200)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("all ends of 3 × 8 jobs are equal", done.stdout)

    def test_a_package_that_is_missing_is_named(self):
        blocked = "import sys; sys.modules['simpy'] = None; sys.path.insert(0, sys.argv[1]); import runpy; runpy.run_path(sys.argv[2], run_name='__main__')"
        done = subprocess.run([sys.executable, "-c", blocked, COMPARE.parent, COMPARE], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("simpy", done.stderr)


if __name__ == "__main__":
    unittest.main()
