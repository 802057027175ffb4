"""The report: published and measured side by side, in Markdown."""

import plan
import results

TITLES = {
    "default": "default", "nice-down-io": "nice down I/O (raised)", "nice-up-io": "nice up I/O (lowered)",
    "adjust-once": "dynamic up", "adjust-up-down": "dynamic up, down", "short-slices": "short slices for I/O",
    "short-and-long-slices": "and long ones for what computes", "batch": "SCHED_BATCH for what does not limit",
    "idle": "SCHED_IDLE for these", "affinity": "a CPU for each stage, in turn", "one-sorter": "one sorter less", "replicate": "one sorter more",
    "workers": "run to completion", "auto": "autotune", "default again": "default again (noise)",
}


def text(found, regressions, published, published_regression, made):
    """Everything; `made`: what it was measured on."""
    parts = [head(made)]
    for version in plan.VERSIONS:
        for condition in plan.CONDITIONS:
            if condition in found.get(version, {}):
                parts.append(table(version, condition, found[version][condition], published[version] if condition == "alone" else {}))
    parts.append(regression_text(regressions, published_regression))
    parts.append(statements_text(results.statements(found)))
    parts.append(bars_text(results.bars(found)))
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
    lines = [f"## {version}-bound, {plan.CONDITIONS[condition]}", ""]
    base = paper.get("default", {}).get("clock_s")
    lines += ["| setting | published clock, s | ratio | measured clock, s | user | system | CPU use, % | ratio [95 %] | |", "|---|---|---|---|---|---|---|---|---|"]
    for arm in (*plan.ARMS, "default again"):
        if arm not in arms:
            continue
        one, said = arms[arm], paper.get(arm)
        published = f"{said['clock_s']:.2f} | {said['clock_s'] / base:.3f}" if said else " | "
        verdict = {-1: "**faster**", 1: "**slower**", 0: ""}[results.differs(one)] if arm != "default" else ""
        lines.append(f"| {TITLES[arm]} | {published} | {one['clock_s']:.2f} ± {one['stderr_s']:.2f} | {one['user_s']:.2f} | {one['system_s']:.2f} | "
                     f"{one['use_percent']:.0f} | {one['ratio']:.3f} [{one['low']:.3f}, {one['high']:.3f}] | {verdict} |")
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
    lines += [f"| {said} | {read} | {numbers} | {'holds' if holds else '**does not hold**'} |" for said, read, numbers, holds in asked]
    return "\n".join(lines) + "\n"


def bars_text(rows):
    lines = ["## Autotune: at most 1 % worse than the default, at most 2 % worse than the best fixed setting", "",
             "| version | condition | to the default | to the best fixed | |", "|---|---|---|---|---|"]
    lines += [f"| {version} | {condition} | {default:.3f} | {best:.3f} | {'kept' if kept else '**missed**'} |"
              for version, condition, default, best, kept in rows]
    return "\n".join(lines) + "\n"
