"""What the reproductions share: a journal of finished runs, the commit that they are of, numbers for a file."""

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
