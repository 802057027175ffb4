"""All numbers of the experiment as one dictionary: what results.json holds and the report and the chart are made of."""

import plan
import student


def collect(measured):
    """`measured`: (condition, machine) -> strategy -> mean response times, one for each list."""
    found = []
    for number, (group, name, _, _) in enumerate(plan.CONDITIONS):
        machines = {machine: row(measured[number, machine]) for machine in plan.MACHINES if (number, machine) in measured}
        if len(machines) == len(plan.MACHINES):
            found.append({"group": group, "condition": name, "machines": machines})
    return found


def row(times):
    """Mean response times, and what processes without gangs need as a multiple of what they need in gangs."""
    better = min(plan.GANGS, key=lambda strategy: student.mean(times[strategy]))
    return {
        "response_s": {strategy: value(student.mean(all_of), student.half_width(all_of)) for strategy, all_of in times.items()},
        "better_gang": better,
        "spin": value(*student.ratio(times["Local"], times["GS"])),
        "block": value(*student.ratio(times["SB"], times[better])),
    }


def value(middle, half):
    return {"mean": middle, "half_width_95": half}


def winner(ratio):
    """Who wins by the interval of the ratio: gangs, none (without them), or open."""
    if ratio["half_width_95"] is None or abs(ratio["mean"] - 1) <= ratio["half_width_95"]:
        return "open"
    return "gangs" if ratio["mean"] > 1 else "none"
