"""experiments/zhang-2000: its statistics and statements on canned data, the published numbers, and one tiny real run."""

import math
import pathlib
import json
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "experiments/zhang-2000"
sys.path[:0] = [str(FOLDER), str(ROOT / "experiments")]

import claims  # noqa: E402
import plan  # noqa: E402
import report  # noqa: E402
import runner  # noqa: E402
import stats  # noqa: E402

PUBLISHED = tomllib.loads((FOLDER / "published.toml").read_text())
PROGRAM = ROOT / "target/release/cosched"


class Statistics(unittest.TestCase):
    def test_half_width(self):
        # n = 4, s = 1.2910, t = 3.182: 2.054.
        self.assertAlmostEqual(stats.half_width([1, 2, 3, 4]), 2.054, places=3)
        self.assertIsNone(stats.half_width([1]))

    def test_kendall_tau(self):
        self.assertEqual(stats.kendall_tau([1, 2, 3], [10, 20, 30]), 1)
        self.assertEqual(stats.kendall_tau([1, 2, 3], [3, 2, 1]), -1)
        self.assertAlmostEqual(stats.kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]), 4 / 6)
        # tau-b: 5 of 6 pairs ordered in one list.
        self.assertAlmostEqual(stats.kendall_tau([1, 1, 2, 3], [1, 2, 3, 4]), 5 / math.sqrt(5 * 6))
        self.assertIsNone(stats.kendall_tau([1, 1], [1, 2]))

    def test_crossing(self):
        self.assertAlmostEqual(stats.crossing([(0.2, 1), (0.4, 100)], 10), 0.3)
        self.assertIsNone(stats.crossing([(0.2, 1), (0.4, 2)], 5))
        self.assertEqual(stats.crossing([(0.2, 7)], 5), 0.2)


class Canned:
    """Values from a function (metric, strategy, at) -> by seed, or with a bound."""

    def __init__(self, look):
        self.look = look

    def value(self, metric, strategy, at):
        value = self.look(metric, strategy, at)
        return value if isinstance(value, claims.Value) else claims.Value({1: value})

    change = claims.Simulated.change


