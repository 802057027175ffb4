"""tools/check-imports: a fixture workspace that keeps the rules, and the same with each kind of violation."""

import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent.parent / "check-imports"

TABLE = """
[room-core]
ours = []
never = ["*"]
[room-api]
ours = []
never = ["room-core"]
[room-cli]
ours = ["room-api"]
never = ["room-core"]
"""


class CheckImports(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        (self.root / "Cargo.toml").write_text('[workspace]\nresolver = "3"\nmembers = ["crates/*"]\n')
        self.table = self.root / "imports.toml"
        self.table.write_text(TABLE)
        self.circles = self.root / "circles.toml"
        self.circles.write_text("")
        self.crate("room-core", "")
        self.crate("room-api", "[dev-dependencies]\nroom-core = { path = '../room-core' }\n")
        self.crate("room-cli", "[dependencies]\nroom-api = { path = '../room-api' }\n")

    def crate(self, name, dependencies):
        folder = self.root / "crates" / name / "src"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "lib.rs").touch()
        head = f'[package]\nname = "{name}"\nversion = "0.0.0"\nedition = "2024"\n'
        (folder.parent / "Cargo.toml").write_text(head + dependencies)

    def check(self):
        command = [TOOL, "--manifest-path", self.root / "Cargo.toml", "--table", self.table, "--circles", self.circles]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def test_rules_kept_and_development_dependencies_ignored(self):
        self.assertEqual(self.check(), (0, "check-imports: 3 crates, 0 violations\n"))

    def test_direct_use_of_a_forbidden_room(self):
        self.crate("room-cli", "[dependencies]\nroom-core = { path = '../room-core' }\n")
        code, text = self.check()
        self.assertEqual(code, 1, text)
        self.assertIn("room-cli uses room-core; of ours it may use: room-api", text)

    def test_forbidden_room_through_another(self):
        self.crate("room-api", "[dependencies]\nroom-core = { path = '../room-core' }\n")
        code, text = self.check()
        self.assertEqual(code, 1, text)
        self.assertIn("room-cli must never see room-core, and does: room-cli -> room-api -> room-core", text)

    def test_core_sees_nothing(self):
        # Outside the workspace's folder, otherwise cargo takes it for a member.
        outside = tempfile.TemporaryDirectory()
        self.addCleanup(outside.cleanup)
        other = pathlib.Path(outside.name)
        (other / "src").mkdir()
        (other / "src/lib.rs").touch()
        (other / "Cargo.toml").write_text('[package]\nname = "other"\nversion = "0.0.0"\n')
        self.crate("room-core", f"[build-dependencies]\nother = {{ path = '{other}' }}\n")
        code, text = self.check()
        self.assertEqual(code, 1, text)
        self.assertIn("room-core must never see other, and does: room-core -> other", text)

    def test_table_must_be_complete_and_not_more(self):
        self.crate("room-new", "")
        self.table.write_text(TABLE + "[room-old]\nours = []\nnever = []\n")
        code, text = self.check()
        self.assertEqual(code, 1, text)
        self.assertIn("room-new: no entry in the table", text)
        self.assertIn("room-old: an entry in the table, but no such crate", text)

    def source(self, **files):
        """Files of room-core, by name."""
        for name, text in files.items():
            path = self.root / "crates/room-core/src" / (name.replace("__", "/") + ".rs")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    def test_a_circle_of_files_must_be_known_and_there(self):
        self.source(lib="mod a;\nmod b;\nmod c;\n", a="use crate::b::{self, Of};\n", c="use crate::a::A;\n",
                    b="pub use inner::Of;\nmod inner;\nfn f() { crate::c::g(); }\n", b__inner="pub struct Of;\n")
        # `a` takes Of from b/inner.rs through b.rs, but b itself by `self`.
        code, text = self.check()
        self.assertEqual(code, 1, text)
        self.assertIn("room-core: these files import each other in a circle that is not known: a.rs, b.rs, c.rs", text)
        known = '[[circle]]\nroom = "room-core"\nfiles = ["a.rs", "b.rs", "c.rs"]\nwhy = "a test"\n'
        self.circles.write_text(known)
        self.assertEqual(self.check()[0], 0)
        self.source(a="use crate::b::Of;\n")
        code, text = self.check()
        self.assertEqual(code, 1, text)
        self.assertIn("room-core: this known circle is not there any more", text)

    def test_what_is_no_circle(self):
        # A module and its children, tests, comments, texts, and names that are only similar.
        self.source(
            lib="mod a;\nmod b;\n", a="mod inner;\npub struct A(inner::In);\n/* crate::b */\n#[cfg(test)]\nmod tests { use crate::b::B; }\n", a__inner="use super::A;\npub struct In;\n",
            b='use crate::a::A;\n// crate::b::B\nconst T: &str = "crate::b";\n#[cfg(test)]\nmod tests { use crate::a::A; }\n',
        )
        self.assertEqual(self.check(), (0, "check-imports: 3 crates, 0 violations\n"))

    def test_unreadable_table(self):
        self.table.write_text("[room-core\n")
        self.assertEqual(self.check()[0], 2)


if __name__ == "__main__":
    unittest.main()
