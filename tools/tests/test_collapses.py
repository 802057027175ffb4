"""experiments/collapses: the cases are complete, and the table agrees with the runs."""

import importlib
import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "experiments/collapses"
NAMES = ("cases", "runner", "report", "picture")


def load():
    """The modules of the folder; other experiments have modules with the same names, which are kept apart."""
    before = {name: sys.modules.pop(name, None) for name in NAMES}
    places = [str(FOLDER), str(FOLDER.parent), str(ROOT / "tools/bench")]
    sys.path[:0] = places
    try:
        return [importlib.import_module(name) for name in NAMES]
    finally:
        for place in places:
            sys.path.remove(place)
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


cases, runner, report, picture = load()


def runs(*seconds, cut=0):
    return [{"s": s, "done": True, "why": None} for s in seconds] + [{"s": 90.0, "done": False, "why": "past the limit"}] * cut


class Cases(unittest.TestCase):
    def test_names_are_unique_and_braces_known(self):
        names = [case.name for case in cases.CASES]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 12)
        known = set(runner.Names().names)
        for case in cases.CASES:
            words = [*case.words, *case.environment.values(), *(case.ideal or ((), {}))[0], *(word for file in case.files.values() for word in file)]
            used = set(re.findall(r"\{\w+\}", " ".join(words)))
            self.assertLessEqual(used, known, case.name)

    def test_the_programs_exist(self):
        for case in cases.CASES:
            for word in case.words:
                if word.startswith("{programs}/"):
                    self.assertTrue((FOLDER / "programs" / word.removeprefix("{programs}/")).exists(), word)


class Report(unittest.TestCase):
    def kept(self, **arms):
        return report.one(next(case for case in cases.CASES if case.name == "boosting"), {"ideal": runs(2.0), **{arm.replace("_", "-"): of for arm, of in arms.items()}})

    def test_a_ratio_is_to_all_copies_alone(self):
        found = self.kept(plain=runs(8.0, 9.0, 10.0), default=runs(4.0))
        self.assertEqual((found["yardstick_s"], found["arms"]["plain"]["ratio"], found["best"]), (4.0, 2.25, "default"))

    def test_a_default_is_held_to_decision_0011(self):
        found = self.kept(plain=runs(4.0), default=runs(4.06), auto=runs(4.1))
        self.assertEqual(found["keeps"], {"default": True, "auto": False}, "2 % where plain Linux is the best")
        found = self.kept(plain=runs(9.0), strict=runs(4.0), default=runs(4.1), auto=runs(4.3))
        self.assertEqual(found["keeps"], {"default": True, "auto": False}, "5 % of the best setting")

    def test_a_run_that_was_ended_counts_as_the_longest(self):
        found = self.kept(ideal=runs(4.0), default=runs(4.0, 4.4, 20.0, cut=1), auto=runs(4.0, cut=1))
        self.assertEqual(found["arms"]["default"]["median_s"], 12.2)
        self.assertIsNone(found["arms"]["auto"]["median_s"])
        self.assertIn("(1 of 4 > ", report.ratio(found["arms"]["default"]))

    def test_cases_that_were_not_measured_again_stay_as_they_are_published(self):
        made = {"commit": "old", "date": "2026-11-29", "cpus": 2, "kernel": "6.18"}
        old = {"made": made, "cases": {"joblib": self.kept(default=runs(8.0)), "boosting": self.kept(default=runs(4.0))}}
        kept, of = report.beside(old, {"joblib": {**self.kept(default=runs(6.0)), "commit": "new"}})
        self.assertEqual([(name, case["commit"], case["arms"]["default"]["median_s"]) for name, case in kept.items()], [("boosting", "old", 4.0), ("joblib", "new", 6.0)])
        self.assertIn(f"Measured later, at commit new: {kept['joblib']['title']}.", report.text(kept, of, {}))

    def test_the_picture_has_the_rows_in_which_plain_linux_loses_most(self):
        case = self.kept(plain=runs(8.0), default=runs(4.4), remedy=runs(2.0))
        worse = self.kept(plain=runs(cut=1), default=runs(4.0))
        kept = {"a-2": case, "a-4": {**worse, "title": "<4>"}, "b": {**case, "title": "b"}, "c": {**case, "title": "c"}, "d": {**self.kept(plain=runs(4.0)), "title": "none"}}
        self.assertEqual([row["title"] for row in picture.telling(kept)], ["<4>", "b", "c"])
        root = xml.etree.ElementTree.fromstring(picture.svg(kept))
        texts = [at.text for at in root.iter("{http://www.w3.org/2000/svg}text")]
        for wanted in ("<4>", "more than 22 × (ended)  plain Linux", "1.00 ×  cosched, no options", "2.00 ×  plain Linux", "0.50 ×  the thread's remedy"):
            self.assertIn(wanted, texts)

    def test_a_run_without_end_has_no_median(self):
        found = self.kept(plain=runs(cut=1), default=runs(4.0))
        self.assertIsNone(found["arms"]["plain"]["median_s"])
        self.assertEqual(report.ratio(found["arms"]["plain"]), "> 22")
        self.assertTrue(found["keeps"]["default"])

    def test_a_default_without_end_is_told(self):
        found = self.kept(plain=runs(5.0), default=runs(cut=1))
        self.assertFalse(found["keeps"]["default"])
        self.assertNotIn("auto", found["keeps"], "it was not measured")


if __name__ == "__main__":
    unittest.main()
