"""The simulator from Python."""

import csv
import gzip
import importlib.util
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

from cosched import sim

#: Never reaches its end in a test: many years of simulated time.
ENDLESS = [{"tasks": 8, "exec_s": 5e8, "type": "J1"}] * 4


def needs(module):
    return unittest.skipUnless(importlib.util.find_spec(module), f"{module} is not installed")


def jobs(**options):
    return sim.workload("WL7", **{"count": 30, "nodes": 8, "mean_exec_s": 0.05, **options})


class Workloads(unittest.TestCase):
    def test_generated(self):
        one = jobs(load=0.5, seed=3)
        self.assertEqual((len(one), one.name), (30, "WL7"))
        work = sum(tasks * ns for tasks, ns in zip(one.column("tasks"), one.column("exec_ns")))
        self.assertAlmostEqual(work / (8 * max(one.column("arrival_ns"))), 0.5, places=3)
        self.assertAlmostEqual(sum(one.column("exec_ns")) / 30e9, 0.05, places=4)
        self.assertEqual(one, jobs(load=0.5, seed=3))
        self.assertNotEqual(one, jobs(load=0.5, seed=4))

    def test_files(self):
        text = "arrival_s,tasks,exec_s,type\n1,8,2,J4\n5.000000001,16,3,J1\n"
        trace = "".join(f"{n} {n * 10} 0 {n * 100} {size} -1 -1 {size} -1 -1 1 1 1 1 1 1 -1 -1\n" for n, size in [(1, 4), (2, 64), (3, 8)])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "list.csv")
            path.write_text(text)
            self.assertEqual(sim.workload(path).column("arrival_ns"), [1_000_000_000, 5_000_000_001])
            packed = pathlib.Path(folder, "trace.swf.gz")
            packed.write_bytes(gzip.compress(trace.encode()))
            read = sim.workload(packed, nodes=32)
            self.assertEqual((read.column("tasks"), read.name), ([4, 8], "trace.swf.gz"))
            self.assertEqual(read.left_out, {"larger than the machine": 1})
            path.write_text(text + "x\n")
            with self.assertRaisesRegex(ValueError, "line 4 .*(?s:.*)hint:"):
                sim.workload(path)
        with self.assertRaises(FileNotFoundError):
            sim.workload("/nowhere.csv")

    def test_models_are_those_of_the_command(self):
        command = os.environ.get("COSCHED_COMMAND")
        if not command:
            self.skipTest("no command is named in COSCHED_COMMAND")
        with tempfile.TemporaryDirectory() as folder:
            trace, saved, made = (os.path.join(folder, name) for name in ("t.swf", "m.json", "jobs.csv"))
            subprocess.run([command, "workload", "generate", "--model=lublin", "--jobs=400", f"--output={trace}"], check=True, capture_output=True)
            model = sim.fit(trace, method="moments", procs=32)
            told = json.loads(subprocess.run([command, "--json", "workload", "fit", "--method=moments", "--procs=32", trace], check=True, capture_output=True).stdout)
            self.assertEqual((model.classes, model.load, model.left_out), (told["classes"], told["rho"], told["left_out"]))
            model.save(saved)
            for source, name, options in (("Lublin-Batch", "lublin-batch", {}), ("lublin", "lublin", {"load": 0.5, "mean_exec_s": 3.0}), (model, saved, {"load": 0.8})):
                words = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
                subprocess.run([command, "workload", "generate", f"--model={name}", "--jobs=60", "--nodes=16", "--seed=4", *words, f"--output={made}"],
                               check=True, capture_output=True)
                self.assertEqual(sim.workload(source, count=60, nodes=16, seed=4, **options), sim.workload(made), name)

    def test_models_that_cannot_be(self):
        for options in ({"count": 0}, {"count": 10**8}, {"nodes": 0}, {"mean_exec_s": -1.0}, {"mean_exec_s": float("nan")}, {"load": 0.0}):
            with self.assertRaisesRegex(ValueError, "hint: ", msg=options):
                sim.workload("lublin", **options)
        with tempfile.NamedTemporaryFile("w", suffix=".swf") as trace:
            for options in ({"method": "em"}, {"method": "best"}, {"procs": 0}):
                with self.assertRaisesRegex(ValueError, "hint: ", msg=options):
                    sim.fit(trace.name, **options)

    def test_dicts(self):
        made = sim.workload([{"tasks": 2, "exec_s": 0.1, "type": "J3", "klass": "express", "arrival_s": 1}])
        self.assertEqual([*made], [
            {"id": 0, "tasks": 2, "type": "J3", "class": "express", "exec_ns": 100_000_000, "arrival_ns": 1_000_000_000}])
        wrong = [{"tasks": 2}, {"tasks": 2, "exec_s": 1, "typ": "J1"}, {"tasks": 2, "exec_s": 1, "type": "J9"},
                 {"tasks": 2, "exec_s": 1, "klass": "vip"}, {"tasks": -2, "exec_s": 1}, {"tasks": 2, "exec_s": -1},
                 {"tasks": 2, "exec_s": 1e300}, {"tasks": 2, "exec_s": float("nan")}]
        for job in wrong:
            with self.assertRaises(ValueError, msg=job):
                sim.workload([job])


