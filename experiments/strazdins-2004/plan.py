"""Which simulations the reproduction needs.

A cell is one call of `cosched sim program`: a program on a grid, a system, and how many jobs at once."""

import pathlib

HERE = pathlib.Path(__file__).resolve().parent
MACHINES = HERE.parent / "machines"

# N for each p, as in Tables 1 and 2.
ORDERS = {
    "matmul": {2: 1000, 4: 1500, 8: 2000, 16: 3000, 32: 4000},
    "lu": {2: 1500, 4: 2000, 8: 3000, 16: 4000, 32: 6000},
}
JOBS = [1, 2, 4, 6, 8]

# How processes wait and who decides. LAM: TCP's recvfrom blocks at once; sysv polls "a certain interval" (section 2.1) that the
# paper does not give: here as long as an empty message takes. SCore: busy wait in gangs, with the simulator's own quantum and
# switch (200 ms, 2 ms), as the paper gives neither.
POLL_US = 42
SYSTEMS = {
    "local": {"strategy": "SB", "machine": MACHINES / "bunyip.toml", "packet": 64 * 1024, "cpus_per_node": 2,
              "options": ["--model", "linux", "--network-poll-us", "0"]},
    "gang": {"strategy": "GS", "machine": HERE / "score.toml", "packet": 0, "cpus_per_node": 2, "options": []},
}

SIZES = {"full": {"p": [2, 4, 8, 16, 32], "jobs": JOBS, "extras": True}, "quick": {"p": [2, 8, 32], "jobs": [1, 2, 8], "extras": False},
         "tiny": {"p": [2], "jobs": [1, 2], "extras": False}}


def cell(program, system, p, jobs, n=None, poll_us=POLL_US, level2_ns=None, **changes):
    """The inputs of one call. `changes` replace parts of the system."""
    made = {"program": program, "system": system, "p": p, "n": n or ORDERS[program][p], "jobs": list(jobs), "level2_ns": level2_ns}
    made |= SYSTEMS[system] | changes
    more = ["--memory-poll-us", str(poll_us)] if system == "local" else []
    made["options"] = [*made["options"], *more]
    return made


def main_cells(size):
    """Tables 1 and 2."""
    for p in size["p"]:
        for program in ORDERS:
            for system in ("local", "gang"):
                yield cell(program, system, p, size["jobs"])


def extras():
    """(question, answer's name, cell): what open points and single assumptions matter."""
    ends = [1, 8]
    for poll_us in (10, POLL_US, 200, 1000):
        for program in ORDERS:
            yield "poll", f"{poll_us} µs", cell(program, "local", 2, ends, poll_us=poll_us)
    for program in ORDERS:
        yield "scheduler", "EEVDF (Linux since 6.6), slice 2.8 ms", cell(program, "local", 32, ends)
        yield "scheduler", "EEVDF, slice 60 ms (the time slice of Linux 2.4)", cell(
            program, "local", 32, ends, options=[*SYSTEMS["local"]["options"], "--slice-ms", "60"])
        yield "scheduler", "60 levels (the simulator's paper model)", cell(
            program, "local", 32, ends, options=["--model", "paper", "--network-poll-us", "0"])
        yield "packets", "64 KiB, acknowledged (LAM)", cell(program, "local", 32, ends)
        yield "packets", "whole messages", cell(program, "local", 32, ends, packet=0)
        yield "nodes", "16 dual nodes", cell(program, "local", 32, ends)
        yield "nodes", "32 single nodes", cell(program, "local", 32, ends, cpus_per_node=1)
        yield "gangs", "local (SB)", cell(program, "local", 32, ends)
        yield "gangs", "strict gangs, busy (GS)", cell(program, "gang", 32, ends)
        for strategy, name in (("paired-gang", "paired gangs that block"), ("soft-gang", "soft gangs that block")):
            yield "gangs", name, cell(program, "local", 32, ends, strategy=strategy, options=["--gang-wait", "block", "--network-poll-us", "0"])
    yield "level2", "30 ns (bunyip.toml)", cell("lu", "local", 32, ends)
    yield "level2", "2.48 ns, as level 3", cell("lu", "local", 32, ends, level2_ns=2.4813895781637716)
    yield "smaller", "matmul, N = 3000", cell("matmul", "local", 32, ends, n=3000)
    yield "smaller", "lu, N = 4000", cell("lu", "local", 32, ends, n=4000)
    yield "faster", "lu, N = 6000", cell("lu", "local", 32, ends, machine=MACHINES / "bunyip-faster.toml")


def cells(size):
    """All cells, none twice, small ones first."""
    seen = []
    for one in [*main_cells(size), *(one for _, _, one in extras() if size["extras"])]:
        if one not in seen:
            seen.append(one)
    return seen
