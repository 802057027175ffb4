"""The commands of README.md as they stand, from an installation: by root, by a user beside root's daemon and with one of its own, on a cluster, and make's."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from lab import BUILT, ROOT, VENV, Lab, blocks

LIMIT_S = 700
# An ordinary user, for whom the machine's policy is not to be changed; and the chapters that ask the daemon.
USER = 65534
BY_USERS = ("Use it", "Batch jobs")
ON_A_CLUSTER = ("Many machines",)
OF_MAKE = ("Two commands", "Installing for all users of a machine")
# Commands that do not succeed, by the user who gives them, and whether the daemon is the user's own. This one has no cgroups.
REFUSED = {
    (USER, False): ["5 cosched policy gang --slot 20ms"],
    (USER, True): [
        "125 cosched run --strategy PB-SB -- mpirun -n 2 ./a.out",
        "125 cosched run --mem-limit 4G -- ./train",
    ],
}
# Commands that are looked at until they are ended: what they show by then, and which keys end them.
WATCHED = {"cosched top": ("sim", "q"), "cosched web": ("http://.*token=", r"\x03")}
# Commands that take minutes, or change the machine, and what tries them.
ELSEWHERE = {
    "make demo": "crates/cosched-cli/tests/cli/demo.rs, tools/try-package",
    "make test": "whoever runs this test by tools/test",
    "make build docs": "tools/test release, tools/packages",
    "systemctl enable --now coschedd.socket": "tests/systemd/run",
}
# What ./a.out and so on are here.
PROGRAMS = {
    "a.out": "exec {programs}/barrier-mpi --seconds 0.3",
    "lu": "exec {programs}/lu --n 400",
    "train": "exec {programs}/barrier-threads --threads 2 --seconds 0.3",
    "long.sh": "sleep 600",
    "night.sh": "true",
    "solve": 'test "$COSCHED_ARRAY_INDEX" -ge 1',
}
# On a cluster it says where its ranks are, and the job on all nodes stays.
RANK = '{programs}/barrier-mpi --seconds 0.3 && echo "$OMPI_COMM_WORLD_SIZE: $(hostname)" >>ranks && if [ "$OMPI_COMM_WORLD_SIZE" = 8 ]; then sleep 600; fi'
QUEUES = '[[queue]]\nname = "day"\n[[queue]]\nname = "night"\n'
# With memory for what the page asks for, whatever the machine has.
CLUSTER = f'memory = "32G"\n{QUEUES}'
# After the page's commands: the job that stays, once all its ranks are there.
LOOK = 'until [ "$(grep -c ^8: ranks)" = 8 ]; do sleep 0.1; done\ncosched show --json sim >sim.json\n'


def chapters(page, wanted):
    return [line for name, code in blocks(page).items() if wanted(name) for line in code.splitlines()]


def command_of(line):
    return re.split("  +#", line)[0].strip()


def as_script(lines):
    """Each line as it stands, in one shell, with what failed in the file `wrong`. What is watched is at a terminal."""
    text = "trap 'echo \"$? $BASH_COMMAND\" >>wrong' ERR\n"
    for line in lines:
        if watched := WATCHED.get(command_of(line)):
            line = shlex.join([sys.executable, str(ROOT / "tests/docs/terminal.py"), *watched, command_of(line)])
        text += f'echo "== $SECONDS s"\n{line}\necho >>done\n'
    return text


class Home:
    """A folder with what the page's commands name."""

    def __init__(self, lab, programs):
        self.folder = lab.folder / "home"
        shutil.copytree(lab.prefix / "share/doc/cosched/examples", self.folder / "examples")
        (self.folder / "q.toml").write_text(QUEUES)
        for name, text in programs.items():
            self.write(name, f"#!/bin/sh\n{text.format(programs=ROOT / 'build/programs')}\n").chmod(0o755)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def lines(self, name):
        return (self.folder / name).read_text().splitlines() if (self.folder / name).exists() else []

    def give_to(self, uid):
        for path in [self.folder, *self.folder.rglob("*")]:
            os.chown(path, uid, uid)


def judge(lab, home, who, lines, done, right):
    """Whether all lines were run, and nothing else failed than is to."""
    count, wrong = len(home.lines("done")), home.lines("wrong")
    if wrong == right and count == len(lines):
        lab.passed += count
        return
    lab.failed += 1
    print(f"FAILED: README.md {who}: {count} of {len(lines)} commands were run; failed:", *wrong, done.stdout[-4000:], done.stderr[-8000:], sep="\n")


