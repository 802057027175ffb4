"""The report in Markdown, and its chart, of results.json's content alone."""

import page
import plan
import results

GRAIN = "Response time without gangs over that with them, by granularity"
# J6 computes 65 % of an iteration, of which 265.48 µs are 30 % (D10 of docs/simulator.md).
COMPUTES_MS = 0.65 / 0.30 * 0.26548
HOW = {"spin": "programs that spin", "block": "programs that block"}


def text(found):
    made, conditions = found["made"], found["conditions"]
    lines = [
        "# \"Gang scheduling isn't worth it … yet\", again", "",
        "Written by `experiments/tr-745/reproduce`; README.md says what was published, what is simulated, and what that leaves out.", "",
        f"- Made on {made['date']}, commit {made['commit']}, simulator sha256 {made['program_sha256']}…; {len(conditions)} of the {len(plan.CONDITIONS)} conditions, {made['lists']} lists of jobs for each row, the same for all strategies.",
        "- *Spin*: mean response time of uncoordinated processes that wait busily (Local) over that of strict gangs (GS). *Block*: of uncoordinated processes that spin for a while and then block (SB) over that of the better of strict gangs "
        "and soft gangs that block. Above 1 gangs are better.",
        "- \"a ± b\": ratio estimator over pairs with the same list, with half of its 95 % interval (Student). *gangs*, *none*: the interval lies above or below 1 as a whole; *open*: it does not.", "",
        "## The answer", "", answer(conditions), "", f"[{GRAIN}](page.html)", "", "## Each condition", "", *table(conditions), "",
    ]
    for machine in plan.MACHINES:
        lines += [f"## Mean response times, machine of {machine}, s", "", *times(conditions, machine), ""]
    return "\n".join(lines)


def answer(conditions):
    lines = []
    for how, name in HOW.items():
        for machine in plan.MACHINES:
            lines.append(f"- **{name.capitalize()}, machine of {machine}**: {counted(conditions, machine, how)}")
    changed = [change for one in conditions for change in changes(one)]
    lines.append(f"- **What differs between the machines**: {'; '.join(changed) or 'the winner of no condition'}.")
    return "\n".join(lines)


def counted(conditions, machine, how):
    won = {who: [one for one in conditions if results.winner(one["machines"][machine][how]) == who] for who in ("gangs", "none", "open")}
    ratios = [one["machines"][machine][how]["mean"] for one in conditions]
    said = f"gangs are better in {len(won['gangs'])} of {len(conditions)} conditions, worse in {len(won['none'])}, {len(won['open'])} are open; the ratios are {min(ratios):.2f} to {max(ratios):.2f}."
    if won["none"]:
        said += f" Worse: {'; '.join(label(one) for one in won['none'])}."
    return said


def label(one):
    return f"{one['group'].lower()}, {one['condition']}"


def changes(one):
    for how, name in HOW.items():
        then, now = (results.winner(one["machines"][machine][how]) for machine in plan.MACHINES)
        if then != now and "open" not in (then, now):
            yield f"{label(one)}, {name}: {then} → {now}"


def table(conditions):
    yield "| | condition | " + " | ".join(f"{machine}: {how}" for machine in plan.MACHINES for how in HOW) + " |"
    yield "|" + "---|" * (2 + len(plan.MACHINES) * len(HOW))
    for one in conditions:
        cells = [f"{number(one['machines'][machine][how])}, {results.winner(one['machines'][machine][how])}" for machine in plan.MACHINES for how in HOW]
        yield "| " + " | ".join([one["group"], one["condition"], *cells]) + " |"


def times(conditions, machine):
    yield "| condition | " + " | ".join(plan.STRATEGIES) + " |"
    yield "|" + "---|" * (1 + len(plan.STRATEGIES))
    for one in conditions:
        yield "| " + " | ".join([label(one), *(number(one["machines"][machine]["response_s"][strategy]) for strategy in plan.STRATEGIES)]) + " |"


def number(value):
    half = value["half_width_95"]
    return f"{value['mean']:.2f}" + ("" if half is None else f" ± {half:.2f}")


def charts(found):
    lines = []
    for machine in plan.MACHINES:
        for how, name in HOW.items():
            points = [(scale * COMPUTES_MS, one["machines"][machine][how]) for scale, one in by_grain(found["conditions"])]
            lines.append(page.series(f"{machine}, {name}", len(lines), "line", [(at, ratio["mean"], ratio["half_width_95"]) for at, ratio in points]))
    caption = "Above 1 gangs are better. Bars are 95 % intervals over the lists."
    yield page.chart(GRAIN, caption, page.axis("computation between messages", "ms", log=True), page.axis("ratio", log=True), *lines)


def by_grain(conditions):
    """The conditions that differ from the base in the length of an iteration alone."""
    scales = {(group, name): jobs.get("scale", 1) for group, name, jobs, change in plan.CONDITIONS if set(jobs) <= {"scale"} and change is None}
    return [(scales[one["group"], one["condition"]], one) for one in conditions if (one["group"], one["condition"]) in scales]