class Simulate(unittest.TestCase):
    def test_a_run_is_that_of_the_command(self):
        command = os.environ.get("COSCHED_COMMAND")
        if not command:
            self.skipTest("no command is named in COSCHED_COMMAND")
        made = jobs()
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            rows = csv.writer(file)
            rows.writerow(["arrival_s", "tasks", "exec_s", "type"])
            for row in made:
                rows.writerow([f"{row['arrival_ns'] / 1e9:.9f}", row["tasks"], f"{row['exec_ns'] / 1e9:.9f}", row["type"]])
            file.flush()
            for strategy, more in (("GS", {"quantum_ms": 20, "cs_us": 300}), ("PB-SB", {"spin_us": 100, "skew": 0}), ("live", {"mpl": 3})):
                options = [f"--{name.replace('_', '-')}={value}" for name, value in more.items()]
                words = [command, "--json", "sim", "run", "-q", "-s", strategy, "-j", file.name, "--nodes=8", "--seed=7", *options]
                said = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
                ours = sim.simulate(made, strategy=strategy, nodes=8, seed=7, **more)
                self.assertEqual(ours.metrics, said["metrics"], strategy)
                self.assertEqual(ours.column("finish_ns"), [job["finish_ns"] for job in said["jobs"]])
                self.assertEqual(ours.mean_response_s, said["metrics"]["response_s"]["mean"])

    def test_what_it_tells(self):
        result = sim.simulate(jobs(), strategy="GS", nodes=8)
        self.assertEqual((len(result), result.finished), (30, 30))
        self.assertAlmostEqual(sum(result.cpu.values()), 1)
        self.assertAlmostEqual(result.mean_response_s, sum(result.column("response_s")) / 30)
        self.assertTrue(result.mean_wait_s >= 0 and result.mean_slowdown > 1 and result.makespan_s > 0)
        self.assertTrue(0 < result.utilisation["compute"] < 1)
        cut = sim.simulate(jobs(), strategy="GS", nodes=8, max_sim_s=0.3)
        self.assertIn(None, cut.column("finish_ns"))
        self.assertIsNone(cut.makespan_s)

    def test_what_cannot_be_simulated(self):
        for wrong in ({"strategy": "XB"}, {"strategy": "GS", "mpl": 0}, {"strategy": "GS", "nodes": 2}, {"strategy": "GS", "skew": 9},
                      {"strategy": "SB", "spin_us": 0}, {"strategy": "GS", "cs_us": -1}):
            with self.assertRaisesRegex(ValueError, "hint: |there are", msg=wrong):
                sim.simulate(jobs(), **{"nodes": 8, **wrong})
        with self.assertRaisesRegex(TypeError, "spni_us"):
            sim.simulate(jobs(), strategy="GS", spni_us=3)

    def test_a_callback_sees_progress_and_may_stop_it(self):
        seen = []

        def progress(part):
            seen.append(part)
            if len(seen) == 3:
                raise LookupError("enough")

        with self.assertRaises(LookupError):
            sim.simulate(sim.workload(ENDLESS), strategy="Local", nodes=8, progress=progress)
        self.assertTrue(0 <= seen[0] <= seen[2] < 1)

    def test_other_threads_run_meanwhile(self):
        counted = 0

        def progress(part):
            nonlocal counted
            counted += 1
            if counter.count > 1000:
                raise LookupError

        class Counter(threading.Thread):
            count = 0

            def run(self):
                while self.count <= 1000:
                    self.count += 1
                    time.sleep(0.0001)

        counter = Counter(daemon=True)
        counter.start()
        with self.assertRaises(LookupError):
            sim.simulate(sim.workload(ENDLESS), strategy="Local", nodes=8, progress=progress)
        counter.join()

    def test_ctrl_c_ends_it(self):
        for call in ("sim.simulate(jobs, strategy='Local', nodes=8)", "sim.sweep(strategies=['GS', 'Local'], workloads=[jobs], nodes=[8], threads=2)"):
            program = (f"from cosched import sim\njobs = sim.workload({ENDLESS!r})\nprint(1, flush=True)\n"
                       f"try: {call}\nexcept KeyboardInterrupt: print('stopped')")
            with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
                self.assertEqual(process.stdout.readline(), "1\n")
                time.sleep(0.5)
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.communicate(timeout=60)[0], "stopped\n")


