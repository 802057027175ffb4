"""cost: what time slots cost two CPU-bound jobs.

Two jobs of two threads each with a fixed amount of work and nothing to wait for: side by side under gang, compared with one
after the other. The latter are jobs too, under local, so that both have the same cgroups and the same weight relative to
other programs. Interleaved; the ratio of the medians is the throughput that is kept (1 is all of it).
"""

import json

import live
from figures import median, table as make_table, text


def add_arguments(parser):
    parser.add_argument("--slots", default="20,100", metavar="MS,…", help="slot lengths in ms [default: %(default)s]")
    parser.add_argument("--sharing", default="soft,strict", metavar="S,…", help="[default: %(default)s]")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each [default: 5; --quick: 2]")
    parser.add_argument("--seconds", type=float, default=2, metavar="S", help="one job alone [default: %(default)s]")


def measure(daemon, arguments):
    loops = calibrate(daemon, arguments.seconds)
    command = [daemon.programs / "barrier-omp", "--threads", 2, "--wait", "block", "--iterations", 1,
               "--grain-loops", loops]
    arms = [(sharing, int(slot)) for slot in arguments.slots.split(",") for sharing in arguments.sharing.split(",")]
    sequential_s, gang_s = [], {arm: [] for arm in arms}
    limit_s = arguments.seconds * 20 + 60
    for _ in range(arguments.repeat or (2 if arguments.quick else 5)):
        for sharing, slot_ms in arms:
            daemon.policy("local")
            sequential_s.append(sum(within_limit(daemon, [command], limit_s) for _ in range(2)))
            daemon.policy("gang", sharing, slot_ms)
            gang_s[sharing, slot_ms].append(within_limit(daemon, [command, command], limit_s))
    base_s = median(sequential_s)
    return {
        "work_loops": loops,
        "sequential_s": sequential_s,
        "runs": [{"sharing": sharing, "slot_ms": slot_ms, "gang_s": gang_s[sharing, slot_ms],
                  "throughput_ratio": base_s / median(gang_s[sharing, slot_ms])} for sharing, slot_ms in arms],
    }


def within_limit(daemon, commands, limit_s):
    """The makespan of jobs; a Failure past the limit."""
    took_s = daemon.makespan([daemon.run_words(command) for command in commands], limit_s)
    if took_s is None:
        raise live.Failure(f"cost: {len(commands)} jobs did not end within {limit_s:.0f} s")
    return took_s


def calibrate(daemon, seconds):
    """The number of loops that take one thread about this time; the same number is then used in every run."""
    process = daemon.start([daemon.programs / "barrier-omp", "--threads", 1, "--iterations", 1, "--grain-us", 10000,
                            "--json"])
    output, _ = process.communicate(timeout=60)
    return int(json.loads(output)["grain_loops"] * seconds / 0.01)


def table(result):
    base_s = median(result["sequential_s"])
    rows = [["one after the other", text(base_s, 2), "1"]]
    for run in result["runs"]:
        name = f"gang {run['sharing']}, {run['slot_ms']} ms"
        rows.append([name, text(median(run["gang_s"]), 2), text(run["throughput_ratio"], 4)])
    head = ["two CPU-bound jobs", "median s", "throughput"]
    return make_table(f"cost: medians of {len(result['runs'][0]['gang_s'])} interleaved runs", head, rows)
