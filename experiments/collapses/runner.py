"""Runs the cases: arms interleaved within each repetition, every run kept in a journal, runs without end cut short."""

import hashlib
import pathlib
import shutil
import statistics
import sys
import time

import arms as bench_arms
import live
import shared

HERE = pathlib.Path(__file__).resolve().parent
MUSEUM = shared.ROOT / "target/museum"

# What `cosched run` is given, on a machine whose policy is the first word (and sharing the second): a job without options has the machine's.
POLICIES = {
    "default": ("gang", "soft", ()),
    "auto": ("auto", "soft", ()),
    "strict": ("gang", "strict", ("--policy", "gang", "--wait", "off")),
    "local": ("local", "soft", ("--policy", "local", "--wait", "off")),
    "local-sb": ("local", "soft", ("--policy", "local", "--wait", "spin-block")),
}
ARMS = ("ideal", "plain", *POLICIES, "each", "remedy")


class Names:
    """What stands in braces in a case's words."""

    def __init__(self, cosched="cosched"):
        source = max((path.parent for path in (MUSEUM / "src").glob("mpi4py-*/test")), default=MUSEUM / "src")
        self.names = {"{python}": MUSEUM / "bin/python", "{programs}": HERE / "programs", "{source}": source, "{mpich}": MUSEUM / "mpich",
                      "{cosched}": cosched}

    def fill(self, text):
        for name, path in self.names.items():
            text = text.replace(name, str(path))
        return text


def lacking(case):
    """What of the case's needs is not there."""
    folder = next(MUSEUM.glob("lib/python3*/site-packages"), MUSEUM)

    def there(need):
        kind, _, name = need.rpartition(":")
        if kind == "cmd":
            return shutil.which(name)
        return pathlib.Path(name).exists() if kind == "file" else (folder / name).is_dir()

    return [need for need in case.needs if not there(need)]


class Runner:
    """A private daemon, a cgroup of the same weight for plain Linux, and the journal."""

    def __init__(self, daemon, journal, work, limit):
        self.daemon, self.journal, self.work, self.limit, self.names = daemon, journal, work, limit, Names(daemon.binaries / "cosched")
        self.plain = bench_arms.plain_cgroup(daemon)
        programs = [daemon.binaries / name for name in ("cosched", "coschedd", "libcosched_wait.so")]
        self.version = hashlib.sha256(b"".join(path.read_bytes() for path in programs)).hexdigest()[:12]

    def key(self, case, arm, repetition):
        """A case that runs something else, or another cosched, is measured again."""
        used = repr((case.words, case.copies, case.environment, case.ideal, case.remedy and case.remedy[1:], case.quota_cpus, case.files, *filter(None, [case.each])))
        texts = "".join(path.read_text() for path in sorted((HERE / "programs").iterdir()) if path.is_file() and path.name in used)
        inputs = hashlib.sha256((used + texts).encode()).hexdigest()[:12]
        return f"{case.name} {arm} {repetition} {inputs}" + (f" {self.version}" if arm in POLICIES or arm == "each" else "")

    def entries(self, case, arm, repetitions):
        found = (self.journal.entries.get(self.key(case, arm, number)) for number in range(repetitions))
        return [entry for entry in found if entry]

    def measure(self, case, arms, repetitions, end):
        for number in range(repetitions):
            for arm in arms:
                if arm in ("ideal", "remedy", "each") and getattr(case, arm) is None:
                    continue
                if time.monotonic() > end:
                    return
                key = self.key(case, arm, number)
                # One run without end is enough.
                if key in self.journal.entries or any(not entry["done"] for entry in self.entries(case, arm, number)):
                    continue
                seconds, failed = self.run(case, arm, self.limit_s(case, arm, repetitions))
                self.journal.add(key, case=case.name, arm=arm, s=seconds, done=failed is None, why=failed)
                print(f"{case.name} {arm}: {seconds:.2f} s{'' if failed is None else ' (' + failed[:300] + ')'}", file=sys.stderr, flush=True)

    def limit_s(self, case, arm, repetitions):
        ideal = [entry["s"] for entry in self.entries(case, "ideal", repetitions) if entry["done"]]
        return case.limit_s if arm == "ideal" or not ideal else self.limit * case.copies * statistics.median(ideal)

    def run(self, case, arm, limit_s):
        """(seconds, None), or (the limit, why it was not done). An ideal is one copy's time."""
        changes = {"ideal": case.ideal, "remedy": case.remedy and case.remedy[1:], "each": case.each}
        words, environment = case.words_of(changes.get(arm) or ((), {}))
        copies = 1 if arm == "ideal" else case.copies
        commands = [self.command(case, words, environment, copy) for copy in range(copies)]
        policy, sharing, options = POLICIES.get(arm, POLICIES["default"])
        self.daemon.policy(policy, sharing)
        if arm in POLICIES:
            commands = [self.daemon.run_words(command, *options) for command in commands]
        else:
            commands = [bench_arms.in_cgroup(self.plain, command) for command in commands]
        self.quota(case.quota_cpus)
        outputs = []
        try:
            seconds = self.daemon.makespan(commands, limit_s, {"CST_BENCH": self.daemon.cgroup, "COSCHED_SOCKET": str(self.daemon.socket)}, outputs)
        except live.Failure as failure:
            return self.cleaned(limit_s, f"failed: {failure}"[-1500:])
        return (seconds, None) if seconds is not None else self.cleaned(limit_s, "past the limit")

    def cleaned(self, limit_s, why):
        """Ranks outlive a launcher that had to be killed."""
        live.kill_marked("CST_BENCH", self.daemon.cgroup)
        return limit_s, why

    def command(self, case, words, environment, copy):
        folder = self.work / f"copy{copy}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, (template, *changes) in case.files.items():
            text = pathlib.Path(self.names.fill(template)).read_text()
            for old, new in zip(changes[::2], changes[1::2]):
                text = text.replace(old, self.names.fill(new))
            (folder / name).write_text(text)
        assignments = [f"{name}={self.names.fill(value)}" for name, value in environment.items()]
        return ["env", "-C", str(folder), *assignments, *map(self.names.fill, words)]

    def quota(self, cpus):
        """A quota of so many CPUs over everything that a run may use; None takes it away."""
        quota_us = int(cpus * 100_000) if cpus else None
        texts = {"cpu.max": f"{quota_us or 'max'} 100000", "cpu.cfs_quota_us": str(quota_us or -1)}
        for top in filter(None, [*live.cgroups_named(self.daemon.cgroup), self.plain]):
            for name, text in texts.items():
                if (top / name).exists():
                    (top / name).write_text(text)