class Compare(unittest.TestCase):
    def test_rows_and_ratios(self):
        seen = []
        table = sim.compare(["Local", "GS"], "WL3", nodes=8, seeds=3, count=20, mean_exec_s=0.05, progress=lambda *now: seen.append(now))
        local, gang = table
        self.assertEqual((local["strategy"], gang["strategy"], local["seeds"], local["load"]), ("Local", "GS", 3, 0.7))
        self.assertIsNone(local["response_ratio"])
        self.assertGreater(local["mean_response_s"], 0)
        self.assertGreater(local["mean_response_s_ci95"], 0)
        self.assertTrue(all(now[1] == 6 and 0 <= now[2] <= 1 for now in seen))
        means = [sim.simulate(sim.workload("WL3", count=20, nodes=8, mean_exec_s=0.05, seed=seed), strategy="GS", nodes=8, seed=seed).mean_response_s
                 for seed in (1, 2, 3)]
        self.assertAlmostEqual(gang["mean_response_s"], sum(means) / 3)

    def test_a_given_workload_stays_as_it_is(self):
        given = sim.workload("WL3", count=20, nodes=8, mean_exec_s=0.05, load=0.2, seed=7)
        (row,) = sim.compare(["GS"], given, nodes=8, seeds=1)
        self.assertIsNone(row["load"])
        self.assertAlmostEqual(row["mean_response_s"], sim.simulate(given, strategy="GS", nodes=8).mean_response_s)
        with self.assertRaisesRegex(ValueError, "2 workloads are named 'WL3'"):
            sim.sweep(workloads=[given, sim.workload("WL3", count=5)])

    def test_a_grid_has_the_same_rows_for_any_number_of_threads(self):
        mine = sim.workload([{"tasks": 4, "exec_s": 0.1, "type": "J3"}] * 5, name="mine")
        grid = {"strategies": ["GS", "PB"], "workloads": [mine, "WL1"], "nodes": [4, 8], "mpl": [2, 5], "seeds": [1, 9], "count": 10, "mean_exec_s": 0.02}
        table = sim.sweep(**grid, threads=1)
        self.assertEqual(len(table), 16)
        self.assertEqual({(row["workload"], row["nodes"], row["mpl"]) for row in table},
                         {(name, nodes, mpl) for name in ("mine", "WL1") for nodes in (4, 8) for mpl in (2, 5)})
        self.assertEqual(table, sim.sweep(**grid, threads=4))

    def test_a_run_has_one_strategy_and_machine(self):
        for strategy, nodes, told in (("paper", 8, "a run has one strategy"), ("GS", 0, "nodes is 0")):
            with self.assertRaisesRegex(ValueError, told):
                sim.simulate(jobs(), strategy=strategy, nodes=nodes)

    def test_failures_are_told(self):
        table = sim.compare(["GS"], sim.workload([{"tasks": 9, "exec_s": 1}]), nodes=8, seeds=1)
        self.assertEqual((table.column("failed_seeds"), table.column("mean_response_s")), ([1], [None]))
        self.assertIn("9 tasks", table.failures[0][0])
        with self.assertRaisesRegex(ValueError, "no workload 'WL9'"):
            sim.compare(["GS"], "WL9")
        with self.assertRaisesRegex(ValueError, "twice"):
            sim.sweep(workloads=["WL1"], mpl=[2, 2])


