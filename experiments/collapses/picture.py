"""The museum's picture: for each case the time of all copies over the ideal, on a log scale; an arrow's bar was ended at its limit."""

import math

from drawing import Drawing

COLOURS = {"plain": "#d62728", "default": "#1f77b4", "auto": "#17a2b8", "remedy": "#7f7f7f"}
NAMES = {"plain": "plain Linux", "default": "cosched", "auto": "cosched, auto", "remedy": "what the thread recommends"}
LEFT, WIDTH, BAR, HIGHEST = 330, 430, 8, 50


def svg(kept):
    row = BAR * len(COLOURS) + 10
    drawing = Drawing(LEFT + WIDTH + 60, 60 + row * len(kept) + 20)
    for step, (arm, name) in enumerate(NAMES.items()):
        drawing.box(LEFT + 120 * step, 10, 10, 10, COLOURS[arm])
        drawing.text(LEFT + 120 * step + 14, 19, name, "start")
    for ratio in (1, 2, 5, 10, 20, 50):
        drawing.line(at(ratio), 34, at(ratio), 40 + row * len(kept), "#ddd")
        drawing.text(at(ratio), 54 + row * len(kept), f"{ratio} ×")
    for index, case in enumerate(kept.values()):
        top = 40 + row * index
        drawing.text(LEFT - 8, top + row / 2, case["title"], "end")
        for step, (arm, colour) in enumerate(COLOURS.items()):
            bar(drawing, top + BAR * step, case["arms"].get(arm), colour)
    return drawing.end()


def at(ratio):
    """The place of a ratio: half at the left, HIGHEST at the right."""
    return LEFT + WIDTH * math.log(min(max(ratio, 0.5), HIGHEST) / 0.5) / math.log(HIGHEST / 0.5)


def bar(drawing, top, values, colour):
    if values is None or not (values["ratio"] or values["beyond"]):
        return
    end = at(values["ratio"] or values["beyond"])
    drawing.box(LEFT, top, end - LEFT, BAR - 1, colour)
    if values["ratio"] is None:
        drawing.text(end + 3, top + BAR - 1, "→", "start", 10)
