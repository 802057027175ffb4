"""From runs to the tables' numbers, and the paper's statements as questions to them."""

import csv
import statistics

import stats

WORSE = 1.01  # the bar of autotune: never worse than the default by more than 1 %
RUNS_MIN = 6  # of five, all lie on one side of their median's true value in 6 % of cases
NEAR_BEST = 1.02  # and within 2 % of the best fixed setting
FIXED = ("nice-down-io", "nice-up-io", "short-slices", "short-and-long-slices", "batch", "idle", "affinity", "one-sorter", "replicate")


def cell(reports, base):
    """Means as the paper's tables have them, and the clock time against the default's of the same repetition."""
    clock = [report["clock_s"] for report in reports]
    ratio, low, high = stats.paired(clock, [report["clock_s"] for report in base])
    mean = {name: statistics.mean(report[name] for report in reports) for name in ("user_s", "system_s", "clock_s", "use_percent")}
    deviation = statistics.stdev(clock) if len(clock) > 1 else 0.0
    return {**mean, "runs": len(clock), "median_s": statistics.median(clock), "stderr_s": deviation / len(clock) ** 0.5,
            "ratio": ratio, "low": low, "high": high}


def collect(runs, report_of):
    """{version: {condition: {arm: cell}}}"""
    grouped = {}
    for run in sorted(runs, key=lambda run: run.repetition):
        grouped.setdefault((run.version, run.condition), {}).setdefault(run.name(), []).append(report_of(run))
    found = {}
    for (version, condition), arms in grouped.items():
        found.setdefault(version, {})[condition] = {arm: cell(reports, arms["default"]) for arm, reports in arms.items()}
    return found


def regressions(runs, report_of, condition="alone"):
    """{version: {variable: (coefficient, t)}}: Table 5, over all runs of the paper's arms without other load."""
    found = {}
    for version in {run.version for run in runs}:
        reports = [report_of(run) for run in runs if run.version == version and run.condition == condition]
        if len(reports) < 8:
            continue
        names = ("user_s", "system_s", "use_percent")
        fit = stats.least_squares([[report[name] for name in names] for report in reports], [report["clock_s"] for report in reports])
        if fit:
            found[version] = dict(zip(names, fit[1:]))
    return found


def published(path):
    """{version: {arm: row}} of Tables 3 and 4."""
    found = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            numbers = {name: float(row[name]) for name in ("user_s", "system_s", "clock_s", "use_percent")}
            found.setdefault(row["version"], {})[row["arm"]] = {**numbers, "observations": int(row["observations"])}
    return found


def published_regression(path):
    """{version: {variable: (coefficient, t)}} of Table 5."""
    found = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            found.setdefault(row["version"], {})[row["variable"]] = (float(row["coefficient"]), float(row["t"]))
    return found


def differs(one):
    """-1 faster than the default, 1 slower, 0 where the interval contains 1 or there are too few runs for one of 95 %."""
    if one["runs"] < RUNS_MIN:
        return 0
    return -1 if one["high"] < 1 else 1 if one["low"] > 1 else 0


def statements(found):
    """[(what the paper says, how it is read here, the numbers, whether it holds)]."""
    asked = []

    def ask(said, read, one, holds):
        asked.append((said, read, f"{one['ratio']:.3f} [{one['low']:.3f}, {one['high']:.3f}]", holds))

    compute, io = (found.get(version, {}).get("alone", {}) for version in ("compute", "io"))
    if "nice-up-io" in compute:
        ask("compute-bound: nice up for I/O gains 5 %", "the interval is below 1", compute["nice-up-io"], differs(compute["nice-up-io"]) < 0)
    for arm in ("nice-down-io", "nice-up-io"):
        if arm in io:
            ask(f"I/O-bound: {arm} gains nothing", "the interval is not below 1", io[arm], differs(io[arm]) >= 0)
    for version, arms in (("compute", compute), ("io", io)):
        for arm in ("adjust-once", "adjust-up-down"):
            if arm in arms:
                ask(f"{version}: {arm} gains at most about 1 %", "not more than 2 % faster", arms[arm], arms[arm]["high"] >= 0.98)
    return asked


def bars(found):
    """[(version, condition, autotune's ratio to the default, and to the best fixed setting, both bars kept)]."""
    rows = []
    for version, conditions in found.items():
        for condition, arms in conditions.items():
            fixed = [arms[arm]["median_s"] for arm in FIXED if arm in arms]
            if "auto" in arms and fixed:
                auto = arms["auto"]
                best = auto["median_s"] / min(*fixed, arms["default"]["median_s"])
                rows.append((version, condition, auto["ratio"], best, auto["ratio"] <= WORSE and best <= NEAR_BEST))
    return rows
