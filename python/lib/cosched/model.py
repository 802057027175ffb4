"""What sharing CPUs will cost, before it is tried: the model of Strazdins & Uhlmann 2004 (docs/model.md), advice from short test runs, and
measurements beside what the model and the simulator say.

>>> prediction = predict(t1_s=60, cpu_share=0.26, jobs=[2, 4])
>>> prediction.slowdown(4)
1.04
>>> prediction.slowdown(4, "gang")
4.0

The command `cosched` computes them (`cosched model predict`, `cosched advise`, `cosched bench`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cosched._command import Command, StrPath, run_command

__all__ = ["Advice", "Compared", "Prediction", "Shared", "advise", "calibrate", "compare", "machines", "measure", "predict", "record"]


@dataclass(frozen=True)
class Shared:
    """A number of equal jobs on the same CPUs."""

    policy: str
    jobs: int
    time_s: float
    slowdown: float
    cpu_share: float


@dataclass(frozen=True)
class Prediction:
    """What the model says of a program. `time_s` and `cpu_share` are those of one job alone; up to `crossing_jobs` jobs cost nothing under
    the local policy; `details` has everything that the command printed, as the `terms` of the time."""

    time_s: float
    cpu_share: float
    crossing_jobs: float
    results: list[Shared]
    details: dict[str, Any]

    def slowdown(self, jobs: int, policy: str = "local") -> float:
        """The slowdown of each of this number of jobs. Raises KeyError for a number that was not asked for."""
        for one in self.results:
            if (one.jobs, one.policy) == (jobs, policy):
                return one.slowdown
        raise KeyError((jobs, policy))


def predict(
    *,
    jobs: Sequence[int] = (2, 4, 6, 8),
    t1_s: float | None = None,
    cpu_share: float | None = None,
    machine: StrPath | None = None,
    program: str | None = None,
    n: int | None = None,
    grid: tuple[int, int] | None = None,
    block: int | None = None,
    profile: StrPath | None = None,
) -> Prediction:
    """Predicts time and slowdown of equal jobs that share CPUs.

    Either of any program by its time alone and the part of its CPUs that it uses then; or of "matmul" or "lu" of order `n` on a `grid` of
    processes of a `machine` (a shipped one, or a machine file); or of a `profile` from `cosched record` on such a machine.
    Raises CoschedError.
    """
    options = {
        "--t1": None if t1_s is None else f"{float(t1_s)!r}s", "--cpu-share": cpu_share, "--machine": machine, "--program": program, "--n": n,
        "--grid": None if grid is None else f"{grid[0]}x{grid[1]}", "--block": block, "--profile": profile,
    }
    words = [f"{name}={os.fspath(value) if isinstance(value, os.PathLike) else value}" for name, value in options.items() if value is not None]
    said = json.loads(run_command("--json", "model", "predict", *words, f"--jobs={','.join(map(str, jobs))}"))
    results = [Shared(**one) for one in said["results"]]
    return Prediction(said["time_s"], said["cpu_share"], said["crossing_jobs"], results, said)


def machines() -> dict[str, dict[str, Any]]:
    """The machines that are shipped with cosched, by name."""
    found = [json.loads(line) for line in run_command("--json", "model", "machines").splitlines()]
    return {one["name"]: one for one in found}


def calibrate(output: StrPath, *, repeat: int = 5, name: str | None = None, wait: str = "auto", matmul_n: int = 1000) -> dict[str, Any]:
    """Measures this machine (messages, switches, flops; it should be idle), writes a machine file for `predict` and `compare`, and returns its
    content. Needs MPI and the programs of cosched. Raises CoschedError."""
    options = {"repeat": repeat, "name": name, "wait": wait, "matmul-n": matmul_n, "output": os.fspath(output)}
    machine: dict[str, Any] = json.loads(run_command("--json", "model", "calibrate", *_words(options)))
    return machine


def record(command: Command, output: StrPath) -> dict[str, Any]:
    """Runs a command alone, writes a profile of its computation and messages for `predict` and `compare` (docs/record.md), and returns it.
    Raises CoschedError, also if the command fails."""
    run_command("record", "--quiet", f"--output={os.fspath(output)}", "--", *map(os.fsdecode, command))
    with open(output, "rb") as file:
        profile: dict[str, Any] = json.load(file)
    return profile


def measure(
    command: Command, output: StrPath, *, jobs: Sequence[int] = (1, 2, 4), policies: Sequence[str] = ("linux", "local", "gang"), repeat: int = 5,
    socket: StrPath | None = None,
) -> dict[str, Any]:
    """Measures the slowdown of numbers of equal jobs under policies (`cosched bench slowdown`), into a new folder `output` with a report; returns
    its slowdown.json, whose `results` have a row for each setting. Raises CoschedError."""
    options = {"quiet": True, "jobs": ",".join(map(str, jobs)), "policies": ",".join(policies), "repeat": repeat, "out": os.fspath(output)}
    named = [] if socket is None else [f"--socket={os.fspath(socket)}"]
    said = run_command("--json", *named, "bench", "slowdown", *_words(options), "--", *map(os.fsdecode, command))
    measured: dict[str, Any] = json.loads(said)
    return measured


@dataclass(frozen=True)
class Compared:
    """A policy with a number of jobs: the slowdown as `measured`, by the `model` and as `simulated`; None for what one of them cannot do.
    Differences are relative to the measurement."""

    policy: str
    jobs: int
    measured: float
    measured_stderr: float | None
    model: float | None
    model_difference: float | None
    strategy: str | None
    simulated: float | None
    simulated_difference: float | None


def compare(measured: StrPath, *, profile: StrPath, machine: StrPath, slot_ms: float = 100) -> list[Compared]:
    """Sets what `measure` wrote into a folder beside the model and the simulator, which get the same `profile` of the program (`record`) and the
    same `machine` (a file of `calibrate`, or a shipped one). Raises CoschedError."""
    options = {"profile": os.fspath(profile), "machine": os.fspath(machine), "slot-ms": slot_ms}
    said = json.loads(run_command("--json", "bench", "compare", *_words(options), os.fspath(measured)))
    return [Compared(**row) for row in said["results"]]


def _words(options: dict[str, Any]) -> list[str]:
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items() if value is not None]


@dataclass(frozen=True)
class Advice:
    """What test runs recommend. `choice` is a policy, "linux" for plain Linux; `kind` says what the program mostly does; `expected` has, for
    numbers of jobs, the least slowdown that is possible, if waiting cost nothing; `facts` is what was measured."""

    choice: str
    kind: str
    is_uncertain: bool
    expected: dict[int, float]
    facts: dict[str, Any]
    details: dict[str, Any]


def advise(
    command: Command, *, seconds: float = 30, policies: Sequence[str] | None = None, socket: StrPath | None = None
) -> Advice:
    """Runs a command alone and in pairs under policies, for about `seconds`, and recommends a policy. Raises CoschedError."""
    options = [f"--seconds={seconds:g}", *([] if policies is None else [f"--policies={','.join(policies)}"])]
    named = [] if socket is None else [f"--socket={os.fspath(socket)}"]
    said = json.loads(run_command("--json", *named, "advise", "--quiet", *options, "--", *map(os.fsdecode, command)))
    advice = said["advice"]
    expected = {int(jobs): float(slowdown) for jobs, slowdown in advice["expected"]}
    return Advice(advice["choice"], advice["kind"], advice["is_uncertain"], expected, said["facts"], said)
