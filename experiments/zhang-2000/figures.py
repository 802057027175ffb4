"""The figures as charts, of results.json's content."""

import page
import plan

STYLES = {strategy: style for style, strategy in enumerate(plan.STRATEGIES)}
TITLES = {"WL4": "(a) WL4, computing", "WL5": "(b) WL5, communication", "WL2": "(c) WL2, I/O", "WL3": "(d) WL3, balanced"}


def all_figures(found):
    for grain, figure in found["figure3"].items():
        load = found["best_load"][grain]
        exhibits = found["exhibits"][f"{grain}/{load}"]
        yield figure3(figure["strategies"], grain)
        for workload, strategies in exhibits["figure4"].items():
            bars = [(strategy, strategies[strategy]) for strategy in plan.STRATEGIES]
            yield responses(title4(workload, grain), f"MPL 5, s = 20 %, load {load:g}.", bars)
        bars = [(f"{strategy}, {100 * float(skew):g} %", exhibits["figure5"][strategy][skew]) for strategy in plan.STRATEGIES for skew in ("0.2", "1.5")]
        yield responses(title5(grain), f"WL4, s = 20 % and 150 %, load {load:g}.", bars)


def title3(grain):
    return f"Figure 3, grain {grain}: response against utilisation"


def title4(workload, grain):
    return f"Figure 4 {TITLES[workload]}, grain {grain}: response"


def title5(grain):
    return f"Figure 5, grain {grain}: response by skewness"


def figure3(rows, grain):
    """Response against the useful utilisation that is offered. A collapse would press the rest flat, so it is left out."""
    curves = {strategy: [point for point in row["curve"] if point["bound"] == "exact"] for strategy, row in rows.items()}
    highest = 25 * min((point["response"] for curve in curves.values() for point in curve), default=0)
    lines = [
        page.series(strategy, STYLES[strategy], "line", [(point["offered"], point["response"], point["half_width_95"]) for point in curve if point["response"] <= highest])
        for strategy, curve in curves.items()
    ]
    offered = page.axis("useful utilisation offered (computation + ideal communication)")
    return page.chart(title3(grain), "WL7, MPL 5, s = 20 %.", offered, page.axis("mean response", "s", log=True), *lines)


def responses(title, caption, bars):
    """Bars of response = wait + execution."""
    bars = [(name, bar) for name, bar in bars if bar["response"]]
    waits = [(place + 0.5, bar["wait"]["mean"]) for place, (_, bar) in enumerate(bars)]
    executions = [(place + 0.5, bar["response"]["mean"] - bar["wait"]["mean"], bar["response"]["half_width_95"]) for place, (_, bar) in enumerate(bars)]
    strategies = page.axis("strategy", names=[name for name, _ in bars])
    return page.chart(title, caption, strategies, page.axis("mean response", "s", cut=True), page.series("wait", 4, "bars", waits), page.series("execution", 0, "bars", executions))
