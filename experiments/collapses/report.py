"""The museum's numbers and its table."""

import math

import cases
import figures
import page
import runner

TITLES = {"plain": "plain Linux", "default": "cosched", "auto": "auto", "strict": "gang strict", "local": "local", "local-sb": "local, spin-block", "each": "each part a job", "remedy": "the thread's remedy"}
DRAWN = {"plain": 1, "default": 0, "auto": 3, "remedy": 8}
# Decision 0011: what a default may cost against the best setting, and against plain Linux where that is the best.
BEST, PLAIN = 1.05, 1.02


def collect(found):
    """For each case: the yardstick in seconds, and each arm's runs, median, and ratio to the yardstick."""
    return {name: one(next(case for case in cases.CASES if case.name == name), arms) for name, arms in found.items() if any(arms.values())}


def beside(published, kept):
    """Some cases measured again, in the place of those that are published; and what these were measured on."""
    for case in published["cases"].values():
        case.setdefault("commit", published["made"]["commit"])
        case["arms"] = {arm: case["arms"][arm] for arm in runner.ARMS if arm in case["arms"]}
    every = published["cases"] | kept
    return {case.name: every[case.name] for case in cases.CASES if case.name in every}, published["made"]


def one(case, arms):
    measured = {}
    for arm, entries in arms.items():
        done = [entry["s"] for entry in entries if entry["done"]]
        if entries:
            # A run that was ended is longer than all others.
            median = figures.median(done + [math.inf] * (len(entries) - len(done)))
            measured[arm] = {"s": done, "cut": len(entries) - len(done), "median_s": median if math.isfinite(median) else None,
                             "why": sorted({entry["why"] for entry in entries if entry["why"]}), "limit_s": max((entry["s"] for entry in entries if not entry["done"]), default=None)}
    ideal = measured.pop("ideal", None)
    settings = {arm: measured[arm]["median_s"] for arm in ("plain", *runner.POLICIES) if measured.get(arm, {}).get("median_s")}
    best = min(settings, key=settings.get, default=None)
    yardstick = case.copies * ideal["median_s"] if ideal and ideal["median_s"] else settings.get(best)
    for values in measured.values():
        values["ratio"] = values["median_s"] / yardstick if values["median_s"] and yardstick else None
        values["beyond"] = values["limit_s"] / yardstick if values["limit_s"] and yardstick else None
    return {"title": case.title, "cites": case.cites, "reported": case.reported, "remedy": case.remedy[0] if case.remedy else None, "yardstick_s": yardstick,
            "yardstick": "ideal" if ideal else "best", "ideal": ideal, "arms": measured, "best": best, "keeps": {arm: keeps(settings, best, arm) for arm in ("default", "auto") if arm in measured}}


def keeps(settings, best, arm):
    """Whether an arm is as near to the best as a default has to be."""
    return arm in settings and settings[arm] <= (PLAIN if best == "plain" else BEST) * settings[best]


def text(kept, made, absent):
    runs = sorted({len(values["s"]) + values["cut"] for case in kept.values() for values in case["arms"].values()})
    lines = [f"""# The museum of collapses: report

Made by `experiments/collapses/reproduce` on {made['date']} (commit {made['commit']}): {made['cpus']} CPUs, Linux {made['kernel']}.
Times of all copies together over the ideal (the copies one after the other, alone; where no program does the same work without a collapse, the
best arm, in italics). Medians of {', '.join(map(str, runs))} runs; lowest and highest below. A run that takes longer than the figure behind `>` is ended, counts as the longest, and is not repeated.
**Bold**: beyond what decision 0011 allows a default ({BEST} of the best setting, {PLAIN} where plain Linux is the best).
""", row(["case", "n", "ideal, s", *TITLES.values(), "best setting"]), row(["---"] * (len(TITLES) + 4))]
    lines += [table_row(case) for case in kept.values()]
    lines += ["", "[Time over the ideal](page.html)"]
    lines += ["", "## The cases", "", row(["case", "reported", "where", "the remedy", "lowest to highest, s"]), row(["---"] * 5)]
    lines += [row([case["title"], case["reported"], case["cites"], case["remedy"] or "", spans(case)]) for case in kept.values()]
    others = {case["commit"] for case in kept.values()} - {made["commit"]}
    titles = {commit: "; ".join(case["title"] for case in kept.values() if case["commit"] == commit) for commit in sorted(others)}
    lines += ["", *(f"Measured later, at commit {commit}: {those}." for commit, those in titles.items())]
    lines += ["", *(f"Left out: {name}: no {', '.join(needs)}." for name, needs in absent.items())]
    return "\n".join(lines).rstrip() + "\n"


def picture(kept):
    """For each case the time of all copies over the ideal; of a run that was ended, its limit."""
    found = {arm: [(place + 0.5, case["arms"].get(arm) or {}) for place, case in enumerate(kept.values())] for arm in DRAWN}
    marks = [
        page.series(TITLES[arm], DRAWN[arm], "marks", [
            (values["ratio"] or values["beyond"], place, None, None if values["ratio"] else "ended at its limit")
            for place, values in places if values.get("ratio") or values.get("beyond")])
        for arm, places in found.items()
    ]
    cases_axis = page.axis("case", names=list(kept))
    return page.chart("Time over the ideal", "1 is the ideal; further right is a collapse.", page.axis("time / ideal", log=True), cases_axis, *marks)


def row(cells):
    return f"| {' | '.join(map(str, cells))} |"


def table_row(case):
    yardstick = figures.text(case["yardstick_s"], 2)
    runs = max((len(values["s"]) + values["cut"] for values in case["arms"].values()), default=0)
    cells = [case["title"], runs, f"*{yardstick}*" if case["yardstick"] == "best" else yardstick]
    for arm in TITLES:
        cell = ratio(case["arms"].get(arm))
        cells.append(f"**{cell}**" if case["keeps"].get(arm) is False else cell)
    return row([*cells, TITLES.get(case["best"], "")])


def ratio(values):
    if values is None:
        return ""
    if values["ratio"] is None:
        failed = any(why.startswith("failed") for why in values["why"])
        return "failed" if failed else f"> {figures.text(values['beyond'], 0)}"
    cut = f" ({values['cut']} of {len(values['s']) + values['cut']} > {figures.text(values['beyond'], 0)})" if values["cut"] else ""
    return figures.text(values["ratio"], 2) + cut


def spans(case):
    return "; ".join(f"{TITLES[arm]} {min(values['s']):.2f} to {max(values['s']):.2f}" for arm, values in case["arms"].items() if arm in TITLES and values["s"])
