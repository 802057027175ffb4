"""tools/rerun-failed: the tests of a log are found, run again, and what they do then decides."""

import os
import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[1] / "rerun-failed"

PASSES = "echo 'test result: ok. 1 passed; 0 failed'"

LOG = """
running 3 tests
failures:

---- pipe::a stdout ----
    not a name
test result: strange words of a test

failures:
    pipe::a

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s

error: test failed, to rerun pass `-p cosched-cli --test cli`

running 2 tests
failures:

---- src/lib.rs - (line 9) stdout ----

failures:
    src/lib.rs - (line 9)
    src/lib.rs - Guide (line 20)

test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s

error: test failed, to rerun pass `-p cosched-pipeline --doc`

running 7 tests
test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s
error: test failed, to rerun pass `-p cosched-ffi --lib`

Caused by:
  process didn't exit successfully (signal: 6, SIGABRT: process abort signal)
error: 3 targets failed:
    `-p cosched-cli --test cli`
"""


class RerunFailed(unittest.TestCase):
    def run_tool(self, log, cargo):
        """The tool on this log, with a cargo that is this shell script: its status and what it printed; the calls."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "log").write_text(log)
            fake = folder / "cargo"
            fake.write_text(f'#!/bin/sh\nprintf "%s|" "$@" >>{folder}/calls\necho >>{folder}/calls\n{cargo}\n')
            fake.chmod(0o755)
            env = dict(os.environ, CARGO=str(fake))
            done = subprocess.run([TOOL, folder / "log"], capture_output=True, text=True, env=env)
            calls = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
            return done, calls

    def test_each_failed_test_is_run_alone(self):
        done, calls = self.run_tool(LOG, PASSES)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            calls,
            [
                "test|--quiet|-p|cosched-cli|--test|cli|--|--show-output|--exact|pipe::a|",
                "test|--quiet|-p|cosched-pipeline|--doc|--|--show-output|--exact|src/lib.rs - (line 9)|",
                "test|--quiet|-p|cosched-pipeline|--doc|--|--show-output|--exact|src/lib.rs - Guide (line 20)|",
                "test|--quiet|-p|cosched-ffi|--lib|--|--show-output|",
            ],
        )
        unstable = [line for line in done.stdout.splitlines() if line.startswith("UNSTABLE: ")]
        self.assertEqual(len(unstable), 4)
        self.assertIn("-p cosched-cli --test cli pipe::a", unstable[0])

    def test_what_fails_again_has_failed(self):
        done, _ = self.run_tool(LOG, 'case "$*" in *pipe::a*) exit 101 ;; esac; ' + PASSES)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("UNSTABLE: -p cosched-cli", done.stdout)
        self.assertIn("UNSTABLE: -p cosched-ffi --lib:", done.stdout)

    def test_a_name_that_finds_no_test_has_not_passed(self):
        done, _ = self.run_tool(LOG, "echo 'test result: ok. 0 passed; 0 failed; 9 filtered out'")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("UNSTABLE", done.stdout)

    def test_many_failures_are_not_run_again(self):
        done, calls = self.run_tool(LOG.replace("    pipe::a\n", "    pipe::a\n    pipe::b\n"), PASSES)
        self.assertEqual((done.returncode, calls), (1, []))

    def test_a_log_without_failures_is_wrong_use(self):
        done, calls = self.run_tool("error: could not compile `cosched-core`\n", "exit 0")
        self.assertEqual((done.returncode, calls), (2, []))
        self.assertIn("names no failed test", done.stderr)


if __name__ == "__main__":
    unittest.main()
