"""The figures as charts, of results.json's content."""

import page
import plan

STYLES = {strategy: style for style, strategy in enumerate(plan.STRATEGIES)}
CHANGE = "change of the mean response with respect to MPL 2"
RELATIVE = "mean response relative to the base costs"
TITLES = {"WL4": "(a) WL4, computing", "WL5": "(b) WL5, communication", "WL2": "(c) WL2, I/O", "WL3": "(d) WL3, balanced"}


def all_figures(found):
    for reading, figure in found["figure3"].items():
        load = found["best_load"][reading]
        exhibits = found["exhibits"][f"{reading}/{load}"]
        yield figure3(figure["strategies"], reading)
        for workload, strategies in exhibits["figure4"].items():
            bars = [(strategy, strategies[strategy]) for strategy in plan.STRATEGIES]
            yield responses(title4(workload, reading), f"MPL 5, s = 20 %, load {load:g}.", bars)
        bars = [(f"{strategy}, {100 * float(skew):g} %", exhibits["figure5"][strategy][skew]) for strategy in plan.STRATEGIES for skew in ("0.2", "1.5")]
        yield responses(title5(reading), f"WL4, s = 20 % and 150 %, load {load:g}.", bars)
        yield beside(title_table4(reading), CHANGE, exhibits["table4"], lambda column: f"{column['workload']}, MPL {column['mpl']}")
        yield beside(title_table5(reading), RELATIVE, exhibits["table5"], lambda column: column)


def title3(reading):
    return f"Figure 3, {reading}: response against utilisation"


def title4(workload, reading):
    return f"Figure 4 {TITLES[workload]}, {reading}: response"


def title5(reading):
    return f"Figure 5, {reading}: response by skewness"


def title_table4(reading):
    return f"Table 4, {reading}: simulated against published"


def title_table5(reading):
    return f"Table 5, {reading}: simulated against published"


def figure3(rows, reading):
    """Response against the useful utilisation that is offered. A collapse would press the rest flat, so it is left out."""
    curves = {strategy: [point for point in row["curve"] if point["bound"] == "exact"] for strategy, row in rows.items()}
    highest = 25 * min((point["response"] for curve in curves.values() for point in curve), default=0)
    lines = [
        page.series(strategy, STYLES[strategy], "line", [(point["offered"], point["response"], point["half_width_95"]) for point in curve if point["response"] <= highest])
        for strategy, curve in curves.items()
    ]
    lowest = min((point["response"] for curve in curves.values() for point in curve), default=0)
    published = {}
    for strategy in plan.STRATEGIES:
        published.setdefault(rows[strategy]["published"], []).append(strategy)
    # The curves are lost; what the text says of them is where they end. Strategies for which it says nothing have no line.
    lines += [
        page.series(f"{', '.join(strategies)}, published limit", STYLES[strategies[0]] + 20, "line", [(limit, lowest), (limit, highest)])
        for limit, strategies in published.items() if limit is not None
    ]
    offered = page.axis("useful utilisation offered (computation + ideal communication)")
    return page.chart(title3(reading), "WL7, MPL 5, s = 20 %.", offered, page.axis("mean response", "s", log=True), *lines)


def responses(title, caption, bars):
    """Bars of response = wait + execution."""
    bars = [(name, bar) for name, bar in bars if bar["response"]]
    waits = [(place + 0.5, bar["wait"]["mean"]) for place, (_, bar) in enumerate(bars)]
    executions = [(place + 0.5, bar["response"]["mean"] - bar["wait"]["mean"], bar["response"]["half_width_95"]) for place, (_, bar) in enumerate(bars)]
    strategies = page.axis("strategy", names=[name for name, _ in bars])
    return page.chart(title, caption, strategies, page.axis("mean response", "s", cut=True), page.series("wait", 4, "bars", waits), page.series("execution", 0, "bars", executions))


def beside(title, what, columns, name):
    """A mark for each strategy and column of a table; on the line both are equal. Entries beyond 1 in size, of systems that are saturated, are in the table alone."""
    def shown(entries):
        of = [(strategy, entries[strategy]) for strategy in plan.STRATEGIES if strategy in entries]
        return [(entry["published"], entry["simulated"]["mean"], entry["simulated"]["half_width_95"], strategy) for strategy, entry in of
                if entry["published"] is not None and entry["simulated"] and max(abs(entry["published"]), abs(entry["simulated"]["mean"])) <= 1]

    marks = [page.series(name(column["column"]), style, "marks", shown(column["entries"])) for style, column in enumerate(columns)]
    values = [value for series in marks for point in series["points"] for value in (point["x"], point["y"])]
    equal = page.series("as published", 8, "rule", [(end, end) for end in (min(values), max(values))])
    return page.chart(title, "Each mark is a strategy, named under the cursor.", page.axis(f"{what}, published"), page.axis(f"{what}, simulated"), *marks, equal)
