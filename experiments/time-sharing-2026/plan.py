"""What is simulated: logs, how they are cut into lists, and the policies."""

# (name, file, what to know of it). Processors are those of the header.
LOGS = [
    ("KTH", "KTH-SP2-1996-2.1-cln.swf.gz", "100-node IBM SP2"),
    ("CTC", "CTC-SP2-1996-3.1-cln.swf.gz", "338 batch nodes of an IBM SP2"),
    ("Thunder", "LLNL-Thunder-2007-1.1-cln.swf.gz", "4,008 processors; submissions are starts, two thirds of the jobs have no estimate"),
    ("Atlas", "LLNL-Atlas-2006-2.1-cln.swf.gz", "9,216 processors; submissions are starts"),
]

# Of each list the first and the last tenth fill and empty the machine; the jobs between them are measured.
MARGIN = 0.1

SIZES = {
    # log names, lists of a log, the part of the log's time that they cover together
    "quick": {"logs": ["KTH"], "lists": 4, "part": 0.2},
    "full": {"logs": ["KTH", "CTC", "Thunder", "Atlas"], "lists": 10, "part": 1.0},
}

SLOTS = ["10ms", "100ms", "1s", "10s", "60s"]
# Measured on one node of this project's machine (docs/bench.md, `tools/bench/bench switch`); Zhang et al. 2000 have 2 ms for a gang of 32 nodes.
SWITCH = "100us"
ROWS = "4"


def gang(slot, rows=ROWS, switch=SWITCH):
    return ["--policy", "soft-gang", "--rows", rows, "--slot", slot, "--switch", switch]


def malleable(*more):
    return ["--policy", "malleable", *more]


BASE, BEST = "EASY", "malleable"
POLICIES = {
    BASE: ["--policy", "easy"],
    "EASY, fair share": ["--policy", "easy", "--event-order", "all", "--fair-share", "24h,24h"],
    "conservative": ["--policy", "conservative"],
    BEST: malleable(),
    "malleable, 1 % serial": malleable("--serial", "0.01"),
    "malleable, 20 % of the jobs": malleable("--malleable-part", "0.2"),
    "malleable, down only": malleable("--sizes", "0.5,1"),
    **{f"soft gang, {slot}": gang(slot) for slot in SLOTS},
    "soft gang, 10ms, switch 2 ms": gang("10ms", switch="2ms"),
    "soft gang, 100ms, 2 rows": gang("100ms", rows="2"),
    "soft gang, 100ms, 8 rows": gang("100ms", rows="8"),
    "oversubscribe": ["--policy", "oversubscribe", "--rows", "2"],
    "oversubscribe, speed 0.8": ["--policy", "oversubscribe", "--rows", "2", "--shared-speed", "0.8"],
    "round robin, 60s": ["--policy", "round-robin", "--rows", ROWS, "--slot", "60s", "--switch", "1s"],
}
