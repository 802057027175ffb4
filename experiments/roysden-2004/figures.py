"""Tables 3 and 4 and the settings beyond them as charts, of results.json's content and the paper's numbers."""

import page
import plan

TITLES = {
    "default": "default", "nice-down-io": "nice down I/O (raised)", "nice-up-io": "nice up I/O (lowered)",
    "adjust-once": "dynamic up", "adjust-up-down": "dynamic up, down", "short-slices": "short slices for I/O",
    "short-and-long-slices": "and long ones for what computes", "batch": "SCHED_BATCH for what does not limit",
    "idle": "SCHED_IDLE for these", "affinity": "a CPU for each stage, in turn", "one-sorter": "one sorter less", "replicate": "one sorter more",
    "workers": "run to completion", "auto": "autotune", "default again": "default again (noise)",
}


def all_figures(tables, paper):
    for version in plan.VERSIONS:
        for condition in plan.CONDITIONS:
            if condition in tables.get(version, {}):
                yield ratios(version, condition, tables[version][condition], paper[version] if condition == "alone" else {})


def title(version, condition):
    return f"{version}-bound, {plan.CONDITIONS[condition]}: clock time against the default's"


def ratios(version, condition, arms, paper):
    """A place for each setting; the ends of the interval are points of their own, for it is not symmetric."""
    shown = [arm for arm in (*plan.ARMS, "default again") if arm in arms and arm != "default"]
    places = {arm: place + 0.5 for place, arm in enumerate(shown)}
    parts = {
        "measured, median": [(places[arm], arms[arm]["ratio"]) for arm in shown],
        "95 % interval, low": [(places[arm], arms[arm]["low"]) for arm in shown],
        "95 % interval, high": [(places[arm], arms[arm]["high"]) for arm in shown],
    }
    series = [page.series(name, style, "marks", points) for style, (name, points) in enumerate(parts.items())]
    if paper:
        said = [(places[arm], paper[arm]["clock_s"] / paper["default"]["clock_s"]) for arm in shown if arm in paper]
        series.append(page.series("published", 5, "marks", said))
    series.append(page.series("the default", 0, "rule", [(0, 1), (len(shown), 1)]))
    caption = "Below 1 is faster. Medians of ratios within a repetition, with their bootstrap intervals" + ("; published: of the means." if paper else ".")
    return page.chart(title(version, condition), caption, page.axis("setting", names=[TITLES[arm] for arm in shown]), page.axis("clock time / default's"), *series)
