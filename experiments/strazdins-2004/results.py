"""All numbers of the reproduction as one dictionary: what results.json holds and the report is made of."""

import csv
import json
import subprocess

import claims
import plan
import programs

SLOWDOWNS = ("s2", "s4", "s6", "s8")


class Bad(Exception):
    """A file that is not what it should be; the text says which and why."""


def read_published(path):
    """Rows of published.csv; numbers as floats, empty cells as None."""
    text = ("program", "row")
    with open(path, newline="") as file:
        return [
            {name: value if name in text else float(value) if value else None for name, value in line.items()}
            for line in csv.DictReader(file)
        ]


def published_row(published, program, system, p):
    return next(row for row in published if row["table"] < 3 and (row["program"], row["row"], row["p"]) == (program, system, p))


def collect(pool, size, published, live):
    cells = []
    for cell in plan.main_cells(size):
        paper = published_row(published, cell["program"], cell["system"], cell["p"])
        cells.append({
            **{name: cell[name] for name in ("program", "system", "p", "n")},
            "published": as_measures(paper), "simulated": summary(pool.result(cell)), "jobs": pool.result(cell)["jobs"],
        })
    found = {
        "size": {"skew": plan.SKEW, **{name: size[name] for name in ("p", "jobs", "seeds")}}, "cells": cells, "claims": claims.verdicts(cells), "extras": extras(pool, size),
        "table3": [row for row in published if row["table"] == 3], "model": model(pool.program), "live": live_results(live),
    }
    return found


def as_measures(row):
    return {"t1_s": row["t1_s"], "cpu": row["cpu_percent"] / 100, "slowdowns": {name[1:]: row[name] for name in SLOWDOWNS}}


def summary(result):
    jobs = result["jobs"]
    alone = jobs["1"]
    return {"t1_s": alone["t_s"], "cpu": alone["cpu"], "slowdowns": {j: of["slowdown"] for j, of in jobs.items() if j != "1"},
            "stderr": {j: of["slowdown_stderr"] for j, of in jobs.items() if j != "1"}}


def extras(pool, size):
    """Answers by question, as far as they are simulated."""
    answers = {}
    for question, name, cell in plan.extras(size) if size["extras"] else ():
        result = pool.result(cell)
        if result:
            entry = {"name": name, "program": cell["program"], "p": cell["p"], "n": cell["n"], **summary(result), "cpu8": result["jobs"]["8"]["cpu"], "t8_s": result["jobs"]["8"]["t_s"]}
            answers.setdefault(question, []).append(entry)
    return answers


def model(program):
    """What `cosched model predict` says of Table 3's two programs and of section 5.3's; None where this cosched has no model."""
    rows = {}
    for name, machine, n in (("matmul", "bunyip", 4000), ("lu", "bunyip", 6000), ("lu", "bunyip-faster", 6000)):
        grid = "x".join(map(str, programs.grid_of(32)))
        command = [program, "model", "predict", "--machine", machine, "--program", name, "--n", str(n), "--grid", grid, "--jobs", "2,4,6,8", "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return None
        said = json.loads(done.stdout)
        slowdowns = {str(of["jobs"]): of["slowdown"] for of in said["results"] if of["policy"] == "local"}
        rows[f"{name} {machine}"] = {"t1_s": said["time_s"], "cpu": said["cpu_share"], "slowdowns": slowdowns}
    return rows


def live_results(folder):
    """What `experiments/strazdins-2004/measure` measured on a machine of today, by the files' names."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        said = json.loads(path.read_text())
        if said.get("format") != "cosched-slowdown-1":
            raise Bad(f"{path} is no result of cosched bench slowdown\n  why: its format is {said.get('format')!r}\n  hint: remove it, or measure again")
        names = ("policy", "jobs", "runs", "not_done", "time_s", "time_stderr_s", "phase_s", "slowdown", "slowdown_stderr", "cpu_share", "jain", "voluntary", "involuntary")
        found[path.stem] = {
            **{name: said.get(name) for name in ("host", "cpus", "cosched", "started", "command", "repeat", "single")},
            "results": [{name: row.get(name) for name in names} for row in said["results"]],
        }
    return found
