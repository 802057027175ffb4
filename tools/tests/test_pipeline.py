"""tools/bench/pipeline: the results computed from made-up times."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import live  # noqa: E402
import pipeline  # noqa: E402


class Pipeline(unittest.TestCase):
    def test_cells(self):
        self.assertEqual(pipeline.parse_cell("5x2w10"), {"stages": 5, "cpus": 2, "work_us": 10})
        self.assertEqual(pipeline.parse_cell("2x1"), {"stages": 2, "cpus": 1, "work_us": 0})
        for bad in ("1x1", "5", "x2", "5x0", "5x2w", "5x2w1.5", ""):
            with self.assertRaises(live.Failure, msg=bad):
                pipeline.parse_cell(bad)

    def test_ratios_are_of_the_runs_of_one_round(self):
        # The machine is twice as slow in the second round, for all.
        ns = {"cosched-worker": [10, 20, 10], "tbb": [30, 60, 31], "taskflow": [20, 40, 21], "bound": [8, 16, 8]}
        found = pipeline.verdicts(ns)
        self.assertEqual(found["best_peer"], {"cosched-worker": "taskflow"})
        self.assertEqual(found["over_best_peer"], {"cosched-worker": 0.5})
        self.assertEqual(found["over_bound"]["cosched-worker"], 1.25)

    def test_table_names_what_is_not_there(self):
        cell = pipeline.parse_cell("2x2") | {"ns": {"cosched-worker": [10.0]}, "steps": 0}
        cell |= pipeline.verdicts(cell["ns"])
        left_out = pipeline.parse_cell("2x4") | {"left_out": "4 CPUs are not there"}
        result = {"buffers": 16, "repeat": 1, "missing": {"tbb": "oneTBB: install it"}, "cells": [cell, left_out]}
        lines = "\n".join(pipeline.table(result))
        for words in ("2 stages, 2 CPUs", "10.0", "not there: oneTBB: install it", "left out: 2 stages, 4 CPUs"):
            self.assertIn(words, lines)


if __name__ == "__main__":
    unittest.main()
