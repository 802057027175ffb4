"""The compared ways to schedule a set of equal jobs: plain Linux and what `cosched run` offers."""

import dataclasses
import pathlib

import live


@dataclasses.dataclass(frozen=True)
class Arm:
    """policy: None is plain Linux. slot_ms: None is the daemon's default. wait: of `cosched run --wait`, None its default."""

    policy: str | None = None
    sharing: str = "soft"
    slot_ms: int | None = None
    wait: str | None = None
    preload: str | None = None  # COSCHED_WAIT for the library that is preloaded into the jobs without a daemon


ARMS = {
    "linux": Arm(),
    "preload": Arm(preload="spin-block"),
    "gang": Arm("gang", wait="off"),
    "gang-20": Arm("gang", slot_ms=20, wait="off"),
    "strict": Arm("gang", "strict", wait="off"),
    "strict-20": Arm("gang", "strict", 20, wait="off"),
    "paired": Arm("gang", "paired", wait="off"),
    "gang-sb": Arm("gang", wait="spin-block"),
    "gang-20-sb": Arm("gang", slot_ms=20, wait="spin-block"),
    "local": Arm("local", wait="off"),
    "local-sb": Arm("local", wait="spin-block"),
    "local-sy": Arm("local", wait="spin-yield"),
    "pb": Arm("pb", wait="busy"),
    "pb-sb": Arm("pb", wait="spin-block"),
    "pb-sy": Arm("pb", wait="spin-yield"),
    "dcs": Arm("dcs", wait="busy"),
    "dcs-sb": Arm("dcs", wait="spin-block"),
    "dcs-sy": Arm("dcs", wait="spin-yield"),
    "auto": Arm("auto"),
}

HELP = (f"of {', '.join(ARMS)}; linux is always among them; +preload[=MODE] after a name puts the library of --library "
        "into the jobs too, as gang+preload=spin-block:50us")


def parse(text):
    """{name: Arm} for a comma-separated list; a Failure names unknown ones."""
    found = {"linux": ARMS["linux"]}
    for word in text.split(","):
        name, plus, preload = word.partition("+")
        base, equals, mode = name.partition("=")
        if plus:
            kind, _, mode = preload.partition("=")
        elif equals:
            kind, name = base, base
        else:
            kind = "preload"
        if name not in ARMS or kind != "preload":
            raise live.Failure(f"--arms: '{word}' is unknown; there are {', '.join(ARMS)}")
        arm = ARMS[name]
        if plus or equals:
            arm = dataclasses.replace(arm, preload=mode or "spin-block")
        found[word] = arm
    return found


class Runner:
    """Runs sets of jobs under an arm, on the hosts that a case needs."""

    def __init__(self, daemon, library, hosts=None):
        self.daemon, self.library, self.hosts = daemon, library, hosts
        self.slot_ms = daemon.status()["slot_length_ms"]
        self.plain = plain_cgroup(daemon)
        self.has_wait = "--wait" in daemon.cli("run", "--help")

    def run(self, arm, command, copies, limit_s):
        """{makespan_s, jobs: the JSON that each printed}; past_limit or failed in place of jobs where they did not end."""
        environment = {"CST_BENCH": self.daemon.cgroup}
        outputs = []
        if arm.preload:
            environment |= {"LD_PRELOAD": str(library_path(self.library)), "COSCHED_WAIT": arm.preload}
        commands = [in_cgroup(self.plain, command)] * copies
        if arm.policy:
            gang = arm.policy == "gang"
            self.daemon.policy(arm.policy, arm.sharing if gang else "soft", arm.slot_ms or self.slot_ms)
            options = ["--policy", arm.policy, *self.wait_options(arm)]
            commands = [self.daemon.run_words(command, *options)] * copies
        try:
            took_s = self.daemon.makespan(commands, limit_s, environment, outputs)
        except live.Failure as failure:
            self._clean()
            return {"makespan_s": None, "failed": str(failure)[-2000:]}
        if took_s is None:
            self._clean()
            return {"makespan_s": limit_s, "past_limit": True}
        return {"makespan_s": took_s, "jobs": [live.last_json(output) for output in outputs]}

    def wait_options(self, arm):
        """--wait and its value; a cosched built without the option can only do without the library."""
        if not self.has_wait and arm.wait not in (None, "off"):
            raise live.Failure(f"this cosched has no --wait, which an arm needs ({arm.wait}); build it anew")
        return ["--wait", arm.wait] if arm.wait and self.has_wait else []

    def _clean(self):
        """Ranks outlive a launcher that had to be killed."""
        live.kill_marked("CST_BENCH", self.daemon.cgroup)
        if self.hosts:
            self.hosts.kill_all()


def plain_cgroup(daemon):
    """A cgroup for the jobs of plain Linux beside the daemon's and with the same weight, or None when none can be made.

    Otherwise other programs on the machine would take more from them than from the jobs under the daemon. It represents a
    user's session: its tasks share the CPUs as if they were alone. It is removed with the daemon's.
    """
    for top in live.cgroups_named(daemon.cgroup):
        for name in ("cpu.shares", "cpu.weight"):
            if not (top / name).exists():
                continue
            directory = top.parent / f"{daemon.cgroup}-plain"
            try:
                directory.mkdir()
                (directory / name).write_text((top / name).read_text())
            except OSError as error:
                print(f"plain Linux gets no cgroup of its own: {error}", flush=True)
                return None
            daemon.also_remove.append(directory.name)
            return directory
    return None


def in_cgroup(directory, command):
    """The words that run a command in a cgroup; with None it stays where it is."""
    return ["sh", "-c", f'echo $$ > {directory}/cgroup.procs && exec "$@"', "sh", *command] if directory else command


def library_path(given):
    """The library of --library; a Failure when it does not exist."""
    path = pathlib.Path(given)
    if not path.exists():
        raise live.Failure(f"--library: {path} is not there; build it with 'cargo build --release -p cosched-wait'")
    return path.resolve()
