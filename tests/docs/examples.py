"""The examples in the help of all commands, with a daemon, programs, files, jobs and processes of their own."""

import concurrent.futures
import re
import shutil
import subprocess
import sys

import fixtures
from lab import ROOT, Lab

LIMIT_S = 30
# Between two passes of the sort no pipeline is running.
TRIES = 5
# Programs of others.
NEEDED = ("column", "ctest", "curl", "jq", "less", "man", "mpirun", "pybatsim", "python")
# What stands for what an example names, in this order, and what makes it smaller.
STANDINS = [
    (r"/etc/cosched\.toml", "cosched.toml"),
    (r"/(?=usr/local/|run/cosched-web/)", "$HOME/"),
    (r"/run/cosched/coschedd\.sock", "$COSCHED_SOCKET"),
    (r"\bann\b", fixtures.OTHER),
    (r"\bb7\b", "$(hostname)"),
    (r"a:2,b:2", "$(hostname):2"),
    (r"a:4:2G,b:2:1G", "$(hostname):1:1G"),
    (r"--cpus [48]", "--cpus 1"),
    (r"-n (16|64) ", "-n 2 "),
    (r"1-20%4", "1-3%2"),
    (r"trace --for \d+s", "trace --for 500ms"),
    (r"127\.0\.0\.1:8080$", "127.0.0.1:0"),
    (r"/shared/tmp", "$HOME/shared"),
    (r"--count 500", "--count 2"),
    (r"lu\.prog --tasks 32 --nodes 16", "lu.prog --tasks 2 --nodes 2"),
    (r"mpirun -n 4 ", "mpirun -n 2 "),
    (r"whatif(?! --check)", "whatif --look 1s"),
    (r"--resume lu", "--resume result"),
    (r"sim compare (?!.*--(?:seeds|precision))", "sim compare --seeds 2 "),
    (r"--seeds 20", "--seeds 2"),
    (r"--precision 5%", "--precision 50%"),
    (r"(sim (?:compare|sweep) .*(?:--jobs|--workloads) WL\S+)", r"\1 --count 4 --mean-exec-s 0.5"),
    (r"--jobs 1,2,4(,8)?", "--jobs 1,2"),
    (r"--repeat 9", "--repeat 1"),
    (r"bench slowdown (?!.*--(?:repeat|resume))", "bench slowdown --repeat 1 "),
    (r"bench slowdown (?!.*--(?:jobs|mix|resume))", "bench slowdown --jobs 1 "),
]
# What is not run here, with the reason and what tries it.
ELSEWHERE = {
    r"nodes --dead": "needs a node that is dead: tests/tests/cluster_silence.rs",
    r"cosched cluster": "needs etcd: tests/tests/cluster_keys.rs",
    r"whatif --check": "needs a prediction of a minute ago: tests/tests/whatif.rs",
    r"whatif --profile": "waits a minute to see what happens: tests/tests/whatif.rs",
    r"adopt --unit": "needs systemd: tests/systemd/adopt",
    r"adopt --cgroup": "needs systemd's cgroups: tests/tests/adopt_quota.rs",
    r"adopt --container": "needs a container: tests/tests/podman.rs",
    r"slurm|scontrol": "needs Slurm: tests/slurm/run",
    r"setup --fix": "changes the machine: tests/tests/setup.rs",
    r"gpg": "needs a key",
    r"cosched demo": "minutes: crates/cosched-cli/tests/cli/demo.rs",
    r"cosched advise": "half a minute each: the tutorial and README.md",
    r"model calibrate": "minutes: README.md",
    r"ipc:///tmp/scheduler|sim decide (w\.json|workload\.json --hosts)": "needs a scheduler: crates/cosched-cli/tests/cli/decide.rs",
}
# They continue until they are interrupted.
ENDLESS = r"--watch|--follow|cosched web|cosched top( --interval 200ms --sort cpu| --json --interval 5s >> log.jsonl)?$"
AT_A_TERMINAL = r"cosched top( --interval 200ms --sort cpu)?$"
# These go beside the others, with a daemon and files of their own.
BESIDE = r"cosched (bench|record|sim compare|sim sweep)"


def text_of(page):
    """The examples of a man page."""
    for code, sign in (("\\*(Aq", "'"), ("\\-", "-"), ("\\(ga", "`"), ("\\&", ""), ("\\e", "\\"), ("\\\\", "\\")):
        page = page.replace(code, sign)
    found = re.search(r"(?ms)^Examples:\n(.*?)(?=\n\n|\n[A-Z][a-z ]+:\n|\Z)", page)
    return found[1] if found else ""


def examples(folder):
    """Each example once, without what explains it; an explanation's second line is indented further."""
    found = []
    for page in sorted(folder.glob("*.1")):
        lines = iter(text_of(page.read_text()).splitlines())
        for line in lines:
            if not re.match(r"  \S", line):
                continue
            command = re.split(r"(?<=\S) {2,}", line.strip())[0]
            while command.count("'") % 2:
                command += "\n" + next(lines)
            found.append(command)
    return list(dict.fromkeys(found))


def prepared(example, cast):
    example = cast.named(example)
    for pattern, value in STANDINS:
        example = re.sub(pattern, value, example)
    return example


def run(cast, example):
    """Whether it did what it is to do."""
    at_a_terminal = re.search(AT_A_TERMINAL, example)
    endless = re.search(ENDLESS, example) and not at_a_terminal
    right = {124, 0} if endless and "pipeline" in example else {124} if endless else {0}
    shell = [sys.executable, ROOT / "tests/docs/terminal.py", "CPU", "q"] if at_a_terminal else ["bash", "-o", "pipefail", "-c"]
    words = ["timeout", "-k", "5", "-s", "INT", "0.4" if endless else str(LIMIT_S), *shell]
    for _ in range(TRIES if "pipeline show" in example else 1):
        command = prepared(example, cast)
        done = subprocess.run([*words, command], cwd=cast.home, env=cast.lab.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode in right:
            return True
    print(f"FAILED: help: {example}", f"{command}: exit code {done.returncode}", done.stdout[-500:], done.stderr[-1500:], sep="\n    ", flush=True)
    return False


def check():
    casts = []
    try:
        for _ in range(2):
            casts.append(fixtures.Cast(Lab(config=fixtures.CONFIG)))
        fixtures.make(*casts)
        path = casts[0].lab.environment["PATH"]
        man = casts[0].home / "man"
        subprocess.run(["cosched", "man", "--dir", man], env=casts[0].lab.environment, check=True, capture_output=True)
        wanted = []
        for line in examples(man):
            if why := [why for pattern, why in ELSEWHERE.items() if re.search(pattern, line)]:
                print(f"not run here: {line}: {why[0]}")
            elif missing := [name for name in NEEDED if re.search(rf"\b{name}\b(?! --dir)", line) and not shutil.which(name, path=path)]:
                print(f"SKIPPED: help: {line}: {missing[0]} is not installed")
            else:
                wanted.append(line)
        beside = [line for line in wanted if re.search(BESIDE, line)]
        streams = [[line for line in wanted if line not in beside], beside]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda cast, lines: [run(cast, line) for line in lines], casts, streams))
        passed = sum(sum(stream) for stream in results)
        return passed, len(wanted) - passed
    finally:
        for cast in casts:
            cast.end()
            cast.lab.end()