@needs("pyarrow")
class Arrow(unittest.TestCase):
    def test_it_is_taken_without_a_copy(self):
        import pyarrow

        result = sim.simulate(jobs(), strategy="GS", nodes=8, max_sim_s=0.3)
        table = result.to_arrow()
        self.assertEqual(table.column_names, result.columns)
        self.assertEqual({name: table[name].to_pylist() for name in result.columns}, {name: result.column(name) for name in result.columns})
        self.assertEqual(str(table.schema.field("finish_ns").type), "int64")
        again = pyarrow.table(result)
        address = [one["response_s"].chunk(0).buffers()[1].address for one in (table, again)]
        self.assertEqual(address[0], address[1], "both are the simulator's memory")
        del result
        self.assertEqual(table["id"].to_pylist(), [*range(30)], "the memory lives as long as its users")

    @needs("pandas")
    def test_a_comparison_is_taken_without_a_copy(self):
        import pyarrow

        found = sim.compare(["GS", "SB"], "WL1", nodes=8, seeds=2, count=10, mean_exec_s=1)
        table, again, frame = found.to_arrow(), pyarrow.table(found), found.to_pandas()
        numbers = [field.name for field in table.schema if pyarrow.types.is_floating(field.type) and table[field.name].null_count == 0]
        self.assertGreater(len(numbers), 3)
        address = [{name: one[name].chunk(0).buffers()[1].address for name in numbers} for one in (table, again)]
        self.assertEqual(address[0], address[1], "both are the simulator's memory")
        self.assertEqual({name: frame[name].to_numpy().__array_interface__["data"][0] for name in numbers}, address[0])

    @needs("pandas")
    def test_pandas_takes_numbers_without_a_copy(self):
        result = sim.simulate(jobs(), strategy="GS", nodes=8)
        frame = result.to_pandas()
        numbers = [name for name in result.columns if name not in ("type", "class")]
        ours = {name: result.to_arrow()[name].chunk(0).buffers()[1].address for name in numbers}
        self.assertEqual({name: frame[name].to_numpy().__array_interface__["data"][0] for name in numbers}, ours)
        self.assertEqual([*frame["type"]], result.column("type"))
        with self.assertRaisesRegex(ValueError, "read-only"):
            frame.loc[0, "wait_s"] = 5
        mine = frame.copy()
        mine.loc[0, "wait_s"] = 5
        self.assertEqual((mine["wait_s"][0], frame["wait_s"][0]), (5, result.column("wait_s")[0]))
        cut = sim.simulate(jobs(), strategy="GS", nodes=8, max_sim_s=0.3)
        self.assertEqual(cut.to_pandas()["finish_ns"].isna().sum(), cut.column("finish_ns").count(None))

    @needs("polars")
    def test_polars_takes_numbers_without_a_copy(self):
        import polars

        result = sim.simulate(jobs(), strategy="GS", nodes=8, max_sim_s=0.3)
        frame = polars.DataFrame(result)
        numbers = [name for name in result.columns if name not in ("type", "class")]
        ours = {name: result.to_arrow()[name].chunk(0).buffers()[1].address for name in numbers}
        # What Polars hands out is its own memory, as the simulator's.
        self.assertEqual({name: frame[name].to_arrow().buffers()[1].address for name in numbers}, ours)
        self.assertEqual({name: frame[name].to_list() for name in result.columns}, {name: result.column(name) for name in result.columns})


