"""The figures as SVG, drawn from results.json's content; standard library only."""

import math

import plan
from drawing import Drawing

COLOURS = {
    "Local": "#8c564b", "GS": "#d62728", "SB": "#1f77b4", "DCS": "#ff7f0e", "DCS-SB": "#17a2b8", "PB": "#2ca02c", "PB-SB": "#9467bd",
    "SY": "#7f7f7f", "PB-SY": "#6b8e00", "DCS-SY": "#e377c2",
}
WAIT, EXECUTION = "#f0b27a", "#2e6da4"
TITLES = {"WL4": "(a) WL4, computing", "WL5": "(b) WL5, communication", "WL2": "(c) WL2, I/O", "WL3": "(d) WL3, balanced"}


def all_figures(found):
    """File name -> SVG."""
    drawn = {}
    for grain, figure in found["figure3"].items():
        drawn[f"figure3-grain{grain}.svg"] = figure3(figure["strategies"], grain)
        load = found["best_load"][grain]
        exhibits = found["exhibits"][f"{grain}/{load}"]
        drawn[f"figure4-grain{grain}.svg"] = figure4(exhibits["figure4"], grain, load)
        drawn[f"figure5-grain{grain}.svg"] = figure5(exhibits["figure5"], grain, load)
    return drawn


def figure3(rows, grain):
    """Response against the useful utilisation that is offered, log scale."""
    drawing = Drawing(720, 430)
    left, right, top, bottom = 60, 590, 34, 380
    points = [point for row in rows.values() for point in row["curve"] if point["bound"] == "exact"]
    if not points:
        return drawing.end()
    # A collapse would press the rest flat.
    highest = 25 * min(point["response"] for point in points)
    points = [point for point in points if point["response"] <= highest]
    curves = {strategy: [point for point in row["curve"] if point in points] for strategy, row in rows.items()}
    low, high = math.log10(min(p["response"] for p in points) * 0.9), math.log10(max(p["response"] for p in points) * 1.1)
    farthest = max(1.0, max(p["offered"] for p in points))

    def at(point):
        x = left + (right - left) * point["offered"] / farthest
        return x, bottom - (bottom - top) * (math.log10(point["response"]) - low) / (high - low)

    drawing.text((left + right) / 2, 18, f"Figure 3: response against utilisation, WL7, MPL 5, s = 20 %, grain {grain}", size=13)
    for value in (1, 2, 3, 5, 7, 10, 20, 30, 50, 70, 100):
        if low <= math.log10(value) <= high:
            y = at({"offered": 0, "response": value})[1]
            drawing.line(left, y, right, y, "#ddd")
            drawing.text(left - 6, y + 4, f"{value} s", "end")
    for step in range(0, 11, 2):
        if step / 10 <= farthest:
            x = left + (right - left) * step / 10 / farthest
            drawing.line(x, bottom, x, bottom + 4)
            drawing.text(x, bottom + 17, f"{step / 10:g}")
    drawing.line(left, bottom, right, bottom)
    drawing.line(left, top, left, bottom)
    drawing.text((left + right) / 2, bottom + 36, "useful utilisation offered (computation + ideal communication)")
    for index, strategy in enumerate(plan.STRATEGIES):
        drawing.curve([at(point) for point in curves[strategy]], COLOURS[strategy])
        drawing.box(right + 20, top + 20 * index, 12, 12, COLOURS[strategy])
        drawing.text(right + 38, top + 20 * index + 10, strategy, "start")
    return drawing.end()


def figure4(workloads, grain, load):
    """Four panels of stacked bars, wait and execution."""
    drawing = Drawing(860, 620)
    drawing.text(430, 18, f"Figure 4: response by workload, MPL 5, s = 20 %, grain {grain}, load {load:g}", size=13)
    legend(drawing, 300, 30)
    for index, workload in enumerate(plan.WORKLOADS):
        left, top = 50 + 420 * (index % 2), 70 + 280 * (index // 2)
        bars = [(strategy, [workloads[workload][strategy]]) for strategy in plan.STRATEGIES]
        panel(drawing, left, top, 370, 190, TITLES[workload], bars)
    return drawing.end()


def figure5(rows, grain, load):
    """Pairs of bars: s = 20 % and 150 %."""
    drawing = Drawing(640, 360)
    drawing.text(320, 18, f"Figure 5: response, WL4, s = 20 % (left) and 150 % (right), grain {grain}, load {load:g}", size=13)
    legend(drawing, 200, 30)
    panel(drawing, 50, 70, 560, 220, "", [(strategy, [rows[strategy]["0.2"], rows[strategy]["1.5"]]) for strategy in plan.STRATEGIES])
    return drawing.end()


def legend(drawing, x, y):
    for step, (name, colour) in enumerate((("wait", WAIT), ("execution", EXECUTION))):
        drawing.box(x + 110 * step, y, 12, 12, colour)
        drawing.text(x + 110 * step + 18, y + 10, name, "start")
    drawing.text(x + 230, y + 10, "^ cut at the top", "start")


def panel(drawing, left, top, width, height, title, groups):
    """Bars of response = wait + execution; the scale ends at 2.5 times the median bar, longer ones are cut, as in the paper."""
    responses = sorted(bar["response"]["mean"] for _, bars in groups for bar in bars if bar["response"])
    if not responses:
        return
    scale = min(responses[-1], 2.5 * responses[len(responses) // 2])
    bottom = top + height
    drawing.text(left + width / 2, top - 8, title, size=12)
    for step in range(5):
        y = bottom - height * step / 4
        drawing.line(left, y, left + width, y, "#ddd")
        drawing.text(left - 5, y + 4, f"{scale * step / 4:.3g}", "end", size=10)
    drawing.text(left - 5, top - 10, "s", "end", size=10)
    slot = width / len(groups)
    for place, (strategy, bars) in enumerate(groups):
        thickness = slot * 0.72 / len(bars)
        for step, bar in enumerate(bars):
            x = left + slot * place + slot * 0.14 + thickness * step
            stacked_bar(drawing, x, bottom, thickness * 0.94, height, scale, bar)
        drawing.text(left + slot * (place + 0.6), bottom + 14, strategy, "end", size=10, turn=-35)
    drawing.line(left, bottom, left + width, bottom)


def stacked_bar(drawing, x, bottom, thickness, height, scale, bar):
    if not bar["response"]:
        return
    wait, response = bar["wait"]["mean"], bar["response"]["mean"]
    wait_height = height * min(wait, scale) / scale
    whole = height * min(response, scale) / scale
    drawing.box(x, bottom - wait_height, thickness, wait_height, WAIT)
    drawing.box(x, bottom - whole, thickness, whole - wait_height, EXECUTION)
    if response > scale * 1.0001:
        drawing.text(x + thickness / 2, bottom - height - 1, "^", size=10)
    elif bar["response"]["half_width_95"]:
        middle, half = x + thickness / 2, height * bar["response"]["half_width_95"] / scale
        drawing.line(middle, max(bottom - height, bottom - whole - half), middle, min(bottom, bottom - whole + half), "#111")
