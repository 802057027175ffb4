"""What is simulated: ways to order a switch, slots, and programs. Times in s."""

US, MS = 1e-6, 1e-3
NODES = 128
# From the order of a switch to the next program's first instruction: `tools/bench/bench switch` on one node of this project's machine (docs/bench.md).
SWITCH = 100 * US
# How late a node acts on its timer or message, exponential: the mean of what differs between the CPUs of that machine.
WAKE = 20 * US
MESSAGE = 1 * US
# Work of an iteration varies by this share of it (the simulator's default).
SKEW = 0.2

SLOTS = [10 * MS, 20 * MS, 50 * MS, 100 * MS, 200 * MS, 500 * MS]
PUBLISHED_SLOT, PUBLISHED_RATIO = 500 * MS, 2.7

# name -> (how, value, share of the orders that are lost).
# sequence, share: one message after the other, in s or as a share of the slot: each node is later than the one before. broadcast: the mean of
# exponential delays. clocks: each node switches by its own, which is off by at most this, differently on each node and always the same.
WAYS = {
    "one by one, 0.5% of the slot each": ("share", 0.005, 0),
    "one by one, 1 ms each": ("sequence", 1 * MS, 0),
    "one by one, 100 µs each": ("sequence", 100 * US, 0),
    "broadcast, 1 ms": ("broadcast", 1 * MS, 0),
    "broadcast, 100 µs": ("broadcast", 100 * US, 0),
    "broadcast, 10 µs": ("broadcast", 10 * US, 0),
    "broadcast, 100 µs, 1 in 10,000 lost": ("broadcast", 100 * US, 1e-4),
    "broadcast, 100 µs, 1 in 1,000 lost": ("broadcast", 100 * US, 1e-3),
    "clocks, 1 ms": ("clocks", 1 * MS, 0),
    "clocks, 100 µs": ("clocks", 100 * US, 0),
    "clocks, 10 µs": ("clocks", 10 * US, 0),
}
# How slow orders one by one must be for the published ratio, at the published slot.
SCAN = {f"one by one, {share:.1%} of the slot each": ("share", share, 0) for share in (0.001, 0.002, 0.004, 0.006, 0.007)}
EXISTING, BROADCAST, CLOCKS = "one by one, 0.5% of the slot each", "broadcast, 100 µs", "clocks, 100 µs"
SHOWN = [EXISTING, "one by one, 100 µs each", "broadcast, 1 ms", BROADCAST, "clocks, 1 ms", CLOCKS]

# (how tasks wait for each other, computation between two waits): all for all, or neighbours on a ring.
PROGRAMS = [("barrier", 0.5 * MS), ("barrier", 5 * MS), ("barrier", 50 * MS), ("ring", 1 * MS), ("ring", 5 * MS)]

SIZES = {
    "quick": {"draws": 3, "programs": PROGRAMS[1:2], "slots": [SLOTS[0], SLOTS[-1]], "checks": False},
    "full": {"draws": 10, "programs": PROGRAMS, "slots": SLOTS, "checks": True},
}

# The same in `cosched sim program`, which has no differences between nodes: (slot, computation, iterations, way). Without a way all nodes switch
# at once; with one the simulator's switch is longer by the time from the first to the last node, as nothing could run meanwhile.
CHECKS = [
    (10 * MS, 0.5 * MS, 300, None),
    (100 * MS, 5 * MS, 60, None),
    (20 * MS, 0.5 * MS, 300, "broadcast, 1 ms"),
    (100 * MS, 0.5 * MS, 600, "one by one, 0.5% of the slot each"),
]
CHECK_DRAWS = 3


def turns(slot):
    """How many turns of the program are measured, after the first two."""
    return max(4, min(50, round(1 / slot)))


def way(name):
    return {**WAYS, **SCAN}[name]


def step(name, slot):
    """How much later each node gets its order than the one before; None if the orders of a slot take longer than the slot."""
    how, value, _ = way(name)
    made = {"share": value * slot, "sequence": value}.get(how, 0.0)
    return made if made * NODES < slot else None
