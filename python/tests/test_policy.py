"""Strategies written in Python."""

import signal
import subprocess
import sys
import time
import traceback
import unittest

from cosched import sim


class Own(sim.Policy):
    """GS and SB written again, every decision taken here."""

    def __init__(self, base, wait):
        self.base, self.wait, self.seen = base, wait, set()

    def on_arrival(self, moment):
        self.seen.add("arrival")
        job = moment.waiting[0]
        tasks = moment.jobs[job]["tasks"]
        if not moment.rows:
            free = sorted((load, node) for node, load in enumerate(moment.loads) if load < moment.mpl)
            return sim.Start(job, [node for _, node in free[:tasks]]) if len(free) >= tasks else None
        for number, row in enumerate(moment.rows):
            free = [cpu for cpu, other in enumerate(row) if other is None]
            if len(free) >= tasks:
                return sim.Start(job, free[:tasks], number)
        return None

    def on_row_change(self, moment):
        self.seen.add("row")
        rows = len(moment.rows)
        order = [(moment.row + step) % rows for step in range(1, rows + 1)]
        return next(row for row in order if any(job is not None for job in moment.rows[row]))

    def on_wait(self, waiting):
        self.seen.add("wait")
        return self.wait


def lists():
    for name, seed in (("WL1", 1), ("WL3", 2), ("WL5", 3), ("WL7", 4)):
        yield sim.workload(name, count=15, nodes=8, mean_exec_s=0.04, load=0.8, seed=seed)


class Policies(unittest.TestCase):
    def test_gs_and_sb_written_in_python_are_gs_and_sb(self):
        for jobs in lists():
            for name, base, wait in (("GS", "GS", sim.Wait("spin")), ("SB", "Local", sim.Wait("block", after_us=200)),
                                     ("PB-SB", "PB", sim.Wait("block")), ("SY", "Local", sim.Wait("yield"))):
                own = Own(base, wait)
                options = {"nodes": 8, "mpl": 3, "seed": 5, "quantum_ms": 20}
                found, expected = sim.simulate(jobs, strategy=own, **options), sim.simulate(jobs, strategy=name, **options)
                for column in ("start_ns", "finish_ns"):
                    self.assertEqual(found.column(column), expected.column(column), (jobs.name, name))
                self.assertEqual(found.cpu, expected.cpu)
                self.assertEqual(own.seen, {"arrival", "wait"} | ({"row"} if base == "GS" else set()))
                self.assertEqual((found.strategy, found.finished), ("Own", 15))

    def test_a_policy_without_hooks_is_its_base(self):
        class Plain(sim.Policy):
            base = "PB-SY"

        for jobs in lists():
            self.assertEqual(sim.simulate(jobs, strategy=Plain(), nodes=8), sim.simulate(jobs, strategy="PB-SY", nodes=8))

    def test_decisions_matter(self):
        class Last(sim.Policy):
            def on_arrival(self, moment):
                job = max(moment.waiting)
                free = [cpu for cpu, other in enumerate(moment.rows[0]) if other is None]
                tasks = moment.jobs[job]["tasks"]
                return sim.Start(job, free[:tasks]) if len(free) >= tasks else None

        jobs = [{"tasks": 2, "exec_s": 0.1}] * 4
        starts = sim.simulate(jobs, strategy=Last(), nodes=2, mpl=1).column("start_ns")
        self.assertEqual(sorted(range(4), key=starts.__getitem__), [0, 3, 2, 1], "the first came alone, then the last comes first")

    def test_an_exception_has_the_users_traceback(self):
        class Wrong(sim.Policy):
            def on_wait(self, waiting):
                return {}["no such key"]

        jobs = next(lists())
        try:
            sim.simulate(jobs, strategy=Wrong(), nodes=8)
        except KeyError:
            told = traceback.format_exc()
        self.assertIn('return {}["no such key"]', told)
        self.assertEqual(sim.simulate(jobs, strategy="GS", nodes=8).finished, 15, "nothing else is hurt")

    def test_what_a_hook_may_not_say(self):
        def policy(base="GS", **hooks):
            return type("Mine", (sim.Policy,), {"base": base, **{name: lambda self, seen, what=what: what for name, what in hooks.items()}})()

        wrong = [
            (policy(on_arrival=3), TypeError, r"Mine.on_arrival returned 3(?s:.*)hint:"),
            (policy(on_row_change="next"), TypeError, "Mine.on_row_change returned 'next'"),
            (policy(on_wait="block"), TypeError, "Mine.on_wait returned 'block'"),
            (policy(on_wait=sim.Wait("block", float("nan"))), TypeError, "up to an hour"),
            (policy(on_wait=sim.Wait("sleep")), ValueError, "there are spin, block and yield"),
            (policy(on_wait=sim.Wait("yield")), ValueError, "lets a gang's process yield"),
            (policy(on_row_change=4), ValueError, "row 4, which has no jobs"),
            (policy(on_row_change=2**70), OverflowError, ""),
            (policy(on_arrival=None), ValueError, "starts none of 2 waiting jobs"),
            (policy(on_arrival=sim.Start(0, [-1, 1])), OverflowError, ""),
            (policy(on_arrival=sim.Start(0, [8, 1])), ValueError, "not all of these exist and are free"),
            (policy("live"), ValueError, "base it on GS"),
            (policy("XB"), ValueError, "no strategy 'XB'"),
        ]
        for strategy, error, text in wrong:
            with self.assertRaisesRegex(error, text, msg=text):
                sim.simulate([{"tasks": 2, "exec_s": 0.5, "type": "J1"}] * 2, strategy=strategy, nodes=2, mpl=2)
        with self.assertRaisesRegex(TypeError, "is a class"):
            sim.simulate(next(lists()), strategy=Own)
        with self.assertRaisesRegex(ValueError, "sampled"):
            sim.simulate(next(lists()), strategy=sim.Policy(), sampled=True)

    def test_comparisons_say_that_they_take_names(self):
        for strategies in (["GS", Own("GS", sim.Wait("spin"))], [Own], Own("GS", sim.Wait("spin"))):
            with self.assertRaisesRegex(TypeError, "the strategy Own is not a name(?s:.*)hint: call simulate"):
                sim.compare(strategies, "WL1")

    def test_a_hook_that_never_returns_and_a_run_without_end_stop_at_ctrl_c(self):
        for hook in ("while True: pass", "return NotImplemented"):
            program = (f"from cosched import sim\nclass Mine(sim.Policy):\n    base = 'Local'\n    def on_arrival(self, moment):\n        {hook}\n"
                       "print(1, flush=True)\ntry: sim.simulate([{'tasks': 4, 'exec_s': 5e8, 'type': 'J1'}] * 2, strategy=Mine(), nodes=8)\n"
                       "except KeyboardInterrupt: print('stopped')")
            with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
                self.assertEqual(process.stdout.readline(), "1\n")
                time.sleep(0.5)
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.communicate(timeout=60)[0], "stopped\n", hook)

    def test_progress_is_told_and_may_stop_it(self):
        def progress(part):
            raise LookupError(part)

        with self.assertRaises(LookupError):
            sim.simulate([{"tasks": 8, "exec_s": 5e8, "type": "J1"}], strategy=sim.Policy(), nodes=8, progress=progress)


if __name__ == "__main__":
    unittest.main()
