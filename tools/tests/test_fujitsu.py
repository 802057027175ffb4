"""experiments/fujitsu-2023: windows, programs, numbers and the report on hand-made data."""

import importlib
import json
import pathlib
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "experiments/fujitsu-2023"
NAMES = ["student", "plan", "windows", "check", "results", "report"]


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


student, plan, windows, check, results, report = modules()
FINE = ("barrier", 5e-4)


def first(generator, count):
    return [next(generator) for _ in range(count)]


class Windows(unittest.TestCase):
    def test_even_slots_are_the_first_programs(self):
        ordered = [0.0, 10.0, 20.0, 30.0]
        self.assertEqual(windows.windows(ordered, 0, 1.0), [(1.0, 10.0), (21.0, 30.0)])
        self.assertEqual(windows.windows(ordered, 1, 1.0), [(11.0, 20.0), (31.0, windows.FOREVER)])

    def test_a_lost_order_leaves_the_program_and_the_next_needs_no_switch(self):
        ordered = [0.0, None, 20.0, 30.0, 40.0]
        self.assertEqual(windows.windows(ordered, 0, 1.0), [(1.0, 30.0), (41.0, windows.FOREVER)])
        self.assertEqual(windows.windows(ordered, 1, 1.0), [(31.0, 40.0)])

    def test_an_order_that_a_later_one_overtook_is_ignored(self):
        self.assertEqual(windows.windows([0.0, 25.0, 20.0, 30.0, 40.0], 1, 1.0), [(31.0, 40.0)])

    def test_work_goes_on_in_the_next_window(self):
        node = windows.Node([(1.0, 3.0), (5.0, 6.0), (8.0, windows.FOREVER)])
        self.assertEqual([node.computed(0.0, 1.0), node.computed(2.0, 2.5), node.computed(8.5, 1.0)], [2.0, 8.5, 9.5])
        self.assertEqual(windows.Node([(0.0, 1.0)]).computed(0.5, 1.0), windows.FOREVER)

    def test_orders_one_by_one_are_later_for_each_node(self):
        with mock.patch.object(plan, "WAKE", 1e-12):
            ordered = list(windows.orders("one by one, 1 ms each", 0.5, 2, windows.draws("test")))
        self.assertEqual(len(ordered), plan.NODES)
        for node in (0, 1, 127):
            self.assertAlmostEqual(ordered[node][1], 0.5 + node * 1e-3, places=9)
        clocks = list(windows.orders("clocks, 1 ms", 0.5, 2, windows.draws("test")))
        self.assertTrue(all(abs(one[1] - one[0] - 0.5) < 1e-3 for one in clocks), "a clock is off by the same in each slot")
        self.assertGreater(max(one[0] for one in clocks) - min(one[0] for one in clocks), 1e-3)


@mock.patch.object(plan, "SKEW", 0.0)
@mock.patch.object(plan, "MESSAGE", 0.0)
class Programs(unittest.TestCase):
    TURNS = [[(0.0, 1.0), (2.0, 3.0), (4.0, 5.0)], [(0.5, 1.5), (2.5, 3.5), (4.5, 5.5)]]

    def nodes(self, turns):
        return [windows.Node(list(made)) for made in turns]

    def test_all_wait_for_all(self):
        # 0.5 to 0.8 and 0.8 to 1.0 together; the first node has 0.1 left, for its turn at 2.0, the second ends at 1.1.
        found = first(windows.barrier(self.nodes(self.TURNS), 0.3, windows.draws("test")), 4)
        for end, expected in zip(found, [0.8, 2.1, 2.8, 4.1]):
            self.assertAlmostEqual(end, expected)

    def test_neighbours_follow_each_other_through_late_turns(self):
        late = [[(2 * turn + node * 0.5, 2 * turn + node * 0.5 + 1) for turn in range(9)] for node in (0, 1, 2, 1)]
        tight = windows.iterations(windows.barrier(self.nodes(late), 0.25, windows.draws("test")), [4.0, 12.0])
        loose = windows.iterations(windows.ring(self.nodes(late), 0.25, windows.draws("test")), [4.0, 12.0])
        self.assertLess(tight[1] - tight[0], loose[1] - loose[0])

    def test_iterations_at_marks(self):
        self.assertEqual(windows.iterations(iter([1.0, 2.0, 4.0]), [1.5, 3.0]), [1.5, 2.5])
        self.assertEqual(windows.iterations(iter([1.0, windows.FOREVER]), [1.5, 3.0]), [1, 1])


