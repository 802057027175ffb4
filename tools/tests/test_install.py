"""tools/install: what it installs in a staging folder it removes again, except a changed configuration."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@unittest.skipUnless((ROOT / "target/release/coschedd").exists(), "SKIPPED: the release programs are not built")
class Install(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.stage = pathlib.Path(scratch.name)

    def install(self, *arguments):
        environment = dict(os.environ, DESTDIR=str(self.stage), PREFIX="/usr", SYSCONFDIR="/etc")
        command = [ROOT / "tools/install", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def files(self):
        return sorted(str(path.relative_to(self.stage)) for path in self.stage.rglob("*") if path.is_file())

    def test_all_comes_and_goes(self):
        self.assertEqual(self.install()[0], 0)
        files = self.files()
        for expected in ["usr/bin/cosched", "usr/bin/coschedd", "usr/bin/cosched-guard",
                         "usr/lib/cosched/libcosched_preload.so", "usr/lib/cosched/libcosched_wait.so", "etc/cosched.toml",
                         "usr/lib/libcosched.so", "usr/lib/pkgconfig/cosched.pc", "usr/include/cosched.h",
                         "usr/include/cosched/pipeline.hpp",
                         "usr/lib/systemd/system/coschedd.socket", "usr/lib/systemd/system/cosched-web-team.service", "usr/lib/systemd/user/coschedd.service",
                         "usr/lib/tmpfiles.d/cosched.conf", "usr/bin/cosched-nri",
                         "usr/share/doc/cosched/kubernetes/daemonset.yaml"]:
            self.assertIn(expected, files)
        unit = (self.stage / "usr/lib/systemd/system/coschedd.service").read_text()
        self.assertIn("\nprefix=/usr\n", "\n" + (self.stage / "usr/lib/pkgconfig/cosched.pc").read_text())
        self.assertIn("\nExecStart=/usr/bin/coschedd --listen-stdin\n", unit)
        self.assertEqual(self.install()[0], 0, "installing twice is no error")
        self.assertEqual(self.install("--uninstall")[0], 0)
        self.assertEqual(self.files(), [])
        self.assertEqual([str(path) for path in (self.stage / "usr").rglob("*")], [], "no empty folder is left")

    def test_debug_symbols_stay_behind(self):
        self.install()
        for name in ["bin/cosched", "lib/cosched/libcosched_wait.so", "lib/libcosched.a"]:
            sections = subprocess.run(["objdump", "-h", self.stage / "usr" / name], capture_output=True, text=True, timeout=60)
            self.assertIn(".text", sections.stdout)
            self.assertNotIn(".debug_line", sections.stdout, name)
        defined = {line.split()[-1] for line in self.symbols("lib/libcosched.a").splitlines() if re.search(r" [A-TV-Z] ", line)}
        self.assertIn("cosched_open", defined)
        others = sorted(name for name in defined if not name.startswith("cosched_"))
        self.assertEqual(others[:3], [], "a program may have other archives made by Rust")
        # A link to a library is no second library.
        self.assertLess(sum((self.stage / path).lstat().st_size for path in self.files()), 60e6)

    def symbols(self, name):
        return subprocess.run(["nm", "-g", self.stage / "usr" / name], capture_output=True, text=True, timeout=60).stdout

    def test_every_document_that_is_named_is_installed(self):
        self.install()
        share = self.stage / "usr/share/doc/cosched"
        said = "\n".join(path.read_text() for path in (ROOT / "crates").glob("cosched-*/src/**/*.rs"))
        named = set(re.findall(r"docs/(?:schema/)?[a-z-]+\.(?:md|json)", said + (ROOT / "README.md").read_text()))
        self.assertGreater(len(named), 8)
        self.assertEqual([name for name in sorted(named) if not (share / name).exists()], [])
        for name in ["examples/barrier.prog", "examples/io.toml", "examples/load.toml", "cosched.toml"]:
            self.assertGreater((share / name).stat().st_size, 100, name)

    def test_a_user_installs_below_his_home(self):
        home = self.stage / "home"
        home.mkdir()
        user = {}
        if os.getuid() == 0:
            self.stage.chmod(0o755)
            os.chown(home, 65534, 65534)
            user = dict(user=65534, group=65534, extra_groups=[])
        environment = {name: value for name, value in os.environ.items() if name not in ("DESTDIR", "SYSCONFDIR")}
        environment.update(PREFIX=str(home / "x"))
        for argument in [[], ["--uninstall"]]:
            done = subprocess.run([ROOT / "tools/install", *argument], env=environment, capture_output=True, text=True, timeout=60, **user)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(home.rglob("*")), [])

    def test_changed_configuration_stays(self):
        self.install()
        (self.stage / "etc/cosched.toml").write_text('policy = "local"\n')
        self.install()
        self.assertEqual((self.stage / "etc/cosched.toml").read_text(), 'policy = "local"\n')
        self.assertIn("it stays", self.install("--uninstall")[1])
        self.assertEqual(self.files(), ["etc/cosched.toml"])

    def test_nothing_to_uninstall(self):
        code, text = self.install("--uninstall")
        self.assertEqual(code, 1)
        self.assertIn("nothing is installed", text)


if __name__ == "__main__":
    unittest.main()
