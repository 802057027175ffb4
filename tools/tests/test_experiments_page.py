"""experiments/page.py: a Markdown report and its charts as data in the frame of all reports."""

import importlib
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "experiments"))
try:
    page = importlib.import_module("page")
finally:
    sys.path.remove(str(ROOT / "experiments"))

MARKDOWN = """# A <paper>, again

Made by `reproduce` of
[this](README.md).

- one
  and a half
- **two**

## Times

[Times](page.html)

| strategy | s, 1 / 2 |
|---|---|
| GS | 1.5 |
| </script> | – |
"""
CHART = page.chart("Times", "Of all.", page.axis("load"), page.axis("time", "s", log=True), page.series("GS", 0, "line", [(1, 2), (2, 3, 0.5), (3, 4, None, "cut")]))


def data(html):
    return json.loads(html.split('id="report">')[1].split("</script>")[0])


class Page(unittest.TestCase):
    def test_markdown_and_charts_are_data(self):
        found = data(page.html(MARKDOWN, [CHART]))
        self.assertEqual(found["title"], "A <paper>, again")
        texts = [block["text"] for block in found["blocks"] if "text" in block]
        self.assertEqual(texts, ["Made by reproduce of this.", "one and a half", "two"])
        table = {"titles": [["strategy", True], ["s, 1 / 2", False]], "rows": [["GS", "1.5"], ["</script>", "–"]]}
        self.assertEqual(found["blocks"][3:], [{"heading": "Times"}, {"chart": CHART}, {"table": table}])
        points = CHART["series"][0]["points"]
        self.assertEqual(points, [{"x": 1, "y": 2}, {"x": 2, "y": 3, "ci95": 0.5}, {"x": 3, "y": 4, "note": "cut"}])

    def test_the_published_reports_are_pages(self):
        for report in sorted(ROOT.glob("experiments/*/report.md")):
            found = data(page.html(report.read_text(), []))
            headings = [line.lstrip("# ") for line in report.read_text().splitlines() if line.startswith("#")]
            self.assertEqual(1 + sum("heading" in block for block in found["blocks"]), len(headings), report)
            rows = sum(len(block["table"]["rows"]) + 2 for block in found["blocks"] if "table" in block)
            self.assertEqual(rows, sum(line.startswith("|") for line in report.read_text().splitlines()), report)


if __name__ == "__main__":
    unittest.main()
