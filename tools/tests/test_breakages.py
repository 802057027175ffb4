"""The texts of tools/breakages*.toml occur in their files: the tool itself takes half an hour."""

import pathlib
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Breakages(unittest.TestCase):
    def test_each_can_be_made(self):
        lists = sorted((ROOT / "tools").glob("breakages*.toml"))
        listed = [one for path in lists for one in tomllib.loads(path.read_text())["breakage"]]
        names = [one["name"] for one in listed]
        self.assertEqual(len(names), len(set(names)))
        for one in listed:
            with self.subTest(one["name"]):
                self.assertEqual((ROOT / one["file"]).read_text().count(one["from"]), 1)
                self.assertNotEqual(one["to"], one["from"])


if __name__ == "__main__":
    unittest.main()