class Efficiency(unittest.TestCase):
    def test_a_fine_program_loses_the_switch_and_the_time_between_the_nodes(self):
        for way in ("clocks, 10 µs", "broadcast, 1 ms"):
            lost = (plan.SWITCH + windows.spread(way, 20e-3, 1)) / 20e-3
            self.assertAlmostEqual(windows.efficiency(FINE, way, 20e-3, 1), 1 - lost, delta=0.03, msg=way)

    def test_orders_that_take_longer_than_the_slot(self):
        self.assertIsNone(windows.efficiency(FINE, "one by one, 1 ms each", 100e-3, 1))
        self.assertEqual(plan.step("one by one, 1 ms each", 200e-3), 1e-3)
        self.assertEqual(plan.step(plan.BROADCAST, 10e-3), 0.0)

    def test_the_published_slot_has_no_way_twice(self):
        self.assertFalse(set(plan.WAYS) & set(plan.SCAN))
        self.assertIn(plan.PUBLISHED_SLOT, plan.SLOTS)
        self.assertTrue({plan.EXISTING, plan.BROADCAST, plan.CLOCKS, *plan.SHOWN} <= set(plan.WAYS))

    def test_the_simulator_gets_the_same_and_a_longer_switch(self):
        made, text = check.command("cosched", 20e-3, 5e-4, 300, None, 1)
        self.assertEqual(text, "repeat 300 { compute 500us skew; barrier }\n")
        self.assertEqual(made[made.index("--cs-us") + 1], "100.000")
        made, _ = check.command("cosched", 20e-3, 5e-4, 300, "broadcast, 1 ms", 1)
        self.assertGreater(float(made[made.index("--cs-us") + 1]), 3000)


class Report(unittest.TestCase):
    def found(self):
        efficiency = {plan.EXISTING: 0.36, "one by one, 1 ms each": 0.74, **{way: 0.25 for way in plan.SCAN}}
        measured = {}
        for slot in (10e-3, 500e-3):
            for way in [*plan.WAYS, *(plan.SCAN if slot == plan.PUBLISHED_SLOT else [])]:
                each = efficiency.get(way, 0.99)
                measured[FINE, way, slot] = None if plan.step(way, slot) is None else [each, each + 0.001]
        pairs = {plan.CHECKS[0]: [[1.0, 1.0], [1.02, 1.0]]}
        return {"made": {"date": "d", "commit": "c", "program_sha256": "p", "draws": 2}, **results.collect(measured, pairs)}

    def test_the_answer_is_that_of_the_numbers(self):
        text = report.text(self.found())
        self.assertIn("at 500 ms, over \"one by one, 0.5% of the slot each\" (2.5 ms a node): \"broadcast, 100 µs\" 2.75 ±", text)
        self.assertIn("(yes)", text)
        self.assertIn("| one by one, 1 ms each | – | 0.740 ± 0.006 |", text)
        self.assertIn("| 0.5 ms | 64 ms | 3.95 ±", text)
        self.assertIn("| 10 ms | 0.5 ms | 300 | all nodes at once | 1.010 ± ", text)

    def test_whether_a_ratio_is_reached(self):
        self.assertEqual([results.reaches(results.value(mean, 0.1), 2.7) for mean in (2.9, 2.75, 2.5)], ["yes", "open", "no"])
        self.assertEqual(results.reaches(results.value(9.0, None), 2.7), "open")

    def test_the_charts_have_what_is_known(self):
        (chart,) = report.charts(self.found())
        self.assertEqual([len(one["points"]) for one in chart["series"]], [2, 1, 2, 2, 2, 2])
        json.dumps(self.found())


if __name__ == "__main__":
    unittest.main()
