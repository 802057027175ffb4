"""tools/bench/intervals: made-up notes of processes with known switches."""

import pathlib
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import intervals  # noqa: E402

SLOT_NS = 10_000_000
BASE = 1000 * SLOT_NS


def alternating(job, jobs, slots, late_ns, over_ns, stray=()):
    """Runs in every slot with slot % jobs == job, from late_ns after the boundary to over_ns after the next."""
    found = []
    for slot in range(slots):
        begin_ns = BASE + slot * SLOT_NS
        if slot % jobs == job:
            found.append((begin_ns + late_ns, begin_ns + SLOT_NS + over_ns))
        found += [(begin_ns + a, begin_ns + b) for s, a, b in stray if s == slot]
    return intervals.Process(0, found)


class Intervals(unittest.TestCase):
    def test_known_switches(self):
        jobs = [[alternating(j, 2, 40, 50_000, 30_000)] for j in range(2)]
        found = intervals.switches(jobs, SLOT_NS)
        self.assertGreater(found["switches"], 30)
        self.assertEqual(found["in_first"]["p50_us"], 50)
        self.assertEqual(found["out_stop"]["p99_us"], 30)
        self.assertEqual(found["out_last"]["p99_us"], 30)
        self.assertEqual(found["switch"]["max_us"], 50)
        self.assertAlmostEqual(found["stray_share"], 30_000 / SLOT_NS, delta=1e-4)

    def test_a_stray_run_counts_as_stray_and_as_last_but_not_as_stop(self):
        stray = [(21, 4_000_000, 6_000_000)]
        jobs = [[alternating(0, 2, 40, 50_000, 30_000, stray)], [alternating(1, 2, 40, 50_000, 30_000)]]
        found = intervals.switches(jobs, SLOT_NS)
        self.assertEqual(found["out_last"]["max_us"], 6000)
        self.assertEqual(found["out_stop"]["max_us"], 30)
        slots = found["slots"]
        self.assertAlmostEqual(found["stray_share"], (slots * 30_000 + 2_000_000) / (slots * SLOT_NS), delta=1e-3)

    def test_the_slower_cpu_and_the_later_process_count(self):
        fast, slow = alternating(0, 2, 40, 10_000, 0), alternating(0, 2, 40, 80_000, 0)
        second = alternating(0, 2, 40, 3_000_000, 0)
        slow.cpu = 1
        other = [alternating(1, 2, 40, 20_000, 0)]
        found = intervals.switches([[fast, slow, second], other], SLOT_NS)
        self.assertEqual(found["in_first"]["max_us"], 80)
        self.assertEqual(found["in_all"]["max_us"], 3000)

    def test_interrupts_do_not_end_a_run(self):
        process = intervals.Process(0, [(0, 100_000), (130_000, 150_000), (900_000, 950_000)])
        self.assertEqual(process.stop_ns(50_000), 150_000)
        self.assertEqual(process.stop_ns(120_000), 120_000)
        self.assertEqual(process.first_run_ns(110_000, 800_000), 130_000)
        self.assertIsNone(process.first_run_ns(200_000, 800_000))
        self.assertEqual(process.run_time_ns(50_000, 920_000), 90_000)

    def test_a_cut_file_is_read_up_to_the_last_pair(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(struct.pack("<QQQ", 1, 2, 3))
            file.flush()
            self.assertEqual(intervals.read(pathlib.Path(file.name)), [(1, 2)])


if __name__ == "__main__":
    unittest.main()
