"""The report in Markdown, and its charts, of results.json's content alone."""

import page
import plan
import results

CHART = "Efficiency by slot, all tasks wait for all every {}"
WAITS = {"barrier": "all tasks wait for all", "ring": "a task waits for its two neighbours"}


def text(found):
    made = found["made"]
    lines = [
        "# Two programs on 128 nodes, slots of 10 to 500 ms: who orders the switch", "",
        "Written by `experiments/fujitsu-2023/reproduce`; README.md says what was published, what is simulated, and what that leaves out.", "",
        f"- Made on {made['date']}, commit {made['commit']}, simulator sha256 {made['program_sha256']}…; {made['draws']} draws of delays, clocks and work for each value.",
        "- *Efficiency*: what a program does in its turns, as a part of what it does alone in the same time. \"a ± b\": mean over the draws, with half of its 95 % interval (Student; ratios by the ratio estimator of pairs).",
        f"- A switch takes {micros(plan.SWITCH)}, a message {micros(plan.MESSAGE)}, and a node acts {micros(plan.WAKE)} late in the mean (exponential), however the order comes. Work varies by {plan.SKEW:.0%}.",
        "- \"–\": the orders of a slot take longer than the slot.", "",
        "## The answer", "", answer(found), "", *(f"[{title}](page.html)\n" for title in titles(found)),
    ]
    for program in programs(found):
        lines += [f"## Efficiency: {WAITS[program[0]]}, every {time(program[1])}", "", *efficiencies(found, program), ""]
    lines += [f"## Over \"{plan.EXISTING}\"", "", *ratios(found, plan.EXISTING), "", f"## Over \"{plan.BROADCAST}\"", "", *ratios(found, plan.BROADCAST), ""]
    if found["scan"]:
        lines += [f"## How slow orders one by one must be: \"{plan.BROADCAST}\" over them, slots of {time(plan.PUBLISHED_SLOT)}", "", *scanned(found), ""]
    if found["checks"]:
        lines += ["## The model beside the simulator", "", *checks(found), ""]
    return "\n".join(lines)


def answer(found):
    lines = []
    for program in programs(found):
        met = {one["way"]: one["ratio"] for one in found["ratios"] if one["over"] == plan.EXISTING and one["slot_s"] == plan.PUBLISHED_SLOT and of(one) == program}
        told = ", ".join(f"\"{way}\" {number(met[way])} ({results.reaches(met[way], plan.PUBLISHED_RATIO)})" for way in (plan.BROADCAST, plan.CLOCKS))
        lines.append(f"- **{WAITS[program[0]].capitalize()}, every {time(program[1])}**: at {time(plan.PUBLISHED_SLOT)}, over \"{plan.EXISTING}\" ({time(plan.step(plan.EXISTING, plan.PUBLISHED_SLOT))} a node): {told}; in brackets whether that is at least {plan.PUBLISHED_RATIO}.")
    for slot in slots(found):
        over = [one for one in found["ratios"] if one["over"] == plan.BROADCAST and one["way"] == plan.CLOCKS and one["slot_s"] == slot]
        low, high = (pick(over, key=lambda one: one["ratio"]["mean"]) for pick in (min, max))
        lines.append(f"- **\"{plan.CLOCKS}\" over \"{plan.BROADCAST}\", slots of {time(slot)}**: {number(low['ratio'])} to {number(high['ratio'])}, by program.")
    return "\n".join(lines)


def programs(found):
    return list(dict.fromkeys(of(one) for one in found["cells"]))


def of(one):
    return one["program"], one["computes_s"]


def slots(found):
    return list(dict.fromkeys(one["slot_s"] for one in found["cells"]))


def efficiencies(found, program):
    yield "| way | " + " | ".join(time(slot) for slot in slots(found)) + " |"
    yield "|" + "---|" * (1 + len(slots(found)))
    by_place = {(one["way"], one["slot_s"]): one["efficiency"] for one in found["cells"] if of(one) == program}
    for way in plan.WAYS:
        yield "| " + " | ".join([way, *(number(by_place[way, slot], 3) for slot in slots(found))]) + " |"


def ratios(found, base):
    yield "| program | way | " + " | ".join(time(slot) for slot in slots(found)) + " |"
    yield "|" + "---|" * (2 + len(slots(found)))
    by_place = {(of(one), one["way"], one["slot_s"]): one["ratio"] for one in found["ratios"] if one["over"] == base}
    for program in programs(found):
        for way in plan.WAYS:
            if way != base:
                yield "| " + " | ".join([f"{program[0]}, {time(program[1])}", way, *(number(by_place.get((program, way, slot))) for slot in slots(found))]) + " |"


def scanned(found):
    yield "| an order | all orders | " + " | ".join(f"{how}, {time(computes)}" for how, computes in programs(found)) + " |"
    yield "|" + "---|" * (2 + len(programs(found)))
    for each, whole in dict.fromkeys((one["each_s"], one["all_s"]) for one in found["scan"]):
        ratios = {of(one): one["ratio"] for one in found["scan"] if one["each_s"] == each}
        told = [f"{number(ratios[program])}, {results.reaches(ratios[program], plan.PUBLISHED_RATIO)}" for program in programs(found)]
        yield "| " + " | ".join([time(each), time(whole), *told]) + " |"


def checks(found):
    yield "| slot | computes | iterations | way | model's time over the simulator's |"
    yield "|---|---|---|---|---|"
    for one in found["checks"]:
        way = f"{one['way']}, in the simulator as a longer switch" if one["way"] else "all nodes at once"
        yield f"| {time(one['slot_s'])} | {time(one['computes_s'])} | {one['iterations']} | {way} | {number(one['model_over_simulator'], 3)} |"


def number(value, digits=2):
    if value is None:
        return "–"
    half = value["half_width_95"]
    return f"{value['mean']:.{digits}f}" + ("" if half is None else f" ± {half:.{digits}f}")


def time(seconds):
    return f"{seconds * 1e3:g} ms"


def micros(seconds):
    return f"{seconds * 1e6:g} µs"


def titles(found):
    return [CHART.format(time(computes)) for how, computes in programs(found) if how == "barrier"]


def charts(found):
    barriers = [program for program in programs(found) if program[0] == "barrier"]
    for program, title in zip(barriers, titles(found)):
        lines = []
        for style, way in enumerate(plan.SHOWN):
            known = [one for one in found["cells"] if of(one) == program and one["way"] == way and one["efficiency"]]
            lines.append(page.series(way, style, "line", [(one["slot_s"], one["efficiency"]["mean"], one["efficiency"]["half_width_95"]) for one in known]))
        yield page.chart(title, "Bars are 95 % intervals over the draws.", page.axis("slot", "s", log=True), page.axis("efficiency"), *lines)
