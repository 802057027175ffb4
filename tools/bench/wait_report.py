"""The tables of wait: the values from the runs, the bars, Markdown."""

from figures import median, table as make_table

ALTERNATIVES = ("linux", "gang", "local-sb")
# Bars of the issue "Waiting well".
AUTO_OVER_BEST_MAX = 1.05
LINUX_OVER_AUTO_MIN = 1.5
# "At least as fast"; the medians of a few equal runs differ by a twentieth.
RANKS_OVER_BEST_MAX = 1.05
WAY_MIN = 0.5
CPU_SHARE_WAITS = 0.7
MAIN_PHASE_MAX = 1.01
LATENCY_MAX = 1.02


def makespan_s(runs):
    """(median, whether it is only a lower bound), or (None, False) when nothing ended."""
    times = [run["makespan_s"] for run in runs if run["makespan_s"] is not None]
    return median(times), any(run.get("past_limit") for run in runs)


def main_phase_s(runs):
    """The median of the times that the jobs themselves report."""
    return median([job["main_phase_s"] for run in runs for job in run.get("jobs") or [] if job])


def number(value, at_least=False, digits=2):
    return "-" if value is None else f"{'≥' if at_least else ''}{value:.{digits}f}"


def verdict(good):
    return {True: "ok", False: "MISSED", None: ""}[good]


def case_name(case):
    return ", ".join(str(case[key]) for key in ("program", "mpi", "transport") if key in case)


def sharing_rows(case):
    """A row for each j: slowdowns by arm, then the bars."""
    alone_s, _ = makespan_s(case["runs"]["linux"][1])
    rows = []
    for j in sorted(case["runs"]["linux"]):
        times = {name: makespan_s(runs[j]) for name, runs in case["runs"].items()}
        row = [case_name(case), number(case.get("cpu_share")), j]
        row += [number(s and alone_s and s / alone_s, bound) for s, bound in times.values()]
        bars = sharing_bars(case, j, alone_s, times)
        row += [bars["best_arm"], *(f"{number(value, bound)} {verdict(good)}".strip()
                                    for value, bound, good in (bars["over_best"], bars["gain"], bars["way"]))]
        rows.append(row)
    return rows


def sharing_bars(case, j, alone_s, times):
    """Each bar: (value, whether it is a lower bound, whether it holds; None where it does not apply)."""
    nothing = (None, False, None)
    ended = {name: s for name, (s, bound) in times.items() if s is not None and not bound}
    bars = {"best_arm": min(ended, key=ended.get) if ended else "-", "over_best": nothing, "gain": nothing,
            "way": nothing}
    auto_s, auto_bound = times.get("auto", (None, False))
    if auto_s is None or not alone_s:
        return bars
    others = [ended[name] for name in ALTERNATIVES if name in ended]
    if others:
        ratio = auto_s / min(others)
        # A run that was ended at the limit may prove that a bar is missed, or met, but not the opposite.
        bars["over_best"] = (ratio, auto_bound, False if ratio > AUTO_OVER_BEST_MAX else None if auto_bound else True)
    linux_s, linux_bound = times["linux"]
    if linux_s is not None:
        gain, good = linux_s / auto_s, None
        if linux_s > 2 * j * alone_s and not auto_bound:
            good = True if gain >= LINUX_OVER_AUTO_MIN else None if linux_bound else False
        bars["gain"] = (gain, linux_bound, good)
    share = case.get("cpu_share")
    if share is not None and share < CPU_SHARE_WAITS and j > 1 and not auto_bound:
        way = (j - auto_s / alone_s) / (j - max(1.0, j * share))
        bars["way"] = (way, False, way >= WAY_MIN)
    return bars


def sharing_head(case):
    return ["program", "CPU share alone", "j", *case["runs"], "best arm", f"auto/best (≤ {AUTO_OVER_BEST_MAX})",
            f"linux/auto (≥ {LINUX_OVER_AUTO_MIN})", f"way (≥ {WAY_MIN})"]


