"""tools/run-tests: each test of the workspace is run once, in its lane, and failures are reported in cargo's form."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/run-tests"
sys.dont_write_bytecode = True
loader = SourceFileLoader("run_tests", str(TOOL))
run_tests = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
loader.exec_module(run_tests)


def artifact(package_id, kind, name, executable, test=True, manifest="/r/crates/cosched-core/Cargo.toml"):
    target = {"kind": [kind], "name": name}
    of = {"reason": "compiler-artifact", "package_id": package_id, "manifest_path": manifest, "target": target}
    return json.dumps(of | {"profile": {"test": test}, "executable": executable})


class Lanes(unittest.TestCase):
    def test_programs_are_what_cargo_has_built_for_tests(self):
        lines = [
            "warning: of something",
            artifact("path+file:///r/crates/cosched-core#0.1.0", "lib", "cosched_core", "/t/core-1"),
            artifact("path+file:///r/crates/cosched-core#0.1.0", "lib", "cosched_core", None),
            artifact("path+file:///r/crates/cosched-core#0.1.0", "bin", "x", "/t/x", test=False),
            artifact("path+file:///r/tests#cosched-tests@0.1.0", "test", "gang", "/t/gang-1", manifest="/r/tests/Cargo.toml"),
        ]
        found = [(program.target(), program.executable, str(program.folder)) for program in run_tests.programs_of(lines)]
        core = ("-p cosched-core --lib", "/t/core-1", "/r/crates/cosched-core")
        self.assertEqual(found, [core, ("-p cosched-tests --test gang", "/t/gang-1", "/r/tests")])

    def test_each_program_is_in_one_lane_and_what_measures_shares_is_alone(self):
        def program(package, name):
            return run_tests.Program(package, "test", name, name, ".")

        ours = [program("cosched-tests", name) for name in ["gang", *run_tests.WAIT]]
        others = [program("cosched-swarm", "cluster"), program("cosched-cli", "fuzz"), program("cosched-linux", "slots")]
        waits, computes, alone = run_tests.lanes_of(ours + others)
        self.assertCountEqual(waits, run_tests.WAIT)
        self.assertEqual([of.package for of in computes], ["cosched-swarm", "cosched-cli"])
        apart = [(name, ["--exact", test]) for name, tests in run_tests.APART.items() for test in tests]
        self.assertCountEqual([(of.name, of.words) for of in alone], [("gang", []), ("slots", []), *apart])
        for of in waits.values():
            self.assertEqual(of.words, [word for test in run_tests.APART.get(of.name, []) for word in ("--skip", test)])

    def test_what_is_named_here_is_there(self):
        for name in run_tests.WAIT + run_tests.LATE:
            places = [ROOT / f"tests/tests/{name}.rs", ROOT / f"crates/cosched-cli/tests/{name}/main.rs"]
            text = "".join(place.read_text() for place in places if place.is_file())
            self.assertTrue(text, name)
            for test in run_tests.APART.get(name, []):
                self.assertIn(f"fn {test}()", text)
        for what in run_tests.COMPUTE:
            room, *program = what.split()
            files = ["Cargo.toml", *(f"tests/{name}.rs" for name in program)]
            self.assertTrue(all((ROOT / f"crates/cosched-{room}" / file).is_file() for file in files), what)

    def test_what_is_late_waits_in_no_other_lane(self):
        self.assertEqual(set(run_tests.LATE) & (set(run_tests.WAIT) | set(run_tests.APART)), set())
        late = [run_tests.Program(room, "test", "record", "/t", ".") for room in ("cosched-tests", "cosched-record")]
        self.assertEqual([run_tests.is_late(program) for program in late], [True, False])


class Runs(unittest.TestCase):
    def run_all(self, scripts):
        runner, said = run_tests.Runner(), io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            programs = []
            for name, script in scripts.items():
                path = pathlib.Path(folder) / name
                path.write_text(f"#!/bin/sh\n{script}\n")
                path.chmod(0o755)
                programs.append(run_tests.Program("cosched-x", "test", name, str(path), folder))
            said.buffer = io.BytesIO()
            said.buffer.write = lambda text: said.write(text.decode())
            with contextlib.redirect_stdout(said):
                runner.one_after_the_other(programs)
        return runner, said.getvalue()

    def test_what_failed_is_told_so_that_it_can_be_run_again(self):
        bad = "echo failures:; echo '    a::b'; echo; echo 'test result: FAILED. 0 passed; 1 failed'; exit 101"
        runner, said = self.run_all({"good": "echo 'test result: ok. 1 passed'", "bad": bad, "dead": "kill -9 $$"})
        self.assertEqual([program.name for program in runner.failed], ["bad", "dead"])
        self.assertIn("process didn't exit successfully", said)
        self.assertNotIn("-p cosched-x --test good`", said)
        # The test of this test fails each time.
        with tempfile.TemporaryDirectory() as folder:
            log, cargo = pathlib.Path(folder) / "log", pathlib.Path(folder) / "cargo"
            log.write_text(said)
            cargo.write_text('#!/bin/sh\necho "$@" >>"$0.asked"\nexit 101\n')
            cargo.chmod(0o755)
            words = [ROOT / "tools/rerun-failed", log]
            done = subprocess.run(words, env=os.environ | {"CARGO": str(cargo)}, stdout=subprocess.PIPE, text=True)
            asked = pathlib.Path(f"{cargo}.asked").read_text().splitlines()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            asked,
            [
                "test --quiet -p cosched-x --test bad -- --show-output --exact a::b",
                "test --quiet -p cosched-x --test dead -- --show-output",
            ],
        )


if __name__ == "__main__":
    unittest.main()
