"""All numbers of the experiment as one dictionary: what results.json holds and the report and the charts are made of."""

import plan
import student


def collect(measured, checks):
    """`measured`: (program, way, slot) -> efficiencies, one for each draw, None where a way has no time for its orders. `checks`: setting -> pairs of times."""
    cells, ratios, scan = [], [], []
    for (program, way, slot), found in measured.items():
        if way in plan.SCAN or (way == plan.EXISTING and slot == plan.PUBLISHED_SLOT):
            share = plan.way(way)[1]
            scan.append({**name(program, slot), "each_s": share * slot, "all_s": share * slot * plan.NODES, "ratio": value(*student.ratio(measured[program, plan.BROADCAST, slot], found))})
        if way in plan.SCAN:
            continue
        cells.append({**name(program, slot), "way": way, "efficiency": found and mean(found)})
        for base in (plan.EXISTING, plan.BROADCAST):
            bases = measured.get((program, base, slot))
            if found and bases and way != base:
                ratios.append({**name(program, slot), "way": way, "over": base, "ratio": value(*student.ratio(found, bases))})
    return {"cells": cells, "ratios": ratios, "scan": sorted(scan, key=lambda one: one["each_s"]), "checks": [check(setting, pairs) for setting, pairs in checks.items()]}


def name(program, slot):
    return {"program": program[0], "computes_s": program[1], "slot_s": slot}


def mean(found):
    return value(student.mean(found), student.half_width(found))


def check(setting, pairs):
    slot, work, count, way = setting
    ratio = student.ratio([model for model, _ in pairs], [simulator for _, simulator in pairs])
    return {"slot_s": slot, "computes_s": work, "iterations": count, "way": way, "model_over_simulator": value(*ratio)}


def value(middle, half):
    return {"mean": middle, "half_width_95": half}


def reaches(ratio, wanted):
    """Whether the ratio is at least so much by its interval: yes, no, or open."""
    half = ratio["half_width_95"]
    if half is None or abs(ratio["mean"] - wanted) <= half:
        return "open"
    return "yes" if ratio["mean"] > wanted else "no"
