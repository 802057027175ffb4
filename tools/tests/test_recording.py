"""tools/recording: a real command in a terminal, and its picture."""

import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml

TOOL = pathlib.Path(__file__).resolve().parents[1] / "recording"
loader = importlib.machinery.SourceFileLoader("recording", str(TOOL))
recording = importlib.util.module_from_spec(importlib.util.spec_from_loader("recording", loader))
loader.exec_module(recording)


class Recording(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cast = pathlib.Path(folder.name) / "x.cast"

    def run_tool(self, *words):
        return subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=60)

    def test_a_command_runs_in_a_terminal_and_its_lines_are_seen_in_their_time(self):
        script = r"printf 'one\n'; sleep 1; printf '\033[1A\033[32mtwo\033[0m<\n'; tput cols; test -t 1 && exit 3"
        made = self.run_tool("make", self.cast, "--", "sh", "-c", script)
        self.assertEqual(made.returncode, 3, made.stderr)
        head, *events = (json.loads(line) for line in self.cast.read_text().splitlines())
        self.assertEqual((head["version"], head["width"], head["height"]), (2, 100, 28))
        self.assertGreater(events[-1][0] - events[0][0], 0.9)
        drawn = self.run_tool("draw", "--pause", "0.5", self.cast)
        if "pyte is not installed" in drawn.stderr:
            self.skipTest("SKIPPED: pyte is not installed: `tools/setup test` installs it")
        texts = {"".join(text.itertext()): text for text in xml.fromstring(drawn.stdout).iter("{http://www.w3.org/2000/svg}text")}
        self.assertEqual(list(texts), ["one", "two<", "100"])
        self.assertEqual([text.get("visibility") for text in texts.values()], ["hidden", None, None])
        self.assertIn('fill="#7ee787">two<', drawn.stdout)
        self.assertIn('dur="1.50s"', drawn.stdout)

    def test_a_row_that_stays_is_one_text(self):
        a, b = (("a", "default", False),), (("b", "default", False),)
        found = [(0.0, [a, a]), (1.0, [a, b]), (2.0, [a, ()])]
        self.assertEqual(recording.spells(found, 3.0), [(0, a, 0.0, 3.0), (1, a, 0.0, 1.0), (1, b, 1.0, 2.0)])
        self.assertEqual(recording.paced([(0, "x"), (9, "y")], 3, 2), ([(0.0, "x"), (2.0, "y")], 6.0))

    def test_what_is_wrong_is_said(self):
        self.cast.write_text("[]\n")
        for words, says in (
            (("draw", self.cast), "hint: "),
            (("draw", self.cast.with_name("none")), "No such file"),
            (("make", self.cast), "takes a command"),
            (("draw", "--speed", "0", self.cast), "above 0"),
        ):
            done = self.run_tool(*words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(says, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
