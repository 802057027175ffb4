"""experiments/roysden-2004: its statistics, its statements on the paper's own tables, and the order of its runs."""

import random
import unittest

from experiment import EXPERIMENTS, load

FOLDER = EXPERIMENTS / "roysden-2004"

plan, stats, results, report = load("plan", "stats", "results", "report", folder=FOLDER)


def numbers(clock_s, user_s=2.0, system_s=0.5):
    return {"clock_s": clock_s, "user_s": user_s, "system_s": system_s, "use_percent": 100 * (user_s + system_s) / clock_s}


class Plan(unittest.TestCase):
    def test_every_setting_has_one_turn_in_each_repetition_and_the_default_two(self):
        runs = plan.runs(["compute"], ["alone", "hog"], list(plan.ARMS), 3)
        self.assertNotIn("one-sorter", [run.arm for run in plan.runs(["io"], ["alone"], list(plan.ARMS), 1)], "that is its default")
        keys = [run.key() for run in runs]
        self.assertEqual(len(keys), len(set(keys)))
        for repetition in range(3):
            for condition in ("alone", "hog"):
                turn = [run.arm for run in runs if (run.repetition, run.condition) == (repetition, condition)]
                self.assertEqual(sorted(turn), sorted([*plan.ARMS, "default"]))
        first = [run.name() for run in runs[:len(plan.ARMS) + 1]]
        self.assertNotEqual(first, [run.name() for run in runs[2 * len(first):3 * len(first)]], "the order is drawn anew")


class Statistics(unittest.TestCase):
    def test_the_interval_of_a_paired_ratio(self):
        base = [1.0, 2.0, 4.0, 3.0, 5.0]
        self.assertEqual(stats.paired([value * 0.5 for value in base], base), (0.5, 0.5, 0.5))
        draw = random.Random(3)
        noisy = [value * draw.uniform(0.8, 1.2) for value in base * 8]
        ratio, low, high = stats.paired(noisy, base * 8)
        self.assertTrue(low < ratio < high and low < 1 < high, (low, ratio, high))

    def test_least_squares_find_what_was_put_in(self):
        draw = random.Random(5)
        rows = [[draw.uniform(20, 24), draw.uniform(1, 2), draw.uniform(150, 199)] for _ in range(60)]
        values = [3 + 0.5 * user + 0.6 * system - 0.07 * use + draw.gauss(0, 0.01) for user, system, use in rows]
        constant, user, system, use = stats.least_squares(rows, values)
        for (found, t), true in ((constant, 3), (user, 0.5), (system, 0.6), (use, -0.07)):
            self.assertAlmostEqual(found, true, delta=0.1)
            self.assertGreater(abs(t), 10)

    def test_variables_that_cannot_be_told_apart(self):
        self.assertIsNone(stats.least_squares([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], [1.0, 2.0, 3.0]))


class Statements(unittest.TestCase):
    def found(self, factors):
        """Runs whose clock time is the default's times a factor, with a little noise."""
        draw = random.Random(7)
        runs = plan.runs(["compute", "io"], ["alone"], [*factors], 12)
        times = {run.key(): numbers(factors[run.arm] * draw.uniform(0.998, 1.002)) for run in runs}
        self.reports = results.group(runs, lambda run: times[run.key()])
        return results.collect(runs, lambda run: times[run.key()])

    def test_on_the_paper_s_tables_they_hold(self):
        published = results.published(FOLDER / "published.csv")
        factors = {arm: row["clock_s"] / published["compute"]["default"]["clock_s"] for arm, row in published["compute"].items()}
        found = {said: verdict for said, _, _, verdict in results.statements({"compute": self.found(factors)["compute"]})}
        self.assertEqual([*found.values()], ["holds"] * 3, found)

    def test_what_gains_nothing_is_said(self):
        found = [verdict for *_, verdict in results.statements(self.found({arm: 1.0 for arm in plan.PUBLISHED_ARMS}))]
        self.assertEqual((found.count("does not hold"), found.count("not resolved")), (1, 0), "the 5 % of the compute-bound version")

    def test_few_or_noisy_runs_resolve_nothing(self):
        wide = {"ratio": 1.0, "low": 0.9, "high": 1.1, "runs": 12}
        for one in (wide, {"ratio": 0.9, "low": 0.89, "high": 0.91, "runs": 5}):
            self.assertIsNone(results.gains(one, 1.0))
            self.assertEqual(results.bar(one, 1.01), "not resolved")

    def test_the_bars_of_autotune(self):
        def verdicts(factors):
            rows = results.bars(self.found(factors), self.reports)
            return {(row[-2], row[-1]) for row in rows}

        self.assertEqual(verdicts({"default": 1.0, "nice-up-io": 0.995, "auto": 1.0}), {("kept", "kept")})
        self.assertEqual(verdicts({"default": 1.0, "nice-up-io": 0.995, "auto": 1.03}), {("missed", "missed")})
        self.assertEqual(verdicts({"default": 1.0, "short-slices": 0.9, "auto": 0.95}), {("kept", "missed")})

    def test_the_report_shows_both(self):
        found = self.found({arm: 1.0 for arm in plan.ARMS})
        made = {"date": "2004-06-04", "commit": "x", "cpus": 2, "kernel": "6", "bytes": 10**8, "memory": "64M", "repetitions": 12,
                "files": "in memory", "disk": "limited"}
        paper = results.published(FOLDER / "published.csv"), results.published_regression(FOLDER / "regression.csv")
        text = report.text(found, results.bars(found, self.reports), {"compute": {"user_s": (0.5, -10.0)}}, *paper, made)
        for part in ("12.05 | 0.956", "0.512 (1072.86) | 0.500 (10.0)", "default again (noise)", "autotune"):
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main()
