"""What the reproductions share: a journal of finished runs, the commit that they are of, numbers for a file."""

import argparse
import json
import pathlib
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Journal:
    """`entries`: what is finished, by key; one line of JSON each in the file. A line that was cut costs no other."""

    def __init__(self, path):
        self.path, self.lock, self.entries = path, threading.Lock(), {}
        if path.exists():
            self._read()

    def _read(self):
        text = self.path.read_text()
        if text and not text.endswith("\n"):
            # What is added must not stand in the torn line.
            with self.path.open("a") as file:
                file.write("\n")
        for line in text.splitlines():
            try:
                entry = json.loads(line)
                self.entries[entry["key"]] = entry
            except (json.JSONDecodeError, KeyError):
                print(f"reproduce: a torn line in {self.path} is left out", file=sys.stderr)

    def add(self, key, **fields):
        """Keeps what is finished, also when this program is killed next."""
        entry = {"key": key, **fields}
        with self.lock, self.path.open("a") as file:
            file.write(json.dumps(entry, sort_keys=True) + "\n")
            self.entries[key] = entry


def commit():
    """The commit of the working tree, or why there is none."""
    done = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "not a git tree"


def rounded(part):
    """The same with six significant digits, which is more than means anything here."""
    if isinstance(part, dict):
        return {name: rounded(value) for name, value in part.items()}
    if isinstance(part, list):
        return [rounded(value) for value in part]
    return float(f"{part:.6g}") if isinstance(part, float) else part


def sized(document, folder, quick, full):
    """The options of an experiment in the simulator that has a quick and a full size; the texts say what each is."""
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick", help=f"{quick} (default)")
    size.add_argument("--full", dest="size", action="store_const", const="full", help=full)
    parser.add_argument("--report", action="store_true", help="simulate nothing: report what is finished")
    parser.add_argument("--publish", action="store_true", help="copy the report and results.json beside this script")
    parser.add_argument("--cosched", type=pathlib.Path, default=ROOT / "target/release/cosched", metavar="PROGRAM", help="the simulator")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/experiments" / folder, metavar="FOLDER", help="where to work")
    parser.set_defaults(size="quick")
    return parser


def has_simulator(options):
    if not options.cosched.is_file():
        print(f"reproduce: no simulator at {options.cosched}\n  why: it is not built\n  hint: cargo build --release -p cosched-cli", file=sys.stderr)
    return options.cosched.is_file()
