"""The model beside `cosched sim program`: two copies on 128 nodes in strict gangs (GS), until both have ended."""

import json
import subprocess

import plan
import windows


class Failed(Exception):
    """A simulation failed; the text says which and why."""


def model_s(slot, work, count, way, number):
    """When the second program has done so many iterations."""
    slots = 8 + 4 * int(count * work / (slot / 4))
    if way is None:
        ordered = [[at * slot for at in range(slots)]] * plan.NODES
    else:
        ordered = list(windows.orders(way, slot, slots, windows.draws(way, slot, number)))
    nodes = [windows.Node(windows.windows(times, 1, plan.SWITCH)) for times in ordered]
    ends = windows.barrier(nodes, work, windows.draws("check", slot, work, number))
    return next(end for done, end in enumerate(ends, 1) if done == count)


def command(program, slot, work, count, way, number):
    """The same in the simulator, and its text."""
    switch = plan.SWITCH + (windows.spread(way, slot, number) if way else 0.0)
    text = f"repeat {count} {{ compute {work * 1e6:.0f}us skew; barrier }}\n"
    options = ["--tasks", plan.NODES, "--nodes", plan.NODES, "--copies", 2, "--strategies", "GS", "--skew", plan.SKEW, "--seed", number]
    options += ["--quantum-ms", f"{slot * 1e3:g}", "--cs-us", f"{switch * 1e6:.3f}", "--gs-cs-in-q", 1, "--network", f"{plan.MESSAGE * 1e6:g},0"]
    return [program, "sim", "program", "--json", "--quiet", *map(str, options), "/dev/stdin"], text


def simulator_s(program, *setting):
    made, text = command(program, *setting)
    done = subprocess.run(made, input=text, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(made)}: {done.stderr.strip()}")
    rows = json.loads(done.stdout)
    return next(row["makespan_s"] for row in rows if row["copies"] == 2)
