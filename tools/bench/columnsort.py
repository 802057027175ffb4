"""columnsort: cosched-columnsort against GNU sort and against the bound, on lines of 100 bytes.

The same lines, memory and directory, in turn: `LC_ALL=C sort --parallel=CPUS`, columnsort (compared byte by byte with GNU sort's
output once), and a copy by columnsort's own stages. A pass moves all bytes once, as the copy does, so the bound is
max(passes x copy, CPU time / CPUs). The page cache holds none of the input before each run; `with sync` includes the time
until the output is on the disk, which is already done with direct I/O, but not with GNU sort's.
"""

import filecmp
import json
import os
import pathlib
import shutil
import subprocess
import time

import live
from figures import median, table as make_table, text

NEEDS_DAEMON = False
LIMIT_S = 3600
LINE = ("--record-size", "100", "--key-size", "99")


def add_arguments(parser):
    parser.add_argument("--size", default=None, metavar="SIZE", help="of the file: 500MB, 8GB … [default: 1GB; --quick: 200MB]")
    parser.add_argument("--memory", default=None, metavar="SIZE", help="of each sort, with M or G [default: a sixteenth of the file]")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each [default: 3; --quick: 1]")
    parser.add_argument("--dir", type=pathlib.Path, metavar="DIR", help="where the files are; 2.1 times SIZE [default: build/bench/columnsort]")
    parser.add_argument("--io", default="auto", metavar="HOW", help="columnsort's: auto, uring, direct or buffered")


class Sorts:
    """The commands, all in one directory."""

    def __init__(self, arguments, directory):
        self.program, self.dir, self.io = arguments.bin / "cosched-columnsort", directory, arguments.io
        self.cpus = len(os.sched_getaffinity(0))
        size = arguments.size or ("200MB" if arguments.quick else "1GB")
        self.bytes = json.loads(self.run([self.program, "generate", "in", "--lines", "--bytes", size, *LINE, "--force", "--json",
                                          "--quiet"])["output"])["bytes"]
        self.memory = arguments.memory or f"{max(16, self.bytes // 16 >> 20)}M"

    def run(self, words):
        """Runs a command: its output, wall and CPU time in seconds."""
        self.forget()
        begin = time.monotonic()
        with subprocess.Popen([str(word) for word in words], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "LC_ALL": "C"}) as process:
            try:
                output, errors = process.stdout.read(), process.stderr.read()
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            except BaseException:
                process.kill()
                raise
        wall_s = time.monotonic() - begin
        if process.returncode:
            raise live.Failure(f"{words[0]}: exit code {process.returncode}: {errors.decode(errors='replace')[-1000:]}")
        return {"output": output.decode(), "wall_s": wall_s, "cpu_s": usage.ru_utime + usage.ru_stime}

    def forget(self):
        """Drops our files from the page cache."""
        for path in self.dir.iterdir():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def sort(self, words, output):
        """A sort, and the time with its output on the disk."""
        result = self.run(words)
        begin = time.monotonic()
        with open(self.dir / output, "rb") as file:
            os.fsync(file.fileno())
        result["synced_s"] = result["wall_s"] + time.monotonic() - begin
        return result

    def gnu(self):
        return self.sort(["sort", f"--parallel={self.cpus}", "-S", self.memory, "-T", ".", "-o", "gnu", "in"], "gnu")

    def columnsort(self):
        words = [self.program, "sort", "in", "--output", "out", "--force", "--memory", self.memory, "--io", self.io, *LINE,
                 "--json", "--quiet"]
        result = self.sort(words, "out")
        report = json.loads(result.pop("output"))
        return {**result, "passes": len(report["passes"]), "plan": report["plan"], "sort_s": report["elapsed_s"]}

    def copy(self):
        return json.loads(self.run([self.program, "rate", "in", "--io", self.io, "--json"])["output"])["elapsed_s"]


def measure(_, arguments):
    directory = arguments.dir or live.ROOT / "build/bench/columnsort"
    directory.mkdir(parents=True, exist_ok=True)
    directory = directory / f"cosched-bench-{os.getpid()}"
    directory.mkdir()
    try:
        sorts = Sorts(arguments, directory)
        rounds = [one_round(sorts, first=i == 0) for i in range(arguments.repeat or (1 if arguments.quick else 3))]
        return {"bytes": sorts.bytes, "memory": sorts.memory, "cpus": sorts.cpus, "io": sorts.io, "rounds": rounds}
    finally:
        shutil.rmtree(directory)


def one_round(sorts, first):
    """Each once, with a copy before and after columnsort, because the disk's rate changes."""
    gnu = sorts.gnu()
    before_s = sorts.copy()
    ours = sorts.columnsort()
    behind_s = sorts.copy()
    if first and not filecmp.cmp(sorts.dir / "gnu", sorts.dir / "out", shallow=False):
        raise live.Failure("columnsort's output is not GNU sort's")
    for name in ("gnu", "out"):
        (sorts.dir / name).unlink()
    disk_s, cpu_s = ours["passes"] * (before_s + behind_s) / 2, ours["cpu_s"] / sorts.cpus
    return {
        "gnu": gnu, "ours": ours, "copy_s": [before_s, behind_s], "disk_bound_s": disk_s, "cpu_bound_s": cpu_s,
        "gnu_over_ours": gnu["wall_s"] / ours["wall_s"], "synced_gnu_over_ours": gnu["synced_s"] / ours["synced_s"],
        "ours_over_bound": ours["wall_s"] / max(disk_s, cpu_s),
    }


def table(result):
    rounds = result["rounds"]
    of = lambda *keys: [pick(entry, keys) for entry in rounds]
    plan = rounds[0]["ours"]["plan"]
    rows = [
        ["GNU sort", text(median(of("gnu", "wall_s")), 2), text(median(of("gnu", "synced_s")), 2), text(median(of("gnu", "cpu_s")), 2)],
        ["columnsort", text(median(of("ours", "wall_s")), 2), text(median(of("ours", "synced_s")), 2), text(median(of("ours", "cpu_s")), 2)],
        ["bound: disk", text(median(of("disk_bound_s")), 2), "", ""],
        ["bound: CPUs", text(median(of("cpu_bound_s")), 2), "", ""],
    ]
    title = (f"columnsort: {result['bytes'] / 1e9:.2f} GB of lines, {result['memory']} of memory, {len(rounds)} runs, medians; "
             f"{plan['shape']['rows']} x {plan['shape']['columns']}, {rounds[0]['ours']['passes']} passes, io {result['io']}")
    return [
        *make_table(title, ["", "s", "with sync", "CPU s"], rows),
        f"    GNU sort / columnsort {text(median(of('gnu_over_ours')), 2)} (bar: 2.00 or more), with sync "
        f"{text(median(of('synced_gnu_over_ours')), 2)}; columnsort / bound {text(median(of('ours_over_bound')), 2)} (bar: 1.30 or less)",
    ]


def pick(entry, keys):
    for key in keys:
        entry = entry[key]
    return entry
