"""All numbers of the experiment as one dictionary: what results.json holds and the report and the chart are made of."""

import student
import plan


def collect(by_log):
    """`by_log`: log -> [policy -> measures] of its lists."""
    return {name: {policy: row([part[policy] for part in lists], [part[plan.BASE] for part in lists], [part[plan.BEST] for part in lists]) for policy in plan.POLICIES} for name, lists in by_log.items()}


def row(runs, base, best):
    """A policy's means over the lists, and what it gains over EASY, in pairs of the same list."""
    def of(name, lists):
        return [run[name] for run in lists]

    found = {name: value(student.mean(of(name, runs)), student.half_width(of(name, runs))) for name in ("turnaround_s", "wait_s", "slowdown", "slowdown_p95", "jain", "later", "utilisation")}
    for name in ("turnaround_s", "slowdown"):
        whole, half = student.ratio(of(name, runs), of(name, base))
        found[f"{name}_change"] = value(whole - 1, half)
    gained = [other - run for run, other in zip(of("turnaround_s", runs), of("turnaround_s", base))]
    most = [other - run for run, other in zip(of("turnaround_s", best), of("turnaround_s", base))]
    found["part_of_malleable"] = value(*student.ratio(gained, most)) if sum(most) > 0 else None
    return found


def value(middle, half):
    return {"mean": middle, "half_width_95": half}
