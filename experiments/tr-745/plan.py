"""What is simulated: two machines, the ways to share them, and the conditions, each of which changes one thing of both machines."""

import pathlib

HERE = pathlib.Path(__file__).resolve().parent
PLATFORM = HERE / "today.toml"
NODES = 16

# Strict gangs that wait busily, soft gangs that block, uncoordinated processes that spin, and such as spin for a while and block.
STRATEGIES = ["GS", "soft-gang", "Local", "SB"]
GANGS = STRATEGIES[:2]

# All in µs but the slot. Context switch, interrupt of a wake-up, switch of a gang on all nodes, spin time before a block, whether each process
# learns its own, slot in ms, whether messages go over PLATFORM or take the 185 µs of Zhang et al., the local scheduler.
MACHINES = {
    "2000": {"switch": 200, "wake": 50, "gang_switch": 2000, "spin": 200, "learn": False, "slot_ms": 200, "network": "2000", "model": "paper"},
    "today": {"switch": 5, "wake": 17, "gang_switch": 100, "spin": 50, "learn": True, "slot_ms": 100, "network": "today", "model": "linux"},
}
# A job of the lists: computes 65 % of its time alone on the machine of 2000, has I/O for 5 %, and talks to its neighbours in the rest.
JOBS = {"list": "mix", "type": "J6", "scale": 1, "skew": 0.2, "mpl": 5}


def slots(factor):
    return lambda machine, other: {"slot_ms": machine["slot_ms"] * factor}


def colder(added):
    return lambda machine, other: {name: machine[name] + added for name in ("switch", "gang_switch")}


def spins(us):
    return lambda machine, other: {"spin": us, "learn": False}


def swapped(*names):
    """These constants are those of the other machine."""
    return lambda machine, other: {name: other[name] for name in names}


# (group, condition, what changes in the jobs, what changes in the machine)
CONDITIONS = [
    ("Base", "as stated", {}, None),
    ("Granularity", "computes 155 µs at a time, talks for 60 % (J5)", {"type": "J5"}, None),
    ("Granularity", "2.3 ms at a time", {"scale": 4}, None),
    ("Granularity", "9.2 ms", {"scale": 16}, None),
    ("Granularity", "37 ms", {"scale": 64}, None),
    ("I/O", "I/O 35 % (J3)", {"type": "J3"}, None),
    ("I/O", "I/O 50 % (J2)", {"type": "J2"}, None),
    ("I/O", "computes 90 % (J4)", {"type": "J4"}, None),
    ("Balance", "perfect", {"skew": 0.0}, None),
    ("Balance", "±50 %", {"skew": 1.0}, None),
    ("Balance", "±95 %", {"skew": 1.9}, None),
    ("Slots", "a tenth as long", {}, slots(0.1)),
    ("Slots", "five times as long", {}, slots(5)),
    ("Caches", "each switch costs 43 µs more", {}, colder(43)),
    ("Caches", "each switch costs 700 µs more", {}, colder(700)),
    ("Spin time", "blocks at once", {}, spins(0.001)),
    ("Spin time", "spins for 1 ms, then blocks", {}, spins(1000)),
    ("Multiprogramming", "at most 2 jobs on a node", {"mpl": 2}, None),
    ("Multiprogramming", "at most 10", {"mpl": 10}, None),
    ("Mix", "short parallel jobs beside long ones: the short ones", {"list": "short"}, None),
    ("Mix", "a parallel job beside serial ones: the parallel one", {"list": "serial"}, None),
    ("Which constant", "messages of the other machine", {}, swapped("network")),
    ("Which constant", "costs of switches, wake-ups and spinning of the other", {}, swapped("switch", "wake", "gang_switch", "spin", "learn")),
    ("Which constant", "local scheduler of the other", {}, swapped("model")),
]

SIZES = {
    "quick": {"lists": 3, "conditions": [0, 2, 8, 19]},
    "full": {"lists": 10, "conditions": list(range(len(CONDITIONS)))},
}


def cell(number, name):
    """The machine and the jobs of a condition."""
    _, _, jobs, change = CONDITIONS[number]
    machine, other = MACHINES[name], next(MACHINES[other] for other in MACHINES if other != name)
    return {**machine, **(change(machine, other) if change else {})}, {**JOBS, **jobs}


def options(strategy, machine, jobs):
    """Those of `cosched sim run`; the list and the seed are not among them."""
    made = ["--nodes", NODES, "--mpl", jobs["mpl"], "--skew", jobs["skew"], "--cd-scale", jobs["scale"], "--intr-us", machine["wake"]]
    made += ["--spin-us", machine["spin"], "--spin", "adaptive" if machine["learn"] else "fixed"]
    made += ["--platform", PLATFORM] if machine["network"] == "today" else []
    if strategy in GANGS:
        made += ["--cs-us", machine["gang_switch"], "--quantum-ms", machine["slot_ms"], "--local-cs-us", machine["switch"]]
        made += ["--gang-wait", "block" if strategy == "soft-gang" else "busy"]
    else:
        made += ["--cs-us", machine["switch"], "--model", machine["model"]]
    return ["--strategy", strategy, *(f"{value:g}" if isinstance(value, float) else str(value) for value in made)]