@needs("matplotlib")
class Plots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import matplotlib

        matplotlib.use("Agg")
        cls.result = sim.simulate(jobs(), strategy="GS", nodes=8)

    def drawn(self, ax):
        ax.figure.savefig(io.BytesIO(), format="png")
        return ax

    def test_gantt(self):
        ax = self.drawn(self.result.plot.gantt())
        bars = [(bar.get_x(), bar.get_width()) for bar in ax.patches]
        row = [*self.result][3]
        self.assertEqual(len(bars), 60)
        self.assertAlmostEqual(bars[6][0], row["arrival_ns"] / 1e9)
        self.assertAlmostEqual(bars[7][0] + bars[7][1], row["finish_ns"] / 1e9)

    def test_response(self):
        [line] = self.drawn(self.result.plot.response()).lines
        self.assertEqual([*line.get_xdata()], sorted(self.result.column("response_s")))
        self.assertEqual(line.get_ydata()[-1], 1)

    def test_utilisation(self):
        bars = self.drawn(self.result.plot.utilisation()).patches
        self.assertEqual([bar.get_height() for bar in bars], [*self.result.cpu.values()])

    def test_a_comparison(self):
        table = sim.compare(["GS", "PB"], "WL1", nodes=4, seeds=2, count=5, mean_exec_s=0.02)
        ax = self.drawn(table.plot.response())
        self.assertEqual([bar.get_height() for bar in ax.patches], table.column("mean_response_s"))
        self.assertEqual([tick.get_text() for tick in ax.get_xticklabels()], ["GS", "PB"])
        parts = [bar.get_height() for bar in self.drawn(table.plot.utilisation()).patches]
        self.assertAlmostEqual(sum(parts), 2)

    def test_the_library_is_the_one_that_is_there_or_asked_for(self):
        for there, module in ({"matplotlib", "altair"}, "matplotlib"), ({"altair"}, "altair"):
            with mock.patch("cosched._plot.find_spec", lambda name: name in there):
                drawn = self.result.plot.utilisation()
            self.assertTrue(type(drawn).__module__.startswith(module), (there, type(drawn)))
        with mock.patch("cosched._plot.find_spec", lambda name: None), self.assertRaisesRegex(ModuleNotFoundError, "hint: pip install"):
            self.result.plot.gantt()
        with self.assertRaisesRegex(ValueError, "there are matplotlib and altair"):
            self.result.plot.gantt(using="gnuplot")
        with self.assertRaisesRegex(ValueError, "axes of Matplotlib"):
            self.result.plot.gantt(self.result.plot.gantt(), using="altair")


@needs("altair")
class AltairPlots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = sim.simulate(jobs(), strategy="GS", nodes=8)

    def chart(self, plot):
        """A picture's description, which Altair checks, and its data."""
        chart = plot(using="altair").to_dict()
        return chart, chart["data"]["values"]

    def test_gantt(self):
        chart, bars = self.chart(self.result.plot.gantt)
        row = [*self.result][3]
        self.assertEqual((len(bars), bars[6]["at"], bars[6]["part"], bars[7]["part"]), (60, 3, "idle", "compute"))
        self.assertEqual((bars[6]["low"], bars[6]["high"], bars[7]["high"]), tuple(row[name] / 1e9 for name in ("arrival_ns", "start_ns", "finish_ns")))
        self.assertEqual((chart["encoding"]["x"]["field"], chart["encoding"]["x2"]["field"], chart["encoding"]["y"]["field"]), ("low", "high", "at"))

    def test_response(self):
        chart, steps = self.chart(self.result.plot.response)
        self.assertEqual([step["x"] for step in steps], sorted(self.result.column("response_s")))
        self.assertEqual(sim.simulate(jobs(), strategy="GS", nodes=8, max_sim_s=0).plot.response(using="altair").to_dict()["data"]["values"], [])
        self.assertEqual((steps[-1]["y"], chart["mark"]["interpolate"], chart["title"]), (1, "step-after", "GS: response times"))

    def test_utilisation(self):
        _, bars = self.chart(self.result.plot.utilisation)
        self.assertEqual({bar["at"]: bar["high"] for bar in bars}, self.result.cpu)

    def test_a_comparison(self):
        table = sim.compare(["GS", "PB"], "WL1", nodes=4, seeds=2, count=5, mean_exec_s=0.02)
        chart, bars = self.chart(table.plot.response)
        self.assertEqual([(bar["at"], bar["high"], bar["error"]) for bar in bars],
                         [(row["strategy"], row["mean_response_s"], row["mean_response_s_ci95"]) for row in table])
        self.assertEqual([layer["mark"]["type"] for layer in chart["layer"]], ["bar", "rule"])
        _, parts = self.chart(table.plot.utilisation)
        self.assertAlmostEqual(sum(part["high"] - part["low"] for part in parts), 2)


if __name__ == "__main__":
    unittest.main()
