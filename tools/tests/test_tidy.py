"""tools/tidy: a clean tree passes, and each rule finds what it is for."""

import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent.parent / "tidy"
LATER = "TO" "DO"


def function(name, lines):
    return f"pub fn {name}() {{\n" + "    work();\n" * (lines - 2) + "}\n"


class Tidy(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.write("src/good.rs", "//! Good.\n" + function("short", 70))

    def write(self, path, text, mode=0o644):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def tidy(self):
        done = subprocess.run([TOOL, "--root", self.root], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def assert_found(self, text):
        code, output = self.tidy()
        self.assertEqual(code, 1, output)
        self.assertIn(text, output)

    def test_clean(self):
        self.write(".gitignore", "ignored\n")
        self.write("ignored", LATER)
        self.assertEqual(self.tidy(), (0, "tidy: 0 findings\n"))

    def test_long_file_needs_a_reason(self):
        self.write("a.txt", "line\n" * 601)
        self.assert_found("a.txt: 601 lines; above 600 give a reason")
        self.write("tools/tidy.toml", '[files]\n"a.txt" = "a table"\n')
        self.assertEqual(self.tidy()[0], 0)
        self.write("a.txt", "line\n" * 1001)
        self.assert_found("a.txt: 1001 lines; no file has more than 1000")

    def test_long_function_needs_a_reason(self):
        self.write("src/long.rs", function("before", 5) + function("long", 71))
        self.assert_found("src/long.rs:6: fn long has 71 lines")
        self.write("tools/tidy.toml", '[functions]\n"src/long.rs::long" = "one table"\n')
        self.assertEqual(self.tidy()[0], 0)

    def test_long_c_function(self):
        self.write("a.c", "static int f(int x);\n\nstatic int f(int x) {\n" + "    x++;\n" * 70 + "    return x;\n}\n")
        self.assert_found("a.c:3: fn f has 73 lines")

    def test_reason_that_is_not_needed(self):
        self.write("tools/tidy.toml", '[files]\n"src/good.rs" = "none"\n')
        self.assert_found("src/good.rs needs no reason any more")

    def test_later_machine_path_blank_and_conflict(self):
        for text, expected in [
            (f"// {LATER}: later\n", "a note to come back later"),
            ('let path = "/home/' 'anna/x";\n', "a path of one machine: /home/"),
            ("line \n", "blanks at the end"),
            ("<<<<<" "<< HEAD\n", "a mark of a merge conflict"),
        ]:
            with self.subTest(expected):
                self.write("x.rs", text)
                self.assert_found(expected)

    def test_private_idiom_in_a_page(self):
        for text in ["it begins anew\n", "Who waits is told\n", "| nobody |\n", "jobs go on\n", "so many rows\n"]:
            with self.subTest(text):
                self.write("docs/page.md", text)
                self.assert_found("docs/page.md:1: '")
        self.write("docs/page.md", "Users who wait are notified; running jobs continue.\n")
        self.write("docs/decisions/0001.md", "so many\n")
        self.assertEqual(self.tidy()[0], 0)

    def test_private_idiom_in_what_the_command_shows(self):
        path = "crates/cosched-cli/src/part.rs"
        clap = '#[derive(Debug, clap::Args)]\npub struct Run {\n    /// Start it anew\n    pub again: bool,\n}\n'
        for text, line in [
            ('const A: &str = "nobody";\n', 1),
            ('// a " quote\nconst A: &str = "\\\\\na \\" job that is there";\n', 3),
            ('const A: &str = r#"it "goes on""#;\n', 1),
            ("const Q: char = '\"';\nconst A: &str = \"so long\";\n", 2),
            (clap, 3),
        ]:
            with self.subTest(text):
                self.write(path, text)
                self.assert_found(f"{path}:{line}: '")
        tests = '#[cfg(test)]\nmod tests {\n    const A: &str = "nobody";\n}\n'
        self.write(path, clap.replace("anew", "again") + tests)
        self.write("crates/cosched-core/src/part.rs", 'const A: &str = "nobody";\n')
        self.assertEqual(self.tidy()[0], 0)

    def test_private_idiom_in_comments(self):
        for name, text in [("a.rs", "    /// Nobody calls it.\n"), ("a.c", " * so many rows\n"), ("a.py", "# it begins anew\n")]:
            with self.subTest(name):
                self.write(name, text)
                self.assert_found(f"{name}:1: '")
                self.write(name, "// As the user `nobody`, for so long that it ends.\nlet nobody = 1;\n")
        self.assertEqual(self.tidy()[0], 0)

    def test_script_must_be_executable(self):
        self.write("script", "#!/bin/sh\n")
        self.assert_found("script: starts with #! but is not executable")
        self.write("script", "#!/bin/sh\n", 0o755)
        self.assertEqual(self.tidy()[0], 0)


if __name__ == "__main__":
    unittest.main()
