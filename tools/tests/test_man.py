"""Man pages in section 5, 7 and 8: every key and option is in them, and groff has nothing to say."""

import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "packaging/etc/cosched.toml"


def config_page():
    return subprocess.run([ROOT / "tools/man-config"], capture_output=True, text=True, check=True, timeout=60).stdout


class Man(unittest.TestCase):
    def test_every_key_is_in_the_page_of_the_configuration(self):
        page = config_page()
        keys = re.findall(r"(?m)^#?([a-z_]+) = ", EXAMPLE.read_text()) + re.findall(r"(?m)^#(\[+[a-z_]+\]+)$", EXAMPLE.read_text())
        self.assertGreater(len(keys), 60)
        self.assertEqual([key for key in keys if f"\\fB{key}" not in page], [])

    def test_every_option_of_the_daemon_is_in_its_page(self):
        source = (ROOT / "crates/cosched-daemon/src/args.rs").read_text()
        options = re.findall(r"#\[arg\(long(?![^\]]*hide)[^\]]*\)\]\s+pub (\w+):", source)
        self.assertGreater(len(options), 6)
        page = (ROOT / "docs/man/coschedd.8").read_text().replace("\\-", "-")
        self.assertEqual([name for name in options if f"--{name.replace('_', '-')}" not in page], [])

    @unittest.skipUnless(shutil.which("groff"), "SKIPPED: groff is not installed")
    def test_groff_understands_the_pages(self):
        pages = [path.read_text() for path in sorted((ROOT / "docs/man").iterdir())] + [config_page()]
        self.assertEqual(len(pages), 4)
        for page in pages:
            done = subprocess.run(["groff", "-t", "-man", "-ww", "-Tutf8", "-z"], input=page, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.stderr, "", page[:100])


if __name__ == "__main__":
    unittest.main()