class Statements(unittest.TestCase):
    def holding(self, statement, look):
        return [atom.holds for atom in claims.check(statement, Canned(look))]

    def test_greater_and_bounds(self):
        statement = {"kind": "greater", "metric": "response", "a": ["A"], "b": ["B"], "by": 0.5}
        exact, lower = (lambda x: claims.Value({1: x})), (lambda x: claims.Value({1: x}, "lower"))
        cases = [
            (exact(16), exact(10), True), (exact(14), exact(10), False), (lower(16), exact(10), True), (lower(14), exact(10), None),
            (exact(16), lower(10), None), (exact(14), lower(10), False), (lower(99), lower(10), None),
        ]
        for a, b, expected in cases:
            self.assertEqual(self.holding(statement, lambda _, strategy, __: {"A": a, "B": b}[strategy]), [expected])

    def test_similar(self):
        statement = {"kind": "similar", "metric": "response", "set": ["A", "B", "C"], "within": 0.15}
        self.assertEqual(self.holding(statement, lambda _, s, __: {"A": 10, "B": 11, "C": 12}[s]), [True, False])

    def test_changes_by_place(self):
        statement = {"kind": "below", "metric": "response", "from": {"mpl": 2}, "to": {"mpl": 5}, "set": ["A"], "limit": -0.5, "each": [{"x": 1}, {"x": 2}]}
        times = {(2, 1): 10, (5, 1): 4, (2, 2): 10, (5, 2): 6}
        self.assertEqual(self.holding(statement, lambda _, __, at: times[at["mpl"], at["x"]]), [True, False])

    def test_a_saturated_denominator_leaves_a_change_open(self):
        statement = {"kind": "below", "metric": "response", "from": {"mpl": 2}, "to": {"mpl": 5}, "set": ["A"], "limit": 0}
        self.assertEqual(self.holding(statement, lambda _, __, at: claims.Value({1: 5}, "lower" if at["mpl"] == 2 else "exact")), [None])

    def test_mainly_wait(self):
        statement = {"kind": "mainly_wait", "metric": "response", "a": ["A"], "b": ["B"]}
        for wait, expected in ((6, True), (4, False)):
            values = {("response", "A"): 20, ("response", "B"): 10, ("wait", "A"): wait, ("wait", "B"): 0}
            self.assertEqual(self.holding(statement, lambda metric, s, _: values[metric, s]), [expected])

    def test_the_published_tables_agree_with_what_the_paper_says_of_them(self):
        # Only statements on responses in Tables 4 and 5 can be checked like this. PB-SY at MPL 16 and the like are in the table
        # itself.
        def response(_, strategy, at):
            if "costs" in at:
                return PUBLISHED["table5"]["rows"][strategy][PUBLISHED["table5"]["columns"].index(at["costs"])]
            if at["mpl"] == 2:
                return 1.0
            column = PUBLISHED["table4"]["columns"].index({"workload": at["workload"], "mpl": at["mpl"]})
            return 1.0 + PUBLISHED["table4"]["rows"][strategy][column]

        checked = 0
        for statement in PUBLISHED["statement"]:
            in_table = statement["id"].startswith("table5") or statement["id"].startswith("table4") and "from" in statement
            if in_table and statement["metric"] == "response":
                atoms = claims.check(statement, Canned(response))
                failing = [atom.text for atom in atoms if atom.holds is not True]
                self.assertEqual(failing, [], statement["id"])
                checked += 1
        self.assertEqual(checked, 10)

    def test_published_is_whole(self):
        self.assertEqual(set(PUBLISHED["table4"]["rows"]), set(plan.STRATEGIES))
        self.assertEqual(set(PUBLISHED["table5"]["rows"]), set(plan.TABLE5))
        for table in ("table4", "table5"):
            for row in PUBLISHED[table]["rows"].values():
                self.assertEqual(len(row), len(PUBLISHED[table]["columns"]))
        ids = [statement["id"] for statement in PUBLISHED["statement"]]
        self.assertEqual(len(ids), len(set(ids)))


class Measures(unittest.TestCase):
    def test_unfinished_jobs_count_to_the_end(self):
        output = {
            "sim_end_ns": 10_000_000_000, "util_useful": 0.5, "wall_s": 0.1, "cpu_ns": {"compute": 3, "idle": 1},
            "jobs": [
                {"arrival_ns": 0, "start_ns": 0, "finish_ns": 2_000_000_000},
                {"arrival_ns": 4_000_000_000, "start_ns": None, "finish_ns": None},
            ],
        }
        found = runner.measures(output, 0.4, [1.0, 3.0])
        self.assertEqual((found["response"], found["wait"], found["execution"], found["unfinished"]), (4.0, 3.0, 1.0, 1))
        # The last quarter of two jobs is the second job alone: 6 s of a mean of 2 s.
        self.assertEqual((found["stretch"], found["late_stretch"], found["compute_share"]), (2.0, 3.0, 0.75))

    def test_useful_work(self):
        jobs = [{"tasks": 2, "exec_s": 10.0, "type": "J2"}, {"tasks": 1, "exec_s": 17.0, "type": "J2"}]
        self.assertAlmostEqual(runner.useful_work_s(jobs, 1), 2 * 10 * 0.5 + 17 * 0.35 / 0.85)
        # J2 at cd-scale 4 computes 1.4, waits for I/O 2.0 and communicates 0.15 of what was an iteration; a lone task is as before.
        self.assertAlmostEqual(runner.useful_work_s(jobs, 4), 2 * 10 * 1.55 / 3.55 + 17 * 0.35 / 0.85)


