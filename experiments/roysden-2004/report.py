"""The report: published and measured side by side, in Markdown."""

import plan
import results
from figures import TITLES, title


def text(found, bars, regressions, published, published_regression, made):
    """Everything; `made`: what it was measured on."""
    parts = [head(made)]
    for version in plan.VERSIONS:
        for condition in plan.CONDITIONS:
            if condition in found.get(version, {}):
                parts.append(table(version, condition, found[version][condition], published[version] if condition == "alone" else {}))
    parts.append(regression_text(regressions, published_regression))
    parts.append(statements_text(results.statements(found)))
    parts.append(bars_text(bars))
    return "\n".join(parts)


def head(made):
    return f"""# Scheduling of pipelines, again: report

Made by `experiments/roysden-2004/reproduce` on {made['date']} (commit {made['commit']}): {made['cpus']} CPUs, Linux {made['kernel']}.
Columnsort of {made['bytes'] / 1e6:.0f} MB (compute-bound, comparison sort by two sorters, files {made['files']}) and {made['bytes'] * 2 / 1e6:.0f} MB (I/O-bound,
radix sort by one, O_DIRECT, the disk {made['disk']}) of 100-byte records with {made['memory']} of buffers; {made['repetitions']} repetitions, in each of them every
setting once, in an order that is drawn, and the default a second time. Means are the paper's way; **ratio** is the median of clock time against the
default's of the same repetition, with its 95 % interval (bootstrap). Absolute times compare a CPU of today with one of 2004.
"""


def table(version, condition, arms, paper):
    lines = [f"## {version}-bound, {plan.CONDITIONS[condition]}", "", f"[{title(version, condition)}](page.html)", ""]
    base = paper.get("default", {}).get("clock_s")
    lines += ["| setting | published clock, s | ratio | measured clock, s | user | system | CPU use, % | ratio [95 %] | |", "|---|---|---|---|---|---|---|---|---|"]
    for arm in (*plan.ARMS, "default again"):
        if arm not in arms:
            continue
        one, said = arms[arm], paper.get(arm)
        published = f"{said['clock_s']:.2f} | {said['clock_s'] / base:.3f}" if said else " | "
        verdict = {-1: "**faster**", 1: "**slower**", 0: ""}[results.differs(one)] if arm != "default" else ""
        lines.append(f"| {TITLES[arm]} | {published} | {one['clock_s']:.2f} ± {one['stderr_s']:.2f} | {one['user_s']:.2f} | {one['system_s']:.2f} | "
                     f"{one['use_percent']:.0f} | {results.interval(one)} | {verdict} |")
    return "\n".join(lines) + "\n"


def regression_text(found, paper):
    lines = ["## Table 5: clock time by its parts (least squares, t in parentheses, all runs without other load)", "",
             "| version | variable | published | measured |", "|---|---|---|---|"]
    for version, fit in sorted(found.items()):
        for name, (coefficient, t) in fit.items():
            said = paper[version][name]
            # The paper prints the sizes of its t statistics.
            measured = f"{coefficient:.3f} ({abs(t):.1f})" if t is not None else f"{coefficient:.3f}"
            lines.append(f"| {version} | {name} | {said[0]} ({said[1]}) | {measured} |")
    return "\n".join(lines) + "\n"


def statements_text(asked):
    lines = ["## What the paper says, and what holds here", "", "| the paper | read as | ratio [95 %] | |", "|---|---|---|---|"]
    lines += [f"| {said} | {read} | {numbers} | {verdict if verdict != 'does not hold' else '**does not hold**'} |" for said, read, numbers, verdict in asked]
    return "\n".join(lines) + "\n"


def bars_text(rows):
    lines = ["## Autotune: at most 1 % worse than the default, at most 2 % worse than the best fixed setting", "",
             "The best fixed setting is the one with the least median here, so noise has helped it; *default again* against it shows how much.", "",
             "| version | condition | to the default [95 %] | | best fixed | to it [95 %] | default again to it | |", "|---|---|---|---|---|---|---|---|"]
    for version, condition, auto, best, against, kept, near in rows:
        again = results.interval(against["default again"]) if "default again" in against else ""
        lines.append(f"| {version} | {condition} | {results.interval(auto)} | {kept} | {TITLES[best]} | {results.interval(against['auto'])} | {again} | {near} |")
    return "\n".join(lines) + "\n"

