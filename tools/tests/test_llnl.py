"""experiments/llnl-digital-alpha: its numbers and statements on canned reports, and on the paper's own tables."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

from experiment import EXPERIMENTS, load

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = EXPERIMENTS / "llnl-digital-alpha"
sys.path[:0] = [str(ROOT / "tools/bench"), str(ROOT / "experiments")]

import shared  # noqa: E402

plan, results = load("plan", "results", folder=FOLDER)
PUBLISHED = results.published(FOLDER / "published.csv")


def report(mflops):
    return {"mflops_cpu": mflops, "main_phase_s": 1.0}


class Numbers(unittest.TestCase):
    def test_a_cell_and_its_speedup(self):
        runs = plan.runs(2, 3, results.tables_of([3]))
        rates = {1: [100, 110, 120], 2: [200, 220, 240]}
        found = results.collect(runs, lambda run: report(rates[run.threads][run.repetition]))
        cell = found[3]["gang"][2]
        self.assertEqual(cell["runs"], 3)
        self.assertAlmostEqual(cell["mean"], 220)
        self.assertAlmostEqual(cell["deviation"], 20)
        self.assertAlmostEqual(cell["speedup"], 2)

    def test_arms_alternate(self):
        arms = [run.arm for run in plan.runs(1, 2, results.tables_of([4]))]
        self.assertEqual(arms, ["gang", "unix", "unix", "gang"])

    def test_competitors_as_many_for_each_cpu_as_in_the_paper(self):
        self.assertEqual([plan.competitors(table, 12) for table in plan.TABLES], [20, 12, 12])
        self.assertEqual([plan.competitors(table, 2) for table in plan.TABLES], [3, 2, 2])

    def test_a_cut_line_of_the_journal_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "runs.jsonl"
            path.write_text('{"key": 1}\n{"ke')
            with contextlib.redirect_stderr(io.StringIO()):
                journal = shared.Journal(path)
                self.assertEqual(list(journal.entries), [1])
                # Everything after the truncated line is intact.
                journal.add(2, report={})
                self.assertEqual(list(shared.Journal(path).entries), [1, 2])


class Published(unittest.TestCase):
    def test_every_value_of_the_tables_is_there(self):
        self.assertEqual(len(PUBLISHED[1]["gang"]), 11)
        for table in (3, 4):
            for arm in plan.ARMS:
                self.assertEqual(sorted(PUBLISHED[table][arm]), list(range(1, 12)))
        self.assertEqual(PUBLISHED[3]["unix"][8], {"mflops": 104.5, "deviation": 6.0, "speedup": 3.49})

    def test_speedups_follow_from_the_rates(self):
        # The paper divides by a rate that it rounded to 28.2 and 29.9: within 0.5 %.
        for arm, cells in PUBLISHED[3].items():
            for threads, cell in cells.items():
                self.assertAlmostEqual(cell["mflops"] / cells[1]["mflops"] / cell["speedup"], 1, delta=0.005, msg=(arm, threads))

    def test_the_statements_hold_for_the_papers_own_numbers(self):
        found = {}
        for table, arms in PUBLISHED.items():
            arms = {"unix": arms["gang"], **arms} if table == 1 else arms
            found[table] = {arm: {threads: self.cell(cells, threads, table, arm) for threads in (1, 5)} for arm, cells in arms.items()}
        asked = results.statements(found)
        self.assertEqual(len(asked), 7)
        for said, read, numbers, holds in asked:
            self.assertTrue(holds, (said, read, numbers))

    @staticmethod
    def cell(cells, threads, table, arm):
        """As `collect` makes it; the worst run of five threads is from the log in the text."""
        one = cells[threads]
        mean = one["mflops"] or 100 * one["speedup"]
        least = 110.55 if (table, arm, threads) == (4, "unix", 5) else mean
        return {"mean": mean, "deviation": one["deviation"] or 0, "median": 612.33 if table == 4 else mean, "least": least,
                "speedup": one["speedup"] or mean / cells[1]["mflops"]}


if __name__ == "__main__":
    unittest.main()
