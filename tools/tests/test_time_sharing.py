"""experiments/time-sharing-2026: lists, measures and the report on canned data; intervals of ratios."""

import gzip
import importlib
import math
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "experiments/time-sharing-2026"
NAMES = ["student", "lists", "plan", "report", "results", "runner"]


def modules():
    """The modules of the folder; other experiments have modules with the same names, which are kept apart."""
    kept = {name: sys.modules.pop(name) for name in NAMES if name in sys.modules}
    sys.path[:0] = [str(FOLDER), str(ROOT / "experiments")]
    try:
        return [importlib.import_module(name) for name in NAMES]
    finally:
        del sys.path[:2]
        for name in NAMES:
            sys.modules.pop(name, None)
        sys.modules.update(kept)


student, lists, plan, report, results, runner = modules()


def measured(turnaround_s):
    return {"turnaround_s": turnaround_s, "wait_s": 1.0, "slowdown": 2.0, "slowdown_p95": 3.0, "jain": 0.5, "later": 0.1, "utilisation": 0.7}


class Experiment(unittest.TestCase):
    def test_ratio(self):
        self.assertEqual(student.ratio([2, 4], [1, 2]), (2.0, 0.0))
        # Residuals 0.5 and -0.5, s = 0.7071, t = 12.706, n = 2, mean base 1.5: 4.235.
        whole, half = student.ratio([2, 2.5], [1, 2])
        self.assertEqual(whole, 1.5)
        self.assertAlmostEqual(half, 12.706 * 0.5 / 1.5, places=3)
        self.assertEqual(student.ratio([1], [2]), (0.5, None))

    def test_means_of_times_have_wide_intervals(self):
        """The values of the simulator's own tests (metrics/estimate.rs)."""
        of = student.half_width_of_positive
        h = 4.303 * math.sqrt(1 / 3 + 1 / 4)
        self.assertAlmostEqual(of([1, math.e, math.e**2]), math.exp(1.5 + h) - (1 + math.e + math.e**2) / 3, places=6)
        t = 2.262
        self.assertAlmostEqual(of([101.0] + 9 * [100.0]), 0.1 * (t + (1 + 2 * t * t) / 6), places=6)
        self.assertEqual([of([2.0, 2.0]), of([7.0]), of([1e-300, 1e300])], [0.0, None, None])
        self.assertEqual(of([0.0, 1.0]), student.half_width([0.0, 1.0]))
        # Tables have 2.021 and 1.984.
        self.assertEqual([round(student.quantile(degrees), 2) for degrees in (30, 40, 100)], [2.04, 2.02, 1.98])

    def test_lists_are_parts_of_the_log(self):
        job = "{} {} -1 {} 1 -1 -1 1 {} -1 1 1 1 1 1 1 -1 -1\n"
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            with gzip.open(folder / "log.gz", "wt") as log:
                log.write("; MaxProcs: 4\n" + job.format(2, 50, 7, -1) + job.format(1, 0, 5, 9) + job.format(3, 100, 5, 9))
            parts = lists.cut(folder / "log.gz", folder, "log", {"lists": 2, "part": 1.0})
            texts = [path.read_text().splitlines() for path, _, _ in parts]
        self.assertEqual([(begin, length) for _, begin, length in parts], [(0, 50), (50, 50)])
        self.assertEqual([[line.split()[0] for line in text[1:]] for text in texts], [["1"], ["2"]])
        self.assertEqual(texts[1][1].split()[8], "7", "a missing estimate is the run time")

    def test_margins_are_not_measured(self):
        self.assertEqual([runner.inside(at, 100, 50) for at in (104, 105, 144, 145)], [False, True, True, False])

    def test_measures(self):
        jobs = [("1", 20.0, 5.0, 1.0), ("2", 40.0, 5.0, 3.0)]
        found = runner.measures(jobs, {"1": 10.0, "2": 40.0})
        self.assertEqual((found["turnaround_s"], found["later"], found["jain"]), (30.0, 0.5, 16 / 20))
        self.assertEqual(runner.job_of({"job_id": "1", "turnaround_time": "30", "stretch": "2", "waiting_time": "4"}), ("1", 30.0, 4.0, 2.0))

    def test_the_answer_is_that_of_the_numbers(self):
        gang = "soft gang, 10ms"
        runs = [{policy: measured({plan.BEST: 60.0, gang: 80.0}.get(policy, 100.0) * scale) for policy in plan.POLICIES} for scale in (1.0, 2.0)]
        found = {"made": {"date": "d", "commit": "c", "program_sha256": "p", "lists": {"KTH": 2}}, "size": plan.SIZES["full"], "logs": results.collect({"KTH": runs}), "slots": results.slots({"KTH": runs})}
        text = report.text(found)
        self.assertIn("malleable jobs -40 ± 0 %, rigid ones in soft gangs -20 ± 0 % at 10ms, 0 ± 0 % at 100ms", text)
        self.assertIn("As a part of the reduction by malleability: 50 ± 0 % at 10ms", text)
        self.assertIn("soft gangs against malleable jobs 0 ± 0 % at 10ms", text)
        self.assertIn("Slots of 10ms against slots of 60s: turnaround -20 ± 0 %, bounded slowdown 0 ± 0 %.", text)
        for run, scale in zip(runs, (0.5, 1.5)):
            run[plan.BEST]["turnaround_s"] *= scale / 0.6
        found["logs"] = results.collect({"KTH": runs})
        self.assertIn("is not told from 0", report.text(found))
        self.assertEqual(len(list(report.charts(found))), 1)


if __name__ == "__main__":
    unittest.main()
