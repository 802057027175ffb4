"""packaging/grafana and packaging/prometheus name only metrics that the daemon has, and Prometheus accepts the rules."""

import json
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DAEMON = ROOT / "crates/cosched-daemon/src"
RULES = ROOT / "packaging/prometheus/cosched.rules.yml"
BOARD = ROOT / "packaging/grafana/cosched.json"
KINDS = {"count": ("_total",), "gauge": ("",), "Counter": ("_total",), "Gauge": ("",), "Histogram": ("_bucket", "_sum", "_count")}


def series():
    """Every series that the sources define."""
    names = set()
    for path in DAEMON.rglob("*.rs"):
        text = path.read_text().split("#[cfg(test)]")[0]
        for kind, name in re.findall(r'\ball\.(count|gauge)\(\s*"(\w+)"', text):
            names.update(f"cosched_{name}{end}" for end in KINDS[kind])
        for name in re.findall(r'\ball\.add\(\s*"(\w+)"', text):
            names.update(f"cosched_{name}{end}" for ends in KINDS.values() for end in ends)
    return names


def named(text):
    return set(re.findall(r"\bcosched_\w+", text))


class Monitoring(unittest.TestCase):
    def test_every_metric_exists(self):
        exist = series()
        self.assertGreater(len(exist), 40)
        board = json.loads(BOARD.read_text())
        queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        queries += [str(variable["query"]) for variable in board["templating"]["list"]]
        rules = [line for line in RULES.read_text().splitlines() if "expr:" in line]
        for text in queries + rules:
            self.assertEqual(named(text) - exist, set(), text)
        self.assertTrue(all(named(query) for query in queries if "datasource" not in query and query != "prometheus"))

    def test_panels_do_not_overlap(self):
        panels = [panel["gridPos"] for panel in json.loads(BOARD.read_text())["panels"]]
        cells = [(x, y) for p in panels for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
        self.assertEqual(len(cells), len(set(cells)))

    def test_what_a_name_misses_is_seen(self):
        self.assertNotIn("cosched_switch_total", series())
        self.assertIn("cosched_switch_skew_seconds_bucket", series())

    @unittest.skipUnless(shutil.which("promtool"), "SKIPPED: no promtool (tools/setup test)")
    def test_prometheus_takes_the_rules(self):
        done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
