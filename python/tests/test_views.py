"""Buffers are the pool's own memory, and no view of them outlives its round."""

import gc
import unittest

import numpy

from cosched.pipeline import Flow, Pipeline, Stage, StageError
from support import line


class Views(unittest.TestCase):
    def test_arrays_are_the_buffers_memory(self):
        addresses, seen = set(), []

        def write(buffer):
            buffer.resize(80)
            array = numpy.frombuffer(buffer)
            self.assertTrue(array.flags.writeable)
            addresses.add(array.ctypes.data)
            array[:] = buffer.tag

        def read(buffer):
            array = numpy.frombuffer(buffer)
            self.assertIn(array.ctypes.data, addresses)
            seen.append((len(array), float(array[0]), float(array[-1])))

        line(write, read, buffers=3).run()
        self.assertEqual(seen, [(10, float(n), float(n)) for n in range(100)])
        self.assertLessEqual(len(addresses), 3)
        self.assertTrue(all(address % 4096 == 0 for address in addresses))

    def test_storage_is_all_memory_and_the_buffer_what_it_holds(self):
        sizes = set()

        def look(buffer):
            with buffer.storage as storage:
                storage[7] = 42
                sizes.add((len(buffer), len(memoryview(buffer)), len(storage), buffer.capacity, bytes(buffer)[7]))

        line(look).run()
        self.assertEqual(sizes, {(8, 8, 4096, 4096, 42)})

    def test_a_view_that_is_kept_ends_the_pipeline_and_keeps_its_memory(self):
        for view in (numpy.frombuffer, memoryview, lambda buffer: buffer.storage[2:4]):
            kept = []

            def keep(buffer):
                if buffer.tag == 3:
                    memoryview(buffer)[:] = b"12345678"
                    kept.append(view(buffer))

            with self.assertRaises(StageError) as raised:
                line(keep, count=10**6).run()
            self.assertEqual(raised.exception.stage, "stage 0")
            self.assertIsInstance(raised.exception.__cause__, BufferError)
            self.assertIn("keep a copy", str(raised.exception))
            del raised
            gc.collect()
            self.assertIn(bytes(kept[0]), (b"12345678", b"34"))

    def test_a_view_in_garbage_is_no_view(self):
        def leave_a_cycle(buffer):
            cycle = [numpy.frombuffer(buffer)]
            cycle.append(cycle)

        report = line(leave_a_cycle, count=20).run()
        self.assertEqual(report["stages"][1]["rounds"], 20)

    def test_the_views_of_an_exception_s_traceback_live_as_long_as_it(self):
        def fail(buffer):
            array = numpy.frombuffer(buffer)
            array[:] = 7
            raise LookupError("on purpose")

        with self.assertRaises(StageError) as raised:
            line(fail, size_bytes=1 << 16).run()
        cause = raised.exception.__cause__
        self.assertIsInstance(cause, LookupError)
        trace = cause.__traceback__
        while trace.tb_next:
            trace = trace.tb_next
        self.assertEqual(trace.tb_frame.f_code.co_name, "fail")
        self.assertTrue((trace.tb_frame.f_locals["array"] == 7).all())

    def test_a_buffer_that_is_kept_says_that_its_round_is_over(self):
        kept = []
        line(kept.append, count=3).run()
        self.assertEqual(len(kept), 3)
        for use in (len, memoryview, bytes, lambda buffer: buffer.tag, lambda buffer: buffer.storage,
                    lambda buffer: buffer.resize(1)):
            with self.assertRaisesRegex(ValueError, "round of this buffer is over"):
                use(kept[0])
        self.assertIn("over", repr(kept[0]))

    def test_too_long_is_refused(self):
        with self.assertRaisesRegex(StageError, "4097 bytes in a buffer of 4096"):
            line(lambda buffer: buffer.resize(4097)).run()

    def test_a_view_that_is_returned_is_no_flow(self):
        with self.assertRaisesRegex(StageError, "returns None or a Flow, not .*ndarray"):
            line(numpy.frombuffer).run()

    def test_the_source_fills_the_storage(self):
        texts = iter([b"one", b"two", b"three"])
        seen = []

        def fill(buffer):
            text = next(texts)
            buffer.storage[: len(text)] = text
            buffer.resize(len(text))
            return Flow.LAST if text == b"three" else None

        pipeline = Pipeline("text", buffers=2, size_bytes=64).add(Stage("fill", fill))
        pipeline.add(Stage("tell", lambda buffer: seen.append((buffer.round, buffer.is_last, bytes(buffer))))).run()
        self.assertEqual(seen, [(0, False, b"one"), (1, False, b"two"), (2, True, b"three")])


if __name__ == "__main__":
    unittest.main()
