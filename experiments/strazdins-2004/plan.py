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
    "gang": {"strategy": "GS", "machine": HERE / "score.toml", "packet": 0, "cpus_per_node": 2,
             "options": ["--quantum-ms", "200"]},
}

SIZES = {
    "full": {"p": [2, 4, 8, 16, 32], "jobs": JOBS, "seeds": 3, "extras": True},
    "quick": {"p": [2, 8, 32], "jobs": [1, 2, 8], "seeds": 2, "extras": False},
    "tiny": {"p": [2], "jobs": [1, 2], "seeds": 2, "extras": False},
}
# Each computation takes its time times 1 + s (u - 1/2), u random: equal jobs on a real machine are never in lock step, and without
# it single cells are up to a third off their neighbours. Every seed has its own t_1.
SKEW = 0.02


def cell(program, system, p, jobs, seeds, n=None, poll_us=POLL_US, level2_ns=None, skew=SKEW, **changes):
    """The inputs of one call. `changes` replace parts of the system."""
    made = {"program": program, "system": system, "p": p, "n": n or ORDERS[program][p], "jobs": list(jobs), "level2_ns": level2_ns}
    made |= {"skew": skew, "seeds": seeds}
    made |= SYSTEMS[system] | changes
    more = ["--memory-poll-us", str(poll_us)] if system == "local" else []
    made["options"] = [*made["options"], *more]
    return made


def main_cells(size):
    """Tables 1 and 2."""
    for p in size["p"]:
        for program in ORDERS:
            for system in ("local", "gang"):
                yield cell(program, system, p, size["jobs"], size["seeds"])


def extras(size):
    """(question, answer's name, cell): what open points and single assumptions matter."""
    def local(program, p=32, **changes):
        return cell(program, "local", p, [1, 8], size["seeds"], **changes)

    def gang(program, **changes):
        return cell(program, "gang", 32, [1, 8], size["seeds"], **changes)

    for poll_us in (10, POLL_US, 200, 1000):
        for program in ORDERS:
            yield "poll", f"{poll_us} µs", local(program, 2, poll_us=poll_us)
    for program in ORDERS:
        yield "scheduler", "EEVDF (Linux since 6.6), slice 2.8 ms", local(program)
        yield "scheduler", "EEVDF, slice 60 ms (the time slice of Linux 2.4)", local(
            program, options=[*SYSTEMS["local"]["options"], "--slice-ms", "60"])
        yield "scheduler", "60 levels (the simulator's paper model)", local(
            program, options=["--model", "paper", "--network-poll-us", "0"])
        yield "packets", "64 KiB, acknowledged (LAM)", local(program)
        yield "packets", "whole messages", local(program, packet=0)
        for skew in (0, SKEW, 0.1):
            yield "skew", f"{skew:.0%}", local(program, skew=skew)
        yield "nodes", "16 dual nodes", local(program)
        yield "nodes", "32 single nodes", local(program, cpus_per_node=1)
        yield "gangs", "local (SB)", local(program)
        yield "gangs", "strict gangs, busy (GS)", gang(program)
        for strategy, name in (("paired-gang", "paired gangs that block"), ("soft-gang", "soft gangs that block")):
            yield "gangs", name, local(program, strategy=strategy, options=["--gang-wait", "block", "--network-poll-us", "0"])
        for quantum_ms in (50, 200, 1000):
            yield "quantum", f"{quantum_ms} ms", gang(program, options=["--quantum-ms", str(quantum_ms)])
    yield "level2", "31.4 ns (bunyip.toml)", local("lu")
    yield "level2", "2.48 ns, as level 3", local("lu", level2_ns=2.4813895781637716)
    yield "smaller", "matmul, N = 3000", local("matmul", n=3000)
    yield "smaller", "lu, N = 4000", local("lu", n=4000)
    yield "faster", "lu, N = 6000", local("lu", machine=MACHINES / "bunyip-faster.toml")


def cells(size):
    """All cells, none twice, small ones first."""
    seen = []
    for one in [*main_cells(size), *(one for _, _, one in extras(size) if size["extras"])]:
        if one not in seen:
            seen.append(one)
    return seen
