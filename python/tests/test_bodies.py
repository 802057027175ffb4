"""Bodies: they accept and convey buffers themselves, and may be where paths meet."""

import threading
import unittest

import numpy

from cosched.pipeline import Flow, Graph, GraphError, Stage, StageError
from support import line, numbers


class Bodies(unittest.TestCase):
    def test_paths_meet(self):
        seen, paths = [], {}

        def meet(port):
            self.assertEqual(port.paths, [0, 1, 2])
            total = 0
            for path in (paths["odd"], paths["even"]):
                while (buffer := port.accept_from(path)) is not None:
                    if buffer.carries_block:
                        total += buffer.tag
                    port.convey(buffer)
            out = port.accept_from(paths["out"])
            out.resize(8)
            numpy.frombuffer(out, dtype=numpy.int64)[0] = total
            out.mark_last()
            port.convey(out)

        graph = Graph("meet")
        odd, even = graph.stage(numbers(50, "odd")), graph.stage(numbers(30, "even"))
        body = graph.stage(Stage.body("meet", meet))
        tell = graph.stage(Stage("tell", lambda b: seen.append(int(numpy.frombuffer(b, dtype=numpy.int64)[0]))))
        paths["odd"] = graph.path("odd", [odd, body], buffers=2, size_bytes=64)
        paths["even"] = graph.path("even", [even, body], buffers=2, size_bytes=64)
        paths["out"] = graph.path("out", [body, tell], buffers=2, size_bytes=64)
        self.assertEqual(graph.memory_bytes, 384)
        graph.run()
        self.assertEqual(seen, [49 * 50 // 2 + 29 * 30 // 2])

    def test_a_body_may_hold_several(self):
        seen = []

        def reverse_pairs(port):
            held = []
            for buffer in port:
                held.append(buffer)
                if len(held) == 2:
                    for one in reversed(held):
                        seen.append(one.tag)
                        port.convey(one)
                    held.clear()
            for one in held:
                port.convey(one)

        line(Stage.body("pairs", reverse_pairs, holds=1), count=6).run(pin_in_turn=True)
        self.assertEqual(seen[:6], [1, 0, 3, 2, 5, 4])
        with self.assertRaisesRegex(GraphError, "stages on path 'line' hold up to 9"):
            line(Stage.body("pairs", reverse_pairs, holds=9), count=6, buffers=4).run()

    def expect(self, body, error, text):
        with self.assertRaisesRegex(StageError, text) as raised:
            line(Stage.body("body", body)).run()
        self.assertEqual(raised.exception.stage, "body")
        if error:
            self.assertIsInstance(raised.exception.__cause__, error)

    def test_misuse_is_told(self):
        def with_a_view(port):
            buffer = port.accept()
            view = memoryview(buffer)
            port.convey(buffer)
            view.release()

        def twice(port):
            buffer = port.accept()
            port.convey(buffer)
            port.convey(buffer)

        def keep(port):
            first = port.accept()
            for buffer in port:
                port.convey(buffer)
            del first

        self.expect(with_a_view, BufferError, "1 views of the buffer")
        self.expect(twice, ValueError, "round of this buffer is over")
        self.expect(keep, None, "while holding 1 buffers")
        self.expect(lambda port: port.accept_from(7), ValueError, "not on path 7")
        self.expect(lambda port: 3, TypeError, "a body returns None")

    def test_a_port_is_for_its_body(self):
        ports, errors = [], []

        def lend(port):
            def use():
                try:
                    port.accept()
                except RuntimeError as error:
                    errors.append(str(error))

            other = threading.Thread(target=use)
            other.start()
            other.join()
            ports.append(port)
            for buffer in port:
                port.convey(buffer)

        line(Stage.body("body", lend)).run()
        self.assertEqual(errors, ["a port is for the thread of its body"])
        with self.assertRaises((RuntimeError, ValueError)):
            ports[0].accept()

    def test_a_body_may_begin_a_path(self):
        seen = []

        def begin(port):
            for number in range(5):
                buffer = port.accept()
                buffer.tag = number
                port.convey(buffer)
            self.assertLessEqual(port.output_backlog(port.paths[0]), 2)
            self.assertTrue(port.end(port.paths[0]))

        graph = Graph("begin")
        stages = [graph.stage(Stage.body("begin", begin)), graph.stage(Stage("tell", lambda b: seen.append(b.tag)))]
        graph.path("all", stages, buffers=2, size_bytes=8)
        graph.run()
        self.assertEqual(seen, list(range(5)))
        self.assertIs(Flow.MORE, Flow.MORE)


if __name__ == "__main__":
    unittest.main()
