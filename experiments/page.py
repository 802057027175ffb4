#!/usr/bin/env python3
"""A report in Markdown, and the same with its charts in one file, in the frame of cosched's own reports (decision 0074).

Run as a program it puts the published pages into the frame as it is now (web/dist/report.html); `npm run build` does so."""

import itertools
import json
import re
import shutil

import shared

PLACE = '{"report":0}'
NUMBER = re.compile(r"[-+≥>?±–]? ?\d")


def axis(title, unit="", **more):
    """`log=True`, `cut=True` (where bars are far higher than most), or `names=[…]` of its places 0 to 1, 1 to 2, …"""
    return {"title": title, "unit": unit, **more}


def series(name, style, shape, points):
    """Points are (x, y), (x, y, half of the 95 % interval) or (x, y, half, note)."""
    names = ("x", "y", "ci95", "note")
    return {"name": name, "style": style, "shape": shape, "points": [{key: value for key, value in zip(names, point) if value is not None} for point in points]}


def chart(title, caption, x, y, *series):
    return {"title": title, "caption": caption, "x": x, "y": y, "series": list(series)}


def finish(options_publish, folder, here, results, markdown, charts=()):
    """Writes results.json, report.md and page.html to a folder; copies them beside the script if they are to be published."""
    files = {"results.json": json.dumps(shared.rounded(results), sort_keys=True) + "\n", "report.md": markdown, "page.html": html(markdown, charts)}
    for name, text in files.items():
        (folder / name).write_text(text)
        if options_publish:
            shutil.copy(folder / name, here / name)
    print(folder / "report.md")


def html(markdown, charts):
    title, *rest = blocks(markdown)
    named = {chart["title"]: chart for chart in charts}
    # A chart stands where the text is a link to it.
    shown = [{"chart": named[block["text"]]} if block.get("text") in named else block for block in rest]
    data = json.dumps({"title": title["heading"], "below": "", "blocks": shown}, ensure_ascii=False).replace("<", "\\u003c")
    return framed(data)


def framed(data):
    return (shared.ROOT / "web/dist/report.html").read_text().replace(PLACE, data, 1)


def data_of(text):
    """What a page shows, as it stands in it."""
    return text.split('id="report">')[1].split("</script>")[0]


def blocks(markdown):
    """Headings, tables and texts; a text is a paragraph or an item of a list."""
    for what, lines in itertools.groupby(markdown.splitlines(), kind):
        if what == "heading":
            yield from ({"heading": plain(line.lstrip("#"))} for line in lines)
        elif what == "table":
            yield {"table": table([[plain(cell) for cell in line.strip("|").split("|")] for line in lines])}
        elif what == "text":
            yield from ({"text": plain(text)} for text in re.split(r"\n(?=- )", "\n".join(lines)))


def kind(line):
    return "heading" if line.startswith("#") else "table" if line.startswith("|") else "text" if line.strip() else ""


def table(rows):
    first = [next((row[column] for row in rows[2:] if row[column]), "") for column in range(len(rows[0]))]
    return {"titles": [[title, not NUMBER.match(cell)] for title, cell in zip(rows[0], first)], "rows": rows[2:]}


def plain(text):
    """Without Markdown's marks."""
    return " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)|\*\*|`", lambda found: found[1] or "", text.removeprefix("- ")).split())


if __name__ == "__main__":
    for published in sorted((shared.ROOT / "experiments").glob("*/page.html")):
        published.write_text(framed(data_of(published.read_text())))
