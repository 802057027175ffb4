"""The three most telling rows as a picture for the README: SVG, which GitHub shows on light and on dark ground."""

import html

# (arm, what it is called, colour: two of Okabe and Ito's and a grey, which the colour-blind tell apart)
ARMS = (("plain", "plain Linux", "#d55e00"), ("default", "cosched, no options", "#0072b2"), ("remedy", "the thread's remedy", "#8a8f94"))
ROWS = 3
SHOWN = 5.0
LEFT, WIDE, BAR, GAP = 300, 330, 15, 20


def telling(kept):
    """The rows in which plain Linux loses most against cosched as it is delivered; one of a program and its variants."""
    def lost(case):
        plain, default = (case["arms"].get(arm) or {} for arm in ("plain", "default"))
        return (plain.get("ratio") or plain.get("beyond") or 0) / default["ratio"] if default.get("ratio") else 0

    best = {}
    for name, case in kept.items():
        family = name.split("-")[0]
        if family not in best or lost(case) > lost(best[family]):
            best[family] = case
    return sorted(best.values(), key=lost, reverse=True)[:ROWS]


def svg(kept):
    rows = telling(kept)
    high = GAP + len(rows) * (len(ARMS) * BAR + GAP) + 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 {high}" width="860" height="{high}" font-family="system-ui, sans-serif" font-size="12.5">',
        "<title>Time of published collapses over that of the same work alone</title>",
    ]
    top = GAP
    for case in rows:
        lines.append(text(LEFT - 12, top + 14, case["title"], "end", weight="600"))
        lines.append(text(LEFT - 12, top + 31, case["cites"], "end"))
        for arm, name, colour in ARMS:
            lines += bar(top, case["arms"].get(arm), name, colour)
            top += BAR
        top += GAP
    lines.append(f'<line x1="{at(1)}" y1="{GAP / 2}" x2="{at(1)}" y2="{top - GAP / 2}" stroke="#8a8f94" stroke-dasharray="3 3"/>')
    lines.append(text(at(1), top + 6, "1: the copies one after the other, alone", "middle"))
    return "\n".join([*lines, "</svg>"]) + "\n"


def at(ratio):
    return LEFT + WIDE * min(ratio, SHOWN) / SHOWN


def bar(top, values, name, colour):
    if not values or not (values["ratio"] or values["beyond"]):
        return
    ratio = values["ratio"] or values["beyond"]
    shown = f"{ratio:.2f} ×" if ratio < 10 else f"{ratio:.0f} ×"
    shown = shown if values["ratio"] else f"more than {ratio:.0f} × (ended)"
    yield f'<rect x="{LEFT}" y="{top}" width="{at(ratio) - LEFT:.1f}" height="{BAR - 3}" fill="{colour}"/>'
    if ratio > SHOWN:
        # A bar that is longer than the picture is cut open.
        yield f'<path d="M{at(SHOWN) - 14} {top - 1} l6 {BAR - 1} l4 0 l-6 -{BAR - 1} z" fill="#ffffff"/>'
    yield text(at(max(ratio, 1)) + 7, top + 10, f"{shown}  {name}", "start")


def text(x, y, words, anchor, weight="400"):
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" fill="#768390">{html.escape(words)}</text>'
