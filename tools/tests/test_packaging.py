"""packaging/etc/cosched.toml: as it is and with every key uncommented, the daemon accepts it; a misspelt key it refuses."""

import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "packaging/etc/cosched.toml"


@unittest.skipUnless((ROOT / "target/release/coschedd").exists(), "SKIPPED: the release programs are not built")
class Example(unittest.TestCase):
    def check(self, text):
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "cosched.toml"
            path.write_text(text)
            command = [ROOT / "target/release/coschedd", "--check", "--config", path, "--socket", f"{scratch}/socket",
                       "--state-dir", scratch, "--cgroup", "cosched-test-packaging"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            return done.stdout + done.stderr

    def refused_for_the_file(self, output):
        return "cosched.toml:" in output

    def test_as_it_is(self):
        self.assertFalse(self.refused_for_the_file(self.check(EXAMPLE.read_text())))

    def test_every_key_uncommented(self):
        text = re.sub(r"(?m)^#(?=[a-z_]+ = |\[)", "", EXAMPLE.read_text())
        self.assertGreaterEqual(len(re.findall(r"(?m)^[a-z_]+ = ", text)), 17)
        output = self.check(text)
        self.assertFalse(self.refused_for_the_file(output), output)

    def test_a_misspelt_key_is_refused(self):
        output = self.check("slot_lenght = \"20ms\"\n")
        self.assertTrue(self.refused_for_the_file(output), output)
        self.assertIn("slot_length", output)


if __name__ == "__main__":
    unittest.main()
