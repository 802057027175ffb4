"""The package: its types, its texts, its example."""

import ast
import inspect
import pathlib
import subprocess
import sys
import unittest

import cosched
from cosched import _native, pipeline

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
INSTALLED = pathlib.Path(cosched.__file__).parent


class Package(unittest.TestCase):
    def test_type_hints_are_installed_and_tell_what_there_is(self):
        self.assertTrue((INSTALLED / "py.typed").exists())
        hints = ast.parse((INSTALLED / "_native.pyi").read_text())
        hinted = {node.name: node for node in hints.body if isinstance(node, ast.ClassDef)}
        there = {name for name, value in vars(_native).items() if inspect.isclass(value)}
        # Storage is what a memoryview is of; nobody gets it.
        self.assertEqual(set(hinted), there - {"Storage"})
        functions = {node.name for node in hints.body if isinstance(node, ast.FunctionDef)}
        self.assertEqual(functions, {name for name, value in vars(_native).items() if inspect.isbuiltin(value)})
        for name, node in hinted.items():
            members = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            members |= {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
            public = {member for member in vars(getattr(_native, name)) if not member.startswith("_")}
            self.assertEqual({member for member in members if not member.startswith("_")}, public, name)

    def test_everything_public_has_a_docstring(self):
        for name in pipeline.__all__:
            value = getattr(pipeline, name)
            if not inspect.isclass(value):
                continue
            self.assertTrue(value.__doc__, name)
            for member, part in vars(value).items():
                if not member.startswith("_") and callable(part):
                    self.assertTrue(part.__doc__, f"{name}.{member}")

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