class Plan(unittest.TestCase):
    def test_cells_are_different(self):
        chains = [str(chain) for chain in plan.chains(plan.SIZES["quick"])]
        self.assertEqual(len(chains), len(set(chains)))

    def test_each_reading_has_the_whole_grid_and_each_of_the_sweep_its_cells(self):
        size = {**plan.SIZES["full"], "seeds": 1, "lengths": []}
        cells = {}
        for cell in (cell for chain in plan.chains(size) for cell in chain):
            reading = plan.Reading(cell.pop("grain"), cell.pop("cd_scale"))
            cells.setdefault(reading, set()).add(str(cell))
        for reading in plan.READINGS[1:]:
            self.assertEqual(cells[reading], cells[plan.READINGS[0]], str(reading))
        self.assertEqual(set(cells), {*plan.READINGS, *size["sweep"]})
        for reading in set(cells) - set(plan.READINGS):
            self.assertEqual(len(cells[reading]), 2 * len(plan.SWEPT), str(reading))

    def test_names_of_readings(self):
        self.assertEqual(list(map(str, plan.READINGS)), ["grain 4", "grain 1", "cd-scale 4"])


class Report(unittest.TestCase):
    def test_what_holds_under_one_reading_alone(self):
        def exhibit(**verdicts):
            return {"statements": [{"id": name, "verdict": verdict} for name, verdict in verdicts.items()]}

        exhibits = {
            "grain 4/0.8": exhibit(a="holds", b="partly", c="open"), "grain 4/1.6": exhibit(a="holds", b="partly", c="open"),
            "cd-scale 4/0.8": exhibit(a="partly", b="partly", c="open"), "cd-scale 4/1.6": exhibit(a="holds", b="holds", c="open"),
        }
        text = report.by_reading({"exhibits": exhibits, "best_load": {"grain 4": 0.8, "cd-scale 4": 1.6}})
        self.assertIn("| a | 0.8, 1.6 | 1.6 |\n| b | – | 1.6 |\n| c | – | – |\n", text)
        self.assertIn("- Under grain 4 alone: none.\n- Under cd-scale 4 alone: b.\n", text)


class TinyRun(unittest.TestCase):
    def test_it_runs_resumes_and_reports(self):
        if not PROGRAM.is_file():
            print(f"SKIPPED: {PROGRAM.relative_to(ROOT)} is not built")
            self.skipTest("no release build")
        with tempfile.TemporaryDirectory() as folder:
            command = [str(FOLDER / "reproduce"), "--tiny", "--build", folder]
            first = subprocess.run(command, capture_output=True, text=True, timeout=300)
            self.assertEqual(first.returncode, 0, first.stderr)
            made = pathlib.Path(folder) / "tiny"
            found = json.loads((made / "results.json").read_text())
            bar = found["exhibits"]["grain 4/0.8"]["figure4"]["WL5"]["PB"]
            self.assertAlmostEqual(bar["response"]["mean"], bar["wait"]["mean"] + bar["execution"]["mean"], places=4)
            self.assertGreater(bar["execution"]["mean"], 0.1)
            self.assertNotEqual(bar, found["exhibits"]["cd-scale 4/0.8"]["figure4"]["WL5"]["PB"])
            self.assertIn("| PB-SY |", (made / "report.md").read_text())
            self.assertEqual((made / "page.html").read_text().count('{"chart": '), 16)
            self.assert_resumes(command, pathlib.Path(folder) / "cells.jsonl", found)

    def assert_resumes(self, command, journal, found):
        lines = journal.read_text().splitlines(keepends=True)
        # A truncated line and two lost ones: only these are simulated again.
        journal.write_text("".join(lines[:-3]) + lines[-3][:40])
        again = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("torn line", again.stderr)
        repeated = json.loads((journal.parent / "tiny/results.json").read_text())
        self.assertEqual(repeated["exhibits"], found["exhibits"])
        self.assertIn("reproduce: 3 ", again.stderr)
        third = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertIn("reproduce: 0 ", third.stderr)

    def test_without_a_simulator_it_says_what_to_do(self):
        done = subprocess.run([str(FOLDER / "reproduce"), "--cosched", "nowhere"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("hint:", done.stderr)


if __name__ == "__main__":
    unittest.main()