def ranks_rows(cases):
    ways = list(dict.fromkeys(name for case in cases for name in case["runs"]))
    rows = []
    for case in cases:
        times = {name: makespan_s(runs) for name, runs in case["runs"].items()}
        row = [f"{case['program']}, {case['mpi']}", case["ranks"], *(number(*times.get(name, (None, False)))
                                                                    for name in ways)]
        auto_s, auto_bound = times.get("auto", (None, False))
        others = [s for name, (s, bound) in times.items() if name in ("default", "yield", "no yield") and s and not bound]
        default_s, default_bound = times["default"]
        best = auto_s / min(others) if auto_s and others else None
        good = None if best is None else best <= RANKS_OVER_BEST_MAX
        row += [f"{number(best, auto_bound)} {verdict(good)}".strip(),
                number(default_s and auto_s and default_s / auto_s, default_bound)]
        rows.append(row)
    return ["program", "ranks", *(f"{name} s" for name in ways), "auto / best of the launcher's", "default/auto"], rows


def alone_rows(cases):
    """Medians relative to plain Linux's: the main phase, or the latency and the time of 1 MiB for pingpong."""
    arms = list(cases[0]["runs"])
    rows = []
    for case in cases:
        name = case_name(case)
        values = [("main phase s", main_phase_s, MAIN_PHASE_MAX)]
        if case["program"] == "pingpong":
            values = [("latency us", lambda runs: of_jobs(runs, "latency_us"), LATENCY_MAX),
                      ("us/MiB", lambda runs: of_jobs(runs, "bandwidth_mb_per_s", lambda v: 1048576 / v), LATENCY_MAX)]
        for what, value_of, most in values:
            plain = value_of(case["runs"]["linux"])
            row = [name, what, number(plain, digits=3)]
            for arm in arms[1:]:
                value = value_of(case["runs"][arm])
                ratio = value / plain if value and plain else None
                good = ratio <= most if ratio is not None and arm == "auto" else None
                row.append(f"{number(ratio, digits=3)} {verdict(good)}".strip())
            rows.append(row)
    return ["program", "what", "linux", *(f"{arm}/linux" for arm in arms[1:])], rows


def of_jobs(runs, key, convert=float):
    return median([convert(job[key]) for run in runs for job in run.get("jobs") or [] if job])


def progress(case):
    """The case that was just measured, as text."""
    head, rows = sharing_head(case), sharing_rows(case)
    return make_table(f"wait: {case_name(case)}", head[1:], [row[1:] for row in rows])


def progress_ranks(case):
    head, rows = ranks_rows([case])
    return make_table(f"wait: more ranks than CPUs: {case_name(case)}", head[1:], [row[1:] for row in rows])


def progress_alone(case):
    head, rows = alone_rows([case])
    return make_table(f"wait: alone: {case_name(case)}", head[1:], [row[1:] for row in rows])


def tables(result):
    """(title, head, rows) of each table that was measured."""
    found = []
    if result["sharing"]:
        rows = [row for case in result["sharing"] for row in sharing_rows(case)]
        found.append(("s_j = makespan of j equal jobs / of one alone under plain Linux; medians",
                      sharing_head(result["sharing"][0]), rows))
    if result["ranks"]:
        found.append(("more ranks than CPUs in one job; medians", *ranks_rows(result["ranks"])))
    if result["alone"]:
        found.append(("a job alone on its CPUs; ratios of medians", *alone_rows(result["alone"])))
    return found


def problems(result):
    """The cases that did not run or did not end."""
    found = []
    for case in [*result["sharing"], *result["ranks"], *result["alone"]]:
        for arm, runs in case["runs"].items():
            for run in [run for some in runs.values() for run in some] if isinstance(runs, dict) else runs:
                if run.get("failed"):
                    found.append(f"{case_name(case)}: {arm}: {run['failed'].strip().splitlines()[-1]}")
    return found


def lines(result):
    text = [line for title, head, rows in tables(result) for line in make_table(f"wait: {title}", head, rows)]
    return text + [f"    FAILED: {problem}" for problem in problems(result)]


def write(result, path):
    """The same as Markdown."""
    text = ["# Waiting: live tables", "", " · ".join(f"{name} {value}" for name, value in result["options"].items()
                                                     if name not in ("bin", "programs", "out", "part")), ""]
    for title, head, rows in tables(result):
        text += [f"## {title[0].upper()}{title[1:]}", "", f"| {' | '.join(map(str, head))} |",
                 f"|{'---|' * len(head)}"]
        text += [f"| {' | '.join(map(str, row))} |" for row in rows] + [""]
    text += [f"- failed: {problem}" for problem in problems(result)]
    text += ["", "≥: a run was ended at the limit. CPU share alone: CPU time of a job that blocks at once, over its time "
             "alone under plain Linux. best arm: the fastest of all in the row. way: from gang's s_j = j to "
             "max(1, j × CPU share)."]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(text) + "\n")
