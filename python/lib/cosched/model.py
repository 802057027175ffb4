"""What sharing CPUs will cost, before it is tried: the model of Strazdins & Uhlmann 2004 (docs/model.md), and advice from short test runs.

>>> prediction = predict(t1_s=60, cpu_share=0.26, jobs=[2, 4])
>>> prediction.slowdown(4)
1.04
>>> prediction.slowdown(4, "gang")
4.0

The command `cosched` computes them (`cosched model predict`, `cosched advise`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cosched._command import Command, StrPath, run_command

__all__ = ["Advice", "Prediction", "Shared", "advise", "machines", "predict"]


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
        "--t1": None if t1_s is None else f"{t1_s!r}s", "--cpu-share": cpu_share, "--machine": machine, "--program": program, "--n": n,
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


@dataclass(frozen=True)
class Advice:
    """What test runs recommend. `choice` is a policy, "linux" for plain Linux; `kind` says what the program mostly does; `expected` has the slowdown
    of numbers of jobs; `facts` is what was measured."""

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
