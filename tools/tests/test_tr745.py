"""experiments/tr-745: conditions, lists, numbers and the report on hand-made data."""

import importlib
import pathlib
import sys
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "experiments/tr-745"
NAMES = ["student", "lists", "plan", "results", "report", "runner"]


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


student, lists, plan, results, report, runner = modules()


def condition(name):
    return next(number for number, one in enumerate(plan.CONDITIONS) if one[1].startswith(name))


def option(strategy, name, machine, what):
    made = plan.options(strategy, *plan.cell(condition(name), machine))
    return made[made.index(what) + 1]


class Plan(unittest.TestCase):
    def test_a_machines_constants(self):
        self.assertEqual([option("GS", "as stated", machine, "--cs-us") for machine in plan.MACHINES], ["2000", "100"])
        self.assertEqual([option("SB", "as stated", machine, "--cs-us") for machine in plan.MACHINES], ["200", "5"])
        self.assertEqual([option("SB", "as stated", machine, "--spin") for machine in plan.MACHINES], ["fixed", "adaptive"])
        self.assertNotIn("--platform", plan.options("SB", *plan.cell(0, "2000")))
        self.assertIn(str(plan.PLATFORM), plan.options("GS", *plan.cell(0, "today")))

    def test_a_condition_changes_one_thing(self):
        self.assertEqual(option("GS", "a tenth as long", "2000", "--quantum-ms"), "20")
        self.assertEqual([option("GS", "each switch costs 43", machine, "--cs-us") for machine in plan.MACHINES], ["2043", "143"])
        self.assertEqual(option("SB", "blocks at once", "today", "--spin-us"), "0.001")
        self.assertEqual(option("SB", "2.3 ms", "today", "--cd-scale"), "4")
        swapped, _ = plan.cell(condition("costs of switches"), "today")
        self.assertEqual((swapped["switch"], swapped["network"], swapped["model"]), (200, "today", "linux"))
        self.assertEqual(plan.MACHINES["today"]["switch"], 5, "the machine itself is unchanged")

    def test_the_platform_has_the_nodes(self):
        (cluster,) = tomllib.loads(plan.PLATFORM.read_text())["cluster"]
        self.assertEqual(cluster["hosts"], plan.NODES)

    def test_the_quick_conditions_exist_and_begin_with_the_base(self):
        for size in plan.SIZES.values():
            self.assertEqual(plan.CONDITIONS[size["conditions"][0]][0], "Base")


class Lists(unittest.TestCase):
    def test_each_number_is_another_list_and_always_the_same(self):
        for kind in lists.KINDS:
            made = lists.made(kind, "J6", 1)
            self.assertEqual(made, lists.made(kind, "J6", 1))
            self.assertNotEqual(made, lists.made(kind, "J6", 2))
            self.assertEqual(made, sorted(made))
            self.assertTrue(all(1 <= tasks <= plan.NODES and alone > 0 for _, tasks, alone, _, _ in made))
            self.assertTrue(any(job[4] for job in made))

    def test_types_share_the_lists(self):
        self.assertEqual([job[:3] for job in lists.made("mix", "J2", 3)], [job[:3] for job in lists.made("mix", "J6", 3)])

    def test_a_lists_text(self):
        self.assertEqual(lists.text([(0.25, 4, 0.5, "J6", True)]), "arrival_s,tasks,exec_s,type\n0.250000,4,0.500000,J6\n")

    def test_only_the_jobs_that_count_are_measured(self):
        made = [(0.0, 1, 1.0, "J6", True), (0.0, 1, 1.0, "J6", False), (0.0, 1, 1.0, "J6", True)]
        output = "id,response_s\n0,1.5\n1,100\n2,2.5\n"
        self.assertEqual(runner.response_s(output, made), 2.0)
        with self.assertRaises(ValueError):
            runner.response_s(output, made[:2])


class Report(unittest.TestCase):
    def measured(self):
        """In the base gangs win on both machines; with balanced work the other way wins in 2000 if processes block."""
        times = {"GS": [1.0, 2.0], "soft-gang": [0.5, 1.0], "Local": [4.0, 8.0], "SB": [0.75, 1.5]}
        other = {**times, "soft-gang": [2.0, 4.0]}
        balanced = condition("perfect")
        return {(0, "2000"): times, (0, "today"): times, (balanced, "2000"): other, (balanced, "today"): times, (condition("at most 2"), "today"): times}

    def test_ratios_are_over_the_better_gang(self):
        base, balanced = results.collect(self.measured())
        self.assertEqual(base["machines"]["2000"]["better_gang"], "soft-gang")
        self.assertEqual((base["machines"]["2000"]["spin"]["mean"], base["machines"]["2000"]["block"]["mean"]), (4.0, 1.5))
        self.assertEqual((balanced["machines"]["2000"]["better_gang"], balanced["machines"]["2000"]["block"]["mean"]), ("GS", 0.75))

    def test_the_winner_is_by_the_interval(self):
        self.assertEqual([results.winner(results.value(mean, 0.1)) for mean in (1.2, 1.05, 0.95, 0.8)], ["gangs", "open", "open", "none"])
        self.assertEqual(results.winner(results.value(3.0, None)), "open")

    def test_the_answer_is_that_of_the_numbers(self):
        found = {"made": {"date": "d", "commit": "c", "program_sha256": "p", "lists": 2}, "conditions": results.collect(self.measured())}
        text = report.text(found)
        self.assertIn("**Programs that block, machine of 2000**: gangs are better in 1 of 2 conditions, worse in 1, 0 are open; the ratios are 0.75 to 1.50. Worse: balance, perfect.", text)
        self.assertIn("**What differs between the machines**: balance, perfect, programs that block: none → gangs.", text)
        self.assertIn("| Balance | perfect | 4.00 ± 0.00, gangs | 0.75 ± 0.00, none | 4.00 ± 0.00, gangs | 1.50 ± 0.00, gangs |", text)

    def test_the_chart_has_the_conditions_that_differ_in_length_alone(self):
        found = {"conditions": results.collect({(number, machine): {name: [1.0, 2.0] for name in plan.STRATEGIES} for number in range(len(plan.CONDITIONS)) for machine in plan.MACHINES})}
        (chart,) = report.charts(found)
        self.assertEqual([round(point["x"], 1) for point in chart["series"][0]["points"]], [0.6, 2.3, 9.2, 36.8])


if __name__ == "__main__":
    unittest.main()
