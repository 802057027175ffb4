"""The notebooks of docs/notebooks, executed as programs on small examples."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

NOTEBOOKS = pathlib.Path(__file__).parents[2] / "docs/notebooks"


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
@unittest.skipUnless(NOTEBOOKS.is_dir(), "not in a checkout")
class Notebooks(unittest.TestCase):
    def lines(self, name, **small):
        with tempfile.TemporaryDirectory() as folder:
            figure = pathlib.Path(folder, "figure.svg")
            environment = os.environ | {"MPLBACKEND": "Agg", "FIGURE": str(figure)} | small
            done = subprocess.run([sys.executable, NOTEBOOKS / name], env=environment, capture_output=True, text=True, timeout=200)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("<svg", figure.read_text())
        return done.stdout.splitlines()

    def test_all_are_here(self):
        tested = {"figure3.py", "own_strategy.py", "own_trace.py", "what_if.py"}
        self.assertEqual({file.name for file in NOTEBOOKS.glob("*.py")}, tested)

    def test_figure_3(self):
        self.assertEqual(len(self.lines("figure3.py", JOBS="6", SEEDS="1", MEAN_S="0.02")), 20)

    def test_own_trace(self):
        with tempfile.NamedTemporaryFile("w", suffix=".swf") as trace:
            trace.write("".join(f"{n} {n} 0 1 {size} -1 -1 {size} -1 -1 1 1 1 1 1 1 -1 -1\n" for n, size in [(1, 4), (2, 64), (3, 8)]))
            trace.flush()
            lines = self.lines("own_trace.py", SEEDS="1", TRACE=trace.name)
        self.assertRegex(lines[0], r"^2 jobs of .*\.swf; left out: {'larger than the machine': 1}$")
        self.assertEqual([line.split()[0] for line in lines[1:]], ["FCFS", "EASY", "GS", "Local", "SB", "PB-SB"])

    @unittest.skipUnless(os.environ.get("COSCHED_COMMAND"), "no command is named in COSCHED_COMMAND")
    def test_what_if(self):
        lines = self.lines("what_if.py")
        self.assertEqual(len(lines), 12 + 5 + 3)
        self.assertIn("4 solvers: slowdown 1.60", lines[-1])

    def test_own_strategy(self):
        lines = self.lines("own_strategy.py", JOBS="6", MEAN_S="0.02")
        self.assertEqual([line.split()[0] for line in lines], ["GS", "ShortFirst", "Local", "SB", "SpinIfAlone"])


if __name__ == "__main__":
    unittest.main()
