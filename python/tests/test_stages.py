"""Stages of every kind, their lifecycles, and their failures."""

import json
import os
import threading
import time
import unittest

from cosched.pipeline import (
    Flow, Graph, GraphError, Pipeline, PipelineError, Stage, StageError, Stalled, Stopped, chrome_trace, text,
)
from support import line, numbers


class Fork:
    """A callable with state of its own, init and cleanup."""

    lives = []

    def __init__(self, number):
        self.number, self.rounds, self.events = number, 0, []
        self.lives.append(self)

    def init(self):
        self.events.append("init")
        self.thread = threading.get_ident()

    def __call__(self, buffer):
        self.rounds += 1
        assert self.thread == threading.get_ident()

    def cleanup(self):
        self.events.append("cleanup")


class Stages(unittest.TestCase):
    def test_report(self):
        report = line(lambda buffer: None, buffers=3).run()
        self.assertEqual(report["format"], "cosched-pipeline-report-1")
        self.assertEqual(report["memory_bytes"], 3 * 4096)
        self.assertEqual([stage["name"] for stage in report["stages"]], ["numbers", "stage 0"])
        self.assertEqual([stage["rounds"] for stage in report["stages"]], [100, 100])
        # In the form for pandas.DataFrame(report["stages"]): one row each, with the same columns.
        self.assertEqual({tuple(stage) for stage in report["stages"]}, {tuple(report["stages"][0])})

    def test_incarnations_have_states_and_lives_of_their_own(self):
        for ordered in (True, False):
            Fork.lives.clear()
            seen = []
            fork = Stage.replicated("fork", 3, Fork, ordered=ordered)
            line(fork, lambda buffer: seen.append(buffer.tag), count=300, buffers=6).run()
            self.assertEqual(sorted(life.number for life in Fork.lives), [0, 1, 2])
            self.assertEqual(sum(life.rounds for life in Fork.lives), 300)
            self.assertTrue(all(life.events == ["init", "cleanup"] for life in Fork.lives))
            self.assertEqual(seen if ordered else sorted(seen), list(range(300)))

    def test_a_stage_keeps_its_thread_and_what_is_local_to_it(self):
        local, threads = threading.local(), set()

        def count(buffer):
            local.count = getattr(local, "count", 0) + 1
            threads.add(threading.get_ident())
            if buffer.is_last:
                self.assertEqual(local.count, 50)

        source = iter(range(50))
        pipeline = Pipeline("local", buffers=2, size_bytes=64)
        pipeline.add(Stage("source", lambda buffer: Flow.LAST if next(source) == 49 else None))
        pipeline.add(Stage("count", count)).run()
        self.assertEqual(len(threads), 1)
        self.assertNotIn(threading.get_ident(), threads)

    def test_workers_and_shared_threads(self):
        seen = []
        pipeline = Pipeline("mixed", buffers=4, size_bytes=64)
        pipeline.add(numbers(100, resource="io", thread="io", repeat=2))
        pipeline.add(Stage("work", lambda buffer: setattr(buffer, "tag", buffer.tag * 2), kind="worker"))
        pipeline.add(Stage("tell", lambda buffer: seen.append(buffer.tag), resource="io", thread="io", repeat=2))
        pipeline.run(workers=1)
        self.assertEqual(seen, list(range(0, 200, 2)))

    def test_an_exception_arrives_with_the_stage_s_name_and_its_traceback(self):
        def deep(buffer):
            raise KeyError(buffer.tag)

        def fail(buffer):
            if buffer.tag == 5:
                deep(buffer)

        with self.assertRaises(StageError) as raised:
            line(fail, count=10**6).run()
        error = raised.exception
        self.assertEqual((error.stage, error.report["stages"][1]["rounds"]), ("stage 0", 5))
        self.assertIn("pipeline 'line': stage 'stage 0': KeyError: 5", str(error))
        self.assertIsInstance(error.__cause__, KeyError)
        names, trace = [], error.__cause__.__traceback__
        while trace:
            names.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        self.assertEqual(names, ["fail", "deep"])

    def test_init_and_cleanup_may_fail(self):
        class Fails:
            def __init__(self, when):
                self.when = when

            def __call__(self, buffer):
                pass

            def init(self):
                self.fail_in("init")

            def cleanup(self):
                self.fail_in("cleanup")

            def fail_in(self, now):
                if now == self.when:
                    raise OSError(f"in {now}")

        for when in ("init", "cleanup"):
            with self.assertRaisesRegex(StageError, f"stage 'fails': OSError: in {when}"):
                line(Stage("fails", Fails(when))).run()
        with self.assertRaisesRegex(StageError, "ZeroDivisionError"):
            line(Stage.replicated("fails", 2, lambda number: 1 // 0)).run()

    def test_only_the_beginning_says_when_it_ends(self):
        with self.assertRaisesRegex(StageError, "only the beginning of a path may") as raised:
            line(lambda buffer: Flow.LAST).run()
        self.assertIsNone(raised.exception.__cause__)

    def test_stops_from_another_thread_and_from_a_stage(self):
        begun = threading.Event()
        running = line(lambda buffer: begun.set(), count=10**9).start()

        def stop():
            begun.wait(20)
            self.assertEqual(running.snapshot()["stages"][1]["name"], "stage 0")
            running.stop()

        stopper = threading.Thread(target=stop)
        stopper.start()
        with self.assertRaises(Stopped) as raised:
            running.wait()
        stopper.join()
        self.assertGreater(raised.exception.report["stages"][0]["rounds"], 0)
        with self.assertRaisesRegex(RuntimeError, "waits or has waited"):
            running.wait()

        box = []
        running = line(lambda buffer: box and box[0].stop(), count=10**9).start()
        box.append(running)
        with self.assertRaises(PipelineError):
            running.wait()

    def test_a_block_of_a_run_waits_and_an_exception_in_it_stops(self):
        seen = []
        with line(lambda buffer: seen.append(buffer.tag)).start():
            pass
        self.assertEqual(len(seen), 100)
        with line(seen.append).start() as running:
            self.assertEqual(running.wait()["stages"][0]["rounds"], 100)
        with self.assertRaises(ZeroDivisionError), line(lambda buffer: None, count=10**9).start():
            time.sleep(0.02)
            1 // 0

    def test_a_run_that_nobody_waits_for_is_stopped(self):
        dropped = line(lambda buffer: None, count=10**9).start()
        del dropped

    def test_settings_reach_the_threads(self):
        nices = set()
        work = Stage("work", lambda buffer: nices.add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id())), nice=7)
        idle = Stage("idle", lambda buffer: None, scheduling="batch", slice_us=200, cpus=[0])
        report = line(work, idle).run(priorities="adjust-once", trace=True)
        self.assertEqual(nices, {7})
        self.assertEqual(report["priorities"], "adjust-once")
        self.assertIn("nice 7", report["stages"][1]["settings"])
        self.assertIn("work", text(report))
        events = json.loads(chrome_trace(report))["traceEvents"]
        self.assertEqual(sum(event["ph"] == "X" and event["name"] == "work" for event in events), 100)
        with self.assertRaisesRegex(ValueError, "this is not a report"):
            text({})
        with self.assertRaisesRegex(ValueError, "'faster' is not a rule for priorities"):
            line(work).run(priorities="faster")
        with self.assertRaisesRegex(ValueError, "'real' is not a scheduling class"):
            line(Stage("a", print, scheduling="real"))
        with self.assertRaisesRegex(GraphError, "a nice value is -20 to 19"):
            line(Stage("a", print, nice=20)).run()
        with self.assertRaisesRegex(ValueError, "-1 is not a time in seconds"):
            line(work).run(stall_limit_s=-1.0)

    def test_a_stage_that_is_stuck_is_named(self):
        stuck = threading.Event()
        with self.assertRaisesRegex(Stalled, "stage 'wait'") as raised:
            line(Stage("wait", lambda buffer: stuck.wait(20) and None)).run(stall_limit_s=1)
        stuck.set()
        self.assertEqual(raised.exception.stage, "wait")

    def test_graphs_that_cannot_run(self):
        with self.assertRaisesRegex(GraphError, "'p': path 'p' has no buffers"):
            Pipeline("p", buffers=0, size_bytes=64).add(numbers(1)).run()
        graph = Graph("g")
        with self.assertRaisesRegex(GraphError, "has no path"):
            graph.check()
        with self.assertRaisesRegex(ValueError, "'disk' is not a resource of a stage; valid are 'compute'"):
            graph.stage(Stage("a", print, resource="disk"))
        with self.assertRaisesRegex(ValueError, "'fast' is not a kind"):
            graph.stage(Stage("a", print, kind="fast"))
        with self.assertRaisesRegex(TypeError, "stage 'a' is not callable but int"):
            Stage("a", 3)
        with self.assertRaisesRegex(ValueError, "no stage 7"):
            graph.path("p", [7], buffers=1, size_bytes=1)
        with self.assertRaisesRegex(GraphError, "0 incarnations"):
            line(Stage("none", print, incarnations=0)).run()
        pipeline = line(lambda buffer: None)
        pipeline.run()
        with self.assertRaisesRegex(RuntimeError, "runs once"):
            pipeline.run()


if __name__ == "__main__":
    unittest.main()
