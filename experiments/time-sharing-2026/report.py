"""The report in Markdown, and its charts, of results.json's content alone."""

import page
import plan

CHANGE = "Change of the mean turnaround against EASY, by slot"


def text(found):
    made, size = found["made"], found["size"]
    lines = [
        "# Time-sharing of rigid jobs beside malleable ones", "",
        "Written by `experiments/time-sharing-2026/reproduce`; README.md says what is simulated and what that leaves out.", "",
        f"- Made on {made['date']}, commit {made['commit']}, simulator sha256 {made['program_sha256']}…",
        f"- A list is {100 * size['part'] / size['lists']:.0f} % of a log's time; simulated were, of {size['lists']} each: {counted(made['lists'])}. Each is simulated from an empty machine, and the jobs submitted in its first and last tenth are not measured.",
        "- \"a ± b\": over the lists, with half of the 95 % confidence interval (of means the widest of three, decision 0059; of changes and parts by the ratio estimator of pairs with the same list).",
        f"- Soft gangs: at most {plan.ROWS} jobs on a processor unless said otherwise, {plan.SWITCH.replace('us', ' µs')} for a switch. Malleable jobs: half to twice their own size, 1 s for a change, all of them, without a serial part, unless said otherwise.", "",
        "## The answer", "", answer(found), "", f"[{CHANGE}](page.html)", "",
    ]
    for name, rows in found["logs"].items():
        lines += [f"## {name}", "", *table(rows), ""]
    return "\n".join(lines)


def counted(lists):
    return ", ".join(f"{name} {count}" for name, count in lists.items())


def answer(found):
    """What the table's numbers say of each log."""
    lines = []
    for name, rows in found["logs"].items():
        best = rows[plan.BEST]
        parts = {slot: rows[f"soft gang, {slot}"] for slot in plan.SLOTS}

        def listed(column):
            return ", ".join(f"{percent(row[column])} at {slot}" for slot, row in parts.items())

        said = f"- **{name}**, mean turnaround against EASY: malleable jobs {percent(best['turnaround_s_change'])}, rigid ones in soft gangs {listed('turnaround_s_change')}."
        if best["part_of_malleable"] and clear(best["turnaround_s_change"]):
            said += f" As a part of the reduction by malleability: {listed('part_of_malleable')} (below 0: they are longer than under EASY)."
        else:
            said += " The change by malleability is not told from 0, so no part of it is given."
        said += f" Mean bounded slowdown: malleable jobs {percent(best['slowdown_change'])}, soft gangs {listed('slowdown_change')}; soft gangs against malleable jobs {listed('slowdown_against_malleable')}."
        pair = found["slots"][name]
        said += f" Slots of {plan.SLOTS[0]} against slots of {plan.SLOTS[-1]}: turnaround {percent(pair['turnaround_s'])}, bounded slowdown {percent(pair['slowdown'])}."
        lines.append(said)
    return "\n".join(lines)


def clear(change):
    """Whether the interval is below 0 as a whole."""
    return change["half_width_95"] is not None and change["mean"] + change["half_width_95"] < 0


def table(rows):
    yield "| policy | turnaround, h | change | part of malleable's | bounded slowdown | change | 95th percentile | Jain's index | 10 % later than EASY | utilisation |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    known = clear(rows[plan.BEST]["turnaround_s_change"])
    for policy, row in rows.items():
        part = percent(row["part_of_malleable"]) if known and policy != plan.BASE else ""
        cells = [
            policy, number(row["turnaround_s"], 1 / 3600, 2), "" if policy == plan.BASE else percent(row["turnaround_s_change"]), part,
            number(row["slowdown"], 1, 1), "" if policy == plan.BASE else percent(row["slowdown_change"]), number(row["slowdown_p95"], 1, 1),
            number(row["jain"], 1, 2), percent(row["later"]), percent(row["utilisation"]),
        ]
        yield "| " + " | ".join(cells) + " |"


def number(value, scale, digits):
    half = value["half_width_95"]
    return f"{value['mean'] * scale:.{digits}f}" + ("" if half is None else f" ± {half * scale:.{digits}f}")


def percent(value):
    return number(value, 100, 0) + " %"


def charts(found):
    seconds = {"10ms": 0.01, "100ms": 0.1, "1s": 1, "10s": 10, "60s": 60}
    lines = []
    for style, (name, rows) in enumerate(found["logs"].items()):
        def point(policy, at):
            change = rows[policy]["turnaround_s_change"]
            return at, 100 * change["mean"], change["half_width_95"] and 100 * change["half_width_95"]
        lines.append(page.series(f"{name}, soft gangs", 2 * style, "line", [point(f"soft gang, {slot}", at) for slot, at in seconds.items()]))
        lines.append(page.series(f"{name}, malleable", 2 * style + 1, "line", [point(plan.BEST, at) for at in (min(seconds.values()), max(seconds.values()))]))
    caption = f"At most {plan.ROWS} rows; bars are 95 % intervals over the lists. Malleable jobs have no slots: their line is flat."
    yield page.chart(CHANGE, caption, page.axis("slot", "s", log=True), page.axis("change of the mean turnaround", "%"), *lines)
