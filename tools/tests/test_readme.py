"""README.md: the commands of its simulator chapter run unchanged, one after the other."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILT = ROOT / "target/release"


@unittest.skipUnless((BUILT / "cosched").exists(), "SKIPPED: the programs are not built")
class Readme(unittest.TestCase):
    def test_simulations_run_as_they_stand(self):
        text = (ROOT / "README.md").read_text()
        lines = re.findall(r"(?m)^(cosched (?:workload|sim|model predict) [^#\n]*?) *(?:#.*)?$", text)
        # Commands that need a profile of a run belong to another chapter, and comparing strategies
        # takes minutes.
        lines = [line for line in lines if "--profile" not in line and "sim compare" not in line]
        self.assertGreater(len(lines), 7, lines)
        path = f"{BUILT}:{os.environ['PATH']}"
        with tempfile.TemporaryDirectory() as scratch:
            shutil.copytree(ROOT / "examples", f"{scratch}/examples")
            for line in lines:
                done = subprocess.run(line, shell=True, cwd=scratch, env=dict(os.environ, PATH=path), capture_output=True, text=True, timeout=300)
                self.assertEqual(done.returncode, 0, f"{line}\n{done.stderr}")


if __name__ == "__main__":
    unittest.main()
