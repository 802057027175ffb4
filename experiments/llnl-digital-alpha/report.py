"""The report: published and measured side by side, in Markdown."""

import figures
import plan
import results


def text(found, published, made):
    """Everything; `made`: what it was measured on."""
    parts = [head(made)]
    parts += [table_text(plan_table, found[plan_table.number], published[plan_table.number], made["cpus"])
              for plan_table in plan.TABLES if plan_table.number in found]
    parts.append(statements_text(results.statements(found)))
    return "\n".join(parts)


def head(made):
    return f"""# LLNL's gang scheduler, again: report

Made by `experiments/llnl-digital-alpha/reproduce` on {made['date']} (commit {made['commit']}): {made['cpus']} CPUs, Linux {made['kernel']},
{made['repetitions']} alternating runs of each cell (the paper: twenty), the hypervisor kept {made['stolen']:.1%} of the CPUs.
MFLOPS are by the CPU time used, as in the paper, mean ± standard deviation. Absolute values compare a CPU of today with one of
1997; what can be compared is the ratio of the arms, the deviation, and the speedup.
"""


def table_text(table, arms, paper, cpus):
    beside = plan.competitors(table, cpus)
    charts = [figures.title_rate(table), *([figures.title_spread(table)] if figures.has_spread(table) else [])]
    lines = [f"## Table {table.number}: {table.title}", "", *(part for title in charts for part in (f"[{title}](page.html)", "")),
             f"`{table.program} --n {table.order}`, {beside} single-threaded programs beside (the paper: "
             f"{round(table.competitors_per_cpu * 12)} on 12 CPUs).", "",
             "| threads | | published | speedup | measured | speedup | worst run | elapsed, s |", "|---|---|---|---|---|---|---|---|"]
    for threads in sorted(arms["gang"]):
        for arm in plan.ARMS:
            said, here = paper.get(arm, {}).get(threads), arms[arm][threads]
            lines.append(f"| {threads} | {arm} | {published_text(said)} | {here['mean']:.0f} ± {here['deviation']:.0f} | {here['speedup']:.2f} | "
                         f"{here['least']:.0f} | {here['elapsed_s']:.2f} |")
    for threads in sorted(arms["gang"]):
        lines.append(ratio_text(threads, arms, paper))
    return "\n".join(lines) + "\n"


def published_text(said):
    if said is None:
        return "not in the table | "
    rate = "" if said["mflops"] is None else f"{said['mflops']} ± {said['deviation']}"
    speedup = "" if said["speedup"] is None else f"{said['speedup']:.2f}"
    return f"{rate} | {speedup}"


def ratio_text(threads, arms, paper):
    measured = arms["gang"][threads]["mean"] / arms["unix"][threads]["mean"]
    both = [paper.get(arm, {}).get(threads, {}).get("mflops") for arm in plan.ARMS]
    said = f"{both[0] / both[1]:.2f}" if all(both) else ""
    return f"| {threads} | gang / UNIX | {said} | | {measured:.2f} | | | |"


def statements_text(asked):
    lines = ["## What the paper says, and what holds here", "", "| the paper | read as | measured | |", "|---|---|---|---|"]
    lines += [f"| {said} | {read} | {numbers} | {'holds' if holds else '**does not hold**'} |" for said, read, numbers, holds in asked]
    return "\n".join(lines) + "\n"
