"""experiments/strazdins-2004: its programs, the published numbers, and one tiny real run."""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest

from experiment import EXPERIMENTS, load

ROOT = EXPERIMENTS.parent
FOLDER = EXPERIMENTS / "strazdins-2004"
PROGRAM = ROOT / "target/release/cosched"

claims, plan, programs, report, results = load("claims", "plan", "programs", "report", "results", folder=FOLDER)
MACHINE = tomllib.loads((ROOT / "experiments/machines/bunyip.toml").read_text())
GRIDS = [(2, 1), (2, 2), (4, 2), (4, 4), (8, 4)]


def made(program, n, grid, packet=0, machine=MACHINE):
    return programs.text(program, n, *grid, machine, packet)


def unrolled(lines):
    """The statements of a task with its loops written out."""
    out, stack = [], []
    for line in lines:
        if line.startswith("repeat"):
            stack.append((int(line.split()[1]), out))
            out = []
        elif line == "}":
            times, before = stack.pop()
            out = before + out * times
        else:
            out.append(line)
    return out


def messages(text):
    """(from, to): sizes in order; and how often each receives from each."""
    sends, receives = collections.defaultdict(list), collections.Counter()
    for task, lines in enumerate(text.lines):
        for word, *rest in (line.split() for line in unrolled(lines)):
            if word == "send":
                sends[task, int(rest[0])].append(int(rest[1].removesuffix("B")))
            elif word == "recv":
                receives[int(rest[0]), task] += 1
    return sends, receives


def run(text):
    """Lets all tasks run as far as their messages permit; returns what is left of each. Sends do not wait."""
    left = [collections.deque(unrolled(lines)) for lines in text.lines]
    flying, moved = collections.Counter(), True
    while moved:
        moved = False
        for task, lines in enumerate(left):
            while lines:
                word, *rest = lines[0].split()
                if word == "recv":
                    if not flying[int(rest[0]), task]:
                        break
                    flying[int(rest[0]), task] -= 1
                elif word == "send":
                    flying[task, int(rest[0])] += 1
                lines.popleft()
                moved = True
    return [len(lines) for lines in left]


