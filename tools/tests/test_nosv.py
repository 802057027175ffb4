"""experiments/nosv: the cases, the figures and the table on hand-made data, and what is said without nOS-V."""

import importlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "experiments/nosv"
NAMES = ["runner", "report"]


def modules():
    """The modules of the folder; other experiments have modules with the same names, which are kept apart."""
    kept = {name: sys.modules.pop(name) for name in NAMES if name in sys.modules}
    sys.path.insert(0, str(FOLDER))
    try:
        return [importlib.import_module(name) for name in NAMES]
    finally:
        del sys.path[0]
        for name in NAMES:
            sys.modules.pop(name, None)
        sys.modules.update(kept)


runner, report = modules()


def entries(seconds):
    """A journal in which each case takes what the function says."""
    made = {runner.key(case): {**case._asdict(), "seconds": seconds(case)} for case in runner.cases(3)}
    return {"calibration": {"cpus": 2, "kernel": "6.0", "loops_per_us": 700.0}, **made}


class Figures(unittest.TestCase):
    def collected(self, seconds):
        with mock.patch.object(report, "predicted", return_value={"1": 1.0, "2": 1.0, "4": 1.0}):
            return report.collect(entries(seconds), None)

    def test_ways_are_interleaved_within_a_repetition(self):
        order = [case.repetition for case in runner.cases(2)]
        self.assertEqual(order, sorted(order))
        self.assertEqual([case.way for case in runner.cases(1) if (case.grain_us, case.jobs) == (50, 2)], list(runner.WAYS))

    def test_a_slowdown_is_over_one_alone_and_the_number_of_jobs(self):
        whole = self.collected(lambda case: (0.5 + 0.1 * case.repetition) * case.jobs * (2 if case.way == "linux" and case.jobs > 1 else 1))
        found = {(row["grain_us"], row["jobs"], row["way"]): row for row in whole["slowdowns"]}
        self.assertAlmostEqual(found[50, 4, "cosched"]["median"], 1.0)
        self.assertAlmostEqual(found[500, 2, "linux"]["high"], 2.0)
        self.assertEqual(found[5000, 1, "nosv"]["n"], 3)

    def test_a_run_that_was_ended_counts_as_its_limit_and_is_marked(self):
        whole = self.collected(lambda case: None if case.way == "linux" and case.jobs == 4 else 0.5 * case.jobs)
        row = next(row for row in whole["slowdowns"] if (row["grain_us"], row["jobs"], row["way"]) == (50, 4, "linux"))
        self.assertEqual((row["median"], row["ended"]), (runner.LIMIT, 3))
        self.assertEqual(report.cell(row), "> 10.00 (10.00 to 10.00)")

    def test_the_cost_of_a_switch_is_of_one_round_of_one_job(self):
        whole = self.collected(lambda case: 0.2 if case.grain_us == 0 else 0.5 * case.jobs)
        self.assertAlmostEqual(whole["switch_us"]["median"], 5.0)

    def test_nothing_finished_is_no_report(self):
        self.assertIsNone(report.collect({}, None))

    def test_the_table_has_a_row_for_each_grain_and_number_of_jobs(self):
        whole = {"made": {"date": "2026-01-01", "commit": "c"}, **self.collected(lambda case: 0.5 * case.jobs)}
        self.assertEqual(sum(line.startswith(("| 50 ", "| 500 ", "| 5000 ")) for line in report.text(whole).splitlines()), 9)


class Command(unittest.TestCase):
    def test_without_nosv_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "cosched").touch()
            done = subprocess.run([FOLDER / "reproduce", "--bin", folder, "--build", folder], capture_output=True, text=True, env=dict(os.environ, NOSV=folder))
        self.assertEqual(done.returncode, 3)
        for part in ("no nOS-V in", "why:", "hint:"):
            self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
