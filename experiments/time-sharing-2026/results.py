"""All numbers of the experiment as one dictionary: what results.json holds and the report and the chart are made of."""

import student
import plan

MEASURES = ("turnaround_s", "wait_s", "slowdown", "slowdown_p95", "jain", "later", "utilisation")


def collect(by_log):
    """`by_log`: log -> [policy -> measures] of its lists."""
    return {name: {policy: row([part[policy] for part in lists], [part[plan.BASE] for part in lists], [part[plan.BEST] for part in lists]) for policy in plan.POLICIES} for name, lists in by_log.items()}


def of(name, lists):
    return [run[name] for run in lists]


def row(runs, base, best):
    """A policy's means over the lists, and how it compares with EASY and with malleable jobs, in pairs of the same list."""
    found = {name: value(student.mean(of(name, runs)), student.half_width_of_positive(of(name, runs))) for name in MEASURES}
    found["by_list"] = {name: of(name, runs) for name in MEASURES}
    for name in ("turnaround_s", "slowdown"):
        found[f"{name}_change"] = change(name, runs, base)
        found[f"{name}_against_malleable"] = change(name, runs, best)
    gained = [other - run for run, other in zip(of("turnaround_s", runs), of("turnaround_s", base))]
    most = [other - run for run, other in zip(of("turnaround_s", best), of("turnaround_s", base))]
    found["part_of_malleable"] = value(*student.ratio(gained, most)) if sum(most) > 0 else None
    return found


def slots(by_log):
    """What the shortest slot of soft gangs changes against the longest."""
    def pairs(lists, name):
        shortest, longest = ([part[f"soft gang, {slot}"] for part in lists] for slot in (plan.SLOTS[0], plan.SLOTS[-1]))
        return change(name, shortest, longest)

    return {log: {name: pairs(lists, name) for name in ("turnaround_s", "slowdown")} for log, lists in by_log.items()}


def change(name, runs, base):
    whole, half = student.ratio(of(name, runs), of(name, base))
    return value(whole - 1, half)


def value(middle, half):
    return {"mean": middle, "half_width_95": half}
