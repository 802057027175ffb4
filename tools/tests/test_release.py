"""tools/release: a tree in which all agree passes; each disagreement is named with what to do."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest
import zipfile

TOOL = pathlib.Path(__file__).resolve().parent.parent / "release"
SPEC = "Name: cosched\nVersion: 0.3.0\nRelease: 1\nSummary: x\nLicense: MIT\nBuildArch: noarch\n%description\nx\n%install\n" \
       "install -D {command} %{{buildroot}}/usr/bin/cosched\n%files\n/usr/bin/cosched\n"

CHANGELOG = "# Changelog\n\n## 0.3.0 (2026-11-26)\n\nThe third.\n\n### Here\n- It does it, in words\n  of two lines.\n\n- It does more.\n\n### Nowhere\n\n### There\n- Also:\n  - this\n    too.\n" \
            "\n## 0.3.0.1\n\n- Another.\n\n## 0.2.0\n\n- Before.\n"
NOTES = "The third.\n\n### Here\n- It does it, in words of two lines.\n- It does more.\n\n### There\n- Also:\n  - this too.\n"


@unittest.skipUnless(shutil.which("rpmbuild") and shutil.which("rpm2cpio") and shutil.which("cpio"), "SKIPPED: no rpmbuild, rpm2cpio or cpio (tools/setup packages)")
class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.good = pathlib.Path(cls.scratch.name) / "good"
        (cls.good / "build/packages").mkdir(parents=True)
        (cls.good / ".gitignore").write_text("/build\n")
        (cls.good / "Cargo.toml").write_text('[workspace.package]\nversion = "0.3.0"\n')
        (cls.good / "Cargo.lock").write_text('[[package]]\nname = "cosched-core"\nversion = "0.3.0"\n')
        (cls.good / "CHANGELOG.md").write_text(CHANGELOG)
        cls.packages(cls.good, "0.3.0")
        for command in ["git init -q", "git add -A", "git -c user.name=x -c user.email=x@localhost commit -qm x", "git tag v0.3.0"]:
            subprocess.run(command.split(), cwd=cls.good, check=True)

    @staticmethod
    def packages(root, says):
        """One of each kind, named 0.3.0, with a command that says so."""
        packages, made = root / "build/packages", root / "build/made"
        shutil.rmtree(made, ignore_errors=True)
        (made / "bin").mkdir(parents=True)
        command = made / "bin/cosched"
        command.write_text(f"#!/bin/sh\necho cosched {says}\n")
        command.chmod(0o755)
        with zipfile.ZipFile(packages / "cosched-0.3.0-cp39-abi3-linux.whl", "w") as wheel:
            wheel.write(command, "cosched-0.3.0.data/scripts/cosched")
            wheel.writestr("cosched-0.3.0.dist-info/METADATA", "Name: cosched\nVersion: 0.3.0\n")
        run = lambda *words: subprocess.run(words, check=True, capture_output=True)
        run("tar", "-C", made, "-czf", packages / "cosched-0.3.0-linux-x86_64.tar.gz", "bin")
        (made / "cosched.spec").write_text(SPEC.format(command=command))
        run("rpmbuild", "-bb", "-D", f"_topdir {made}/rpm", "-D", f"_rpmdir {packages}", "-D", "_rpmfilename cosched-0.3.0-1.noarch.rpm", made / "cosched.spec")
        (made / "DEBIAN").mkdir()
        (made / "DEBIAN/control").write_text("Package: cosched\nVersion: 0.3.0\nArchitecture: all\nMaintainer: x <x@localhost>\nDescription: x\n")
        (made / "usr").mkdir()
        (made / "bin").rename(made / "usr/bin")
        shutil.rmtree(made / "rpm")
        (made / "cosched.spec").unlink()
        run("dpkg-deb", "--build", made, packages / "cosched_0.3.0_all.deb")

    def check(self, spoil=None, *options):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch) / "tree"
            shutil.copytree(self.good, root)
            if spoil:
                spoil(root)
            done = subprocess.run([TOOL, *options, "--root", root], capture_output=True, text=True, timeout=60)
            return done.returncode, done.stderr, done.stdout

    def test_all_agree(self):
        self.assertEqual(self.check(), (0, "release: 0.3.0: sources, changelog, tag v0.3.0, wheel, tarball, deb, rpm agree\n", NOTES))

    def test_notes_alone(self):
        self.assertEqual(self.check(lambda root: shutil.rmtree(root / "build"), "--notes"), (0, "", NOTES))
        code, said, notes = self.check(lambda root: (root / "CHANGELOG.md").write_text("## Unreleased\n- x\n"), "--notes")
        self.assertEqual((code, notes), (1, ""))
        self.assertIn("CHANGELOG.md: no section '## 0.3.0'", said)

    def refused(self, spoil, *expected):
        code, said, notes = self.check(spoil)
        self.assertEqual((code, notes), (1, ""), said)
        for line in expected:
            self.assertIn(line, said)

    def test_sources(self):
        self.refused(lambda root: (root / "Cargo.lock").write_text('[[package]]\nname = "cosched-core"\nversion = "0.2.0"\n'),
                     "Cargo.lock: cosched-core: 0.2.0", "git: not committed: M Cargo.lock")
        self.refused(lambda root: (root / "CHANGELOG.md").write_text("## Unreleased\n- x\n"), "CHANGELOG.md: no section '## 0.3.0'")
        self.refused(lambda root: (root / "CHANGELOG.md").write_text("## 0.3.0\n\n## 0.2.0\n- x\n"), "CHANGELOG.md: nothing under '## 0.3.0'")

    def test_git(self):
        commit = "git -c user.name=x -c user.email=x@localhost commit -q --allow-empty -m y"
        self.refused(lambda root: subprocess.run(commit.split(), cwd=root, check=True), "not this commit")
        self.refused(lambda root: subprocess.run(["git", "tag", "-d", "v0.3.0"], cwd=root, check=True, capture_output=True), "git tag -a v0.3.0")

    def test_packages(self):
        self.refused(lambda root: self.packages(root, "0.2.0"), *(f"{kind}: its command says 'cosched 0.2.0'" for kind in ("wheel", "tarball", "deb", "rpm")))
        self.refused(lambda root: next((root / "build/packages").glob("*.deb")).unlink(), "deb: 0 of them in build/packages", "make packages ARGS=deb")


if __name__ == "__main__":
    unittest.main()