def by_user(uid, own=False):
    """All commands by root, those that ask the daemon by a user: root's daemon, or one of the user's own."""
    lab = Lab(installed=True, daemon=not own)
    try:
        lines = chapters(lab.page(), lambda name: name not in ON_A_CLUSTER + OF_MAKE and (uid == 0 or name in BY_USERS))
        home = Home(lab, PROGRAMS)
        home.write("script", as_script(lines))
        home.give_to(uid)
        done = subprocess.run(["bash", "-x", "script"], **lab.as_user(home.folder, uid, own), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=LIMIT_S)
        judge(lab, home, f"by uid {uid}{' alone' if own else ''}", lines, done, REFUSED.get((uid, own), []))
        if own:
            lab.end_own(home.folder, uid)
        else:
            lab.cosched("kill", "-9", "--user", str(uid))
    finally:
        lab.end()
    return lab.passed, lab.failed


def on_a_cluster():
    """Four nodes with two CPUs each, a store, and Open MPI."""
    # Its daemons are those beside it: tools/test has no release of the tests' own programs.
    maker = ROOT / "target/debug/cosched-cluster"
    if not maker.exists():
        print("SKIPPED: README.md on a cluster: there is no target/debug/cosched-cluster: `cargo build --workspace` makes it")
        return 0, 0
    lab = Lab(installed=True, daemon=False)
    try:
        lines = chapters(lab.page(), lambda name: name in ON_A_CLUSTER)
        home = Home(lab, PROGRAMS | {"a.out": RANK})
        home.write("cluster.toml", CLUSTER)
        home.write("script", as_script(lines) + LOOK)
        # It ends by itself, so that what it made is removed.
        command = [maker, "4", "2", "cluster.toml", "timeout", "-k", "5", "120", "bash", "-x", "script"]
        done = subprocess.run(command, cwd=home.folder, env=lab.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)
        if skipped := re.findall("(?m)^SKIPPED.*", done.stdout):
            print(*skipped, sep="\n")
            return 0, 0
        judge(lab, home, "on a cluster", lines, done, [])
        sim = json.loads("\n".join(home.lines("sim.json")) or "{}")
        places = [f"{node['name']}:{node['cpus']}" for node in sim.get("nodes", [])]
        ranks = sorted(home.lines("ranks"))
        if sorted(places) != [f"n{n}:2" for n in (1, 2, 3, 4)] or ranks != ["4: n1", "4: n1", "4: n2", "4: n2", *[f"8: n{n}" for n in (1, 1, 2, 2, 3, 3, 4, 4)]]:
            lab.failed += 1
            print(f"FAILED: README.md on a cluster: the job is not on all nodes: {sim}, or ranks are not where they should: {ranks}", done.stderr[-4000:], sep="\n")
    finally:
        lab.end()
    return lab.passed, lab.failed


def of_make():
    """Into a folder; sudo has nothing to do here, and would forget that folder."""
    page = (ROOT / "README.md").read_text()
    with tempfile.TemporaryDirectory(prefix="cst-docs-") as folder:
        sudo = os.path.join(folder, "sudo")
        with open(os.open(sudo, os.O_CREAT | os.O_WRONLY, 0o755), "w") as file:
            file.write('#!/bin/sh\nexec "$@"\n')
        root = os.path.join(folder, "root")
        variables = {"DESTDIR": root, "BUILT": str(BUILT), "STRIP": "", "PATH": f"{folder}:{os.environ['PATH']}"}
        installed, failures, passed = [], [], 0
        for line in chapters(page, lambda name: name in OF_MAKE):
            for command in command_of(line).split(" && "):
                if what := ELSEWHERE.get(command.removeprefix("sudo ")):
                    print(f"not run here: {command}; it is tried by {what}")
                    continue
                done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, timeout=LIMIT_S)
                passed += done.returncode == 0
                if done.returncode:
                    failures.append(f"{command}: exit code {done.returncode}: {done.stdout}{done.stderr}")
                installed.append(sum(len(files) for _, _, files in os.walk(root)))
        # Installed, and removed again.
        if len(installed) != 2 or installed[0] < 100 or installed[1] != 0:
            failures.append(f"files after each command: {installed}")
    named = set(re.findall(r"(?m)(?:^|`|&& (?:sudo )?)make ([a-z]+)", page))
    for name in sorted(named):
        if subprocess.run(["make", "-n", name], cwd=ROOT, capture_output=True).returncode:
            failures.append(f"make has no {name}")
    for failure in failures:
        print(f"FAILED: README.md: {failure}")
    return passed, len(failures)


def check():
    results = [by_user(0), by_user(USER), by_user(USER, own=True), on_a_cluster(), of_make()]
    return [sum(column) for column in zip(*results)]
