"""experiments/page.py: a Markdown report and its charts as data in the frame of all reports."""

import json
import pathlib
import unittest

from experiment import EXPERIMENTS, load

ROOT = EXPERIMENTS.parent

(page,) = load("page")

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
    return json.loads(page.data_of(html))


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

    def test_the_published_pages_are_in_the_frame_of_today(self):
        for published in sorted(EXPERIMENTS.glob("*/page.html")):
            text = published.read_text()
            self.assertEqual(text, page.framed(page.data_of(text)), f"{published}: cd web && npm run build")

    def test_the_published_pages_have_the_charts_of_their_results(self):
        for name in ("zhang-2000", "strazdins-2004", "llnl-digital-alpha", "roysden-2004"):
            folder = EXPERIMENTS / name
            figures, results = load("figures", "results", folder=folder)
            found = json.loads((folder / "results.json").read_text())
            measured = name in ("llnl-digital-alpha", "roysden-2004")
            charts = list(figures.all_figures(found["tables"], results.published(folder / "published.csv")) if measured else figures.all_figures(found))
            shown, wanted = (data(text) for text in ((folder / "page.html").read_text(), page.html((folder / "report.md").read_text(), charts)))
            for block in (*shown["blocks"], *wanted["blocks"]):
                # The file of results is sorted by name; what a run has found is not.
                block.get("chart", {"series": []})["series"].sort(key=lambda series: series["name"])
            self.assertEqual(shown, wanted, name)
            self.assertCountEqual([block["chart"]["title"] for block in shown["blocks"] if "chart" in block], [chart["title"] for chart in charts], name)
            lines = {series["name"].split(", ")[-1] for chart in charts for series in chart["series"]}
            self.assertGreaterEqual(lines, {"published limit", "as published"} if name == "zhang-2000" else {"published"})


if __name__ == "__main__":
    unittest.main()
