"""whatif: how right a prediction of the machine's next minute is, for LU, a barrier, HPL and a matrix multiplication at once.

Four jobs of two ranks take turns. `cosched sim whatif` looks at them for 10 s, predicts the next 60 s, and measures then what each has done. The bar:
each job's progress within 10 %, the median within 3 %. HPL is hpcc's, with matrices so large that it does not end meanwhile.
"""

import contextlib
import json
import pathlib
import re
import tempfile
import time

import live
from figures import median, table as make_table, text

NEEDS_DAEMON = False
HPL_INPUT = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")


def add_arguments(parser):
    parser.add_argument("--times", type=int, metavar="N", help="predictions [default: 5; --quick: 1]")
    parser.add_argument("--config", default="", metavar="TOML", help="of the daemon, as 'slot_length = \"50ms\"' [default: as it comes]")


def hpl_input(order):
    """hpcc's example, on 1 x 2 processes, with matrices of this order."""
    lines = []
    for line in HPL_INPUT.read_text().splitlines():
        name = line.split()[-1] if line.split() else ""
        value = {"Ps": 1, "Qs": 2, "Ns": order}.get(name)
        lines.append(line if value is None else re.sub(r"^\S+", str(value), line))
    return "\n".join(lines) + "\n"


def commands(daemon, folder):
    own = {"lu": ["--n", 1500, "--iterations", 100_000], "barrier-mpi": ["--seconds", 3600], "matmul": ["--n", 2000, "--iterations", 100_000]}
    mix = {name: [*live.mpirun(2), daemon.programs / name, *words] for name, words in own.items()}
    if not HPL_INPUT.exists():
        raise live.Failure(f"{HPL_INPUT} is missing: apt install hpcc")
    (folder / "hpccinf.txt").write_text(hpl_input(24_000))
    return mix | {"hpl": ["env", "-C", folder, *live.mpirun(2), "hpcc"]}


def predicted(daemon):
    """A prediction and what became of it: job names with what was found over what was predicted."""
    words = ["--json", "sim", "whatif", "--look", "10s", "--for", "60s", "--stay", "--quiet", "--policies", "linux"]
    prediction, done = map(json.loads, daemon.cli(*words).splitlines())
    if done["changed"]:
        raise live.Failure(f"something changed meanwhile: {done['changed']}")
    names = {job["id"]: job["name"] for job in prediction["jobs"]}
    return {names[job["id"]]: 1 + job["checked"]["difference"] for job in done["jobs"]}


def measure(_, arguments):
    rounds = []
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        daemon = stack.enter_context(live.Daemon(arguments.bin, arguments.programs, arguments.config))
        for name, command in commands(daemon, folder).items():
            daemon.start(daemon.run_words(command, "--name", name), {"OPENBLAS_NUM_THREADS": "1"})
        time.sleep(20)
        for _ in range(arguments.times or (1 if arguments.quick else 5)):
            rounds.append(predicted(daemon))
            print(json.dumps(rounds[-1]), flush=True)
        return {"rounds": rounds, "facts": daemon.status_facts()}


def table(result):
    rounds = result["rounds"]
    rows = []
    for name in rounds[0]:
        found = [one[name] for one in rounds]
        rows.append([name, len(found), text(median(found), 3), f"{text(min(found), 3)} to {text(max(found), 3)}"])
    errors = [abs(one - 1) for of in rounds for one in of.values()]
    title = f"whatif: progress in 60 s, found over predicted; median error {text(median(errors) * 100, 1)} %, largest {text(max(errors) * 100, 1)} %"
    return make_table(title, ["job", "n", "median", "from, to"], rows)
