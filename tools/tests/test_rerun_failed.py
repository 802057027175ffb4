"""tools/rerun-failed: the tests in a log are found and run again; the second result counts for noisy ones only."""

import os
import pathlib
import subprocess
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/rerun-failed"

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


ALL = [
    "-p cosched-cli --test cli pipe::a",
    "-p cosched-pipeline --doc src/lib.rs - (line 9)",
    "-p cosched-pipeline --doc src/lib.rs - Guide (line 20)",
    "-p cosched-ffi --lib",
]


def noisy(tests, kind="shares"):
    return "noisy = []\n" * (not tests) + "".join(
        f'[[noisy]]\ntest = "{test}"\nkind = "{kind}"\ncause = "c"\nlink = "l"\n' for test in tests
    )


class RerunFailed(unittest.TestCase):
    def run_tool(self, log, cargo, listed, *options):
        """The tool on this log, with a cargo that is this shell script and this list: its status and output; the calls."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "log").write_text(log)
            fake = folder / "cargo"
            fake.write_text(f'#!/bin/sh\nprintf "%s|" "$@" >>{folder}/calls\necho >>{folder}/calls\n{cargo}\n')
            fake.chmod(0o755)
            (folder / "noisy.toml").write_text(listed)
            env = dict(os.environ, CARGO=str(fake), COSCHED_NOISY=str(folder / "noisy.toml"))
            done = subprocess.run([TOOL, *options, folder / "log"], capture_output=True, text=True, env=env, cwd=folder)
            calls = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
            return done, calls

    def test_each_failed_test_is_run_alone(self):
        done, calls = self.run_tool(LOG, PASSES, noisy(ALL))
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
        named = [line.split(": ")[1] for line in done.stdout.splitlines() if line.startswith("NOISY: ")]
        self.assertEqual(named, ALL)

    def test_what_passes_alone_and_is_not_noisy_has_failed(self):
        done, calls = self.run_tool(LOG, PASSES, noisy(ALL[1:]))
        self.assertEqual((done.returncode, len(calls)), (1, 4))
        self.assertIn(f"UNSTABLE: {ALL[0]}: ", done.stdout)
        self.assertIn(f"NOISY: {ALL[1]}: ", done.stdout)

    def test_what_fails_again_has_failed(self):
        done, _ = self.run_tool(LOG, 'case "$*" in *pipe::a*) exit 101 ;; esac; ' + PASSES, noisy(ALL))
        self.assertEqual(done.returncode, 1)
        self.assertNotIn(f"NOISY: {ALL[0]}", done.stdout)
        self.assertIn(f"NOISY: {ALL[3]}:", done.stdout)

    def test_a_name_that_finds_no_test_has_not_passed(self):
        done, _ = self.run_tool(LOG, "echo 'test result: ok. 0 passed; 0 failed; 9 filtered out'", noisy(ALL))
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("NOISY", done.stdout)

    def test_many_failures_are_not_run_again(self):
        done, calls = self.run_tool(LOG.replace("    pipe::a\n", "    pipe::a\n    pipe::b\n"), PASSES, noisy(ALL))
        self.assertEqual((done.returncode, calls), (1, []))

    def test_a_log_without_failures_is_wrong_use(self):
        for options in [], ["--step", "v2"]:
            done, calls = self.run_tool("error: could not compile `cosched-core`\n", "exit 0", noisy([]), *options)
            self.assertEqual((done.returncode, calls), (2, []))
            self.assertIn("names no failure", done.stderr)

    def test_a_step_is_run_again_if_only_noisy_checks_failed(self):
        log = "ok: a\nFAILED: they alternate: exit code 1\nFAILED: b\n"
        for checks, status in (["they alternate", "b"], 0), (["b"], 1):
            with tempfile.TemporaryDirectory() as folder:
                run = pathlib.Path(folder, "tests/v2/run")
                run.parent.mkdir(parents=True)
                run.write_text("#!/bin/sh\necho once more >>calls\n")
                run.chmod(0o755)
                pathlib.Path(folder, "log").write_text(log)
                pathlib.Path(folder, "noisy.toml").write_text(noisy([f"v2 {check}" for check in checks]))
                env = dict(os.environ, COSCHED_NOISY="noisy.toml")
                done = subprocess.run([TOOL, "--step", "v2", "log"], capture_output=True, text=True, env=env, cwd=folder)
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                self.assertEqual(pathlib.Path(folder, "calls").exists(), status == 0)

    def test_there_are_two_kinds_of_noise(self):
        done, calls = self.run_tool(LOG, PASSES, noisy(ALL, "slow"))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(calls, [])
        self.assertIn("a kind of", done.stderr)

    def test_what_is_listed_is_there(self):
        for entry in tomllib.loads((ROOT / "tests/noisy.toml").read_text())["noisy"]:
            words = entry["test"].split()
            if words[0] == "-p":
                room = ROOT / "tests" if words[1] == "cosched-tests" else ROOT / "crates" / words[1]
                name, text = f"fn {words[4].split('::')[-1]}(", (room / f"tests/{words[3]}.rs").read_text()
            else:
                name = entry["test"].removeprefix(f"{words[0]} ")
                text = "".join(path.read_text() for path in (ROOT / "tests" / words[0]).iterdir() if path.is_file())
            self.assertIn(name, text, entry["test"])
            self.assertTrue(entry["link"].startswith("https://") or (ROOT / entry["link"]).is_file(), entry["link"])
            self.assertIn("mpich" if entry["kind"] == "mpich" else "", text)


if __name__ == "__main__":
    unittest.main()
