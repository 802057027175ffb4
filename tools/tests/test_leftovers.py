"""tools/leftovers: what appears after the first look is named, what was there is not, nor what a living process has."""

import os
import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent.parent / "leftovers"


class Leftovers(unittest.TestCase):
    def test_only_what_is_new_and_nobody_has(self):
        with tempfile.TemporaryDirectory(prefix="cosched-was-there-", dir="/tmp") as old, tempfile.NamedTemporaryFile("w+") as file:
            subprocess.run([TOOL], stdout=file, check=True)
            self.assertIn(old, pathlib.Path(file.name).read_text())
            with tempfile.TemporaryDirectory(prefix="cosched-new-", dir="/tmp") as new:
                own = tempfile.mkdtemp(prefix=f"cst-{os.getpid()}-", dir="/tmp")
                done = subprocess.run([TOOL, "--since", file.name], capture_output=True, text=True)
                os.rmdir(own)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"left: file {new}", done.stdout)
                self.assertNotIn(old, done.stdout)
                self.assertNotIn(own, done.stdout)


if __name__ == "__main__":
    unittest.main()
