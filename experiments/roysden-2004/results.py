"""From runs to the tables' numbers, and the paper's statements as questions to them."""

import csv
import statistics

import stats

WORSE = 1.01  # the bar of autotune: never worse than the default by more than 1 %
NOTHING = 0.98  # less than that is left to gain: nothing
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


def group(runs, report_of):
    """{(version, condition): {arm: reports by repetition}}"""
    grouped = {}
    for run in sorted(runs, key=lambda run: run.repetition):
        grouped.setdefault((run.version, run.condition), {}).setdefault(run.name(), []).append(report_of(run))
    return grouped


def collect(runs, report_of):
    """{version: {condition: {arm: cell}}}"""
    found = {}
    for (version, condition), arms in group(runs, report_of).items():
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


def gains(one, below):
    """Whether a setting is faster than `below` times the default; False where less than 2 % are left to gain, None where neither is sure."""
    if one["runs"] < RUNS_MIN:
        return None
    return True if one["high"] < below else False if one["low"] > NOTHING else None


def statements(found):
    """[(what the paper says, how it is read here, the numbers, "holds", "does not hold" or "not resolved")]."""
    asked = []

    def ask(said, read, one, wanted):
        found = gains(one, 1.0 if wanted else NOTHING)
        verdict = {None: "not resolved", wanted: "holds"}.get(found, "does not hold")
        asked.append((said, read, interval(one), verdict))

    compute, io = (found.get(version, {}).get("alone", {}) for version in ("compute", "io"))
    if "nice-up-io" in compute:
        ask("compute-bound: nice up for I/O gains 5 %", "the interval is below 1", compute["nice-up-io"], True)
    for arm in ("nice-down-io", "nice-up-io"):
        if arm in io:
            ask(f"I/O-bound: {arm} gains nothing", "the interval begins above 0.98", io[arm], False)
    for version, arms in (("compute", compute), ("io", io)):
        for arm in ("adjust-once", "adjust-up-down"):
            if arm in arms:
                ask(f"{version}: {arm} gains at most about 1 %", "the interval begins above 0.98", arms[arm], False)
    return asked


def interval(one):
    """In words."""
    return f"{one['ratio']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"


def bar(one, most):
    """Whether a bar is kept: "kept", "missed", or "not resolved" where the interval of the ratio has it within."""
    if one["runs"] < RUNS_MIN or one["low"] <= most < one["high"]:
        return "not resolved"
    return "kept" if one["high"] <= most else "missed"


def bars(found, reports):
    """[(version, condition, autotune against the default, the best fixed setting, autotune against that, verdicts)].

    The best of a dozen noisy medians looks better than it is; the default again against the same setting says by how much."""
    rows = []
    for version, conditions in found.items():
        for condition, arms in conditions.items():
            fixed = [arm for arm in ("default", *FIXED) if arm in arms]
            if "auto" not in arms or len(fixed) < 2:
                continue
            best = min(fixed, key=lambda arm: arms[arm]["median_s"])
            grouped = reports[version, condition]
            against = {arm: cell(grouped[arm], grouped[best]) for arm in ("auto", "default again") if arm in grouped}
            rows.append((version, condition, arms["auto"], best, against, bar(arms["auto"], WORSE), bar(against["auto"], NEAR_BEST)))
    return rows
