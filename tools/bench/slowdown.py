"""slowdown: the long form of `cosched bench slowdown`, with matmul and lu.

1, 2, 4, 6 and 8 jobs of each under plain Linux and cosched's policies, as in Tables 1 and 2 of Strazdins & Uhlmann 2004.
Report and journal are in the output directory's slowdown-matmul/ and slowdown-lu/.
"""

import json
import shutil
import subprocess

import live
from figures import table as make_table, text

# N as in the paper for p = 2, doubled, because today's CPUs are that much faster.
PROGRAMS = {"matmul": 2000, "lu": 3000}


def add_arguments(parser):
    parser.add_argument("--jobs", metavar="J,…", help="numbers of jobs [default: 1,2,4,6,8; --quick: 1,2]")
    parser.add_argument("--policies", default="linux,local,gang,gang-strict", metavar="P,…", help="[default: %(default)s]")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each [default: 5; --quick: 2]")


def measure(daemon, arguments):
    return {"programs": {name: one(daemon, arguments, name, order) for name, order in PROGRAMS.items()}}


def one(daemon, arguments, name, order):
    """The document of one program."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    directory = arguments.out / f"slowdown-{name}"
    shutil.rmtree(directory, ignore_errors=True)
    jobs = arguments.jobs or ("1,2" if arguments.quick else "1,2,4,6,8")
    repeat = arguments.repeat or (2 if arguments.quick else 5)
    program = [*live.mpirun(2), daemon.programs / name, "--n", order // 2 if arguments.quick else order, "--json"]
    command = [daemon.binaries / "cosched", "--socket", daemon.socket, "--json", "bench", "slowdown", "--jobs", jobs, "--repeat", repeat,
               "--policies", arguments.policies, "--out", directory, "--", *program]
    process = daemon.start(command, stderr=None)
    output, _ = process.communicate()
    document = live.last_json(output)
    if document is None:
        raise live.Failure(f"slowdown: {name}: exit code {process.returncode}")
    return document


def table(result):
    lines = []
    for name, document in result["programs"].items():
        rows = [[row["policy"], row["jobs"], text(row["slowdown"], 2), text(row["slowdown_stderr"], 2), text(row["jain"], 3),
                 row["not_done"]] for row in document["results"]]
        head = [name, "jobs", "slowdown", "±", "fairness", "not done"]
        lines += make_table(f"slowdown: {' '.join(document['command'][-5:])}", head, rows)
    return lines
