"""The package: its types, its texts, its example."""

import ast
import doctest
import importlib
import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys
import unittest

import cosched
import make_forms
from cosched import _api, _command, _jobs, _native, aio, errors, executor, model, pipeline, sim
from support import needs_daemon

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
INSTALLED = pathlib.Path(cosched.__file__).parent


def members_of(value):
    """What a class and its bases define; `Buffer` adds the buffer protocol to its base."""
    return {name: part for each in reversed(value.__mro__[:-1]) for name, part in vars(each).items()}


class Package(unittest.TestCase):
    def test_type_hints_are_installed_and_tell_what_there_is(self):
        self.assertTrue((INSTALLED / "py.typed").exists())
        hints = ast.parse((INSTALLED / "_native.pyi").read_text())
        hinted = {node.name: node for node in hints.body if isinstance(node, ast.ClassDef)}
        there = {name for name, value in vars(_native).items() if inspect.isclass(value)}
        self.assertEqual(set(hinted), there)
        functions = {node.name for node in hints.body if isinstance(node, ast.FunctionDef)}
        self.assertEqual(functions, {name for name, value in vars(_native).items() if inspect.isbuiltin(value)})
        for name, node in hinted.items():
            members = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            members |= {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
            public = {member for member in members_of(getattr(_native, name)) if not member.startswith("_")}
            self.assertEqual({member for member in members if not member.startswith("_")}, public, name)

    def test_everything_public_has_a_docstring(self):
        for module in (pipeline, _jobs, aio, executor, errors, model, sim):
            for name in module.__all__:
                value = getattr(module, name)
                if not inspect.isclass(value) and not inspect.isfunction(value):
                    continue
                self.assertTrue(value.__doc__, name)
                for member, part in members_of(value).items() if inspect.isclass(value) else ():
                    if not member.startswith("_") and (callable(part) or isinstance(part, property)):
                        self.assertTrue(part.__doc__, f"{name}.{member}")

    def test_the_forms_are_those_of_the_interface(self):
        if not make_forms.SCHEMA.exists():
            self.skipTest("not in a checkout")
        self.assertEqual((INSTALLED / "forms.py").read_text(), make_forms.make(), "run python3 python/tests/make_forms.py")
        version = (make_forms.SCHEMA.parents[2] / "crates/cosched-api/src/version.rs").read_text()
        major, minor = map(int, re.search(r"ApiVersion \{ major: (\d+), minor: (\d+) \};", version).groups())
        ours = [int(number) for number in _api.API_VERSION.split(".")]
        self.assertEqual(ours, [major, minor], f"{ours}, and the interface is {major}.{minor}")

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_types(self):
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "-p", "cosched", "--config-file", EXAMPLES.parent / "pyproject.toml"],
            capture_output=True, text=True, timeout=200,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @needs_daemon
    def test_options_are_those_of_the_command(self):
        in_help = _command._help_options()
        self.assertLessEqual(set(_command.RunOptions.__annotations__) - {"klass"}, in_help)
        self.assertIn("leftovers", in_help)

    @needs_daemon
    def test_the_examples_in_docstrings(self):
        names = [file.stem for file in INSTALLED.glob("*.py") if file.stem not in ("__init__", "jupyterhub", "pytest_plugin")]
        results = [doctest.testmod(importlib.import_module(f"cosched.{name}")) for name in names]
        self.assertEqual(sum(result.failed for result in results), 0)
        self.assertGreater(sum(result.attempted for result in results), 10)

    def test_version(self):
        self.assertRegex(cosched.__version__, r"^\d+\.\d+\.\d+$")

    def test_the_example_runs(self):
        command = [sys.executable, EXAMPLES / "transform.py", "--blocks", "9", "--block-mib", "0.5"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("denoise         9 blocks", done.stdout)
        self.assertRegex(done.stdout, r"serial \d+\.\d+ s, pipeline \d+\.\d+ s, ratio \d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
