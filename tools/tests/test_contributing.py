"""CONTRIBUTING.md: the files and folders that its map names exist."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Contributing(unittest.TestCase):
    def test_paths_are_there(self):
        text = (ROOT / "CONTRIBUTING.md").read_text()
        paths = re.findall(r"`((?:crates|tests|tools|docs|packaging|bindings|experiments)/[\w./-]+)`", text)
        self.assertGreater(len(paths), 40)
        self.assertEqual([path for path in paths if not (ROOT / path).exists()], [])


if __name__ == "__main__":
    unittest.main()