class Programs(unittest.TestCase):
    def test_every_send_has_its_receive_and_nobody_waits_for_ever(self):
        for program, n in (("matmul", 1000), ("lu", 500)):
            for grid in GRIDS:
                for packet in (0, 4096):
                    text = made(program, n, grid, packet)
                    sends, receives = messages(text)
                    self.assertEqual({pair: len(sizes) for pair, sizes in sends.items()}, dict(receives), (program, grid, packet))
                    self.assertEqual(run(text), [0] * len(text.lines), (program, grid, packet))

    def test_flops_are_those_of_the_algorithms(self):
        for grid in GRIDS:
            self.assertAlmostEqual(made("matmul", 1000, grid).flops, 2 * 1000**3)
            for n in (600, 1000):
                # Of lower order: the panel's divisions, b's column and the solve, about 2 n².
                self.assertAlmostEqual(made("lu", n, grid).flops / (2 / 3 * n**3), 1, delta=5 / n)

    def test_matmul_gathers_what_equation_8_says(self):
        for p, q in GRIDS:
            sends, _ = messages(made("matmul", 1024, (p, q)))
            self.assertEqual(sum(map(len, sends.values())), 1024 // 128 * p * q * (p - 1 + q - 1))
            self.assertEqual(sum(map(sum, sends.values())), 8 * 1024**2 * (p - 1 + q - 1))

    def test_lu_sends_what_its_algorithm_does(self):
        n, block = 960, 60
        panels = n // block
        for p, q in GRIDS:
            sends, _ = messages(made("lu", n, (p, q)))
            count = sum(map(len, sends.values()))
            # At the end only b's column is right of the panel: columns of the grid that have nothing there do no update.
            updates = sum(min(q, panels - done) for done in range(panels))
            factor = 2 * n * (p - 1) + panels * p * (q - 1)
            self.assertEqual(count, factor + updates * 3 * (p - 1) + panels * (q - 1 + p - 1), (p, q))

    def test_packets_are_acknowledged_between_nodes_only(self):
        sends, _ = messages(made("matmul", 4000, (8, 4), programs.LAM_PACKET))
        # 16000 words are 128 kB: two packets and one acknowledgement down the columns; processes 0 and 1 share a node.
        self.assertEqual(sends[0, 4][:2], [65536, 128000 - 65536])
        self.assertIn(0, sends[4, 0])
        self.assertEqual(set(sends[0, 1]), {128000, 4000 // 8 * (4000 % 128) // 4 * 8})
        self.assertNotIn(0, sends[1, 0])

    def test_rows_of_the_matrix_are_dealt_out_whole(self):
        for n in (1, 59, 60, 61, 1500, 6001):
            for places in (1, 2, 4, 8):
                self.assertEqual(sum(programs.owned(n, 60, place, places) for place in range(places)), n)

    def test_times_are_those_of_the_machine(self):
        text = made("matmul", 128, (1, 1))
        self.assertEqual(text.lines[0][1:2], [f"compute {round(2 * 128**3 / 0.403)}ns skew"])
        self.assertEqual(programs.costs({"compute": {"flop_ns_level3": 2.0}}), {3: 2.0, 2: 2.0})

    def test_grids_are_those_of_the_paper(self):
        self.assertEqual([programs.grid_of(2**k) for k in range(1, 6)], GRIDS)
        for tasks in (3, 5, 6, 7, 10, 12):
            with self.assertRaises(ValueError):
                programs.grid_of(tasks)


class Published(unittest.TestCase):
    rows = results.read_published(FOLDER / "published.csv")

    def test_all_cells_of_the_tables_are_there(self):
        self.assertEqual(collections.Counter(row["table"] for row in self.rows), {1: 10, 2: 10, 3: 14})
        for row in self.rows:
            missing = [name for name, value in row.items() if value is None]
            self.assertEqual(missing == [], row["table"] < 3, row)
        for program, orders in plan.ORDERS.items():
            for p, n in orders.items():
                self.assertEqual(results.published_row(self.rows, program, "local", p)["n"], n)

    def test_the_findings_hold_for_the_papers_own_numbers(self):
        cells = []
        for cell in plan.main_cells(plan.SIZES["full"]):
            paper = results.as_measures(results.published_row(self.rows, cell["program"], cell["system"], cell["p"]))
            # Simulated: every slowdown is j, which is not what the paper found.
            other = {"t1_s": 1.0, "cpu": 1.0, "slowdowns": {j: float(j) for j in paper["slowdowns"]}}
            cells.append({**cell, "published": paper, "simulated": other})
        for entry in claims.verdicts(cells):
            self.assertTrue(entry["published"]["holds"], entry["statement"])
        failed = [entry["statement"] for entry in claims.verdicts(cells) if not entry["simulated"]["holds"]]
        self.assertEqual(len(failed), 7, failed)


class Live(unittest.TestCase):
    def test_measured_runs_come_into_the_report(self):
        row = {"policy": "gang", "jobs": 2, "time_s": 2.0, "slowdown": 1.9, "slowdown_stderr": 0.1, "cpu_share": 0.9, "jain": 1.0, "not_done": 0, "runs": 3}
        said = {"format": "cosched-slowdown-1", "cpus": 2, "command": ["mpirun", "matmul"], "repeat": 3, "started": "now", "single": {"time_s": 1.05}, "results": [row]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "matmul.json"
            path.write_text(json.dumps(said))
            found = results.live_results(pathlib.Path(folder))
            self.assertIn("| gang | 2 | 3 | 2 | 1.90 ± 0.10 |", report.live({"live": found, "cells": []}))
            path.write_text(json.dumps({**said, "format": "other"}))
            with self.assertRaises(results.Bad):
                results.live_results(pathlib.Path(folder))


class Whole(unittest.TestCase):
    def reproduce(self, *arguments):
        return subprocess.run([sys.executable, str(FOLDER / "reproduce"), *arguments], capture_output=True, text=True, timeout=120)

    @unittest.skipUnless(PROGRAM.exists(), "no release build of cosched")
    def test_a_tiny_run_writes_report_and_results(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.reproduce("--tiny", "--build", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads((pathlib.Path(folder) / "tiny/results.json").read_text())
            self.assertEqual(len(found["cells"]), 4)
            gang = next(cell for cell in found["cells"] if cell["system"] == "gang")
            self.assertAlmostEqual(gang["simulated"]["cpu"], 1.0, delta=0.02)
            self.assertIn("## Table 2", (pathlib.Path(folder) / "tiny/report.md").read_text())
            self.assertIn("0 of 4 calls", self.reproduce("--tiny", "--build", folder).stderr)

    def test_wrong_usage_is_said(self):
        done = self.reproduce("--cosched", "/nowhere/cosched")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no simulator", done.stderr)
        self.assertEqual(self.reproduce("--workers", "0").returncode, 2)


if __name__ == "__main__":
    unittest.main()
